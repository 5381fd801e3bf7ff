//! Annotations of the program around idle time of which nothing else is recorded.

use std::collections::BTreeMap;

use host::HostSlice;
use host::class::Class;
use host::slices::is_step;
use report::short_name;
use report::units::time;
use timeline::intervals::{Interval, both, length, length_within, union, without};
use triage::WallPart;

use super::Device;

/// Annotations from this share of that time on are named.
const NAMED_SHARE: f64 = 0.1;
/// The rest of that time is told from this share on.
const ROUNDED_SHARE: f64 = 0.01;
/// Names that a sentence has.
const NAMES: usize = 3;
/// Characters of a name.
const NAME: usize = 60;
/// An annotation of this share of the window is around everything.
const WHOLE_SHARE: f64 = 0.8;

/// Idle time in annotations of the program, in which no op, call or frame is recorded.
pub struct InRanges {
    /// All of it.
    pub ns: i64,
    /// By the innermost annotation, most first.
    names: Vec<(String, i64)>,
}

impl InRanges {
    /// The annotation with most of it.
    #[must_use]
    pub fn most(&self) -> &str {
        self.names.first().map_or("", |(name, _)| name)
    }

    /// `evaluate (3.10 s) and save (210 ms)`; the rest, where it is more than is rounded away, as `others (44.4 ms)`.
    #[must_use]
    pub fn named(&self) -> String {
        let is_much = |(_, ns): &&(String, i64)| *ns as f64 >= NAMED_SHARE * self.ns as f64;
        let named: Vec<&(String, i64)> = self.names.iter().take(NAMES).filter(is_much).collect();
        let told_ns: i64 = named.iter().map(|(_, ns)| *ns).sum();
        let rest_ns = self.ns.saturating_sub(told_ns);
        let mut all: Vec<String> =
            named.iter().map(|(name, ns)| format!("{name} ({})", time(*ns))).collect();
        if rest_ns as f64 > ROUNDED_SHARE * self.ns as f64 && !all.is_empty() {
            all.push(format!("others ({})", time(rest_ns)));
        }
        match &all[..] {
            [] => self.most().to_owned(),
            [_] if self.names.len() == 1 => self.most().to_owned(),
            [one] => one.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    }
}

impl<'f> Device<'f> {
    /// The annotations on the threads that launch its work that are open while it stands still and nothing else is recorded. Names of steps
    /// say nothing, nor does an annotation around most of the window.
    #[must_use]
    pub(crate) fn in_ranges(&self) -> Option<&'f InRanges> {
        let facts = self.facts;
        let all = facts.in_ranges.get_or_init(|| facts.of_each(|device| device.find_ranges()));
        all.get(self.id as usize)?.as_ref()
    }

    /// The annotations that say what runs: not steps, nor one around most of the window.
    fn saying(&self) -> Vec<HostSlice> {
        let slices = self.facts.slices;
        let window_ns = self.busy_told().map_or_else(|| self.span_ns(), |(_, ns)| ns);
        let names = slices.trace.strings.marked(&|name| !is_step(name) && !name.is_empty());
        let says = |slice: &&HostSlice| {
            names[slices.trace.name(slice.row).0 as usize]
                && (slice.dur_ns() as f64) < WHOLE_SHARE * window_ns as f64
        };
        slices.annotations.iter().filter(says).copied().collect()
    }

    /// When one of them is open on a thread that launches its work.
    pub(super) fn times_in_ranges(&self) -> Vec<Interval> {
        let threads = self.launching_threads();
        let all = self.saying().into_iter();
        let own = all.filter(|one| threads.contains(&self.facts.slices.thread(one.row)));
        union(own.map(|one| one.interval()).collect())
    }

    /// Whether most of its work runs while the annotation with most of [`Device::in_ranges`] is open, or one around that, though nothing is
    /// launched and waited for in it: what the CPU does there is done beside the device's work already.
    #[must_use]
    pub(crate) fn works_beside_ranges(&self) -> bool {
        let (facts, slices) = (self.facts, self.facts.slices);
        let Some(ranges) = self.in_ranges() else { return false };
        let nested = slices.nest(self.saying());
        let threads = self.launching_threads();
        let waits = slices.calls.iter().filter(|call| slices.class(call) == Class::Sync);
        let waits = union(waits.map(HostSlice::interval).collect());
        // (Where the CPU waits for the device meanwhile, what follows may need its result.)
        let is_idle = |slice: &HostSlice| {
            facts.gpu.launched_in(self.id, slice).is_empty()
                && slice.dur_ns() > 0
                && length_within(&waits, slice.interval()).saturating_mul(20) < slice.dur_ns()
        };
        let own = (0..nested.slices.len()).filter(|at| {
            let slice = &nested.slices[*at];
            threads.contains(&slices.thread(slice.row))
                && short_name(slices.name(slice), NAME) == ranges.most()
                && is_idle(slice)
        });
        let around = own.filter_map(|at| {
            let outer = nested.chain(at).map(|at| &nested.slices[at]);
            outer.take_while(|slice| is_idle(slice)).last().map(HostSlice::interval)
        });
        let busy = facts.gpu.busy(self.id);
        let beside_ns = length(&both(busy, &union(around.collect())));
        beside_ns.saturating_mul(2) > length(busy)
    }

    fn find_ranges(&self) -> Option<InRanges> {
        let slices = self.facts.slices;
        let nested = slices.nest(self.saying());
        let mut left = self.times(WallPart::Unexplained);
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        for thread in self.launching_threads() {
            let range = nested.on(thread);
            for at in range.clone() {
                let slice = &nested.slices[at];
                *sums.entry(slices.name(slice)).or_default() +=
                    length_within(&left, slice.interval());
                if let Some(outer) = nested.parent(at).map(|outer| &nested.slices[outer]) {
                    let inside = (slice.start_ns, slice.end_ns.min(outer.end_ns));
                    *sums.entry(slices.name(outer)).or_default() -= length_within(&left, inside);
                }
            }
            // (A moment belongs to one thread.)
            let own = nested.slices[range].iter().map(HostSlice::interval);
            left = without(&left, &union(own.collect()));
        }
        let mut names: Vec<(String, i64)> = sums
            .into_iter()
            .filter(|(_, ns)| *ns > 0)
            .map(|(name, ns)| (short_name(name, NAME), ns))
            .collect();
        trace::sort_by_key(&mut names, |(_, ns)| std::cmp::Reverse(*ns));
        let ns = names.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        (ns > 0).then_some(InRanges { ns, names })
    }
}
