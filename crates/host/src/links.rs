//! GPU slices with the call that launched each, and the op that made the call.

use std::collections::BTreeMap;

use timeline::Options;
use timeline::before_window::{BeforeWindowSlices, duration_ns};
use timeline::dependent::Dependent;
use timeline::device::platform;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, union};
use timeline::launches::Launches;
use trace::{Flags, Row, StreamId, Trace, TrackId, each_of};

use crate::slices::{HostSlice, Slices};

/// Number of a device in [`GpuSide::devices`].
pub type DeviceId = u32;

/// One GPU slice and what launched it.
#[derive(Clone, Copy, Debug)]
pub struct GpuSlice {
    /// Its event and times.
    pub slice: HostSlice,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// Its device.
    pub device: DeviceId,
    /// The call that launched it, if the file has it.
    pub launch: Option<HostSlice>,
    /// Number of the innermost op around the call, in [`Slices::ops`].
    pub owner: Option<usize>,
    /// Whether the kernel is a collective, as the catalog has it.
    pub is_communication: bool,
}

impl GpuSlice {
    /// From the end of the launching call to the start of the slice, in ns.
    #[must_use]
    pub fn queue_ns(&self) -> Option<i64> {
        Some(self.slice.start_ns - self.launch?.end_ns)
    }
}

/// The GPU's side of a trace.
pub struct GpuSide {
    /// All GPU slices, in file order.
    pub slices: Vec<GpuSlice>,
    /// The devices as the file spells them, sorted.
    pub devices: Vec<String>,
    /// By device: when it was busy, with any work and with work that the file's calls launched.
    busy: Vec<(Vec<Interval>, Vec<Interval>)>,
    /// By device: the start of each slice, and its number, sorted.
    by_start: Vec<Vec<(i64, usize)>>,
    /// By device: the start of the launch of each slice that has one, and its number, sorted.
    by_launch: Vec<Vec<(i64, usize)>>,
}

impl GpuSide {
    /// Links the GPU slices of a trace to its calls and ops.
    #[must_use]
    pub fn of(slices: &Slices<'_>) -> Self {
        let trace = slices.trace;
        let before = BeforeWindowSlices::of(trace);
        let gpu = Gpu::new(trace, platform(trace), &before, &Options::default());
        let launches = Launches::of(&gpu);
        let device_of = |row: Row| match trace.stream(row) {
            Some(StreamId(id)) => trace.streams[usize::from(id)].device.display(&trace.strings),
            None => trace.process_of(trace.track(row)).pid.display(&trace.strings),
        };
        // One text per stream, or track, not per slice.
        let mut names: BTreeMap<(Option<StreamId>, Option<TrackId>), String> = BTreeMap::new();
        let key = |row: Row| {
            let stream = trace.stream(row);
            (stream, stream.is_none().then(|| trace.track(row)))
        };
        let mut rows = Vec::with_capacity(gpu.len());
        gpu.each_row(|row| rows.push(row));
        each_of(&rows, |row| {
            names.entry(key(row)).or_insert_with(|| device_of(row));
        });
        let mut devices: Vec<String> = names.values().cloned().collect();
        trace::sort(&mut devices);
        devices.dedup();
        let n = devices.len();
        let mut found = Self {
            slices: Vec::with_capacity(gpu.len()),
            devices,
            busy: Vec::new(),
            by_start: vec![Vec::new(); n],
            by_launch: vec![Vec::new(); n],
        };
        let numbers: BTreeMap<_, DeviceId> = names
            .into_iter()
            .map(|(key, name)| {
                (key, found.devices.binary_search(&name).unwrap_or_default() as DeviceId)
            })
            .collect();
        for (at, row) in rows.into_iter().enumerate() {
            let start_ns = trace.ts_ns(row);
            let slice = HostSlice {
                row,
                start_ns,
                end_ns: start_ns.saturating_add(duration_ns(trace, row)),
            };
            let launch = launches.of_slice(at).and_then(|launch| {
                let known = slices.calls.binary_search_by_key(&launch, |call| call.row);
                known.ok().map(|at| slices.calls[at])
            });
            let work = gpu.work(gpu.slice(at).work);
            found.slices.push(GpuSlice {
                slice,
                is_kernel: trace.flags(row).has(Flags::KERNEL),
                device: numbers.get(&key(row)).copied().unwrap_or_default(),
                launch,
                owner: None,
                is_communication: work.category == catalog::Category::Communication,
            });
        }
        found.slices.sort_unstable_by_key(|one| one.slice.row);
        found.find_owners(slices);
        for (at, one) in found.slices.iter().enumerate() {
            found.by_start[one.device as usize].push((one.slice.start_ns, at));
            if let Some(launch) = one.launch {
                found.by_launch[one.device as usize].push((launch.start_ns, at));
            }
        }
        found
            .by_start
            .iter_mut()
            .chain(&mut found.by_launch)
            .for_each(|sorted| sorted.sort_unstable());
        found.busy = (0..found.devices.len() as DeviceId)
            .map(|device| {
                let all = found.on(device).map(|one| one.slice.interval());
                let linked = found.linked().filter(|one| one.device == device);
                (union(all.collect()), union(linked.map(|one| one.slice.interval()).collect()))
            })
            .collect();
        found
    }

    /// The GPU slices of a device, in file order.
    pub fn on(&self, device: DeviceId) -> impl Iterator<Item = &GpuSlice> {
        self.slices.iter().filter(move |one| one.device == device)
    }

    /// The GPU slices whose launch is in the file, in file order.
    pub fn linked(&self) -> impl Iterator<Item = &GpuSlice> {
        self.slices.iter().filter(|one| one.launch.is_some())
    }

    /// When kernels of a device, or of all, communicate, and when others work: what waits for the communication before it on its
    /// stream, by a dependent launch, from the end of that.
    #[must_use]
    pub fn communication(
        &self,
        trace: &Trace,
        device: Option<DeviceId>,
    ) -> (Vec<Interval>, Vec<Interval>) {
        let is_own = |one: &&GpuSlice| device.is_none_or(|device| one.device == device);
        let kernels = self.slices.iter().filter(|one| one.is_kernel).filter(is_own);
        let mut kernels: Vec<&GpuSlice> = kernels.collect();
        trace::sort_by_key(&mut kernels, |one| one.slice.start_ns);
        let mut dependent = Dependent::of(trace);
        let (mut communication, mut others) = (Vec::new(), Vec::new());
        for one in kernels {
            let stream = trace.stream(one.slice.row);
            let own = dependent.own(stream, one.slice.interval(), one.is_communication);
            let part = if one.is_communication { &mut communication } else { &mut others };
            part.push(own);
        }
        (union(communication), union(others))
    }

    /// When a device was busy.
    #[must_use]
    pub fn busy(&self, device: DeviceId) -> &[Interval] {
        self.busy.get(device as usize).map_or(&[], |(all, _)| all)
    }

    /// When a device was busy with work whose launch is in the file.
    #[must_use]
    pub(crate) fn busy_linked(&self, device: DeviceId) -> &[Interval] {
        self.busy.get(device as usize).map_or(&[], |(_, linked)| linked)
    }

    /// When the slices of a device run that start in a step.
    #[must_use]
    pub(crate) fn started_in(&self, device: DeviceId, step: &HostSlice) -> Vec<Interval> {
        self.between(&self.by_start, device, step).map(|one| one.slice.interval()).collect()
    }

    /// When the slices of a device run that calls in a step launched, on any thread.
    #[must_use]
    pub fn launched_in(&self, device: DeviceId, step: &HostSlice) -> Vec<Interval> {
        self.work_of(device, step).map(|one| one.slice.interval()).collect()
    }

    /// The slices of a device that calls in a step launched, on any thread.
    pub fn work_of<'a>(
        &'a self,
        device: DeviceId,
        step: &'a HostSlice,
    ) -> impl Iterator<Item = &'a GpuSlice> {
        self.between(&self.by_launch, device, step)
    }

    fn between<'a>(
        &'a self,
        sorted: &'a [Vec<(i64, usize)>],
        device: DeviceId,
        step: &'a HostSlice,
    ) -> impl Iterator<Item = &'a GpuSlice> {
        let sorted = sorted.get(device as usize).map_or(&[][..], Vec::as_slice);
        let from = sorted.partition_point(|(at_ns, _)| *at_ns < step.start_ns);
        let inside = sorted[from..].iter().take_while(|(at_ns, _)| *at_ns < step.end_ns);
        inside.map(|(_, at)| &self.slices[*at])
    }

    fn find_owners(&mut self, slices: &Slices<'_>) {
        let innermost = innermost_at_launch(&self.slices, slices, &slices.ops);
        for (at, owner) in innermost {
            self.slices[at].owner = Some(owner);
        }
    }
}

/// From the first slice of the CPU or the GPU to the last one, in ns; without those in which the profiler notes how long it recorded.
#[must_use]
pub fn recorded_ns(slices: &Slices<'_>, gpu: &GpuSide) -> i64 {
    let of_cpu =
        [&slices.ops.slices[..], &slices.calls, &slices.frames.slices, &slices.annotations];
    let of_cpu = of_cpu.into_iter().flatten().map(HostSlice::interval);
    let of_gpu = gpu.slices.iter().map(|one| (one.slice.start_ns, one.slice.end_ns));
    let bounds = of_cpu.chain(of_gpu).fold(None, |bounds: Option<(i64, i64)>, (from, to)| {
        Some(bounds.map_or((from, to), |(first, last)| (first.min(from), last.max(to))))
    });
    bounds.map_or(0, |(first, last)| last.saturating_sub(first))
}

/// For each GPU slice with a launch inside a slice of `family`: its number and that of the innermost such slice.
#[must_use]
pub fn innermost_at_launch(
    gpu: &[GpuSlice],
    slices: &Slices<'_>,
    family: &crate::slices::Nested,
) -> Vec<(usize, usize)> {
    let mut by_thread: Vec<(u32, i64, usize)> = gpu
        .iter()
        .enumerate()
        .filter_map(|(at, one)| {
            let launch = one.launch?;
            Some((slices.thread(launch.row), launch.start_ns, at))
        })
        .collect();
    trace::sort(&mut by_thread);
    let mut found = Vec::new();
    for group in by_thread.chunk_by(|(a, ..), (b, ..)| a == b) {
        let Some((thread, ..)) = group.first() else { continue };
        let owners = family.innermost(*thread, group.iter().map(|(_, start_ns, _)| *start_ns));
        let pairs = group.iter().zip(owners);
        found.extend(pairs.filter_map(|((.., at), owner)| Some((*at, owner?))));
    }
    found
}
