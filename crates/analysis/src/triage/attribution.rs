//! Kernel to launch to op to line of Python, by the ids that the file has.

use std::collections::HashMap;

use trace::{BuildIdHasher, Phase, Row, StringId, Trace};

use super::nest::Nest;
use super::python::{Calls, Frames};
use super::site::{Attribution, Confidence, Site};
use crate::before_window::each_launch;
use crate::gpu::Gpu;

/// What a trace says about where its GPU work came from: built once, asked for every GPU slice.
pub(crate) struct Linker<'a> {
    trace: &'a Trace,
    /// Launches by correlation.
    launches: Vec<(i64, Row)>,
    /// Ops by `External id`, equal ids by start.
    ops: Vec<(i64, Row)>,
    /// Ops by thread and time, for launches without an id.
    nest: Nest<'a>,
    frames: Frames<'a>,
}

/// What makes a place: everything by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    op: Option<StringId>,
    launch: Option<StringId>,
    calls: Calls,
    confidence: Confidence,
    graph: bool,
}

fn is_op(trace: &Trace, row: Row) -> bool {
    let raw_category = trace.raw_category_text(row);
    trace.phase(row) == Phase::Complete
        && (raw_category == "cpu_op" || raw_category.eq_ignore_ascii_case("operator"))
}

/// Whether a runtime call launches a whole graph.
pub(crate) fn launches_graph(name: &str) -> bool {
    name.contains("GraphLaunch")
}

impl<'a> Linker<'a> {
    #[inline(never)]
    pub(crate) fn of(trace: &'a Trace) -> Self {
        let mut launches = Vec::new();
        each_launch(trace, |row, correlation| launches.push((correlation, row)));
        launches.sort_unstable();
        let nest = Nest::of(trace, |row| is_op(trace, row));
        let mut ops: Vec<(i64, Row)> = nest
            .rows
            .iter()
            .filter_map(|row| trace.external(*row).map(|external| (external, *row)))
            .collect();
        ops.sort_unstable_by_key(|(external, row)| (*external, trace.ts_ns(*row), *row));
        Self { trace, launches, ops, nest, frames: Frames::of(trace) }
    }

    /// The launch with this correlation.
    pub(crate) fn launch(&self, correlation: i64) -> Option<Row> {
        let at = self.launches.partition_point(|(other, _)| *other < correlation);
        self.launches.get(at).filter(|(other, _)| *other == correlation).map(|(_, row)| *row)
    }

    /// The op with this `External id`: of several the last that had begun by `ts_ns`.
    fn op(&self, external: i64, ts_ns: i64) -> Option<Row> {
        let start = self.ops.partition_point(|(other, _)| *other < external);
        let same = self.ops[start..].iter().take_while(|(other, _)| *other == external);
        let mut found = None;
        for (_, row) in same {
            if found.is_none() || self.trace.ts_ns(*row) <= ts_ns {
                found = Some(*row);
            }
        }
        found
    }

    /// Where a launch came from; `external` is the id that the GPU slice itself carries.
    pub(crate) fn origin(&mut self, launch: Row, external: Option<i64>) -> Origin {
        let trace = self.trace;
        let (track, ts_ns) = (trace.track(launch), trace.ts_ns(launch));
        let graph = launches_graph(trace.name_text(launch));
        // (The id on a graph's launch, and on what it runs, is that of whatever op ran last.)
        let by_id = external
            .or_else(|| trace.external(launch))
            .filter(|_| !graph)
            .and_then(|external| self.op(external, ts_ns));
        let by_time = || self.nest.innermost(track, ts_ns).map(|at| self.nest.rows[at]);
        let (op, confidence) = match by_id {
            Some(op) => (Some(op), Confidence::Exact),
            // What runs around a graph's launch did not choose its kernels.
            None if graph => (None, Confidence::Launch),
            None => match by_time() {
                Some(op) => (Some(op), Confidence::Enclosing),
                None => (None, Confidence::Launch),
            },
        };
        let (track, ts_ns) = op.map_or((track, ts_ns), |op| (trace.track(op), trace.ts_ns(op)));
        Origin {
            op: op.map(|op| trace.name(op)),
            launch: Some(trace.name(launch)),
            calls: self.frames.calls(track, ts_ns),
            confidence,
            graph,
        }
    }

    /// The name of the kernel that a launch launches, where the file says it.
    pub(crate) fn launched(&self, launch: Row) -> &'a str {
        self.trace.launched_kernel(launch).map(|id| self.trace.strings.get(id)).unwrap_or_default()
    }

    /// An origin as text.
    pub(crate) fn site(&self, origin: &Origin) -> Site {
        let text = |id: Option<StringId>| id.map(|id| self.trace.strings.get(id).to_owned());
        Site {
            cpu_op: text(origin.op),
            launch: text(origin.launch),
            location: origin.calls.location(self.trace),
            stack: origin.calls.stack(self.trace),
            confidence: origin.confidence,
            graph: origin.graph,
        }
    }
}

/// What nothing is known of.
pub(crate) fn unknown() -> Site {
    Site {
        cpu_op: None,
        launch: None,
        location: None,
        stack: Vec::new(),
        confidence: Confidence::None,
        graph: false,
    }
}

/// The place of every GPU slice, as the trace itself tells.
#[inline(never)]
pub(crate) fn attribute(gpu: &Gpu<'_>, linker: &mut Linker<'_>) -> Attribution {
    let mut sites = vec![unknown()];
    let mut known: HashMap<Origin, u32, BuildIdHasher> = HashMap::default();
    let mut site_of = Vec::with_capacity(gpu.len());
    gpu.each_row(|row| {
        let launch = gpu.trace.link(row).and_then(|correlation| linker.launch(correlation));
        let Some(launch) = launch else {
            site_of.push(0);
            return;
        };
        let origin = linker.origin(launch, gpu.trace.external(row));
        site_of.push(*known.entry(origin).or_insert_with(|| {
            sites.push(linker.site(&origin));
            sites.len() as u32 - 1
        }));
    });
    Attribution::new(sites, site_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::before_window::BeforeWindowSlices;
    use crate::fixture::{Fixture, kernel, slice};

    fn places(trace: &Trace) -> Vec<Site> {
        let before = BeforeWindowSlices::of(trace);
        let gpu = Gpu::new(trace, catalog::Platform::Cuda, &before, &Options::default());
        let found = attribute(&gpu, &mut Linker::of(trace));
        (0..gpu.len()).map(|slice| found.site(slice).clone()).collect()
    }

    #[test]
    fn ids_before_times_and_nothing_for_orphans() {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        fixture.push(cpu("python_function", "model.py(3): forward").at(0, 100));
        fixture.push(cpu("cpu_op", "aten::linear").at(10, 30).external(5));
        fixture.push(cpu("cpu_op", "aten::mm").at(12, 20).external(6));
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(15, 2).link(1).external(6));
        fixture.push(cpu("cpu_op", "aten::add").at(50, 10));
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(52, 2).link(2));
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(80, 2).link(3));
        fixture.push(cpu("cuda_runtime", "cudaGraphLaunch").at(90, 2).link(4));
        for (name, correlation) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 9)] {
            fixture.push(kernel(name).at(200 + correlation * 10, 5).link(correlation));
        }
        let found: Vec<_> = places(&fixture.finish())
            .into_iter()
            .map(|site| (site.cpu_op, site.confidence.id(), site.location.map(|l| l.to_string())))
            .collect();
        let place = || Some("model.py:3 forward".to_owned());
        let expected = [
            (Some("aten::mm".to_owned()), "exact", place()),
            (Some("aten::add".to_owned()), "enclosing", place()),
            (None, "launch", place()),
            (None, "launch", place()),
            (None, "none", None),
        ];
        assert_eq!(found, expected);
    }
}
