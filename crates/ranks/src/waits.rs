//! What a device or rank waits for the others.

use timeline::intervals::{Interval, both, length, union, without};

use crate::calls::RankCalls;
use crate::replay::{Waiting, when};

/// What collectives of one device wait for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Collectives that were matched.
    pub n: usize,
    /// How often this device comes last.
    pub n_last: usize,
    /// Time in which only communication runs here and a later device has not joined, in ns.
    pub exposed_ns: i64,
    /// When that is.
    pub exposed: Vec<Interval>,
    /// Time in which only communication runs here, by collectives that were matched and that all have joined, in ns: transfer.
    pub transfer_ns: i64,
    /// How much sooner its last kernel would end without, at most: less where its own launches come no earlier. `None` where it was not
    /// asked for.
    pub saves_ns: Option<i64>,
    /// The same by the device that comes last, of those for which it waits, in their order.
    pub exposed_for: Vec<WaitFor>,
    /// By how much this device comes later than the next to last, where it comes last: a sum, in ns.
    pub behind_ns: i64,
    /// Of the collectives that it joins last, those whose launch began after the next to last device had joined.
    pub n_late_launches: usize,
    /// How much later those launches began than the next to last device joined: a sum, in ns.
    pub late_launch_ns: i64,
}

/// A wait for the device that joins a collective last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// When the kernel that waits runs.
    pub(crate) kernel: Interval,
    /// All of it.
    pub(crate) times: Interval,
    /// The end of it, in which the device waits for that one alone.
    pub(crate) alone: Interval,
}

/// What a device waits for another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitFor {
    /// The one that comes last.
    pub last: String,
    /// As [`Waits::exposed_ns`].
    pub ns: i64,
    /// How much sooner its last kernel would end if this one joined no later than the next to last, at most; `None` as in
    /// [`Waits::saves_ns`].
    pub saves_ns: Option<i64>,
}

impl Waits {
    /// What it waits for one device.
    #[must_use]
    pub fn exposed_for(&self, last: &str) -> Option<&WaitFor> {
        self.exposed_for.iter().find(|wait| wait.last == last)
    }

    /// The same with what it waits for each of the others: `waiting` are the times by the one that comes last, and `matched` those of its
    /// kernels that were matched. `replays`: with what that saves.
    pub(crate) fn waiting(
        self,
        ranks: &[&RankCalls],
        at: usize,
        (waiting, matched): (&mut [Vec<Awaited>], Vec<Interval>),
        replays: bool,
    ) -> Self {
        let rank = ranks[at];
        let mut all = Vec::new();
        let mut exposed_for: Vec<(WaitFor, Vec<Waiting>)> = Vec::new();
        for (last, times) in waiting.iter_mut().enumerate() {
            let awaited = std::mem::take(times);
            let of = |times: fn(&Awaited) -> Interval| {
                awaited.iter().map(|one| (one.kernel, times(one))).collect::<Vec<Waiting>>()
            };
            let (own, alone) = (of(|one| one.times), of(|one| one.alone));
            let times = when(&own);
            if !times.is_empty() {
                let waits = both(&rank.exposed, &times);
                let (last, ns) = (ranks[last].name.clone(), length(&waits));
                exposed_for.push((WaitFor { last, ns, saves_ns: None }, alone));
                all.extend(own);
            }
        }
        // (It may wait for two at once, on two streams.)
        let waits = both(&rank.exposed, &when(&all));
        let saves_ns = replays.then(|| rank.sooner_ns(&all));
        // (A replay for the one that it waits for most; without less waiting it is done no sooner than without all.)
        let most_ns = exposed_for.iter().map(|(wait, _)| wait.ns).max().unwrap_or_default();
        let of_one = |(mut wait, waits): (WaitFor, Vec<Waiting>)| {
            wait.saves_ns = saves_ns.map(|saves_ns| match wait.ns == most_ns {
                true => rank.sooner_ns(&waits).min(saves_ns),
                false => saves_ns.min(length(&when(&waits))),
            });
            wait
        };
        Self {
            exposed_ns: length(&waits),
            transfer_ns: length(&without(&both(&rank.exposed, &union(matched)), &waits)),
            saves_ns,
            exposed_for: exposed_for.into_iter().map(of_one).collect(),
            exposed: waits,
            ..self
        }
    }

    /// The device for which it waits most.
    #[must_use]
    pub fn most(&self) -> Option<&WaitFor> {
        self.exposed_for.iter().filter(|wait| wait.ns > 0).max_by_key(|wait| wait.ns)
    }
}
