//! Kernels by name, over all stages.

use catalog::{Category, Family, RawKind};
use report::{Cell, Column, Row, Unit, units};
use serde::Serialize;
use trace::StreamId;

use crate::{columns, words};
use timeline::before_window::{BeforeWindow, is_much};
use timeline::gpu::Gpu;
use timeline::median;
use timeline::percent;
use timeline::streams::{names, stream_labels};

/// All launches of one kernel name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelRow {
    /// The whole name.
    pub kernel_name: String,
    /// What it does.
    #[serde(serialize_with = "crate::ids::serialize")]
    pub category: Category,
    /// The library or compiler that it comes from.
    #[serde(serialize_with = "crate::ids::serialize")]
    pub family: Family,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total as a percentage of all kernels' total.
    pub share_pct: f64,
    /// Number of launches.
    pub launches: u64,
    /// Total / launches, rounded half up.
    pub mean_ns: i64,
    /// Median; of an even number of launches the mean of the two in the middle, rounded half up.
    pub p50_ns: i64,
    /// Shortest.
    pub min_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// Streams it ran on, `device:stream` when the trace has several devices.
    pub streams: Vec<String>,
    /// Launches whose launch call is not in the file.
    pub before_window_launches: u64,
    /// The sum of their durations.
    pub before_window_ns: i64,
}

#[derive(Clone, Default)]
struct Sums {
    launches: u64,
    total_ns: i64,
    before_window_launches: u64,
    before_window_ns: i64,
    /// Sorted.
    streams: Vec<StreamId>,
}

#[inline(never)]
pub(crate) fn kernels(gpu: &Gpu<'_>) -> Vec<KernelRow> {
    let mut sums = vec![Sums::default(); gpu.works.len()];
    gpu.each_slice(|slice| {
        let sums = &mut sums[slice.work];
        sums.launches += 1;
        sums.total_ns = sums.total_ns.saturating_add(slice.dur_ns);
        if slice.before_window {
            sums.before_window_launches += 1;
            sums.before_window_ns = sums.before_window_ns.saturating_add(slice.dur_ns);
        }
        if let Some(stream) = slice.stream
            && let Err(at) = sums.streams.binary_search(&stream)
        {
            sums.streams.insert(at, stream);
        }
    });

    // The durations of each name side by side in one vector: a median needs them all, a map of vectors
    // would cost an allocation per name and twice the memory.
    let is_kernel = |work: usize| gpu.works[work].kind == RawKind::Kernel;
    let mut next = Vec::with_capacity(sums.len());
    let mut n = 0_usize;
    for (work, sums) in sums.iter().enumerate() {
        next.push(n);
        if is_kernel(work) {
            n += sums.launches as usize;
        }
    }
    let starts = next.clone();
    let mut durations = vec![0_i64; n];
    gpu.each_slice(|slice| {
        if is_kernel(slice.work) {
            durations[next[slice.work]] = slice.dur_ns;
            next[slice.work] += 1;
        }
    });

    let of_kernels = sums.iter().enumerate().filter(|(work, _)| is_kernel(*work));
    let all_ns = of_kernels.fold(0_i64, |all, (_, sums)| all.saturating_add(sums.total_ns));
    let labels = stream_labels(gpu);
    let mut rows: Vec<KernelRow> = gpu
        .works
        .iter()
        .zip(&sums)
        .zip(&starts)
        .filter(|((work, _), _)| work.kind == RawKind::Kernel)
        .map(|((work, sums), start)| {
            let durations = &mut durations[*start..*start + sums.launches as usize];
            let (min_ns, p50_ns, max_ns) = spread(durations);
            let launches = i64::try_from(sums.launches).unwrap_or(i64::MAX);
            KernelRow {
                kernel_name: gpu.trace.strings.get(work.name).to_owned(),
                category: work.category,
                family: work.family,
                total_ns: sums.total_ns,
                share_pct: percent(sums.total_ns, all_ns),
                launches: sums.launches,
                mean_ns: sums.total_ns.saturating_add(launches / 2) / launches,
                p50_ns,
                min_ns,
                max_ns,
                streams: names(&sums.streams, &labels),
                before_window_launches: sums.before_window_launches,
                before_window_ns: sums.before_window_ns,
            }
        })
        .collect();
    trace::sort_by(&mut rows, |a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| a.kernel_name.cmp(&b.kernel_name))
    });
    rows
}

/// The smallest of some lengths, the median, the largest.
#[inline(never)]
fn spread(durations: &mut [i64]) -> (i64, i64, i64) {
    let (min, max) =
        durations.iter().fold((i64::MAX, 0), |(min, max), dur| (min.min(*dur), max.max(*dur)));
    (min, median(durations).unwrap_or_default(), max)
}

impl Row for KernelRow {
    const SHOWN: &'static [&'static str] = &[
        "kernel_name",
        "total_ns",
        "share_pct",
        "launches",
        "category",
        "mean_ns",
        "p50_ns",
        "max_ns",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        columns::kernel_name(
            "The kernel name, shortened in tables; exports have the whole name.",
            |row| row.kernel_name.as_str().into(),
        ),
        columns::category("What the kernel computes, from its name.", |row| {
            words::of_category(row.category)
        }),
        columns::family(
            "The library or compiler that the kernel comes from, from its name.",
            |row| words::of_family(row.family),
        ),
        columns::total_ns("Summed duration of all launches.", |row| Cell::Ns(row.total_ns)),
        columns::share_pct(
            "Share of kernel time",
            "Total as a percentage of the summed duration of all kernels, without copies and fills.",
            |row| Cell::Percent(row.share_pct),
        ),
        columns::launches(|row| Cell::Count(row.launches)),
        columns::mean_ns(|row| Cell::Ns(row.mean_ns)),
        columns::p50_ns(
            "Median duration; of an even number of launches the mean of the two in the middle.",
            |row| Cell::Ns(row.p50_ns),
        ),
        Column {
            key: "min_ns",
            title: "Min",
            unit: Unit::Time,
            help: "Shortest launch.",
            cell: |row| Cell::Ns(row.min_ns),
        },
        columns::max_ns(|row| Cell::Ns(row.max_ns)),
        columns::streams(|row| columns::list_streams(&row.streams)),
        Column {
            key: "before_window_launches",
            title: "Launched before start",
            unit: Unit::Count,
            help: "Launches without a launch call in the file: launched before profiling started.",
            cell: |row| Cell::Count(row.before_window_launches),
        },
        Column {
            key: "before_window_ns",
            title: "Time launched before start",
            unit: Unit::Time,
            help: "The part of Total that was launched before profiling started.",
            cell: |row| Cell::Ns(row.before_window_ns),
        },
    ];
}

/// The sentence about work from before the window, if tables with these kernels include it and it is much of their time.
pub(crate) fn included(before: &BeforeWindow, kernels: &[KernelRow]) -> Option<String> {
    if kernels.iter().all(|row| row.before_window_launches == 0) {
        return None;
    }
    let all_ns = kernels.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    let own_ns = before.kernel_ns.saturating_add(before.memory_ns);
    if !is_much(own_ns, all_ns) {
        return None;
    }
    let n = before.n_kernels.saturating_add(before.n_memory_ops);
    Some(format!(
        "Includes {} ({}) launched before profiling started; triage excludes {} by default.",
        units::plural(n, "GPU slice", "GPU slices"),
        units::time(own_ns),
        if n == 1 { "it" } else { "them" },
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyze};
    use fixture::{Fixture, kernel, slice};

    #[test]
    fn work_of_before_the_recording_is_told_from_a_twentieth_of_the_time_on() {
        let said = |early_ns: i64| {
            let mut fixture = Fixture::default();
            fixture.push(kernel("early").at(0, early_ns).link(7));
            fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(10_000, 10).link(1));
            fixture.push(kernel("k").at(20_000, 1_000_000).link(1));
            let sections = analyze(&fixture.finish(), &Options::default()).sections();
            let said = sections.iter().flat_map(|section| &section.intro);
            said.filter(|text| text.starts_with("Includes 1 GPU slice")).count()
        };
        assert_eq!((said(9_000), said(90_000)), (0, 1), "one chapter says it");
    }

    #[test]
    fn statistics_are_of_real_launches() {
        let mut fixture = Fixture::default();
        for (at, dur) in [(0, 9), (10, 1), (20, 4), (30, 3)] {
            fixture.push(kernel("k").at(at, dur));
        }
        fixture.push(kernel("other").at(40, 17));
        fixture.push(kernel("negative").at(60, -5));
        fixture.push(slice("gpu_memset", "k").at(70, 1000));
        let rows = analyze(&fixture.finish(), &Options::default()).kernels;
        let names: Vec<_> = rows.iter().map(|row| row.kernel_name.as_str()).collect();
        assert_eq!(names, ["k", "other", "negative"], "equal totals by name; no copies or fills");
        let k = &rows[0];
        assert_eq!(
            (k.launches, k.total_ns, k.mean_ns, k.p50_ns),
            (4, 17, 4, 4),
            "the median of 3 and 4 is 3.5"
        );
        assert_eq!((k.min_ns, k.max_ns, k.share_pct), (1, 9, 50.0));
        assert_eq!((rows[2].total_ns, rows[2].min_ns, rows[2].max_ns), (0, 0, 0));
    }

    #[test]
    fn streams_are_listed_once_with_their_device_when_needed() {
        let mut fixture = Fixture::default();
        for stream in [20, 7, 20, 100] {
            fixture.push(kernel("k").at(0, 1).on(0, stream));
        }
        let rows = analyze(&fixture.finish(), &Options::default()).kernels;
        assert_eq!(rows[0].streams, ["7", "20", "100"]);

        let mut fixture = Fixture::default();
        fixture.push(kernel("k").at(0, 1).on(0, 7));
        fixture.push(kernel("k").at(0, 1).on(1, 7));
        let rows = analyze(&fixture.finish(), &Options::default()).kernels;
        assert_eq!(rows[0].streams, ["0:7", "1:7"]);
    }
}
