//! Exact dependencies between GPU slices: CUPTI's `Stream Wait Event` records the stream of the event and the call
//! that recorded it.
//!
//! What was launched on that stream before the event was recorded is what the wait is for; what is launched on the
//! waiting stream after the wait is what has to wait. Calls decide, not the times of the `cuda_sync` record: that stands
//! where the call was made, long before the stream comes to it.

use std::collections::BTreeMap;

use trace::{Details, IdToken, Stream, StreamId, StreamWait};

use timeline::before_window::each_launch;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// Pairs of GPU slices on two streams, of which one waited for the other.
pub(super) struct Edges {
    /// (the one that waited, the one it waited for), sorted.
    waited_for: Vec<(u32, u32)>,
    /// The other way round, sorted.
    awaited_by: Vec<(u32, u32)>,
}

impl Edges {
    /// `None` when the arguments tell of no wait.
    #[inline(never)]
    pub(super) fn of(gpu: &Gpu<'_>, launches: &Launches, details: &Details) -> Option<Self> {
        if details.waits.is_empty() {
            return None;
        }
        let made_at = calls(gpu, details);
        let streams = launched(gpu, launches);
        let trace = gpu.trace;
        let mut waited_for = Vec::new();
        for (row, wait) in &details.waits {
            let StreamWait { device, stream, on_stream, record } = *wait;
            let made_at = |correlation: Option<i64>| made_at.get(&correlation?).copied();
            // (Unless both calls are in the file, nothing tells what came before them.)
            let (Some(recorded_ns), Some(waited_ns)) = (made_at(record), made_at(trace.link(*row)))
            else {
                continue;
            };
            let of_stream = |stream: Option<i64>| {
                let id = Stream { device: IdToken::Int(device?), stream: IdToken::Int(stream?) };
                let at = trace.streams.iter().position(|other| *other == id)?;
                streams.get(&StreamId(u16::try_from(at).ok()?))
            };
            let (Some(on), Some(waiting)) = (of_stream(on_stream), of_stream(stream)) else {
                continue;
            };
            let before = on.partition_point(|(launch_ns, _)| *launch_ns < recorded_ns);
            let after = waiting.partition_point(|(launch_ns, _)| *launch_ns <= waited_ns);
            if let (Some((_, producer)), Some((_, consumer))) =
                (before.checked_sub(1).and_then(|at| on.get(at)), waiting.get(after))
            {
                waited_for.push((*consumer, *producer));
            }
        }
        waited_for.sort_unstable();
        waited_for.dedup();
        let mut awaited_by: Vec<(u32, u32)> = waited_for.iter().map(|(c, p)| (*p, *c)).collect();
        awaited_by.sort_unstable();
        Some(Self { waited_for, awaited_by })
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waited_for.len()
    }

    /// The slices that `slice` waited for, or that waited for it, with at most `gap_ns` between the two.
    pub(super) fn near(&self, gpu: &Gpu<'_>, slice: usize, gap_ns: i64) -> Vec<u32> {
        let here = gpu.slice(slice);
        let of = |pairs: &[(u32, u32)]| -> Vec<u32> {
            let from = pairs.partition_point(|(at, _)| (*at as usize) < slice);
            let same = pairs[from..].iter().take_while(|(at, _)| *at as usize == slice);
            same.map(|(_, other)| *other).collect()
        };
        let mut found = of(&self.waited_for);
        found.retain(|at| here.start_ns.saturating_sub(gpu.slice(*at as usize).end_ns()) <= gap_ns);
        let mut after = of(&self.awaited_by);
        after.retain(|at| gpu.slice(*at as usize).start_ns.saturating_sub(here.end_ns()) <= gap_ns);
        found.append(&mut after);
        found
    }
}

/// When the calls were made that recorded the events, and those that waited for them, by correlation.
fn calls(gpu: &Gpu<'_>, details: &Details) -> BTreeMap<i64, i64> {
    let trace = gpu.trace;
    let mut wanted: Vec<i64> = Vec::with_capacity(2 * details.waits.len());
    for (row, wait) in &details.waits {
        wanted.extend(wait.record);
        wanted.extend(trace.link(*row));
    }
    wanted.sort_unstable();
    let mut made_at = BTreeMap::new();
    each_launch(trace, |row, correlation| {
        if wanted.binary_search(&correlation).is_ok() {
            made_at.insert(correlation, trace.ts_ns(row));
        }
    });
    made_at
}

/// Per stream: its slices as (when they were launched, which), in that order.
fn launched(gpu: &Gpu<'_>, launches: &Launches) -> BTreeMap<StreamId, Vec<(i64, u32)>> {
    let mut streams: BTreeMap<StreamId, Vec<(i64, u32)>> = BTreeMap::new();
    for at in 0..gpu.len() {
        if let Some(stream) = gpu.slice(at).stream
            && let Some(launch) = launches.of_slice(at)
            && launches.is_sure(at)
        {
            streams.entry(stream).or_default().push((gpu.trace.ts_ns(launch), at as u32));
        }
    }
    streams.values_mut().for_each(|slices| slices.sort_unstable());
    streams
}
