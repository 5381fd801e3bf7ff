//! Single kernels in detail: the triage of every GPU slice, kept to answer requests about one name.

use std::collections::BTreeMap;

use catalog::{Category, Family};
use report::{Cell, Column, Row as ReportRow, Table, Unit};
use serde::{Deserialize, Serialize};
use trace::{Row, SmallIndex, StreamId, Trace};

use super::site::{Confidence, Site};
use super::stages::{Stage, Stages};
use crate::site::Attribution;
use analysis::columns;
use timeline::gpu::{DecidedBy, Gpu, Work};
use timeline::launches::Launches;
use timeline::percent;
use timeline::streams::{names, stream_labels};

/// Places of one kernel that are listed; the others are counted.
const MOST_SITES: usize = 8;

/// The triage of every GPU slice, some 25 bytes each. It refers to its trace by row and id.
#[derive(Clone, Debug, Default)]
pub struct TriageSlices {
    works: Vec<Work>,
    rows: Vec<Row>,
    work_of: Vec<u32>,
    stage_of: Vec<Stage>,
    exposed_ns: Vec<i64>,
    /// `None` where no launch is recorded.
    launch_of: Vec<Option<SmallIndex>>,
    sites: Vec<Site>,
    site_of: Vec<u32>,
    /// The labels of streams, as the tables have them.
    streams: Vec<((bool, i64, String), String)>,
}

/// Which row of the kernel table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelKey {
    /// Stage id; empty for all stages.
    pub stage: String,
    /// The device, where the file has several.
    pub device: Option<String>,
    /// The whole name.
    pub kernel_name: String,
}

/// A kernel of the table in detail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelDetails {
    /// Which.
    pub key: KernelKey,
    /// What it does.
    #[serde(with = "analysis::ids")]
    pub category: Category,
    /// The library or compiler that it comes from.
    #[serde(with = "analysis::ids")]
    pub family: Family,
    /// What gave the category.
    pub reason: CategoryReason,
    /// Number of launches.
    pub n: u64,
    /// Its call sites, most time first.
    pub sites: Vec<CallSite>,
    /// Number of further call sites.
    pub n_sites_left_out: u64,
    /// Some of its launches, by start.
    pub instances: Vec<InstanceRow>,
}

/// What gave a kernel its category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CategoryReason {
    /// Nothing: no rule matches the name.
    #[default]
    Nothing,
    /// The rule with this id.
    Rule(String),
    /// The ops that launched it.
    Op,
}

impl From<DecidedBy> for CategoryReason {
    fn from(decided_by: DecidedBy) -> Self {
        match decided_by {
            DecidedBy::Rule(id) => Self::Rule(id.to_owned()),
            DecidedBy::Op => Self::Op,
            DecidedBy::Nothing => Self::Nothing,
        }
    }
}

/// One place that a kernel came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSite {
    /// Launches from there.
    pub n: u64,
    /// Their time in percent of the kernel's.
    pub share_pct: f64,
    /// The runtime call.
    pub launch: Option<String>,
    /// The op.
    pub cpu_op: Option<String>,
    /// The Python line: the innermost of user or model code.
    pub location: Option<String>,
    /// The whole path of that line's file, as the profiler wrote it, where `location` has less.
    #[serde(default)]
    pub full_path: Option<String>,
    /// Classes of the innermost modules around it, outermost first.
    pub modules: Option<String>,
    /// The calls that lead there, innermost first.
    pub stack: Vec<String>,
    /// For work of the backward pass: the op of the forward pass whose line, modules and calls these are.
    #[serde(default)]
    pub forward_op: Option<String>,
    /// How sure the place is.
    pub confidence: Confidence,
    /// Whether a graph launched it.
    pub graph: bool,
}

/// One launch of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstanceRow {
    /// Its number among the launches of the kernel in the stage, from 1.
    pub number: u64,
    /// Start in the file's nanoseconds.
    pub start_ns: i64,
    /// Duration in ns.
    pub dur_ns: i64,
    /// Its stream; empty if not recorded.
    pub stream: String,
    /// From the start of the launch call to its own; `None` if no launch is recorded, or a graph launched it.
    pub queue_ns: Option<i64>,
    /// Part of the duration with no other stream of the device running.
    pub exposed_ns: i64,
    /// Its rank among all launches: `longest`, `shortest`, `median`; else empty.
    pub mark: String,
    /// Index of the event in the file, from 0.
    pub event: u32,
}

impl TriageSlices {
    pub(super) fn of(
        gpu: &Gpu<'_>,
        stages: &Stages,
        places: Attribution,
        launches: &Launches,
        exposed_ns: Vec<i64>,
    ) -> Self {
        let n = gpu.len();
        Self {
            works: gpu.works.clone(),
            rows: (0..n).map(|at| gpu.row(at)).collect(),
            work_of: (0..n).map(|at| gpu.slice(at).work as u32).collect(),
            stage_of: (0..n).map(|at| stages.stage(at)).collect(),
            exposed_ns,
            launch_of: (0..n).map(|at| launches.of_slice(at).and_then(SmallIndex::new)).collect(),
            sites: places.sites,
            site_of: places.site_of,
            streams: stream_labels(gpu),
        }
    }

    /// Adds the slices of another device.
    pub(super) fn append(&mut self, other: Self) {
        let Self { works, rows, work_of, stage_of, exposed_ns, launch_of, sites, site_of, streams } =
            other;
        // Names and streams are those of the trace, the same for every device.
        (self.works, self.streams) = (works, streams);
        let base = self.sites.len() as u32;
        self.rows.extend(rows);
        self.work_of.extend(work_of);
        self.stage_of.extend(stage_of);
        self.exposed_ns.extend(exposed_ns);
        self.launch_of.extend(launch_of);
        self.sites.extend(sites);
        self.site_of.extend(site_of.into_iter().map(|site| base + site));
    }

    /// The kernel of a row of the table: its places, the first `most` launches, and those that are the longest, the
    /// shortest and the median (by nearest rank). `trace` is the one that triage ran on. `None` if there is no such row.
    #[must_use]
    pub fn kernel(&self, trace: &Trace, key: &KernelKey, most: usize) -> Option<KernelDetails> {
        let all = self.find(trace, key);
        let first = *all.first()?;
        let work = self.works.get(self.work_of[first] as usize)?;
        let (sites, n_sites_left_out) = self.call_sites(trace, &all);
        Some(KernelDetails {
            key: key.clone(),
            category: work.category,
            family: work.family,
            reason: work.decided_by.into(),
            n: all.len() as u64,
            sites,
            n_sites_left_out,
            instances: self.instances(trace, &all, most),
        })
    }

    /// The slices of a row, by start.
    fn find(&self, trace: &Trace, key: &KernelKey) -> Vec<usize> {
        let Some(name) = trace.strings.find(&key.kernel_name) else { return Vec::new() };
        let is_name: Vec<bool> = self.works.iter().map(|work| work.name == name).collect();
        let on_device = |stream: Option<StreamId>| match (&key.device, stream) {
            (None, _) => true,
            (Some(device), None) => device.is_empty(),
            (Some(device), Some(StreamId(id))) => trace
                .streams
                .get(usize::from(id))
                .is_some_and(|stream| stream.device.display(&trace.strings) == *device),
        };
        let is_in = |at: &usize| {
            is_name.get(self.work_of[*at] as usize) == Some(&true)
                && (key.stage.is_empty() || self.stage_of[*at].id() == key.stage)
                && on_device(trace.stream(self.rows[*at]))
        };
        (0..self.rows.len()).filter(is_in).collect()
    }

    fn dur_ns(&self, trace: &Trace, at: usize) -> i64 {
        timeline::before_window::duration_ns(trace, self.rows[at])
    }

    fn call_sites(&self, trace: &Trace, all: &[usize]) -> (Vec<CallSite>, u64) {
        let mut by_site: BTreeMap<u32, (i64, u64)> = BTreeMap::new();
        let mut total_ns = 0_i64;
        for at in all {
            let dur_ns = self.dur_ns(trace, *at);
            total_ns = total_ns.saturating_add(dur_ns);
            let (ns, n) = by_site.entry(self.site_of[*at]).or_default();
            *ns = ns.saturating_add(dur_ns);
            *n += 1;
        }
        let mut sites: Vec<(u32, (i64, u64))> = by_site.into_iter().collect();
        sites.sort_by_key(|(site, (ns, n))| (std::cmp::Reverse((*ns, *n)), *site));
        let left_out = sites.len().saturating_sub(MOST_SITES) as u64;
        let told = sites.into_iter().take(MOST_SITES).map(|(site, (ns, n))| CallSite {
            n,
            share_pct: percent(ns, total_ns),
            ..CallSite::of(&self.sites[site as usize])
        });
        (told.collect(), left_out)
    }

    /// Every place once.
    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The events of GPU slices with the numbers of their places.
    pub(crate) fn numbers_of_sites(&self) -> impl Iterator<Item = (Row, u32)> {
        self.rows.iter().copied().zip(self.site_of.iter().copied())
    }

    fn instances(&self, trace: &Trace, all: &[usize], most: usize) -> Vec<InstanceRow> {
        let mut by_length: Vec<usize> = (0..all.len()).collect();
        by_length.sort_by_key(|number| self.dur_ns(trace, all[*number]));
        let marked = [
            ("shortest", by_length.first()),
            ("median", by_length.get(by_length.len().saturating_sub(1) / 2)),
            ("longest", by_length.last()),
        ];
        let marks_of = |number: usize| {
            let marks = marked.iter().filter(|(_, of)| *of == Some(&number));
            marks.map(|(mark, _)| *mark).collect::<Vec<_>>().join(", ")
        };
        let row = |number: usize, at: usize| {
            let slice = self.rows[at];
            let start_ns = trace.ts_ns(slice);
            let launch = self.launch_of[at].map(SmallIndex::get);
            let graph = self.sites[self.site_of[at] as usize].graph;
            InstanceRow {
                number: number as u64 + 1,
                start_ns,
                dur_ns: self.dur_ns(trace, at),
                stream: trace
                    .stream(slice)
                    .map_or_else(String::new, |stream| names(&[stream], &self.streams).concat()),
                queue_ns: launch
                    .filter(|_| !graph)
                    .map(|launch| start_ns.saturating_sub(trace.ts_ns(launch))),
                exposed_ns: self.exposed_ns.get(at).copied().unwrap_or_default(),
                mark: marks_of(number),
                event: slice,
            }
        };
        all.iter()
            .enumerate()
            .filter(|(number, _)| {
                *number < most || marked.iter().any(|(_, of)| *of == Some(number))
            })
            .map(|(number, at)| row(number, *at))
            .collect()
    }
}

impl CallSite {
    /// A place without launches.
    pub(crate) fn of(site: &Site) -> Self {
        let Site { cpu_op, launch, location, modules, stack, forward_op, confidence, graph } = site;
        Self {
            n: 0,
            share_pct: 0.0,
            launch: launch.clone(),
            cpu_op: cpu_op.clone(),
            location: location.as_ref().map(ToString::to_string),
            full_path: location.as_ref().and_then(|line| line.full_path.clone()),
            modules: modules.clone(),
            stack: stack.iter().rev().cloned().collect(),
            forward_op: forward_op.clone(),
            confidence: *confidence,
            graph: *graph,
        }
    }
}

impl KernelDetails {
    /// The launches as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        Table::of("instances", "Launches", &self.instances)
    }
}

impl ReportRow for InstanceRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "number",
            title: "#",
            unit: Unit::Count,
            help: "Position among the launches of this kernel in the stage, from 1.",
            cell: |row| Cell::Count(row.number),
        },
        Column {
            key: "start_ns",
            title: "Start",
            unit: Unit::Instant,
            help: "Start on the file's clock.",
            cell: |row| Cell::Instant(row.start_ns),
        },
        columns::dur_ns(|row| Cell::Ns(row.dur_ns)),
        columns::stream(|row| row.stream.as_str().into()),
        Column {
            key: "queue_ns",
            title: "Queue delay (from launch start)",
            unit: Unit::Time,
            help: "From the start of the launch call to the start of the kernel. Not defined for graph launches.",
            cell: |row| {
                Cell::or_missing(
                    row.queue_ns,
                    Cell::Ns,
                    "no launch call is recorded, or a graph launched it",
                )
            },
        },
        Column {
            key: "exposed_ns",
            title: "Exposed",
            unit: Unit::Time,
            help: "Part of the duration with no other stream of the device running.",
            cell: |row| Cell::Ns(row.exposed_ns),
        },
        Column {
            key: "mark",
            title: "Tag",
            unit: Unit::Text,
            help: "Longest, shortest and median launch, by nearest rank.",
            cell: |row| row.mark.as_str().into(),
        },
        Column {
            key: "event",
            title: "Event",
            unit: Unit::Count,
            help: "Index of its event in the file, from 0.",
            cell: |row| Cell::Count(u64::from(row.event)),
        },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sources, TriageOptions, triage_kept};
    use fixture::{Fixture, kernel, slice};

    fn key(name: &str) -> KernelKey {
        KernelKey { stage: "all".into(), device: None, kernel_name: name.into() }
    }

    #[test]
    fn a_kernel_tells_its_launches_and_where_they_came_from() {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        fixture.push(cpu("python_function", "train.py(3): main").at(0, 100));
        fixture.push(cpu("python_function", "model.py(8): forward").at(5, 90));
        fixture.push(cpu("cpu_op", "aten::mm").at(10, 30).external(5));
        for (link, at) in [(1, 12), (2, 14), (3, 16)] {
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(at, 1).link(link).external(5));
        }
        for (link, at, dur) in [(1, 100, 20), (2, 130, 50), (3, 200, 30)] {
            fixture.push(kernel("gemm").at(at, dur).link(link).external(5).on(0, 7));
        }
        fixture.push(kernel("other").at(140, 10).link(1).on(0, 9));
        let trace = fixture.finish();
        let (_, slices) = triage_kept(&trace, &TriageOptions::default(), &Sources::default());
        let found = slices.kernel(&trace, &key("gemm"), 1).unwrap();
        assert_eq!((found.n, found.category), (3, Category::Gemm));
        assert!(matches!(found.reason, CategoryReason::Rule(_)), "{:?}", found.reason);
        let rows: Vec<_> = found
            .instances
            .iter()
            .map(|row| (row.number, row.start_ns, row.dur_ns, row.queue_ns, &*row.mark))
            .collect();
        // The first, and those that are marked.
        assert_eq!(
            rows,
            [
                (1, 100, 20, Some(88), "shortest"),
                (2, 130, 50, Some(116), "longest"),
                (3, 200, 30, Some(184), "median"),
            ]
        );
        assert_eq!(found.instances[1].exposed_ns, 40, "the other stream hides 10 ns of it");
        let [site] = &found.sites[..] else { panic!("{:?}", found.sites) };
        assert_eq!((site.n, site.cpu_op.as_deref()), (3, Some("aten::mm")));
        assert_eq!(site.confidence, Confidence::Exact);
        assert_eq!(site.location.as_deref(), Some("model.py:8 forward"));
        assert!(site.stack[0].contains("forward"), "innermost first: {:?}", site.stack);
        let merged = KernelKey { stage: String::new(), ..key("gemm") };
        assert_eq!(slices.kernel(&trace, &merged, 9).unwrap().n, 3, "of all stages");
        assert_eq!(slices.kernel(&trace, &key("moon"), 9), None);
        let elsewhere = KernelKey { device: Some("1".into()), ..key("gemm") };
        assert_eq!(slices.kernel(&trace, &elsewhere, 9), None);
        let here = KernelKey { device: Some("0".into()), ..key("gemm") };
        assert_eq!(slices.kernel(&trace, &here, 9).unwrap().n, 3);
    }

    #[test]
    fn columns_are_the_fields() {
        let columns = InstanceRow::COLUMNS.iter().map(|column| column.key);
        testkit::assert_keys(&InstanceRow::default(), columns);
    }
}
