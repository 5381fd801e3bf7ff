//! The kernel table of triage: what ran, in which stage, for how long, and which line of Python it came from.

use std::collections::BTreeMap;

use report::{Cell, Column, Row, Unit};
use serde::{Deserialize, Serialize};
use trace::StreamId;

use super::site::{Attribution, Confidence};
use super::stages::{Stage, Stages};
use crate::gpu::Gpu;
use crate::kernels::{names, stream_labels};
use crate::launches::Launches;
use crate::{columns, percent};

/// All launches of one kernel name in one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelTableRow {
    /// Stage id.
    pub stage: String,
    /// The whole name.
    pub kernel_name: String,
    /// Category id.
    pub category: String,
    /// Family id.
    pub family: String,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total in percent of the stage's GPU time (a sum, not wall time).
    pub share_pct: f64,
    /// How often it ran.
    pub launches: u64,
    /// Total by launches, rounded half up.
    pub mean_ns: i64,
    /// Median by nearest rank.
    pub p50_ns: i64,
    /// Longest.
    pub max_ns: i64,
    /// The part of the total in which nothing ran on another stream of the device.
    pub exposed_ns: i64,
    /// Mean time from the beginning of the launch call to that of the kernel; `None` when no launch is known, or a
    /// graph launched it.
    pub queue_ns: Option<i64>,
    /// The line of Python that most of its time came from: `path:line function`; empty when none is known.
    pub python_location: String,
    /// The part of the total that came from that line, in percent.
    pub location_share_pct: f64,
    /// Classes of the innermost `nn.Module`s around that line, outermost first; empty when none is known.
    pub modules: String,
    /// The op that most of its time came from; empty when none is known.
    pub cpu_op: String,
    /// How sure the place is: see [`Confidence`].
    pub mapping_confidence: String,
    /// Streams it ran on.
    pub streams: Vec<String>,
    /// When it first ran, in the file's nanoseconds, for finding it in a timeline.
    pub first_seen_ns: i64,
    /// Remarks, as tokens that a program can read.
    pub notes: Vec<String>,
}

/// What is summed per place.
#[derive(Clone, Copy, Default)]
struct Part {
    ns: i64,
    launches: u64,
}

/// The rows, most time first within a stage.
#[inline(never)]
pub(crate) fn kernel_table(
    gpu: &Gpu<'_>,
    stages: &Stages,
    places: &Attribution,
    launches: &Launches,
    exposed_ns: &[i64],
) -> Vec<KernelTableRow> {
    let mut order: Vec<(Stage, u32, u32)> = Vec::with_capacity(gpu.len());
    let mut stage_ns: BTreeMap<Stage, i64> = BTreeMap::new();
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        let stage = stages.stage(at);
        order.push((stage, slice.work as u32, at as u32));
        let sum = stage_ns.entry(stage).or_default();
        *sum = sum.saturating_add(slice.dur_ns);
    }
    order.sort_unstable();
    let labels = stream_labels(gpu);
    let mut rows: Vec<(Stage, KernelTableRow)> = order
        .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|group| {
            let all_ns = stage_ns.get(&group[0].0).copied().unwrap_or_default();
            let slices = group.iter().map(|(_, _, at)| *at as usize);
            let row = Sums::of(gpu, places, launches, exposed_ns, slices);
            (group[0].0, row.row(gpu, group[0].0, group[0].1 as usize, all_ns, places, &labels))
        })
        .collect();
    trace::sort_by(&mut rows, |(a_stage, a), (b_stage, b)| {
        (a_stage, b.total_ns, &a.kernel_name).cmp(&(b_stage, a.total_ns, &b.kernel_name))
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The sums of one kernel name in one stage.
#[derive(Default)]
struct Sums {
    durations: Vec<i64>,
    total_ns: i64,
    exposed_ns: i64,
    queue_ns: i64,
    n_queued: i64,
    orphans: u64,
    streams: Vec<StreamId>,
    first_ns: i64,
    sites: BTreeMap<u32, Part>,
}

impl Sums {
    fn of(
        gpu: &Gpu<'_>,
        places: &Attribution,
        launches: &Launches,
        exposed_ns: &[i64],
        slices: impl Iterator<Item = usize>,
    ) -> Self {
        let mut sums = Self { first_ns: i64::MAX, ..Self::default() };
        for at in slices {
            let slice = gpu.slice(at);
            sums.durations.push(slice.dur_ns);
            sums.total_ns = sums.total_ns.saturating_add(slice.dur_ns);
            let exposed_ns = exposed_ns.get(at).copied().unwrap_or_default();
            sums.exposed_ns = sums.exposed_ns.saturating_add(exposed_ns);
            sums.first_ns = sums.first_ns.min(slice.start_ns);
            sums.orphans += u64::from(slice.before_window);
            let part = sums.sites.entry(places.site_of[at]).or_default();
            part.ns = part.ns.saturating_add(slice.dur_ns);
            part.launches += 1;
            if let Some(stream) = slice.stream
                && let Err(place) = sums.streams.binary_search(&stream)
            {
                sums.streams.insert(place, stream);
            }
            if let Some(launch) = launches.of_slice(at)
                && launches.is_sure(at)
                && !places.site(at).graph
            {
                let delay = slice.start_ns.saturating_sub(gpu.trace.ts_ns(launch));
                sums.queue_ns = sums.queue_ns.saturating_add(delay);
                sums.n_queued += 1;
            }
        }
        sums
    }

    fn row(
        mut self,
        gpu: &Gpu<'_>,
        stage: Stage,
        work: usize,
        stage_ns: i64,
        places: &Attribution,
        labels: &[((bool, i64, String), String)],
    ) -> KernelTableRow {
        let n = self.durations.len();
        let launches = i64::try_from(n).unwrap_or(i64::MAX).max(1);
        let max_ns = self.durations.iter().copied().max().unwrap_or_default();
        let half = n.saturating_sub(1) / 2;
        let p50_ns = if n == 0 { 0 } else { *self.durations.select_nth_unstable(half).1 };
        let place = Place::of(&self.sites, places);
        let mut notes = Vec::new();
        if place.graph {
            notes.push("graph-launched".to_owned());
        }
        if self.orphans > 0 {
            notes.push(format!("launched-before-window:{}", self.orphans));
        }
        if place.n_locations > 1 {
            notes.push(format!("locations:{}", place.n_locations));
        }
        let trace = gpu.trace;
        KernelTableRow {
            stage: stage.id().to_owned(),
            kernel_name: trace.strings.get(gpu.works[work].name).to_owned(),
            category: gpu.works[work].category.id().to_owned(),
            family: gpu.works[work].family.id().to_owned(),
            total_ns: self.total_ns,
            share_pct: percent(self.total_ns, stage_ns),
            launches: n as u64,
            mean_ns: self.total_ns.saturating_add(launches / 2) / launches,
            p50_ns,
            max_ns,
            exposed_ns: self.exposed_ns,
            queue_ns: (self.n_queued > 0).then(|| self.queue_ns / self.n_queued),
            python_location: place.location,
            location_share_pct: percent(place.ns, self.total_ns),
            modules: place.modules,
            cpu_op: place.cpu_op,
            mapping_confidence: place.confidence.id().to_owned(),
            streams: names(&self.streams, labels),
            first_seen_ns: self.first_ns,
            notes,
        }
    }
}

/// Where most of a kernel's time came from.
struct Place {
    location: String,
    modules: String,
    cpu_op: String,
    confidence: Confidence,
    ns: i64,
    graph: bool,
    n_locations: usize,
}

impl Place {
    fn of(sites: &BTreeMap<u32, Part>, places: &Attribution) -> Self {
        // Several places may be one line: with other callers, or with another op.
        let mut by_line: BTreeMap<String, (Part, u32, i64)> = BTreeMap::new();
        let mut graph = false;
        for (index, part) in sites {
            let site = &places.sites[*index as usize];
            graph |= site.graph;
            let line = site.location.as_ref().map(ToString::to_string).unwrap_or_default();
            let (sum, best, best_ns) = by_line.entry(line).or_insert((Part::default(), *index, -1));
            sum.ns = sum.ns.saturating_add(part.ns);
            sum.launches += part.launches;
            if part.ns > *best_ns {
                (*best, *best_ns) = (*index, part.ns);
            }
        }
        let n_locations = by_line.keys().filter(|line| !line.is_empty()).count();
        // A line that is known before none; then by time, then by launches (for kernels that take no time).
        let chosen = by_line
            .into_iter()
            .max_by_key(|(line, (part, _, _))| (!line.is_empty(), part.ns, part.launches));
        let Some((location, (part, index, _))) = chosen else {
            return Self {
                location: String::new(),
                modules: String::new(),
                cpu_op: String::new(),
                confidence: Confidence::None,
                ns: 0,
                graph,
                n_locations,
            };
        };
        let site = &places.sites[index as usize];
        let op = site.cpu_op.clone().or_else(|| site.launch.clone()).unwrap_or_default();
        let ns = if location.is_empty() { 0 } else { part.ns };
        let modules = site.modules.clone().unwrap_or_default();
        Self { location, modules, cpu_op: op, confidence: site.confidence, ns, graph, n_locations }
    }
}

/// Rows with at least `cutoff_pct` of their stage, and what is left of each stage in one row, so that the shares of a
/// stage still sum to 100 %.
#[must_use]
pub fn above_cutoff(rows: &[KernelTableRow], cutoff_pct: f64) -> Vec<KernelTableRow> {
    let mut kept = Vec::new();
    for stage in rows.chunk_by(|a, b| a.stage == b.stage) {
        let (above, below): (Vec<_>, Vec<_>) =
            stage.iter().partition(|row| row.share_pct >= cutoff_pct);
        kept.extend(above.into_iter().cloned());
        let Some(first) = below.first() else { continue };
        let sum = |of: fn(&KernelTableRow) -> i64| {
            below.iter().fold(0_i64, |sum, row| sum.saturating_add(of(row)))
        };
        let launches: u64 = below.iter().map(|row| row.launches).sum();
        let total_ns = sum(|row| row.total_ns);
        let n = i64::try_from(launches).unwrap_or(i64::MAX).max(1);
        kept.push(KernelTableRow {
            stage: first.stage.clone(),
            kernel_name: format!("others ({} kernels)", below.len()),
            category: REST.to_owned(),
            family: String::new(),
            total_ns,
            share_pct: below.iter().map(|row| row.share_pct).sum(),
            launches,
            mean_ns: total_ns.saturating_add(n / 2) / n,
            p50_ns: 0,
            max_ns: below.iter().map(|row| row.max_ns).max().unwrap_or_default(),
            exposed_ns: sum(|row| row.exposed_ns),
            queue_ns: None,
            python_location: String::new(),
            location_share_pct: 0.0,
            modules: String::new(),
            cpu_op: String::new(),
            mapping_confidence: Confidence::None.id().to_owned(),
            streams: Vec::new(),
            first_seen_ns: below.iter().map(|row| row.first_seen_ns).min().unwrap_or_default(),
            notes: vec!["p50-not-defined".to_owned()],
        });
    }
    kept
}

/// The category of the row that sums up the rest of a stage.
const REST: &str = "others";
/// Why that row lacks what single kernels have.
const OF_REST: &str = "these are several kernels";

fn is_rest(row: &KernelTableRow) -> bool {
    row.category == REST
}

impl Row for KernelTableRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "Prefill (extend), decode, mixed, forward, backward, optimizer; all where no stage is known.",
            cell: |row| row.stage.as_str().into(),
        },
        columns::kernel_name(
            "The kernel's name; shortened here, whole in the title and in copies.",
            |row| row.kernel_name.as_str().into(),
        ),
        columns::category("What the kernel computes, from its name.", |row| {
            row.category.as_str().into()
        }),
        columns::family("The library or compiler that it comes from, from its name.", |row| {
            row.family.as_str().into()
        }),
        columns::total_ns("Sum of the durations of all launches.", |row| Cell::Ns(row.total_ns)),
        columns::share_pct(
            "Total in percent of the stage's GPU time, a sum over all streams.",
            |row| Cell::Percent(row.share_pct),
        ),
        columns::launches(|row| Cell::Count(row.launches)),
        columns::mean_ns(|row| Cell::Ns(row.mean_ns)),
        columns::p50_ns("Median by nearest rank: a duration that occurred.", |row| {
            if is_rest(row) { Cell::missing(OF_REST) } else { Cell::Ns(row.p50_ns) }
        }),
        columns::max_ns(|row| Cell::Ns(row.max_ns)),
        Column {
            key: "exposed_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "The part of the total in which nothing ran on another stream of the device.",
            cell: |row| Cell::Ns(row.exposed_ns),
        },
        Column {
            key: "queue_ns",
            title: "Queued",
            unit: Unit::Time,
            help: "Mean time from the beginning of the launch call to that of the kernel. Not told of graphs.",
            cell: |row| Cell::or_missing(row.queue_ns, Cell::Ns, "no launch of it is known"),
        },
        Column {
            key: "python_location",
            title: "Python",
            unit: Unit::Text,
            help: "The line that most of its time came from: the innermost one of the user's code or a model's.",
            cell: |row| row.python_location.as_str().into(),
        },
        Column {
            key: "location_share_pct",
            title: "From there",
            unit: Unit::Percent,
            help: "The part of the total that came from that line.",
            cell: |row| match row.python_location.as_str() {
                "" if is_rest(row) => Cell::missing(OF_REST),
                "" => Cell::missing("no line is known"),
                _ => Cell::Percent(row.location_share_pct),
            },
        },
        Column {
            key: "modules",
            title: "Modules",
            unit: Unit::Text,
            help: "Classes of the innermost modules that were running, outermost first.",
            cell: |row| row.modules.as_str().into(),
        },
        Column {
            key: "cpu_op",
            title: "Op",
            unit: Unit::Text,
            help: "The op that most of its time came from; the launch call where no op is known.",
            cell: |row| row.cpu_op.as_str().into(),
        },
        Column {
            key: "mapping_confidence",
            title: "How sure",
            unit: Unit::Text,
            help: "exact: by the file's ids; replay: by the order of a graph's capture; position: by place in it; mapping: by name from another trace; enclosing: by time; launch: only the call is known; none: nothing is known.",
            cell: |row| row.mapping_confidence.as_str().into(),
        },
        columns::streams(|row| columns::list_streams(&row.streams)),
        Column {
            key: "first_seen_ns",
            title: "First",
            unit: Unit::Instant,
            help: "When it first ran, on the file's clock.",
            cell: |row| Cell::Instant(row.first_seen_ns),
        },
        Column {
            key: "notes",
            title: "Notes",
            unit: Unit::Text,
            help: "Remarks.",
            cell: |row| Cell::Text(row.notes.join("; ")),
        },
    ];
}
