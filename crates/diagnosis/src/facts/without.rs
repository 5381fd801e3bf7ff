//! How much sooner a device would be done without some of its work, and without the ops that launch it: a replay.

use timeline::Options;
use timeline::before_window::BeforeWindowSlices;
use timeline::device::platform;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, both, holds, union};
use timeline::launches::Launches;
use trace::Row;
use wall::{Lost, Removed, Wall};

use super::{Device, Facts};

/// The replay of a device, with the rows of its GPU slices, sorted, and their places in it.
pub(super) struct Replayed {
    device: String,
    wall: Wall,
    slices: Vec<(Row, u32)>,
}

impl Replayed {
    /// Those of a trace, of the slices that count.
    #[inline(never)]
    pub(super) fn of(facts: &Facts<'_>) -> Vec<Self> {
        let trace = facts.trace;
        let before = BeforeWindowSlices::of(trace);
        let options = Options { without_before_window: true, ..Options::default() };
        let devices = Gpu::new(trace, platform(trace), &before, &options).by_device();
        let replayed = devices.iter().map(|gpu| {
            let mut slices = Vec::with_capacity(gpu.len());
            gpu.each_row(|row| slices.push((row, slices.len() as u32)));
            trace::sort(&mut slices);
            let wall = Wall::of(gpu, &Launches::of(gpu), Lost::default());
            Self { device: gpu.device().to_owned(), wall, slices }
        });
        replayed.collect()
    }
}

impl Device<'_> {
    fn replayed(&self) -> Option<&Replayed> {
        let all = self.facts.replayed.get_or_init(|| Replayed::of(self.facts));
        all.iter().find(|one| one.device == *self.name || all.len() == 1)
    }

    /// How much sooner it would be done without these ops and the GPU work that they launch, at most, in ns: of the ops in the time that
    /// its bar is of.
    #[must_use]
    pub fn saved_without_ops_ns(&self, ops: &[usize]) -> i64 {
        let own = &self.facts.slices.ops;
        let times = ops.iter().filter_map(|at| own.slices.get(*at)).map(|op| op.interval());
        let times = self.told(union(times.collect()));
        self.saved_ns(ops, |dur_ns| dur_ns, &times, &times)
    }

    /// How much sooner it would be done if the GPU work that these ops launch took less time, at most, in ns: `less` tells how much of its
    /// time goes away.
    #[must_use]
    pub fn saved_by_faster_ns(&self, ops: &[usize], less: impl Fn(i64) -> i64) -> i64 {
        self.saved_ns(ops, less, &self.told(vec![(i64::MIN, i64::MAX)]), &[])
    }

    /// What of these times is in the time that its bar is of.
    fn told(&self, times: Vec<Interval>) -> Vec<Interval> {
        self.facts.warm.as_ref().map_or_else(|| times.clone(), |warm| both(&times, warm))
    }

    /// The replay without a part of the GPU work of `ops` that is launched `within` these times, and without the times `gone` of the CPU.
    fn saved_ns(
        &self,
        ops: &[usize],
        less: impl Fn(i64) -> i64,
        within: &[Interval],
        gone: &[Interval],
    ) -> i64 {
        let Some(replayed) = self.replayed() else { return 0 };
        let own = &self.facts.slices.ops;
        let mut marked = vec![false; own.slices.len()];
        ops.iter().for_each(|at| marked[*at] = true);
        let removed = self.slices().filter_map(|one| {
            let launch = one.launch?;
            let is_in = own.chain(one.owner?).any(|at| marked[at]);
            let counts = is_in && holds(within, launch.start_ns);
            let known = replayed.slices.binary_search_by_key(&one.slice.row, |(row, _)| *row);
            let (_, slice) = replayed.slices[known.ok().filter(|_| counts)?];
            Some(Removed { slice, gpu_ns: less(one.slice.dur_ns()), cpu_ns: 0 })
        });
        let mut removed: Vec<Removed> = removed.collect();
        trace::sort(&mut removed);
        replayed.wall.saved_with_ops(&removed, gone)
    }
}
