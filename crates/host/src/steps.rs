//! Steps of the profiler: how long each took, and how busy each device was.

use std::collections::BTreeMap;

use serde::Serialize;
use timeline::absolute_ns;
use timeline::intervals::{Interval, length, length_within, union};

use crate::links::{DeviceId, GpuSide};
use crate::numbers::Stats;
use crate::slices::{HostSlice, Slices};

/// The steps of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steps {
    /// Steps of the host, by start.
    pub cpu: Vec<StepRow>,
    /// The profiler's copies of them around the work on the GPU.
    pub gpu: Vec<StepRow>,
    /// Durations on the host. While the launch queue fills they are not the time of a step.
    pub cpu_dur: Stats,
    /// Durations of the copies.
    pub gpu_dur: Stats,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepRow {
    /// Name.
    pub name: String,
    /// Raw category, in lower case.
    pub cat: String,
    /// The pid.
    pub pid: String,
    /// The tid.
    pub tid: String,
    /// Start, on the clock of the file.
    pub ts_ns: Option<i64>,
    /// Duration.
    pub dur_ns: i64,
    /// By device.
    pub devices: BTreeMap<String, StepDevice>,
}

/// What a device did in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepDevice {
    /// GPU slices that start in the step.
    pub n_start: usize,
    /// Time that they cover, beyond the step's end, too.
    pub busy_start_ns: i64,
    /// Time of the step in which the device is busy.
    pub busy_clip_ns: i64,
    /// The same with work whose launch is in the file.
    pub busy_clip_linked_ns: i64,
    /// Of steps of the host only.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub launched: Option<StepLaunched>,
}

/// The GPU work that calls in a step launched, on any thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepLaunched {
    /// GPU slices.
    pub n_launch: usize,
    /// Sum of durations.
    pub sum_launch_ns: i64,
    /// Time that they cover.
    pub busy_launch_ns: i64,
    /// Start of the first, on the clock of the file.
    pub first_launch_gpu_ns: Option<i64>,
    /// End of the last.
    pub last_launch_gpu_ns: Option<i64>,
}

/// The table of steps.
#[must_use]
pub fn steps(slices: &Slices<'_>, gpu: &GpuSide) -> Steps {
    let Slices { steps: cpu, step_copies: copies, .. } = slices;
    let row = |step: &HostSlice, of_host: bool| {
        let trace = slices.trace;
        let thread = &slices.threads[slices.thread(step.row) as usize];
        let devices = (0..gpu.devices.len()).map(|device| {
            (gpu.devices[device].clone(), on_device(slices, gpu, device as DeviceId, step, of_host))
        });
        StepRow {
            name: slices.name(step).to_owned(),
            cat: trace.raw_category_text(step.row).to_ascii_lowercase(),
            pid: thread.pid.clone(),
            tid: thread.tid.clone(),
            ts_ns: absolute_ns(trace, step.start_ns),
            dur_ns: step.dur_ns(),
            devices: devices.collect(),
        }
    };
    let stats = |steps: &[HostSlice]| Stats::of(steps.iter().map(HostSlice::dur_ns).collect());
    Steps {
        cpu_dur: stats(cpu),
        gpu_dur: stats(copies),
        cpu: cpu.iter().map(|step| row(step, true)).collect(),
        gpu: copies.iter().map(|step| row(step, false)).collect(),
    }
}

fn on_device(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    device: DeviceId,
    step: &HostSlice,
    of_host: bool,
) -> StepDevice {
    let started = gpu.started_in(device, step);
    let window = step.interval();
    let inside = |busy: &[Interval]| length_within(busy, window);
    StepDevice {
        n_start: started.len(),
        busy_start_ns: length(&union(started)),
        busy_clip_ns: inside(gpu.busy(device)),
        busy_clip_linked_ns: inside(gpu.busy_linked(device)),
        launched: of_host.then(|| {
            let launched = gpu.launched_in(device, step);
            let first = launched.iter().map(|(start, _)| *start).min();
            let last = launched.iter().map(|(_, end)| *end).max();
            StepLaunched {
                n_launch: launched.len(),
                sum_launch_ns: launched.iter().map(|(start, end)| end - start).sum(),
                first_launch_gpu_ns: first.and_then(|ns| absolute_ns(slices.trace, ns)),
                last_launch_gpu_ns: last.and_then(|ns| absolute_ns(slices.trace, ns)),
                busy_launch_ns: length(&union(launched)),
            }
        }),
    }
}
