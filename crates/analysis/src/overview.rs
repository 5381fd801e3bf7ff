//! The overview: totals of GPU time, counts, and the machine.

use catalog::{Category, Platform};
use report::{Cell, Column, Row, Unit, units};
use serde::Serialize;
use trace::{Flags, Trace, each_row};

use crate::breakdown::CategoryRow;
use crate::other_work::other_work;
use crate::streams::DeviceRow;
use timeline::absolute_ns;
use timeline::before_window::{BeforeWindow, BeforeWindowSlices, duration_ns};
use timeline::device::{self, Device};
use timeline::gpu::{Extent, Gpu};
use timeline::intervals::{Collector, length, without};
use timeline::percent;

/// The figures of the first screen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// The headline: GPU busy time and the largest category.
    pub verdict: String,
    /// `cuda`, `rocm` or `unknown`.
    pub platform: String,
    /// `CUDA 12.4`, `HIP 6.4.43483`; `None` if not recorded.
    pub runtime: Option<String>,
    /// This process's rank.
    pub rank: Option<i64>,
    /// How many ranks there are.
    pub world_size: Option<i64>,
    /// The distributed backend, such as `nccl`.
    pub backend: Option<String>,
    /// The file's list of devices, used or not.
    pub devices: Vec<Device>,
    /// Events of any kind.
    pub n_events: u64,
    /// Slices with a duration (`ph` X).
    pub n_slices: u64,
    /// From the first start to the last end of any slice.
    pub window_ns: i64,
    /// The GPU.
    pub gpu: GpuTotals,
    /// GPU work that was launched before profiling started.
    pub before_window: BeforeWindow,
}

/// Sums over all GPU slices of all devices; the `gpu` object of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuTotals {
    /// Time during which at least one slice ran.
    pub busy_ns: i64,
    /// Span - busy.
    pub idle_ns: i64,
    /// From the first start to the last end.
    pub span_ns: i64,
    /// Sum of kernel durations.
    pub kernel_sum_ns: i64,
    /// Time during which at least one kernel ran.
    pub kernel_busy_ns: i64,
    /// Kernels.
    pub n_kernels: u64,
    /// Kernels, copies and fills.
    pub n_gpu_events: u64,
    /// Copies.
    pub n_memcpy: u64,
    /// Sum of their durations.
    pub memcpy_sum_ns: i64,
    /// Fills.
    pub n_memset: u64,
    /// Sum of their durations.
    pub memset_sum_ns: i64,
    /// Distinct kernel names.
    pub n_kernel_names: u64,
    /// GPU slices without a duration, or with a duration of zero or less.
    pub n_zero_dur: u64,
    /// First start on the file's clock; `None` without GPU slices or beyond 64-bit nanoseconds.
    pub first_ns: Option<i64>,
    /// Last end on the file's clock.
    pub last_ns: Option<i64>,
}

#[inline(never)]
pub(crate) fn overview(
    gpu: &Gpu<'_>,
    platform: Platform,
    before_window: &BeforeWindowSlices,
    categories: &[CategoryRow],
    devices: &[DeviceRow],
) -> Overview {
    let trace = gpu.trace;
    let totals = totals(gpu);
    let only_communication_ns = only_communication_ns(gpu);
    let (rank, world_size, backend) = device::distributed(trace);
    let (n_slices, window_ns) = window(trace);
    Overview {
        verdict: verdict(trace, &totals, only_communication_ns, categories, devices),
        platform: device::platform_id(platform).to_owned(),
        runtime: device::runtime(trace),
        rank,
        world_size,
        backend,
        devices: device::devices(trace),
        n_events: trace.len() as u64,
        n_slices,
        window_ns,
        gpu: totals,
        before_window: before_window.summary.clone(),
    }
}

#[inline(never)]
fn totals(gpu: &Gpu<'_>) -> GpuTotals {
    use catalog::RawKind::{Kernel, Memcpy, Memset};
    let (mut all, mut kernels) = (Extent::default(), Extent::default());
    let (mut copies, mut fills) = (Extent::default(), Extent::default());
    let mut n_zero_dur = 0;
    gpu.each_slice(|slice| {
        all.add(&slice);
        n_zero_dur += u64::from(slice.dur_ns == 0);
        match gpu.works[slice.work].kind {
            Kernel => kernels.add(&slice),
            Memcpy => copies.add(&slice),
            Memset => fills.add(&slice),
        }
    });
    let on_clock = |ns: i64| if all.n == 0 { None } else { absolute_ns(gpu.trace, ns) };
    GpuTotals {
        busy_ns: all.busy_ns,
        idle_ns: all.idle_ns(),
        span_ns: all.span_ns(),
        kernel_sum_ns: kernels.total_ns,
        kernel_busy_ns: kernels.busy_ns,
        n_kernels: kernels.n,
        n_gpu_events: all.n,
        n_memcpy: copies.n,
        memcpy_sum_ns: copies.total_ns,
        n_memset: fills.n,
        memset_sum_ns: fills.total_ns,
        n_kernel_names: gpu.works.iter().filter(|work| work.kind == Kernel).count() as u64,
        n_zero_dur,
        first_ns: on_clock(all.first_ns),
        last_ns: on_clock(all.last_ns),
    }
}

/// Slices of any kind, and the time from the first start to the last end of one.
#[inline(never)]
fn window(trace: &Trace) -> (u64, i64) {
    let (mut n, mut first, mut last) = (0, i64::MAX, i64::MIN);
    each_row(trace, |row| {
        let (start_ns, dur_ns) = match trace.sound_slice(row, Flags::default(), i64::MAX) {
            Some((start_ns, dur_ns)) => (start_ns, i64::from(dur_ns)),
            None if trace.is_complete(row, Flags::HAS_TS, Flags::default()) => {
                (trace.ts_ns(row), duration_ns(trace, row))
            }
            None => return,
        };
        n += 1;
        first = first.min(start_ns);
        last = last.max(start_ns.saturating_add(dur_ns));
    });
    (n, if n == 0 { 0 } else { last.saturating_sub(first) })
}

/// How long the GPU ran communication and no other kernel: copies and fills beside it hide nothing.
#[inline(never)]
fn only_communication_ns(gpu: &Gpu<'_>) -> i64 {
    let (mut communication, mut rest) = (Collector::default(), Collector::default());
    gpu.each_slice(|slice| {
        if gpu.works[slice.work].category == Category::Communication {
            communication.add(slice.start_ns, slice.end_ns());
        } else if gpu.is_kernel(&slice) {
            rest.add(slice.start_ns, slice.end_ns());
        }
    });
    length(&without(&communication.union(), &rest.union()))
}

/// The share of the GPU span with nothing but communication, in parentheses after a space; empty where that is less than half
/// of the busy time. (A GPU that waits for other ranks is busy.)
#[must_use]
pub fn only_communication(only_ns: i64, busy_ns: i64, span_ns: i64) -> String {
    if only_ns == 0 || only_ns.saturating_mul(2) < busy_ns {
        return String::new();
    }
    format!(" ({} only communication)", units::percent(percent(only_ns, span_ns)))
}

fn verdict(
    trace: &Trace,
    gpu: &GpuTotals,
    only_communication_ns: i64,
    categories: &[CategoryRow],
    devices: &[DeviceRow],
) -> String {
    let other = other_work(trace);
    if gpu.n_gpu_events == 0 {
        return other.unwrap_or_else(|| "This trace contains no GPU slices.".to_owned());
    }
    let mut text = match devices {
        [_, _, ..] => busy_of_each(devices),
        _ => format!(
            "GPU busy {} of {}{}",
            units::percent(percent(gpu.busy_ns, gpu.span_ns)),
            units::time(gpu.span_ns),
            only_communication(only_communication_ns, gpu.busy_ns, gpu.span_ns)
        ),
    };
    if let Some(top) = categories.first().filter(|row| row.total_ns > 0) {
        text.push_str(&format!(
            "; largest category by kernel name: {}, {} of GPU time",
            crate::words::category_title(&top.category),
            units::percent(top.share_pct)
        ));
    }
    text.push('.');
    if let Some(other) = other {
        text.push(' ');
        text.push_str(&other);
    }
    text
}

/// How busy several devices are: that any of them is busy says little of each.
fn busy_of_each(devices: &[DeviceRow]) -> String {
    let (busy_ns, span_ns) = summed(devices);
    let shares = || devices.iter().map(|row| row.busy_pct);
    let (least, most) = (shares().fold(f64::MAX, f64::min), shares().fold(0.0, f64::max));
    format!(
        "{} GPUs busy {} of their spans, summed ({} to {} each)",
        devices.len(),
        units::percent(percent(busy_ns, span_ns)),
        units::percent(least),
        units::percent(most)
    )
}

/// Busy times and spans of the devices, summed.
#[must_use]
pub fn summed(devices: &[DeviceRow]) -> (i64, i64) {
    let add = |(busy, span): (i64, i64), row: &DeviceRow| {
        (busy.saturating_add(row.busy_ns), span.saturating_add(row.span_ns))
    };
    devices.iter().fold((0, 0), add)
}

/// One figure of the overview: a name and a value of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRow {
    /// Its name.
    pub figure: String,
    /// The value.
    pub value: Cell<'static>,
    /// Its definition, or the field of the file it comes from.
    pub note: String,
}

/// Why a fact of the run is missing.
const NOT_RECORDED: &str = "not recorded in the file";

impl FigureRow {
    fn new(figure: &str, value: Cell<'static>, note: &str) -> Self {
        Self { figure: figure.to_owned(), value, note: note.to_owned() }
    }

    fn text(figure: &str, value: Option<String>, note: &str) -> Self {
        Self::new(figure, Cell::or_missing(value, Cell::from, NOT_RECORDED), note)
    }

    fn number(figure: &str, value: Option<i64>, note: &str) -> Self {
        Self::text(figure, value.map(|value| value.to_string()), note)
    }

    /// Whether it says more than that there is none.
    pub(crate) fn is_said(&self) -> bool {
        !self.value.is_missing() && self.value.number() != Some(0.0)
    }
}

impl Overview {
    /// The figures as rows.
    #[must_use]
    pub fn figures(&self) -> Vec<FigureRow> {
        let Self {
            verdict: _,
            platform,
            runtime,
            rank,
            world_size,
            backend,
            devices,
            n_events,
            n_slices,
            window_ns,
            gpu,
            before_window,
        } = self;
        let mut rows = vec![FigureRow::new(
            "Window",
            Cell::Ns(*window_ns),
            "from the first start to the last end of any slice",
        )];
        rows.extend(gpu.figures());
        rows.extend(launched_before(before_window));
        rows.extend([
            FigureRow::new("Events", Cell::Count(*n_events), "of any kind"),
            FigureRow::new("Slices", Cell::Count(*n_slices), "with a duration"),
            FigureRow::new(
                "Platform",
                platform_cell(platform),
                "from versions, device names or runtime calls",
            ),
            FigureRow::text("Runtime", runtime.clone(), "as recorded by the profiler"),
            FigureRow::text("Devices", device_names(devices), "deviceProperties"),
            FigureRow::number("Rank", *rank, "distributedInfo"),
            FigureRow::number("World size", *world_size, "distributedInfo"),
            FigureRow::text("Backend", backend.clone(), "distributedInfo"),
        ]);
        rows
    }
}

impl GpuTotals {
    fn figures(&self) -> [FigureRow; 14] {
        let Self {
            busy_ns,
            idle_ns,
            span_ns,
            kernel_sum_ns,
            kernel_busy_ns,
            n_kernels,
            n_gpu_events,
            n_memcpy,
            memcpy_sum_ns,
            n_memset,
            memset_sum_ns,
            n_kernel_names,
            n_zero_dur,
            first_ns: _,
            last_ns: _,
        } = *self;
        let busy_share = if span_ns == 0 {
            Cell::missing("the trace has no GPU slices")
        } else {
            Cell::Percent(percent(busy_ns, span_ns))
        };
        let (time, count) = (Cell::Ns, Cell::Count);
        let figure = FigureRow::new;
        [
            figure(
                "GPU span",
                time(span_ns),
                "from the first start to the last end of a GPU slice",
            ),
            figure("GPU busy", time(busy_ns), "at least one GPU slice is running on any device"),
            figure("GPU busy, share of GPU span", busy_share, "GPU busy / GPU span"),
            figure("GPU idle", time(idle_ns), "GPU span - GPU busy"),
            figure("Kernels", count(n_kernels), "launches"),
            figure("Kernel names", count(n_kernel_names), "distinct"),
            figure("Kernel time", time(kernel_sum_ns), "summed duration"),
            figure("Kernel busy", time(kernel_busy_ns), "at least one kernel is running"),
            figure("Copies", count(n_memcpy), "gpu_memcpy"),
            figure("Copy time", time(memcpy_sum_ns), "summed duration"),
            figure("Fills", count(n_memset), "gpu_memset"),
            figure("Fill time", time(memset_sum_ns), "summed duration"),
            figure("GPU slices", count(n_gpu_events), "kernels, copies and fills"),
            figure("GPU slices without duration", count(n_zero_dur), "duration is zero or missing"),
        ]
    }
}

/// The figures of kernels that were launched before profiling started.
fn launched_before(before_window: &BeforeWindow) -> [FigureRow; 2] {
    let known = |value: Cell<'static>| match &before_window.unknown {
        Some(reason) => Cell::Missing { reason: reason.clone().into() },
        None => value,
    };
    [
        FigureRow::new(
            "Kernels launched before profiling started",
            known(Cell::Count(before_window.n_kernels)),
            "the launch call is not in the file",
        ),
        FigureRow::new(
            "Time of kernels launched before profiling started",
            known(Cell::Ns(before_window.kernel_ns)),
            "summed duration; included in kernel time",
        ),
    ]
}

fn platform_cell(id: &str) -> Cell<'static> {
    match id {
        "cuda" => "CUDA".into(),
        "rocm" => "ROCm".into(),
        _ => Cell::missing(
            "not recorded: no runtime version, device name or runtime call identifies it",
        ),
    }
}

/// The names of the devices, each once; `None` where none has a name.
fn device_names(devices: &[Device]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for device in devices.iter().filter(|device| !device.name.is_empty()) {
        if !names.contains(&device.name.as_str()) {
            names.push(&device.name);
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

impl Row for FigureRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "figure",
            title: "Figure",
            unit: Unit::Text,
            help: "Name of the figure.",
            cell: |row| row.figure.as_str().into(),
        },
        Column {
            key: "value",
            title: "Value",
            unit: Unit::Text,
            help: "Value of the figure.",
            cell: |row| row.value.clone(),
        },
        Column {
            key: "note",
            title: "Note",
            unit: Unit::Text,
            help: "Definition, or the field of the file it comes from.",
            cell: |row| row.note.as_str().into(),
        },
    ];
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyze};
    use fixture::{Fixture, kernel, slice};

    #[test]
    fn sums_and_unions_differ_where_slices_overlap() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::mm").at(0, 1000));
        fixture.push(kernel("a").at(100, 50).on(0, 1));
        fixture.push(kernel("b").at(120, 50).on(0, 2));
        fixture.push(slice("gpu_memset", "Memset (Device)").at(160, 30).on(0, 1));
        fixture.push(slice("Memcpy", "Memcpy DtoH").at(300, 0).on(0, 1));
        let overview = analyze(&fixture.finish(), &Options::default()).overview;
        let gpu = &overview.gpu;
        assert_eq!((gpu.n_gpu_events, gpu.n_kernels, gpu.n_memcpy, gpu.n_memset), (4, 2, 1, 1));
        assert_eq!((gpu.kernel_sum_ns, gpu.kernel_busy_ns), (100, 70));
        assert_eq!((gpu.busy_ns, gpu.idle_ns, gpu.span_ns), (90, 110, 200));
        assert_eq!((gpu.first_ns, gpu.last_ns, gpu.n_zero_dur), (Some(100), Some(300), 1));
        assert_eq!((overview.window_ns, overview.n_slices), (1000, 5));
        assert!(
            overview
                .verdict
                .starts_with("GPU busy 45.0% of 200 ns; largest category by kernel name: ")
        );
    }

    #[test]
    fn a_gpu_that_is_busy_with_communication_alone_is_named_so() {
        let verdict = |compute_ns: i64| {
            let mut fixture = Fixture::default();
            fixture.push(kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()").at(0, 60).on(0, 9));
            fixture.push(kernel("a").at(20, compute_ns).on(0, 7));
            fixture.push(kernel("a").at(90, 10).on(0, 7));
            analyze(&fixture.finish(), &Options::default()).overview.verdict
        };
        let said = verdict(10);
        assert!(
            said.starts_with("GPU busy 70.0% of 100 ns (50.0% only communication); "),
            "{said}"
        );
        assert!(verdict(26).starts_with("GPU busy 70.0% of 100 ns; "), "less than half of busy");
    }
}
