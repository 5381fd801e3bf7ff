//! Computes exposed and hidden time per kernel: for every GPU slice, the time in which another stream of its device
//! ran.
//!
//! One pass over starts and ends. While a slice runs, its own stream is busy, so another stream runs beside
//! it exactly while two streams are busy: one running integral serves all slices, and a slice's time is the
//! integral's value at its end less that at its start. The same holds for work under compute, less the time
//! in which the slice's own stream alone computes. So the figures cost `O(n log n)`, however many slices
//! run at once. Two slices of one stream at once (programmatic dependent launch; ROCm's clocks) do not hide
//! each other: both are exposed, and the exposed time of a device may exceed its busy time by that much.
//!
//! Work that was launched before the window counts nowhere, unless somebody asks, but it runs: it hides what it runs beside.

use std::cmp::Reverse;

use catalog::OverlapClass;
use trace::{SmallIndex, StreamId, Trace};

use timeline::gpu::Gpu;

/// The time of every GPU slice, parallel to [`Gpu`]'s order. `hidden + exclusive` is the slice's duration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceOverlap {
    /// Nothing ran on another stream: the slice is exposed.
    pub exclusive_ns: Vec<i64>,
    /// Something ran on another stream of the device.
    pub hidden_ns: Vec<i64>,
    /// Something of class compute ran on another stream of the device.
    pub hidden_by_compute_ns: Vec<i64>,
    /// The name (index into [`Gpu::works`]) that hid most of it, `None` where nothing did.
    pub partner: Vec<Option<SmallIndex>>,
    /// What the devices did, in the order of the file's streams; the last is work without a stream.
    pub devices: Vec<DeviceOverlap>,
}

/// How much ran at once on one device, while anything ran that tables count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceOverlap {
    /// At least one slice ran.
    pub busy_ns: i64,
    /// At least two streams ran.
    pub overlapped_ns: i64,
    /// The most streams that ran at once.
    pub peak_streams: usize,
}

/// While more slices than this run at once (a GPU runs 128 kernels at most) nobody is called a partner: it
/// is the one figure whose cost grows with their number.
const MOST_AT_ONCE: usize = 128;

/// Names that are remembered for one slice; those that come later are not called its partner.
const MOST_PARTNERS: usize = 256;

/// The sweep over all slices of `gpu`, its classes given by work (index into [`Gpu::works`]).
#[inline(never)]
pub(crate) fn sweep(gpu: &Gpu<'_>, class_of: impl Fn(usize) -> OverlapClass) -> SliceOverlap {
    // What nothing counts hides all the same; its numbers come after those of the others.
    let n = gpu.len() + gpu.n_beside();
    let slice_of = |at: usize| match at.checked_sub(gpu.len()) {
        Some(beside) => gpu.slice_beside(beside),
        None => gpu.slice(at),
    };
    let lanes = Lanes::of(gpu.trace);
    let classes: Vec<OverlapClass> = (0..gpu.n_works()).map(class_of).collect();
    let mut devices = vec![DeviceState::default(); lanes.n_devices];
    let mut of_lane = vec![LaneState::default(); lanes.device_of.len()];
    let mut found = SliceOverlap {
        exclusive_ns: vec![0; n],
        hidden_ns: vec![0; n],
        hidden_by_compute_ns: vec![0; n],
        partner: vec![None; n],
        devices: Vec::new(),
    };

    // A slice without length hides nothing and is not hidden.
    let mut ends: Vec<u32> = Vec::new();
    for at in 0..n {
        let slice = slice_of(at);
        if slice.end_ns() > slice.start_ns {
            ends.push(at as u32);
        }
    }
    let mut starts = ends.clone();
    if gpu.n_beside() > 0 {
        let start_ns = |at: u32| slice_of(at as usize).start_ns;
        trace::sort_numbers(&mut starts, &|a, b| start_ns(a).cmp(&start_ns(b)));
    }
    let mut starts = starts.into_iter().map(|at| at as usize).peekable();
    let end_ns = |at: u32| slice_of(at as usize).end_ns();
    trace::sort_numbers(&mut ends, &|a, b| end_ns(a).cmp(&end_ns(b)));
    for end in ends {
        let end = end as usize;
        let end_ns = slice_of(end).end_ns();
        // Ends come before starts of the same time: what only touches does not overlap.
        while let Some(start) = starts.next_if(|start| slice_of(*start).start_ns < end_ns) {
            let slice = slice_of(start);
            let lane = lanes.of_stream(slice.stream);
            let device = &mut devices[lanes.device_of[lane]];
            device.advance(slice.start_ns, &mut of_lane);
            let class = classes[slice.work];
            let active = Active {
                slice: start,
                lane,
                work: slice.work as u32,
                counts: start < gpu.len(),
                // The most arithmetic first, then the longer, then the earlier.
                rank: (weight(class), slice.dur_ns, Reverse(start)),
                partners: Vec::new(),
            };
            device.begin(active, class, &mut of_lane[lane], lane);
            // The integrals at the start are subtracted now; at the end they are added.
            let compute = device.compute_ns.wrapping_sub(of_lane[lane].alone_ns);
            found.hidden_ns[start] = 0_i64.wrapping_sub(device.both_ns);
            found.hidden_by_compute_ns[start] = 0_i64.wrapping_sub(compute);
        }
        let slice = slice_of(end);
        let lane = lanes.of_stream(slice.stream);
        let device = &mut devices[lanes.device_of[lane]];
        device.advance(end_ns, &mut of_lane);
        let compute = device.compute_ns.wrapping_sub(of_lane[lane].alone_ns);
        found.hidden_ns[end] = found.hidden_ns[end].wrapping_add(device.both_ns);
        found.hidden_by_compute_ns[end] = found.hidden_by_compute_ns[end].wrapping_add(compute);
        let counts = end < gpu.len();
        device.n_counted -= usize::from(counts);
        found.partner[end] = device.finish(end, classes[slice.work], &mut of_lane[lane], lane);
    }
    found.hidden_ns.truncate(gpu.len());
    found.hidden_by_compute_ns.truncate(gpu.len());
    found.exclusive_ns.truncate(gpu.len());
    found.partner.truncate(gpu.len());
    for at in 0..gpu.len() {
        found.exclusive_ns[at] = gpu.slice(at).dur_ns.saturating_sub(found.hidden_ns[at]);
    }
    found.devices = devices.into_iter().map(|device| device.sums).collect();
    found
}

/// Streams by number, each with its device. Work whose stream is not known shares one lane of its own.
pub(super) struct Lanes {
    pub(super) device_of: Vec<usize>,
    pub(super) n_devices: usize,
}

impl Lanes {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut known = Vec::new();
        let mut device_of = Vec::with_capacity(trace.streams.len() + 1);
        for stream in &trace.streams {
            let device = known.iter().position(|device| *device == stream.device);
            device_of.push(device.unwrap_or_else(|| {
                known.push(stream.device);
                known.len() - 1
            }));
        }
        device_of.push(known.len());
        Self { device_of, n_devices: known.len() + 1 }
    }

    /// Whether two slices run on different streams of one device.
    pub(super) fn are_beside(&self, gpu: &Gpu<'_>, slice: usize, other: usize) -> bool {
        let lane = self.of_stream(gpu.slice(slice).stream);
        let beside = self.of_stream(gpu.slice(other).stream);
        lane != beside && self.device_of[lane] == self.device_of[beside]
    }

    pub(super) fn of_stream(&self, stream: Option<StreamId>) -> usize {
        stream.map_or(self.device_of.len() - 1, |StreamId(id)| usize::from(id))
    }
}

/// One stream during the sweep.
#[derive(Clone, Default)]
struct LaneState {
    n_active: usize,
    n_compute: usize,
    /// How long this stream alone has computed so far.
    alone_ns: i64,
}

/// One device during the sweep. Sums wrap: only differences of them are used, and these fit.
#[derive(Clone, Default)]
struct DeviceState {
    now_ns: i64,
    /// How long two streams or more have been busy so far.
    both_ns: i64,
    /// How long any stream has computed so far.
    compute_ns: i64,
    n_active: usize,
    /// Of these, those that tables count.
    n_counted: usize,
    n_streams: usize,
    n_computing: usize,
    /// The sum of the numbers of the streams that compute: the stream itself when it is one.
    computing: usize,
    /// The first [`MOST_AT_ONCE`] of the slices that run.
    active: Vec<Active>,
    sums: DeviceOverlap,
}

/// A slice that runs.
#[derive(Clone)]
struct Active {
    slice: usize,
    lane: usize,
    work: u32,
    /// Whether tables count it.
    counts: bool,
    rank: (u8, i64, Reverse<usize>),
    /// How long each other name was the weightiest beside it.
    partners: Vec<(u32, i64)>,
}

impl DeviceState {
    /// Lets the time pass until `until_ns`.
    #[inline(never)]
    fn advance(&mut self, until_ns: i64, of_lane: &mut [LaneState]) {
        let passed_ns = until_ns.wrapping_sub(self.now_ns);
        self.now_ns = until_ns;
        if self.n_active == 0 {
            return;
        }
        let counted_ns = if self.n_counted > 0 { passed_ns } else { 0 };
        self.sums.busy_ns = self.sums.busy_ns.saturating_add(counted_ns);
        if self.n_computing > 0 {
            self.compute_ns = self.compute_ns.wrapping_add(passed_ns);
        }
        if self.n_computing == 1 {
            let alone_ns = &mut of_lane[self.computing].alone_ns;
            *alone_ns = alone_ns.wrapping_add(passed_ns);
        }
        if self.n_streams > 1 {
            self.both_ns = self.both_ns.wrapping_add(passed_ns);
            self.sums.overlapped_ns = self.sums.overlapped_ns.saturating_add(counted_ns);
            if self.n_active == self.active.len() {
                self.meet(passed_ns);
            }
        }
    }

    /// Notes for each running slice the weightiest one on another stream.
    #[inline(never)]
    fn meet(&mut self, passed_ns: i64) {
        let Some(first) = self.active.iter().max_by_key(|slice| slice.rank) else { return };
        let elsewhere = self.active.iter().filter(|slice| slice.lane != first.lane);
        let Some(second) = elsewhere.max_by_key(|slice| slice.rank) else { return };
        let (lane, first, second) = (first.lane, first.work, second.work);
        for slice in &mut self.active {
            let work = if slice.lane == lane { second } else { first };
            let known = slice.partners.iter().position(|(known, _)| *known == work);
            if let Some(at) = known {
                let (_, ns) = &mut slice.partners[at];
                *ns = ns.saturating_add(passed_ns);
            } else if slice.partners.len() < MOST_PARTNERS {
                slice.partners.push((work, passed_ns));
            }
        }
    }

    #[inline(never)]
    fn begin(&mut self, slice: Active, class: OverlapClass, state: &mut LaneState, lane: usize) {
        self.n_counted += usize::from(slice.counts);
        if self.active.len() < MOST_AT_ONCE {
            self.active.push(slice);
        }
        self.n_active += 1;
        state.n_active += 1;
        self.n_streams += usize::from(state.n_active == 1);
        if self.n_counted > 0 {
            self.sums.peak_streams = self.sums.peak_streams.max(self.n_streams);
        }
        if class == OverlapClass::Compute {
            state.n_compute += 1;
            if state.n_compute == 1 {
                self.n_computing += 1;
                self.computing += lane;
            }
        }
    }

    /// Ends a slice; gives the name that hid most of it.
    #[inline(never)]
    fn finish(
        &mut self,
        slice: usize,
        class: OverlapClass,
        state: &mut LaneState,
        lane: usize,
    ) -> Option<SmallIndex> {
        self.n_active -= 1;
        state.n_active -= 1;
        self.n_streams -= usize::from(state.n_active == 0);
        if class == OverlapClass::Compute {
            state.n_compute -= 1;
            if state.n_compute == 0 {
                self.n_computing -= 1;
                self.computing -= lane;
            }
        }
        let at = self.active.iter().position(|active| active.slice == slice)?;
        let partners = self.active.swap_remove(at).partners;
        let (work, _) = partners.into_iter().max_by_key(|(work, ns)| (*ns, Reverse(*work)))?;
        SmallIndex::new(work)
    }
}

/// Who of several is called the one that hides: the class that gains most from the device first.
fn weight(class: OverlapClass) -> u8 {
    match class {
        OverlapClass::Compute => 4,
        OverlapClass::Communication => 3,
        OverlapClass::Memory => 2,
        OverlapClass::Elementwise => 1,
        OverlapClass::Other => 0,
    }
}

#[cfg(test)]
mod tests {
    use catalog::Platform;
    use proptest::prelude::*;

    use super::*;
    use fixture::{Fixture, kernel, slice};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;

    /// Start, duration, device, stream, name: `c` computes, `e` is elementwise, `m` moves.
    type Given = (i64, i64, i64, i64, &'static str);

    fn class(name: &str) -> OverlapClass {
        match name {
            "c" => OverlapClass::Compute,
            "e" => OverlapClass::Elementwise,
            _ => OverlapClass::Memory,
        }
    }

    /// The sweep, its results in the order given, and the partners by name.
    fn swept(given: &[Given]) -> (SliceOverlap, Vec<&'static str>) {
        let mut sorted = given.to_vec();
        sorted.sort_by_key(|slice| slice.0);
        assert_eq!(sorted, given, "slices are given by start");
        let mut fixture = Fixture::default();
        for (start_ns, dur_ns, device, stream, name) in given {
            fixture.push(kernel(name).at(*start_ns, *dur_ns).on(*device, *stream));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, Platform::Unknown, &before, &Options::default());
        let name = |work: usize| gpu.trace.strings.get(gpu.works[work].name);
        let found = sweep(&gpu, |work| class(name(work)));
        let partners = found.partner.iter().map(|work| match *work {
            None => "",
            Some(work) => ["c", "e", "m"].into_iter().find(|n| *n == name(work.at())).unwrap(),
        });
        let partners = partners.collect();
        (found, partners)
    }

    #[test]
    fn what_was_launched_before_the_window_hides_and_counts_nowhere() {
        let mut fixture = Fixture::default();
        let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1);
        fixture.push(call.at(1, 1).link(1));
        fixture.push(call.at(2, 1).link(2));
        // Two without a launch, on streams 1 and 2, one of a name of its own.
        fixture.push(kernel("e").at(0, 10).on(0, 1).link(8));
        fixture.push(kernel("c").at(4, 10).on(0, 0).link(1));
        fixture.push(kernel("m").at(10, 3).on(0, 2).link(9));
        fixture.push(kernel("m").at(20, 5).on(0, 0).link(2));
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let options = Options { without_before_window: true, ..Options::default() };
        let gpu = Gpu::new(&trace, Platform::Unknown, &before, &options);
        let name = |work: usize| gpu.trace.strings.get(gpu.work(work).name);
        let found = sweep(&gpu, |work| class(name(work)));
        assert_eq!((found.hidden_ns, found.exclusive_ns), (vec![9, 0], vec![1, 5]));
        assert_eq!(found.partner[0].map(|work| name(work.at())), Some("e"));
        assert_eq!(found.partner[1], None);
        let device = &found.devices[0];
        assert_eq!((device.busy_ns, device.overlapped_ns, device.peak_streams), (15, 9, 2));
    }

    #[test]
    fn hidden_is_what_ran_beside_another_stream() {
        let given = [(0, 10, 0, 0, "c"), (4, 10, 0, 1, "m"), (12, 4, 0, 0, "e")];
        let (found, partners) = swept(&given);
        assert_eq!(found.hidden_ns, [6, 8, 2]);
        assert_eq!(found.exclusive_ns, [4, 2, 2]);
        assert_eq!(found.hidden_by_compute_ns, [0, 6, 0]);
        assert_eq!(partners, ["m", "c", "m"]);
        let device = &found.devices[0];
        assert_eq!((device.busy_ns, device.overlapped_ns, device.peak_streams), (16, 8, 2));
    }

    #[test]
    fn slices_of_one_stream_do_not_hide_each_other() {
        // As programmatic dependent launches overlap. The third hides both, where it runs.
        let given = [(0, 10, 0, 7, "c"), (6, 10, 0, 7, "c"), (8, 4, 0, 9, "m")];
        let (found, partners) = swept(&given);
        assert_eq!(found.hidden_ns, [2, 4, 4]);
        assert_eq!(found.exclusive_ns, [8, 6, 0]);
        assert_eq!(found.hidden_by_compute_ns, [0, 0, 4]);
        assert_eq!(partners, ["m", "m", "c"]);
        assert_eq!((found.devices[0].busy_ns, found.devices[0].overlapped_ns), (16, 4));
    }

    #[test]
    fn what_only_touches_and_what_has_no_length_hides_nothing() {
        let given = [
            (0, 5, 0, 1, "c"),
            (2, 0, 0, 2, "e"),
            (5, 5, 0, 2, "c"),
            (5, 0, 0, 1, "c"),
            (10, 1, 0, 1, "m"),
        ];
        let (found, _) = swept(&given);
        assert_eq!(found.hidden_ns, [0; 5]);
        assert_eq!(found.exclusive_ns, [5, 0, 5, 0, 1]);
        assert_eq!(found.devices[0].peak_streams, 1);
    }

    #[test]
    fn devices_do_not_hide_each_other_and_stream_0_is_a_stream() {
        let (found, _) = swept(&[(0, 5, 0, 0, "c"), (0, 5, 1, 1, "c"), (1, 2, 1, 0, "e")]);
        assert_eq!(found.hidden_ns, [0, 2, 2]);
        assert_eq!(found.hidden_by_compute_ns, [0, 0, 2]);
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let given = [
            (i64::MIN, i64::MAX, 0, 1, "c"),
            (-5, i64::MAX, 0, 2, "c"),
            (0, i64::MAX, 0, 3, "c"),
            (i64::MAX, 9, 0, 4, "c"),
        ];
        let (found, _) = swept(&given);
        assert_eq!(found.hidden_ns[1..], [i64::MAX - 1, i64::MAX - 5, 0]);
        assert_eq!(found.exclusive_ns[1..], [1, 5, 9]);
    }

    /// The definition, nanosecond by nanosecond.
    fn by_definition(given: &[Given]) -> (Vec<i64>, Vec<i64>) {
        let runs = |slice: &Given, ns: i64| slice.0 <= ns && ns < slice.0 + slice.1;
        let beside = |slice: &Given, compute: bool| {
            let ns = slice.0..slice.0 + slice.1;
            let is_hidden = |ns: &i64| {
                given.iter().any(|other| {
                    other.2 == slice.2
                        && other.3 != slice.3
                        && runs(other, *ns)
                        && (!compute || other.4 == "c")
                })
            };
            ns.filter(is_hidden).count() as i64
        };
        let all = |compute| given.iter().map(|slice| beside(slice, compute)).collect();
        (all(false), all(true))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        #[test]
        fn the_sweep_is_the_definition(mut given in prop::collection::vec(
            (0_i64..30, 0_i64..12, 0_i64..2, 0_i64..4, prop::sample::select(vec!["c", "e", "m"])),
            0..25,
        )) {
            given.sort_by_key(|slice| slice.0);
            let (found, partners) = swept(&given);
            let (hidden, by_compute) = by_definition(&given);
            prop_assert_eq!(&found.hidden_ns, &hidden);
            prop_assert_eq!(&found.hidden_by_compute_ns, &by_compute);
            for (at, slice) in given.iter().enumerate() {
                prop_assert_eq!(found.hidden_ns[at] + found.exclusive_ns[at], slice.1);
                prop_assert_eq!(partners[at].is_empty(), hidden[at] == 0);
                prop_assert!(by_compute[at] == 0 || partners[at] == "c" || by_compute[at] < hidden[at]);
            }
        }
    }
}
