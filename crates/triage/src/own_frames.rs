//! What the CPU spends on a launch where Python stacks are recorded: the longest function around it in which its thread launches nothing
//! else. From a launch to the next one it is more: the next module's Python comes in between. Launches for other devices are not seen: a
//! function that launches for several is longer, and what it bounds is still a bound.

use timeline::gpu::Gpu;
use timeline::launches::Launches;
use trace::{Row, Trace};

use super::attribution::Linker;

/// The launches of a device, for one question about their frames.
pub(crate) struct OwnFrames<'a> {
    trace: &'a Trace,
    linker: &'a Linker<'a>,
    /// The launching calls as (track, start), sorted, each once.
    calls: Vec<(u32, i64)>,
}

impl<'a> OwnFrames<'a> {
    #[inline(never)]
    pub(crate) fn of(gpu: &Gpu<'a>, launches: &Launches, linker: &'a Linker<'a>) -> Self {
        let trace = gpu.trace;
        let call = |at: usize| {
            let row = launches.of_slice(at)?;
            Some((trace.track(row).0, trace.ts_ns(row)))
        };
        let all = if linker.has_frames() { 0..gpu.len() } else { 0..0 };
        let mut calls: Vec<(u32, i64)> = all.filter_map(call).collect();
        trace::sort(&mut calls);
        calls.dedup();
        Self { trace, linker, calls }
    }

    /// How long the outermost frame takes that holds this launch and no other of its thread; `None` where the innermost frame around it
    /// holds several, and without frames.
    pub(crate) fn of_launch(&self, launch: Row) -> Option<i64> {
        let (track, ts_ns) = (self.trace.track(launch), self.trace.ts_ns(launch));
        let at = self.calls.binary_search(&(track.0, ts_ns)).ok()?;
        let on_track = |at: Option<usize>| {
            let call = self.calls.get(at?).filter(|(on, _)| *on == track.0)?;
            Some(call.1)
        };
        let before_ns = on_track(at.checked_sub(1)).unwrap_or(i64::MIN);
        let next_ns = on_track(at.checked_add(1)).unwrap_or(i64::MAX);
        let frames = self.linker.frames_at(track, ts_ns);
        let times = frames.map(|row| (self.trace.ts_ns(row), self.trace.end_ns(row)));
        let own = times.take_while(|(from, to)| before_ns < *from && *to <= next_ns);
        own.last().map(|(from, to)| to.saturating_sub(from))
    }
}
