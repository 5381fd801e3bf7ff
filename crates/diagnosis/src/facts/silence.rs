//! Idle time in which nothing is recorded on the CPU: what is recorded before and after it.

use std::collections::BTreeMap;

use host::HostSlice;
use report::short_name;
use report::units::{count, percent, time};
use timeline::intervals::{Interval, length_within, without};
use triage::WallPart;

use super::Device;

/// Pauses between ops of the same names are told together where they have this share of the time.
const MOST: f64 = 0.5;
/// One pause is told alone from this share on.
const ALONE: f64 = 0.5;
/// Of the longest one: shorter ones are what lies between a launch and the next op.
const SHORT: i64 = 20;
/// Fewer pauses show no growth, and are not equal but by chance.
const FEWEST: usize = 4;
/// They grow where the last is so many times as long as the first, and the later half as the earlier one.
const GROWS: i64 = 2;
/// Equal ones differ by no more than this share of the shortest, which is no shorter than that.
const EQUAL: f64 = 0.02;
const LEAST_EQUAL_NS: i64 = 10_000_000;
/// No piece of a gap in pieces is longer than one in so many of all, and an op that begins so often in it is named.
const PIECES: i64 = 4;
const OFTEN: u64 = 20;
/// Characters of a name.
const NAME: usize = 60;

/// The ops, or calls, that end last before a pause and begin first after it.
type Between<'n> = (Option<&'n str>, Option<&'n str>);

/// Idle time of a device in which nothing is recorded on the CPU.
pub(crate) struct Silence {
    /// All of it.
    pub(crate) ns: i64,
    /// Where most of it lies: `80.1 ms of it in one pause after aten::cat and before aten::to`.
    pub(crate) place: String,
    /// What the lengths of the pauses tell; may be empty.
    pub(crate) lengths: String,
}

impl Device<'_> {
    /// When nothing is recorded on the CPU while it is idle, and no annotation of the program is open, which has a finding of its own; `None`
    /// where the file has no ops at all.
    #[must_use]
    pub(crate) fn silence(&self) -> Option<Silence> {
        let pauses = without(&self.times(WallPart::Unexplained), &self.times_in_ranges());
        let ns = pauses.iter().map(lasts).sum::<i64>();
        if self.facts.slices.ops.slices.is_empty() {
            return None;
        }
        let recorded = Recorded::of(self);
        if let Some(place) = self.silence_in_one_gap(&pauses, ns, &recorded) {
            return Some(Silence { ns, place, lengths: String::new() });
        }
        let longest = *pauses.iter().max_by_key(|pause| lasts(pause))?;
        let pauses: Vec<Interval> = pauses
            .into_iter()
            .filter(|pause| lasts(pause).saturating_mul(SHORT) >= lasts(&longest))
            .collect();
        let at = time(longest.0.saturating_sub(triage::zero_ns(self.facts.trace)));
        let (own_ns, n) = (time(lasts(&longest)), count(pauses.len() as u64));
        let (before, after) = recorded.around(&longest);
        let of_longest = |text: String| {
            let place = text + &named(before, after);
            Some(Silence { ns, place, lengths: String::new() })
        };
        if lasts(&longest) == ns {
            return of_longest(format!("in one pause {at} into the file"));
        }
        if lasts(&longest) as f64 >= ALONE * ns as f64 {
            return of_longest(format!("{own_ns} of it in one pause {at} into the file"));
        }
        let mut alike: BTreeMap<Between<'_>, Vec<i64>> = BTreeMap::new();
        for pause in &pauses {
            alike.entry(recorded.around(pause)).or_default().push(lasts(pause));
        }
        let sum = |times: &[i64]| times.iter().sum::<i64>();
        let ((before, after), own) = alike.into_iter().max_by_key(|(_, times)| sum(times))?;
        if (sum(&own) as f64) < MOST * ns as f64 || own.len() < 2 {
            return of_longest(format!(
                "in {n} pauses, the longest of which ({own_ns}) begins {at} into the file"
            ));
        }
        let of_all = match sum(&own) {
            all if all == ns => "in".to_owned(),
            own_ns => format!("{} of it in", time(own_ns)),
        };
        let (shortest, longest) = (time(*own.iter().min()?), time(*own.iter().max()?));
        let each = if shortest == longest { shortest } else { format!("{shortest} to {longest}") };
        let place = format!(
            "{of_all} {} pauses of {each} each{}",
            count(own.len() as u64),
            named(before, after)
        );
        Some(Silence { ns, place, lengths: lengths(&own) })
    }
}

impl Device<'_> {
    /// Where most of the time lies in one gap of the device, in pieces between ops that follow each other closely.
    fn silence_in_one_gap(
        &self,
        pauses: &[Interval],
        ns: i64,
        recorded: &Recorded<'_>,
    ) -> Option<String> {
        let gaps = self.gaps_told();
        let gap = *gaps.iter().max_by_key(|gap| length_within(pauses, **gap))?;
        let own_ns = length_within(pauses, gap);
        let longest_ns = pauses.iter().map(lasts).max()?;
        let is_one =
            own_ns as f64 >= ALONE * ns as f64 && longest_ns.saturating_mul(PIECES) < own_ns;
        let (name, n) = recorded.most_in(&gap).filter(|_| is_one)?;
        let at = time(gap.0.saturating_sub(triage::zero_ns(self.facts.trace)));
        Some(format!(
            "{} of it in one gap of {} that begins {at} into the file, between the ends and starts of ops and calls, such as {} of {}",
            time(own_ns),
            time(lasts(&gap)),
            count(n),
            short_name(name, NAME)
        ))
    }
}

/// What is recorded on the threads that launch the work of a device.
struct Recorded<'n> {
    /// Outermost ops and all calls, by end and by start. (A call in an op ends before the op, and begins after it.)
    by_end: Vec<(i64, &'n str)>,
    by_start: Vec<(i64, &'n str)>,
}

impl<'n> Recorded<'n> {
    fn of(device: &Device<'n>) -> Self {
        let slices = device.facts.slices;
        let threads = device.launching_threads();
        let ops = &slices.ops;
        let outer = (0..ops.slices.len()).filter(|at| ops.parent(*at).is_none());
        let all = outer.map(|at| &ops.slices[at]).chain(&slices.calls);
        let own: Vec<&HostSlice> =
            all.filter(|one| threads.contains(&slices.thread(one.row))).collect();
        let sorted = |of: fn(&HostSlice) -> i64| {
            let mut all: Vec<(i64, &'n str)> =
                own.iter().map(|one| (of(one), slices.name(one))).collect();
            trace::sort_by_key(&mut all, |(ns, _)| *ns);
            all
        };
        Self { by_end: sorted(|one| one.end_ns), by_start: sorted(|one| one.start_ns) }
    }

    /// What begins most often in a gap, and how often, where it is often.
    fn most_in(&self, (from, to): &Interval) -> Option<(&'n str, u64)> {
        let first = self.by_start.partition_point(|(ns, _)| ns < from);
        let own = self.by_start[first..].iter().take_while(|(ns, _)| ns < to);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        own.for_each(|(_, name)| *counts.entry(name).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(_, n)| *n)?;
        (most.1 >= OFTEN).then_some(most)
    }

    /// What ends last before a pause, and what begins first after it.
    fn around(&self, (from, to): &Interval) -> Between<'n> {
        let ended = self.by_end.partition_point(|(ns, _)| ns <= from);
        let begun = self.by_start.partition_point(|(ns, _)| ns < to);
        let before = ended.checked_sub(1).map(|at| self.by_end[at].1);
        (before, self.by_start.get(begun).map(|(_, name)| *name))
    }
}

/// How long a pause lasts, in ns.
fn lasts((from, to): &Interval) -> i64 {
    to.saturating_sub(*from)
}

/// `, after aten::cat and before aten::to`.
fn named(before: Option<&str>, after: Option<&str>) -> String {
    let name = |name| short_name(name, NAME);
    match (before, after) {
        (Some(before), Some(after)) => {
            format!(", after {} and before {}", name(before), name(after))
        }
        (Some(before), None) => format!(", after {}", name(before)),
        (None, Some(after)) => format!(", before {}", name(after)),
        (None, None) => String::new(),
    }
}

/// What the lengths of pauses between ops of the same names tell, in their order.
fn lengths(own: &[i64]) -> String {
    let (Some(first), Some(last), Some(least), Some(most)) =
        (own.first(), own.last(), own.iter().min(), own.iter().max())
    else {
        return String::new();
    };
    let (earlier, later) = own.split_at(own.len() / 2);
    let middle = |half: &[i64]| timeline::median(&mut half.to_vec()).unwrap_or_default();
    let is_more = |a: i64, b: i64| b >= a.saturating_mul(GROWS);
    if own.len() < FEWEST {
        return String::new();
    }
    if *least >= LEAST_EQUAL_NS && (most - least) as f64 <= EQUAL * *least as f64 {
        let within = percent(100.0 * (most - least) as f64 / *least as f64);
        return format!(
            " They differ by at most {within}, which suggests a timer (time.sleep, polling)."
        );
    }
    if is_more(*first, *last) && is_more(middle(earlier), middle(later)) {
        return format!(
            " They grow, from {} to {}: each round has more work of its own, or works again on what earlier rounds collected.",
            time(*first),
            time(*last)
        );
    }
    String::new()
}
