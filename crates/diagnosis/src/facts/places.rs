//! Where the launching threads are while a device waits for them.

use host::idle::{IdlePlace, IdlePlaces, idle_places_on};
use report::units::time;

use super::Device;

/// Places on the launching threads from this share of the waiting on are named.
const PLACE_SHARE: f64 = 0.1;
/// A line with this much of it is around the others, where their sum is more than all.
const AROUND: f64 = 0.9;
/// Waits for others are named from this share of it on.
const OTHERS_SHARE: f64 = 0.05;
/// Places that a sentence names.
const PLACES: usize = 3;

impl Device<'_> {
    /// Where the launching threads are while it waits, in the time that its bar is of.
    fn places(&self) -> Option<&IdlePlaces> {
        let facts = self.facts;
        facts.places.as_ref().unwrap_or(&facts.host.idle_places).get(self.name)
    }

    /// How long its launching threads wait for another process or thread while it stands still, and in which function.
    #[must_use]
    pub fn waits_for_others(&self) -> Option<&IdlePlace> {
        self.facts.others.iter().find(|(device, _)| device == self.name).map(|(_, place)| place)
    }

    /// Where they are before late launches alone, which bounds and findings are of.
    fn late_places(&self) -> Option<&IdlePlaces> {
        let facts = self.facts;
        let of = |device: &Device<'_>| {
            let late = device.late_times();
            Some(idle_places_on(facts.slices, facts.gpu, device.id, Some(&late)))
        };
        facts.late_places.get_or_init(|| facts.of_each(of)).get(self.id as usize)?.as_ref()
    }

    /// The innermost line of Python that is open for most of the time in which it waits for the launching threads.
    #[must_use]
    pub(crate) fn waits_at(&self) -> Option<&IdlePlace> {
        self.places()?.around.as_ref()
    }

    /// The function that launches nothing and in which they are for most of that time.
    #[must_use]
    pub(crate) fn without_launch(&self) -> Option<&IdlePlace> {
        self.places()?.without_launch.first()
    }

    /// The places on the launching threads at which it waits most, and for how long, the most first: lines of Python, or without such ops
    /// with all that they call.
    /// Without the time in which they wait for another process or thread.
    fn waits_at_each(&self) -> Vec<(&IdlePlace, i64)> {
        let waits = self.late_places();
        let places = waits.map_or(&[][..], |waits| match waits.lines.is_empty() {
            true => &waits.calls,
            false => &waits.lines,
        });
        let all = waits.map_or(0, |waits| waits.host_ns);
        let own = places.iter().map(|place| (place, place.total_ns - place.others_ns));
        let mut found: Vec<(&IdlePlace, i64)> =
            own.filter(|(_, ns)| *ns as f64 >= PLACE_SHARE * all as f64).collect();
        trace::sort_by_key(&mut found, |(_, ns)| std::cmp::Reverse(*ns));
        // (A line around the others, as of the function that is the program, says nothing beside them.)
        let sum = found.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        let is_around = |ns: i64| ns as f64 >= AROUND * all as f64 && sum > all;
        if found.len() > 1 && is_around(found[0].1) {
            found.remove(0);
        }
        found
    }

    /// Where the launching thread is while it waits, in a sentence; empty where no place stands out.
    #[must_use]
    pub(crate) fn where_it_waits(&self) -> String {
        let of = |(place, ns): (&IdlePlace, i64)| {
            let inside = match place.inside.as_str() {
                inside if !inside.is_empty() && place.others_ns == 0 => {
                    format!(", mostly in {inside}")
                }
                _ => String::new(),
            };
            (ns, format!("{} ({}{inside})", place.name, time(ns)))
        };
        let waits = self.late_places();
        let places = self.waits_at_each().into_iter().take(PLACES);
        let mut named: Vec<(i64, String)> = places.map(of).collect();
        // (Beside ops, Python between them may be the largest place.)
        let outside = waits.filter(|waits| waits.lines.is_empty());
        let outside = outside.map_or(0, |waits| waits.outside_ops_ns);
        if let Some((most_ns, _)) = named.first()
            && outside > *most_ns
        {
            named.insert(0, (outside, format!("no recorded op ({})", time(outside))));
        }
        let named: Vec<String> = named.into_iter().map(|(_, text)| text).collect();
        // (A little of it is left out without a word.)
        let is_much = |place: &&IdlePlace| {
            waits.is_none_or(|waits| place.total_ns as f64 >= OTHERS_SHARE * waits.host_ns as f64)
        };
        let others = self.waits_for_others().filter(is_much).map(|place| {
            format!(
                " For {} it waits for another process or thread in {}, which the bound excludes.",
                time(place.total_ns),
                place.name
            )
        });
        let others = others.unwrap_or_default();
        match (named.is_empty(), waits) {
            (false, Some(waits)) => format!(
                "Of the {} before late launches, the launching thread is in {}.{others}",
                time(waits.host_ns),
                named.join(", ")
            ),
            _ if !others.is_empty() => {
                others.replace(" it waits", " the launching thread waits").trim_start().to_owned()
            }
            // (Stacks that ops have as a text are not read.)
            _ if self.facts.details.ops_have_stacks => String::new(),
            _ if self.facts.host.python.n == 0 && waits.is_some_and(|waits| waits.host_ns > 0) => {
                "Record with with_stack=True to see which Python lines keep it waiting.".to_owned()
            }
            _ => String::new(),
        }
    }
}
