//! The recorded allocations under other settings.
//!
//! Where the driver refused memory, the peak of reserved memory is the ceiling of the device and no need of the run. There the replay
//! has the limit of what the driver granted, and counts how often the allocator must give its cache back to stay within it.

use std::collections::BTreeMap;

use super::{APART, ELSEWHERE, Settings, Start};
use crate::model::{Action, Event, Snapshot};
use crate::replay::Levels;

/// Failed allocations that are tried again under other settings.
const MOST_TRIED: usize = 32;

/// What the driver granted and refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The most that was reserved.
    granted: i64,
    /// The least that the driver refused: what was reserved with what was asked for. `None` where it refused nothing that is recorded,
    /// or no more than it granted at another time.
    pub(super) refused: Option<i64>,
    /// The first release of each retry that had success, ascending.
    retries: Vec<usize>,
    /// Failed allocations, ascending, and what the driver could grant in all at them.
    ooms: Vec<(usize, i64)>,
}

/// What a setting needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The most that is reserved.
    pub(super) peak: i64,
    /// How often the cache is given back to stay within the limit.
    pub(super) retries: u64,
    /// Whether the limit was kept so.
    pub(super) fits: bool,
    /// The failed allocations for which there is room, as indexes of events.
    pub(super) serves: Vec<usize>,
}

impl Limit {
    /// The limit of a device. `retries` are the places of the first releases of retries, and of what follows the releases.
    pub(crate) fn of(
        snapshot: &Snapshot,
        device: i64,
        levels: &Levels,
        retries: &[(usize, usize)],
    ) -> Self {
        let trace = snapshot.trace(device);
        let reserved = |at: usize| levels.reserved.get(at).copied().unwrap_or_default();
        let granted = levels.reserved.iter().copied().max().unwrap_or_default();
        let mut limit = Self { granted, ..Self::default() };
        let mut refused = i64::MAX;
        for (from, request) in retries {
            match trace.get(*request) {
                // (An expandable segment asks for less after its pages went back.)
                Some(Event { action: Action::SegmentAlloc, size, .. }) => {
                    refused = refused.min(reserved(*from).saturating_add(*size));
                    limit.retries.push(*from);
                }
                Some(Event { action: Action::SegmentMap, .. }) => limit.retries.push(*from),
                _ => {}
            }
        }
        let failed = trace.iter().enumerate().filter(|(_, event)| event.action == Action::Oom);
        let index = usize::try_from(device).unwrap_or(usize::MAX);
        limit.ooms.extend(failed.take(MOST_TRIED).filter_map(|(at, _)| {
            let free = snapshot.device_free.get(&(index, at))?;
            Some((at, reserved(at).saturating_add(*free)))
        }));
        limit.refused = Some(refused).filter(|it| limit.granted < *it && *it < i64::MAX);
        limit
    }

    /// Retries with success.
    pub(super) fn n_retries(&self) -> u64 {
        self.retries.len() as u64
    }

    /// Forgets what the replay under the recorded settings contradicts: as many retries as in the run, and no room at its failures.
    pub(super) fn check(&mut self, trace: &[Event], start: &Start, recorded: Settings) {
        let own = needs(trace, start, recorded, self).unwrap_or_default();
        if !own.fits || own.retries != self.n_retries() {
            self.refused = None;
        }
        if !own.serves.is_empty() {
            self.ooms.clear();
        }
    }
}

/// Replays the allocations; `None` if a free has no allocation.
#[inline(never)]
pub(super) fn needs(
    trace: &[Event],
    start: &Start,
    settings: Settings,
    limit: &Limit,
) -> Option<Needs> {
    let mut pools = start.pools(settings).ok()?;
    let mut needs = Needs { peak: pools.reserved, fits: true, ..Needs::default() };
    let mut places: BTreeMap<u64, u64> = start.live.keys().map(|at| (*at, *at)).collect();
    let mut next = ELSEWHERE;
    let mut new = |_: i64| {
        let address = next;
        next = next.saturating_add(APART);
        Ok::<u64, ()>(address)
    };
    let most = limit.refused.map_or(i64::MAX, |_| limit.granted);
    let is_retry = |at: &usize| limit.refused.is_some() && limit.retries.binary_search(at).is_ok();
    let mut releases = false;
    for (at, event) in trace.iter().enumerate() {
        let is_release = matches!(event.action, Action::SegmentFree | Action::SegmentUnmap);
        match event.action {
            Action::Alloc => {
                let mut placed = pools.allocate(event.size, event.stream, &mut new).ok()?;
                if placed.grown > 0 && pools.reserved > most {
                    // The driver refuses: what it would have granted goes back with the cache.
                    needs.retries += 1;
                    pools.release_block(placed.address);
                    pools.return_all();
                    placed = pools.allocate(event.size, event.stream, &mut new).ok()?;
                    needs.fits &= pools.reserved <= most;
                }
                places.insert(event.address, placed.address);
            }
            Action::FreeCompleted => {
                let address = places.remove(&event.address)?;
                if !pools.release_block(address) {
                    return None;
                }
            }
            Action::Oom => {
                let place = limit.ooms.binary_search_by_key(&at, |(at, _)| *at).ok();
                if let Some((_, most)) = place.and_then(|place| limit.ooms.get(place)) {
                    let mut tried = pools.clone();
                    tried.return_all();
                    tried.allocate(event.size, event.stream, &mut new).ok()?;
                    needs.serves.extend((tried.reserved <= *most).then_some(at));
                }
            }
            // A burst of releases is one `empty_cache`, or one retry.
            _ if is_release && !releases && !is_retry(&at) => pools.return_all(),
            _ => {}
        }
        releases = is_release;
        needs.peak = needs.peak.max(pools.reserved);
    }
    Some(needs)
}
