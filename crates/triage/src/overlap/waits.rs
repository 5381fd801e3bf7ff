//! Event waits: a stream waits for an event of another stream.
//!
//! Two records tell of them. CUPTI's `Stream Wait Event` slices (raw category `cuda_sync`) stand on the
//! stream that waits. Where there are none, the runtime's `*StreamWaitEvent` calls are taken to concern the
//! next launch of their thread, which is how frameworks write them. Which stream is waited *for* stands in
//! the arguments alone (`wait_on_stream`): where they are not read, and where the runtime's calls are all there is, a
//! wait counts as evidence between two slices only where both the wait and the times agree. (Where they are, `edges`
//! knows better.)

use dialect::{calls, cuda};
use trace::{Flags, Phase, each_row};

use super::sweep::Lanes;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// How many slices are looked at around a moment; more than a GPU runs at once.
const NEAR: usize = 128;

/// The GPU slices before which their stream waited for an event.
pub(super) struct Waits {
    waited: Vec<bool>,
    /// Slices by end.
    ends: Vec<u32>,
}

impl Waits {
    /// `None` when the file records no wait.
    #[inline(never)]
    pub(super) fn of(gpu: &Gpu<'_>, launches: &Launches) -> Option<Self> {
        let trace = gpu.trace;
        let is_wait = trace
            .strings
            .marked(&|name| calls::makes_stream_wait(name) || name == cuda::STREAM_WAIT);
        if !is_wait.contains(&true) {
            return None;
        }
        let (mut on_streams, mut calls) = (Vec::new(), Vec::new());
        each_row(trace, |row| {
            if is_wait[trace.name(row).0 as usize]
                && trace.phase(row) == Phase::Complete
                && trace.flags(row).has(Flags::HAS_TS)
            {
                let of_stream = trace.name_text(row) == cuda::STREAM_WAIT;
                let waits = if of_stream { &mut on_streams } else { &mut calls };
                waits.push((trace.track(row).0, trace.ts_ns(row)));
            }
        });
        let (waits, work) = if on_streams.is_empty() {
            (calls, launched(gpu, launches))
        } else {
            (on_streams, slices(gpu))
        };
        let mut waited = vec![false; gpu.len()];
        for (track, ts_ns) in waits {
            let next =
                work.partition_point(|(other, start_ns, _)| (*other, *start_ns) < (track, ts_ns));
            if let Some((_, _, slice)) = work.get(next).filter(|(other, _, _)| *other == track) {
                waited[*slice as usize] = true;
            }
        }
        let mut ends: Vec<u32> = (0..gpu.len() as u32).collect();
        let end_ns = |at: u32| gpu.slice(at as usize).end_ns();
        trace::sort_numbers(&mut ends, &|a, b| end_ns(a).cmp(&end_ns(b)));
        Some(Self { waited, ends })
    }

    /// Whether the stream of `slice` waited before it, and another stream of the device finished something
    /// at most `gap_ns` before it began.
    pub(super) fn before(&self, gpu: &Gpu<'_>, lanes: &Lanes, slice: usize, gap_ns: i64) -> bool {
        if !self.waited[slice] {
            return false;
        }
        let start_ns = gpu.slice(slice).start_ns;
        let end_of = |at: &u32| gpu.slice(*at as usize).end_ns();
        let last = self.ends.partition_point(|at| end_of(at) <= start_ns);
        self.ends[..last]
            .iter()
            .rev()
            .take(NEAR)
            .take_while(|at| start_ns.saturating_sub(end_of(at)) <= gap_ns)
            .any(|at| lanes.are_beside(gpu, slice, *at as usize))
    }

    /// Whether another stream of the device waited, and went on at most `gap_ns` after `slice` ended.
    pub(super) fn after(&self, gpu: &Gpu<'_>, lanes: &Lanes, slice: usize, gap_ns: i64) -> bool {
        let end_ns = gpu.slice(slice).end_ns();
        let (mut low, mut high) = (0, gpu.len());
        while low < high {
            let middle = low.midpoint(high);
            if gpu.slice(middle).start_ns < end_ns { low = middle + 1 } else { high = middle }
        }
        (low..gpu.len())
            .take(NEAR)
            .take_while(|at| gpu.slice(*at).start_ns.saturating_sub(end_ns) <= gap_ns)
            .any(|at| self.waited[at] && lanes.are_beside(gpu, slice, at))
    }
}

/// GPU slices as (track, start, slice), sorted.
fn slices(gpu: &Gpu<'_>) -> Vec<(u32, i64, u32)> {
    let of_slice = |at: usize| (gpu.trace.track(gpu.row(at)).0, gpu.slice(at).start_ns, at as u32);
    let mut found: Vec<_> = (0..gpu.len()).map(of_slice).collect();
    found.sort_unstable();
    found
}

/// Launches as (track, start, first slice they launched), sorted.
fn launched(gpu: &Gpu<'_>, launches: &Launches) -> Vec<(u32, i64, u32)> {
    let of_slice = |at: usize| {
        let launch = launches.of_slice(at)?;
        Some((gpu.trace.track(launch).0, gpu.trace.ts_ns(launch), launch, at as u32))
    };
    let mut found: Vec<_> = (0..gpu.len()).filter_map(of_slice).collect();
    found.sort_unstable();
    found.dedup_by_key(|(_, _, launch, _)| *launch);
    found.into_iter().map(|(track, ts_ns, _, at)| (track, ts_ns, at)).collect()
}
