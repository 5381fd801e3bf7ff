//! GPU slices with the call that launched each, and the op that made the call.

use timeline::Options;
use timeline::before_window::{BeforeWindowSlices, duration_ns};
use timeline::device::platform;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, union};
use timeline::launches::Launches;
use trace::{Flags, Row, StreamId, each_of};

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
        // One lookup per stream, not per slice.
        let mut names: Vec<(Option<StreamId>, String)> = Vec::new();
        let mut found =
            Self { slices: Vec::with_capacity(gpu.len()), devices: Vec::new(), busy: Vec::new() };
        let mut rows = Vec::with_capacity(gpu.len());
        gpu.each_row(|row| rows.push(row));
        let mut name_of = Vec::with_capacity(gpu.len());
        each_of(&rows, |row| {
            let stream = trace.stream(row);
            let known = names.iter().position(|(id, _)| id.is_some() && *id == stream);
            name_of.push(known.unwrap_or_else(|| {
                names.push((stream, device_of(row)));
                names.len() - 1
            }));
        });
        found.devices = names.iter().map(|(_, name)| name.clone()).collect();
        trace::sort(&mut found.devices);
        found.devices.dedup();
        for (at, row) in rows.into_iter().enumerate() {
            let start_ns = trace.ts_ns(row);
            let slice = HostSlice {
                row,
                start_ns,
                end_ns: start_ns.saturating_add(duration_ns(trace, row)),
            };
            let device = found.devices.binary_search(&names[name_of[at]].1).unwrap_or_default();
            let launch = launches.of_slice(at).and_then(|launch| {
                let known = slices.calls.binary_search_by_key(&launch, |call| call.row);
                known.ok().map(|at| slices.calls[at])
            });
            let work = gpu.work(gpu.slice(at).work);
            found.slices.push(GpuSlice {
                slice,
                is_kernel: trace.flags(row).has(Flags::KERNEL),
                device: device as DeviceId,
                launch,
                owner: None,
                is_communication: work.category == catalog::Category::Communication,
            });
        }
        found.slices.sort_unstable_by_key(|one| one.slice.row);
        found.find_owners(slices);
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

    /// When a device was busy.
    #[must_use]
    pub fn busy(&self, device: DeviceId) -> &[Interval] {
        self.busy.get(device as usize).map_or(&[], |(all, _)| all)
    }

    /// When a device was busy with work whose launch is in the file.
    #[must_use]
    pub fn busy_linked(&self, device: DeviceId) -> &[Interval] {
        self.busy.get(device as usize).map_or(&[], |(_, linked)| linked)
    }

    fn find_owners(&mut self, slices: &Slices<'_>) {
        let innermost = innermost_at_launch(&self.slices, slices, &slices.ops);
        for (at, owner) in innermost {
            self.slices[at].owner = Some(owner);
        }
    }
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
