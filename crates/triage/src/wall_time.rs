//! Where the wall time goes: each moment of the window belongs to one part, and the parts add up to it.
//!
//! While the device works, a moment is compute if any kernel that is no communication runs, else communication, else copies. A kernel
//! that waits for the communication before it counts from the end of that ([`timeline::dependent`]).
//! While it stands still, a moment belongs to the first cause that covers it ([`Cause`]).

use catalog::{Category, RawKind};
use report::{Cell, Column, Row, Unit};
use serde::Serialize;
use timeline::dependent::Dependent;
use timeline::gpu::{Gpu, GpuSlice, Work};
use timeline::intervals::{Collector, Interval, both, length, length_within, union, without};
use timeline::percent;

use crate::idle::Idle;
use crate::idle::cause::Cause;
use crate::stages::Stage;

/// A part of the wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WallPart {
    /// A kernel runs that is no communication.
    Compute,
    /// Communication runs, and no other kernel.
    Communication,
    /// Copies and fills run, and no kernel.
    Copies,
    /// Idle: the data loader.
    DataLoading,
    /// Idle: the CPU runs ops, Python, compiled code or other calls.
    HostCompute,
    /// Idle: the next launch, in short gaps.
    Launch,
    /// Idle: the way of a late launch to the device.
    Start,
    /// Idle: the CPU waited for the GPU, and launched late.
    HostWaits,
    /// Idle: memory is allocated or freed.
    Allocation,
    /// Idle: code is loaded, libraries are set up.
    Loading,
    /// Idle: the profiler.
    Profiler,
    /// Idle: the device's own pauses between two pieces of queued work.
    Between,
    /// Idle: what comes next had been launched; it waits for other work.
    Queued,
    /// Idle: nothing is recorded.
    Unexplained,
}

impl WallPart {
    /// Every part, in the order of the bar.
    pub const ALL: [Self; 14] = [
        Self::Compute,
        Self::Communication,
        Self::Copies,
        Self::DataLoading,
        Self::HostCompute,
        Self::Launch,
        Self::Start,
        Self::HostWaits,
        Self::Allocation,
        Self::Loading,
        Self::Profiler,
        Self::Between,
        Self::Queued,
        Self::Unexplained,
    ];

    /// The id in files.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Copies => "copies",
            Self::DataLoading => "data_loading",
            Self::HostCompute => "host_compute",
            Self::Launch => "launch",
            Self::Start => "start",
            Self::HostWaits => "host_waits",
            Self::Allocation => "allocation",
            Self::Loading => "loading",
            Self::Profiler => "profiler",
            Self::Between => "between_kernels",
            Self::Queued => "queued",
            Self::Unexplained => "unexplained",
        }
    }

    /// What a person reads.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Compute => "Compute",
            Self::Communication => "Exposed communication",
            Self::Copies => "Exposed copies and fills",
            Self::DataLoading => "Idle: data loading",
            Self::HostCompute => "Idle: CPU work",
            Self::Launch => "Idle: gaps between launches",
            Self::Start => "Idle: from launch to start",
            Self::HostWaits => "Idle: in or after waits for the GPU",
            Self::Allocation => "Idle: memory allocation",
            Self::Loading => "Idle: loading and set-up",
            Self::Profiler => "Idle: profiler",
            Self::Between => "Idle: between queued kernels",
            Self::Queued => "Idle: work was queued",
            Self::Unexplained => "Idle: unexplained",
        }
    }

    /// How it is told.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Compute => "a kernel other than communication runs",
            Self::Communication => "communication runs, and no other kernel",
            Self::Copies => "copies or fills run, and no kernel",
            Self::DataLoading => "the CPU is in a data loader",
            Self::HostCompute => {
                "the CPU runs ops, Python, compiled code or other calls, in gaps of 1 ms or more that no launch call fills; in shorter gaps ops of 50 µs or more that launch nothing"
            }
            Self::Launch => {
                "a gap below 1 ms: ops, Python and launch calls up to the end of a late launch; in a longer gap that launch, if it takes most of the gap"
            }
            Self::Start => {
                "a gap below 1 ms: the late launch is over, and the GPU has yet to start its work"
            }
            Self::HostWaits => {
                "the CPU is in a call that waits for the GPU; in gaps below 1 ms also after it, for as long as the call took at most"
            }
            Self::Allocation => "the CPU is in driver calls that allocate or free memory",
            Self::Loading => "the CPU compiles, loads or imports code, or sets up a library",
            Self::Profiler => "the profiler works",
            Self::Between => {
                "a gap below 50 µs whose next kernel or copy was queued long before, or is a node of the same graph"
            }
            Self::Queued => {
                "the next kernel or copy was already launched and waits for other work, which may not be in the file"
            }
            Self::Unexplained => {
                "no op, call or frame is recorded on the CPU, in gaps of 1 ms or more (shorter ones count as gaps between launches)"
            }
        }
    }

    /// Whether the device stands still.
    #[must_use]
    pub fn is_idle(self) -> bool {
        !matches!(self, Self::Compute | Self::Communication | Self::Copies)
    }

    fn of(cause: Cause) -> Self {
        match cause {
            Cause::Queued => Self::Queued,
            Cause::Between => Self::Between,
            Cause::DataLoader => Self::DataLoading,
            Cause::SetUp => Self::Loading,
            Cause::Allocation => Self::Allocation,
            Cause::Overhead => Self::Profiler,
            Cause::Sync => Self::HostWaits,
            Cause::Paced => Self::Launch,
            Cause::Start => Self::Start,
            Cause::Op | Cause::Python | Cause::Compiled | Cause::Runtime => Self::HostCompute,
            Cause::Unknown => Self::Unexplained,
        }
    }
}

/// One part of a device's wall time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WallRow {
    /// The device's id.
    pub device: String,
    /// The part.
    pub part: WallPart,
    /// Its time, in ns.
    pub total_ns: i64,
    /// That in percent of the window.
    pub share_pct: f64,
    /// The same of the window without the time in which work was queued behind what the file does not hold; `None` where that is less
    /// than half of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_rest_pct: Option<f64>,
    /// Whether the window is the profiler's steps; else it is the GPU span.
    pub of_steps: bool,
}

/// From this share of the window on, in percent, queued work makes the other shares small.
const MOSTLY_QUEUED: f64 = 50.0;

impl WallRow {
    /// The rows of a device's bar from the times of its parts in ns, which add up to the window.
    #[must_use]
    pub fn bar(device: &str, parts: &[(WallPart, i64)], of_steps: bool) -> Vec<Self> {
        let window_ns: i64 = parts.iter().map(|(_, ns)| *ns).sum();
        let queued = parts.iter().filter(|(part, _)| *part == WallPart::Queued);
        let queued_ns: i64 = queued.map(|(_, ns)| *ns).sum();
        let rest = percent(queued_ns, window_ns) >= MOSTLY_QUEUED;
        let row = |&(part, total_ns): &(WallPart, i64)| Self {
            device: device.to_owned(),
            part,
            total_ns,
            share_pct: percent(total_ns, window_ns),
            share_rest_pct: (rest && part != WallPart::Queued)
                .then(|| percent(total_ns, window_ns - queued_ns)),
            of_steps,
        };
        parts.iter().map(row).filter(|row| row.total_ns > 0).collect()
    }
}

impl Row for WallRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "device",
            title: "Device",
            unit: Unit::Text,
            help: "Device id.",
            cell: |row| row.device.as_str().into(),
        },
        Column {
            key: "part",
            title: "Wall time",
            unit: Unit::Text,
            help: "What the device does, or why it is idle. Each moment belongs to the first part that covers it.",
            cell: |row| Cell::Word {
                id: row.part.id().into(),
                label: row.part.title().into(),
                meaning: row.part.meaning().into(),
            },
        },
        Column {
            key: "total_ns",
            title: "Time",
            unit: Unit::Time,
            help: "Time of the window.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "share_pct",
            title: "Share of the window",
            unit: Unit::Percent,
            help: "Time in percent of the window: the profiler's steps, or else the span of the GPU's work.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "share_rest_pct",
            title: "Share without queued work",
            unit: Unit::Percent,
            help: "The same, of the window without the time in which work was queued.",
            cell: |row| {
                row.share_rest_pct
                    .map_or_else(|| Cell::missing("left out of the window"), Cell::Percent)
            },
        },
    ];
}

/// When each part of a device's wall time is; the parts share no moment, and together they are the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WallTimes {
    /// The device's id.
    pub device: String,
    /// The parts that have any time, in the order of the bar. Times are on the clock of the trace.
    pub parts: Vec<(WallPart, Vec<Interval>)>,
    /// When each stage is, in the order in which they first come; empty if all of it is one stage. Together they cover the window.
    pub stages: Vec<(Stage, Vec<Interval>)>,
}

impl WallTimes {
    /// When a part is.
    #[must_use]
    pub fn part(&self, part: WallPart) -> &[Interval] {
        self.parts.iter().find(|(of, _)| *of == part).map_or(&[], |(_, times)| times)
    }

    /// The parts within a window, in ns, in the order of the bar; those of 0 are left out.
    #[must_use]
    pub fn within(&self, window: Interval) -> Vec<(WallPart, i64)> {
        let part =
            |(part, times): &(WallPart, Vec<Interval>)| (*part, length_within(times, window));
        self.parts.iter().map(part).filter(|(_, ns)| *ns > 0).collect()
    }
}

/// The times of a device's parts; they fill the window of `idle`.
#[inline(never)]
pub(crate) fn wall_times(
    gpu: &Gpu<'_>,
    idle: &Idle,
    causes: &[(Cause, Vec<Interval>)],
) -> WallTimes {
    let device = gpu.device().to_owned();
    if gpu.is_empty() && gpu.n_beside() == 0 {
        return WallTimes { device, ..WallTimes::default() };
    }
    let [compute, communication, all] = busy(gpu);
    let within = |times: &[Interval]| both(times, &idle.window);
    let (compute, communication, all) = (within(&compute), within(&communication), within(&all));
    let exposed = without(&communication, &compute);
    let copies = without(&without(&all, &compute), &communication);
    let times = |part: WallPart| match part {
        WallPart::Compute => compute.clone(),
        WallPart::Communication => exposed.clone(),
        WallPart::Copies => copies.clone(),
        idle => {
            let own = causes.iter().filter(|(cause, _)| WallPart::of(*cause) == idle);
            union(own.flat_map(|(_, times)| times.iter().copied()).collect())
        }
    };
    let parts = WallPart::ALL.into_iter().map(|part| (part, times(part)));
    let parts = parts.filter(|(_, times)| !times.is_empty()).collect();
    WallTimes { device, parts, stages: Vec::new() }
}

/// The rows of a device's bar; they add up to the window of `idle`.
pub(crate) fn wall_rows(times: &WallTimes, idle: &Idle) -> Vec<WallRow> {
    let parts = times.parts.iter().map(|(part, own)| (*part, length(own)));
    WallRow::bar(&times.device, &parts.collect::<Vec<_>>(), idle.of_steps)
}

/// When the device runs kernels that are no communication, communication, and anything.
fn busy(gpu: &Gpu<'_>) -> [Vec<Interval>; 3] {
    let (mut compute, mut communication, mut all) =
        (Collector::default(), Collector::default(), Collector::default());
    let mut dependent = Dependent::of(gpu.trace);
    let mut add = |slice: &GpuSlice, work: &Work| {
        let (start, end) = (slice.start_ns, slice.end_ns());
        all.add(start, end);
        let own = dependent.own_of(gpu, slice);
        if work.category == Category::Communication {
            communication.add(start, end);
        } else if work.kind == RawKind::Kernel {
            compute.add(own.0, own.1);
        }
    };
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        add(&slice, gpu.work(slice.work));
    }
    for at in 0..gpu.n_beside() {
        let slice = gpu.slice_beside(at);
        add(&slice, gpu.work(slice.work));
    }
    [compute, communication, all].map(Collector::union)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sources, TriageOptions, triage};
    use fixture::{Fixture, kernel, slice};

    fn parts(fixture: Fixture) -> Vec<(WallPart, i64)> {
        let options = TriageOptions::default();
        let report = triage(&fixture.finish(), &options, &Sources::default());
        report.wall.iter().map(|row| (row.part, row.total_ns)).collect()
    }

    /// A kernel and its launch.
    fn launch(fixture: &mut Fixture, name: &str, link: i64, called: i64, at: i64, dur: i64) {
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(called, 2_000).on(1, 1);
        fixture.push(call.link(link));
        fixture.push(kernel(name).at(at, dur).link(link));
    }

    #[test]
    fn a_kernel_that_waits_for_an_all_reduce_by_dependent_launch_is_no_compute_yet() {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "ncclDevKernel_AllReduce_Sum_f32", 1, 0, 10_000, 300_000);
        launch(&mut fixture, "rms_norm_kernel", 2, 5_000, 12_000, 301_000);
        let expected = [(WallPart::Compute, 3_000), (WallPart::Communication, 300_000)];
        assert_eq!(parts(fixture), expected);
    }

    #[test]
    fn the_parts_add_up_and_each_moment_has_one() {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, 0, 5_000, 10_000);
        // The first half of a collective runs beside the kernel.
        launch(&mut fixture, "ncclDevKernel_AllReduce_Sum_f32", 2, 3_000, 10_000, 10_000);
        // 5 ms in the data loader, until the next launch.
        fixture.push(
            slice("user_annotation", "enumerate(DataLoader)#x.__next__")
                .at(20_000, 5_000_000)
                .on(1, 1),
        );
        launch(&mut fixture, "gemm", 3, 5_030_000, 5_033_000, 7_000);
        let found = parts(fixture);
        assert_eq!(
            found,
            [
                (WallPart::Compute, 17_000),
                (WallPart::Communication, 5_000),
                (WallPart::DataLoading, 5_000_000),
                (WallPart::HostCompute, 2_000),
                (WallPart::Unexplained, 11_000),
            ]
        );
        assert_eq!(found.iter().map(|(_, ns)| ns).sum::<i64>(), 5_040_000 - 5_000);
    }

    #[test]
    fn what_nothing_is_recorded_of_is_no_idle_time() {
        let mut fixture = Fixture::default();
        // The end of an earlier step, and nothing for 80 ms; then two kernels.
        fixture.push(kernel("before").at(0, 20_000_000).link(99));
        launch(&mut fixture, "k", 1, 100_000_000, 100_004_000, 10_000_000);
        launch(&mut fixture, "k", 2, 100_010_000, 110_004_000, 10_000_000);
        let found = parts(fixture);
        assert_eq!(
            found,
            [(WallPart::Compute, 20_000_000), (WallPart::Launch, 2_000), (WallPart::Start, 2_000)],
            "from the first call on"
        );
    }

    #[test]
    fn beside_queued_work_there_are_shares_of_the_rest() {
        let bar = |queued: i64| {
            let parts = [(WallPart::Compute, 6), (WallPart::Launch, 4), (WallPart::Queued, queued)];
            WallRow::bar("0", &parts, false)
        };
        let rest = |rows: &[WallRow]| rows.iter().map(|row| row.share_rest_pct).collect::<Vec<_>>();
        assert_eq!(rest(&bar(90)), [Some(60.0), Some(40.0), None]);
        assert_eq!(rest(&bar(9)), [None; 3], "less than half");
        assert_eq!(bar(0).len(), 2, "a part without time has no row");
    }

    #[test]
    fn short_gaps_before_late_launches_are_launches() {
        let mut fixture = Fixture::default();
        for n in 0..10 {
            launch(&mut fixture, "k", n + 1, n * 50_000, n * 50_000 + 5_000, 10_000);
        }
        assert_eq!(
            parts(fixture),
            [
                (WallPart::Compute, 100_000),
                // 35 µs up to the launch, 2 µs in its call, 3 µs until the kernel starts.
                (WallPart::Launch, 9 * 37_000),
                (WallPart::Start, 9 * 3_000),
            ]
        );
    }
}
