//! Maps kernels to launches, ops and Python lines by the ids in the file.

use std::collections::HashMap;

use dialect::calls::launches_graph;
use trace::{BuildIdHasher, Details, Phase, Row, StringId, Trace, TrackId};

use super::autograd::Autograd;
use super::nest::{DEPTH, Nest, holds};
use super::python::{Calls, Frames};
use super::site::{Attribution, Confidence, Site};
use timeline::gpu::Gpu;
use timeline::launches::Launches;
use timeline::recorded::{Recorded, recorded};

/// Finds the origin of GPU slices: built once per trace, queried for every slice.
pub(crate) struct Linker<'a> {
    pub(crate) trace: &'a Trace,
    /// Ops by `External id`, then thread, then start.
    ops: Vec<(i64, Row)>,
    /// Ops by thread and time, for launches without an id.
    nest: Nest<'a>,
    /// Annotations of collectives.
    collectives: Nest<'a>,
    frames: Frames<'a>,
    autograd: Autograd,
}

/// The op in which PyTorch records the arguments of every collective: it says that there is one, not which.
const COLLECTIVE_ARGUMENTS: &str = "record_param_comms";

/// How the op is called in which autograd's engine evaluates a node of its graph.
const ENGINE: &str = "autograd::engine::";

/// How the annotations begin that PyTorch writes around collectives: `nccl:all_reduce`.
const COLLECTIVE: &str = "nccl:";

/// What makes a place: everything by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    op: Option<StringId>,
    launch: Option<StringId>,
    calls: Calls,
    /// The op of the forward pass whose calls these are, if not those of the op itself.
    forward: Option<StringId>,
    confidence: Confidence,
    graph: bool,
}

impl<'a> Linker<'a> {
    /// The Python line that ran on `track` at `ts_ns`: `model.py:7 forward`.
    pub(crate) fn line_at(&mut self, track: TrackId, ts_ns: i64) -> Option<String> {
        let calls = self.frames.calls(track, ts_ns);
        self.frames.location(&calls).map(|line| line.to_string())
    }

    /// The frames that are open on `track` at `ts_ns`, innermost first.
    pub(crate) fn frames_at(&self, track: TrackId, ts_ns: i64) -> impl Iterator<Item = Row> {
        self.frames.open_at(track, ts_ns)
    }

    /// Whether frames are recorded.
    pub(crate) fn has_frames(&self) -> bool {
        self.frames.has_any()
    }

    /// `details` are the arguments of its events, where they were read.
    #[inline(never)]
    pub(crate) fn of(trace: &'a Trace, details: Option<&Details>) -> Self {
        let recorded = recorded(trace);
        let nest = Nest::of(trace, |row| {
            trace.phase(row) == Phase::Complete && *recorded.of(trace, row) == Recorded::Op
        });
        let mut ops: Vec<(i64, Row)> = nest
            .rows
            .iter()
            .filter_map(|row| trace.external(*row).map(|external| (external, *row)))
            .collect();
        ops.sort_unstable_by_key(|(external, row)| {
            (*external, trace.track(*row), trace.ts_ns(*row), *row)
        });
        let autograd = Autograd::of(trace, &nest, details);
        let collectives = Nest::of(trace, |row| {
            trace.phase(row) == Phase::Complete
                && *recorded.of(trace, row) == Recorded::Annotation
                && trace.name_text(row).starts_with(COLLECTIVE)
        });
        Self { trace, ops, nest, collectives, frames: Frames::of(trace), autograd }
    }

    /// The op with this `External id` that holds the whole launch. An id alone is not enough: old profilers write the
    /// correlation there, which is the number of some other op (in one of the corpus's traces for every launch).
    #[inline(never)]
    fn op(&self, external: i64, launch: Row) -> Option<Row> {
        let trace = self.trace;
        let (track, ts_ns) = (trace.track(launch), trace.ts_ns(launch));
        let from = self.ops.partition_point(|(other, _)| *other < external);
        let to = self.ops.partition_point(|(other, _)| *other <= external);
        // Nearly every id is one op's.
        let same = self.ops.get(from..to)?;
        let after = same
            .partition_point(|(_, row)| (trace.track(*row), trace.ts_ns(*row)) <= (track, ts_ns));
        let (_, op) = *same.get(after.checked_sub(1)?)?;
        (trace.track(op) == track && holds(trace, op, launch)).then_some(op)
    }

    /// The op that a launch belongs to, and the confidence; `external` is the id that the GPU slice itself carries.
    /// `is_sure` is whether it is known that this launch launched it.
    #[inline(never)]
    pub(crate) fn op_of(
        &self,
        launch: Row,
        external: Option<i64>,
        is_sure: bool,
    ) -> (Option<Row>, Confidence) {
        let trace = self.trace;
        // (The id on a graph's launch, and on what it runs, is that of whatever op ran last; and what runs around a
        // graph's launch did not choose its kernels.)
        if launches_graph(trace.name_text(launch)) {
            return (None, Confidence::Launch);
        }
        let by_id = external
            .or_else(|| trace.external(launch))
            .and_then(|external| self.op(external, launch));
        let by_time = || {
            let at = self.nest.innermost_holding(launch)?;
            Some(self.nest.rows[at])
        };
        match by_id {
            Some(op) if is_sure => (Some(op), Confidence::Exact),
            Some(op) => (Some(op), Confidence::Enclosing),
            None => match by_time() {
                Some(op) => (Some(op), Confidence::Enclosing),
                None => (None, Confidence::Launch),
            },
        }
    }

    /// The name of an op that says what it does: of [`COLLECTIVE_ARGUMENTS`] the op around it (`c10d::allreduce_`), else
    /// the annotation of the collective in it. `None` where neither is known.
    #[inline(never)]
    fn telling_op(&self, op: Row, launch: Row) -> Option<StringId> {
        let trace = self.trace;
        if trace.name_text(op) != COLLECTIVE_ARGUMENTS {
            return Some(trace.name(op));
        }
        let (track, ts_ns) = (trace.track(launch), trace.ts_ns(launch));
        let says = |row: Row| {
            let name = trace.name_text(row);
            name != COLLECTIVE_ARGUMENTS && !name.starts_with(ENGINE)
        };
        let mut next = self.nest.innermost_holding(launch);
        for _ in 0..DEPTH {
            let Some(at) = next else { break };
            if holds(trace, self.nest.rows[at], launch) && says(self.nest.rows[at]) {
                return Some(trace.name(self.nest.rows[at]));
            }
            next = self.nest.around(at);
        }
        let annotation = self.collectives.innermost(track, ts_ns)?;
        Some(trace.name(self.collectives.rows[annotation]))
    }

    /// Where a launch came from; the rest as for [`Linker::op_of`].
    pub(crate) fn origin(&mut self, launch: Row, external: Option<i64>, is_sure: bool) -> Origin {
        let trace = self.trace;
        let (op, confidence) = self.op_of(launch, external, is_sure);
        // The frames at the launch, not at the op's start: an op that is written in Python (`vllm::moe_forward`) calls
        // what launches its kernels from lines of its own. The op holds the launch on its thread, so its callers are
        // among these frames.
        let own = self.frames.calls(trace.track(launch), trace.ts_ns(launch));
        let forward = op.and_then(|_| self.forward_calls(launch, own));
        let (calls, forward) = forward.map_or((own, None), |(calls, op)| (calls, Some(op)));
        Origin {
            op: op.and_then(|op| self.telling_op(op, launch)),
            launch: Some(trace.name(launch)),
            calls,
            forward,
            confidence: match (confidence, forward) {
                (Confidence::Exact, Some(_)) => Confidence::Forward,
                (confidence, _) => confidence,
            },
            graph: launches_graph(trace.name_text(launch)),
        }
    }

    /// The calls that led to the op of the forward pass that a launch of the backward pass belongs to, and its name;
    /// `None` where the launch's `own` calls say as much. They do in what autograd calls that is written in Python: a
    /// forward pass that runs again (checkpoints), a function's own `backward`. Not so the calls around autograd as a
    /// whole, which end at `loss.backward()`.
    fn forward_calls(&mut self, launch: Row, own: Calls) -> Option<(Calls, StringId)> {
        let trace = self.trace;
        let (track, ts_ns) = (trace.track(launch), trace.ts_ns(launch));
        let (backward, forward) = self.autograd.forward_of(&self.nest, track, ts_ns)?;
        let calls = self.frames.calls(trace.track(forward), trace.ts_ns(forward));
        let around = self.frames.calls(track, trace.ts_ns(backward));
        let says_more = calls.rank > own.rank || (own == around && calls != Calls::default());
        says_more.then(|| (calls, trace.name(forward)))
    }

    /// An origin as text.
    #[inline(never)]
    pub(crate) fn site(&self, origin: &Origin) -> Site {
        let text = |id: Option<StringId>| id.map(|id| self.trace.strings.get(id).to_owned());
        Site {
            cpu_op: text(origin.op),
            launch: text(origin.launch),
            location: self.frames.location(&origin.calls),
            modules: origin.calls.modules(self.trace),
            stack: self.frames.stack(&origin.calls),
            forward_op: text(origin.forward),
            confidence: origin.confidence,
            graph: origin.graph,
        }
    }
}

/// A slice without a known origin.
pub(crate) fn unknown() -> Site {
    Site {
        cpu_op: None,
        launch: None,
        location: None,
        modules: None,
        stack: Vec::new(),
        forward_op: None,
        confidence: Confidence::None,
        graph: false,
    }
}

/// The place of every GPU slice, from the trace itself.
#[inline(never)]
pub(crate) fn attribute(
    gpu: &Gpu<'_>,
    launches: &Launches,
    linker: &mut Linker<'_>,
) -> Attribution {
    let mut sites = vec![unknown()];
    let mut known: HashMap<Origin, u32, BuildIdHasher> = HashMap::default();
    let mut site_of = Vec::with_capacity(gpu.len());
    gpu.each_row(|row| {
        let at = site_of.len();
        let Some(launch) = launches.of_slice(at) else {
            site_of.push(0);
            return;
        };
        let origin = linker.origin(launch, gpu.trace.external(row), launches.is_sure(at));
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
    use fixture::{Fixture, kernel, slice};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;

    fn places(trace: &Trace) -> Vec<Site> {
        let before = BeforeWindowSlices::of(trace);
        let gpu = Gpu::new(trace, catalog::Platform::Cuda, &before, &Options::default());
        let found = attribute(&gpu, &Launches::of(&gpu), &mut Linker::of(trace, None));
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

    #[test]
    fn an_op_written_in_python_is_where_it_launches() {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        fixture.push(cpu("python_function", "vllm/models/gpt_oss.py(293): forward").at(0, 100));
        fixture.push(cpu("cpu_op", "vllm::moe_forward").at(10, 80).external(5));
        fixture.push(cpu("python_function", "vllm/moe.py(76): _moe_forward").at(12, 70));
        fixture.push(cpu("python_function", "vllm/experts.py(170): moe").at(40, 20));
        fixture.push(cpu("cuda_runtime", "hipModuleLaunchKernel").at(45, 2).link(1).external(5));
        fixture.push(kernel("_matmul_ogs").at(200, 5).link(1));
        let site = &places(&fixture.finish())[0];
        assert_eq!(site.cpu_op.as_deref(), Some("vllm::moe_forward"));
        assert_eq!(
            site.location.as_ref().map(ToString::to_string).as_deref(),
            Some("vllm/experts.py:170 moe")
        );
    }

    #[test]
    fn work_of_the_backward_pass_has_the_line_of_its_forward_op() {
        let mut fixture = Fixture::default();
        let main = |category, name| slice(category, name).on(1, 1);
        let engine = |category, name| slice(category, name).on(1, 2);
        let both = |fixture: &mut Fixture, id: i64, from: i64, to: i64, thread: i64| {
            fixture.push(main("fwdbwd", "").at(from, 0).link(id).arrow(Phase::FlowStart));
            let end = slice("fwdbwd", "").on(1, thread).at(to, 0);
            fixture.push(end.link(id).arrow(Phase::FlowEnd));
        };
        let launched = |fixture: &mut Fixture, on: i64, at: i64, n: i64| {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, on).at(at, 2);
            fixture.push(launch.link(n).external(n));
        };
        fixture.push(main("python_function", "train.py(9): step").at(0, 900));
        fixture.push(main("python_function", "model.py(3): forward").at(5, 90));
        fixture.push(main("python_function", "nn.Module: Linear_0").at(6, 80));
        fixture.push(main("cpu_op", "aten::addmm").at(10, 30));
        // On the engine's thread, where no frame is open.
        fixture.push(engine("cpu_op", "AddmmBackward0").at(100, 50));
        both(&mut fixture, 1, 10, 100, 2);
        fixture.push(engine("cpu_op", "aten::mm").at(110, 10).external(1));
        launched(&mut fixture, 2, 112, 1);
        launched(&mut fixture, 2, 130, 2);
        // What autograd calls in Python: here a checkpoint, which runs the forward pass again.
        fixture.push(engine("cpu_op", "MulBackward0").at(200, 90));
        both(&mut fixture, 2, 10, 200, 2);
        fixture.push(engine("python_function", "block.py(7): forward").at(210, 50));
        fixture.push(engine("cpu_op", "aten::mul").at(220, 10).external(3));
        launched(&mut fixture, 2, 222, 3);
        // A frame of PyTorch's alone says less than the forward pass.
        fixture.push(engine("python_function", "torch/autograd/function.py(2): apply").at(265, 20));
        fixture.push(engine("cpu_op", "aten::neg").at(266, 10).external(4));
        launched(&mut fixture, 2, 268, 4);
        // The engine without threads of its own runs inside `loss.backward()`.
        fixture.push(main("cpu_op", "AddmmBackward0").at(400, 50));
        both(&mut fixture, 3, 10, 400, 1);
        fixture.push(main("cpu_op", "aten::mm").at(410, 10).external(5));
        launched(&mut fixture, 1, 412, 5);
        // No op of the forward pass is known.
        fixture.push(engine("cpu_op", "AccumulateGrad").at(500, 50).external(6));
        launched(&mut fixture, 2, 512, 6);
        for n in 1..=6 {
            fixture.push(kernel("k").at(1_000 + 10 * n, 5).link(n));
        }
        let found: Vec<_> = places(&fixture.finish())
            .into_iter()
            .map(|site| {
                let op = site.cpu_op.unwrap_or_default();
                let line = site.location.map(|line| line.to_string()).unwrap_or_default();
                let around = (site.modules.is_some(), site.forward_op.is_some());
                (op, line, around, site.confidence.id())
            })
            .collect();
        let told = |op: &str, line: &str, around, id| (op.to_owned(), line.to_owned(), around, id);
        let expected = [
            told("aten::mm", "model.py:3 forward", (true, true), "forward"),
            told("AddmmBackward0", "model.py:3 forward", (true, true), "enclosing"),
            told("aten::mul", "block.py:7 forward", (false, false), "exact"),
            told("aten::neg", "model.py:3 forward", (true, true), "forward"),
            told("aten::mm", "model.py:3 forward", (true, true), "forward"),
            told("AccumulateGrad", "", (false, false), "exact"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_id_counts_only_if_its_op_holds_the_launch() {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        fixture.push(cpu("cpu_op", "aten::early").at(0, 9).external(1));
        fixture.push(cpu("cpu_op", "aten::copy_").at(10, 30).external(7));
        fixture.push(cpu("cpu_op", "aten::late").at(50, 9).external(2));
        fixture.push(slice("cpu_op", "aten::elsewhere").at(0, 90).on(1, 2).external(3));
        for n in 1..=4 {
            let launch = cpu("cuda_runtime", "cudaMemcpyAsync").at(20 + n, 1);
            fixture.push(launch.link(n).external(n));
            fixture.push(kernel("k").at(100 + n, 1).link(n).external(n));
        }
        for site in places(&fixture.finish()) {
            assert_eq!(site.cpu_op.as_deref(), Some("aten::copy_"));
            assert_eq!(site.confidence, Confidence::Enclosing);
        }
    }
    #[test]
    fn an_op_that_ends_where_the_launch_begins_does_not_own_it() {
        const US: i64 = 1_000;
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        let launch = |n: i64| cpu("cuda_runtime", "cudaLaunchKernel").link(n).external(n);
        fixture.push(cpu("cpu_op", "aten::_foreach_addcmul_").at(0, 100 * US));
        // In whole microseconds: one ends in the microsecond of the launch, one takes less than a microsecond in it, one
        // begins in it and is over before the launch is.
        fixture.push(cpu("cpu_op", "aten::result_type").at(19 * US, US).external(1));
        fixture.push(cpu("cpu_op", "aten::result_type").at(20 * US, 0));
        fixture.push(cpu("cpu_op", "aten::empty").at(20 * US, 2 * US));
        fixture.push(launch(1).at(20 * US, 9 * US));
        fixture.push(launch(2).at(30 * US, US));
        fixture.push(cpu("cpu_op", "aten::empty").at(30 * US, 0).external(2));
        // The ends were cut: the launch seems to end a microsecond after its op.
        fixture.push(cpu("cpu_op", "aten::add").at(40 * US, 10 * US).external(3));
        fixture.push(launch(3).at(45 * US, 6 * US));
        fixture.push(cpu("cpu_op", "aten::mul").at(60 * US, 10 * US).external(4));
        fixture.push(launch(4).at(65 * US, 7 * US));
        for n in 1..=4 {
            fixture.push(kernel("k").at((200 + n) * US, 1).link(n));
        }
        let found: Vec<_> = places(&fixture.finish())
            .into_iter()
            .map(|site| (site.cpu_op.unwrap_or_default(), site.confidence))
            .collect();
        let around = || ("aten::_foreach_addcmul_".to_owned(), Confidence::Enclosing);
        let expected = [around(), around(), ("aten::add".to_owned(), Confidence::Exact), around()];
        assert_eq!(found, expected);
    }
}
