//! The facts of a run that gates of advice ask for ([`catalog::remedies`]): what the trace proves, and no more.

use catalog::Platform;
use catalog::remedies::{Optimizer, RunFacts, RunType, Stack, released};
use trace::{Flags, Phase, Row, SmallIndex, StringId, Trace, TrackId, each_row};

use dialect::inductor::is_compiled;

use super::framework::Framework;

/// Time on threads, by thread and start; nested ranges are one.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    ranges: Vec<(TrackId, i64, i64)>,
}

impl Regions {
    /// The ranges whose names `wanted` picks. `gpu` annotations are on streams, where nothing is launched.
    #[inline(never)]
    pub(crate) fn of(trace: &Trace, wanted: impl Fn(&str) -> bool) -> Self {
        let names = 0..trace.strings.len() as u32;
        let wanted: Vec<bool> = names.map(|id| wanted(trace.strings.get(StringId(id)))).collect();
        let mut ranges: Vec<(TrackId, i64, i64)> = Vec::new();
        if wanted.contains(&true) {
            each_row(trace, |row| {
                let complete = trace.phase(row) == Phase::Complete;
                if wanted[trace.name(row).0 as usize]
                    && complete
                    && trace.flags(row).has(Flags::HAS_TS)
                    && trace.stream(row).is_none()
                {
                    ranges.push((trace.track(row), trace.ts_ns(row), trace.end_ns(row)));
                }
            });
        }
        trace::sort(&mut ranges);
        ranges.dedup_by(|next, last| {
            let nested = next.0 == last.0 && next.1 <= last.2;
            if nested {
                last.2 = last.2.max(next.2);
            }
            nested
        });
        Self { ranges }
    }

    /// Whether `row` begins within one of them, on its thread.
    pub(crate) fn hold(&self, trace: &Trace, row: Row) -> bool {
        self.around(trace, row).is_some()
    }

    /// The number of the one in which `row` begins, on its thread.
    pub(crate) fn around(&self, trace: &Trace, row: Row) -> Option<SmallIndex> {
        let (track, ts_ns) = (trace.track(row), trace.ts_ns(row));
        let next = self.ranges.partition_point(|(on, start, _)| (*on, *start) <= (track, ts_ns));
        let last = next.checked_sub(1)?;
        let (on, _, end_ns) = self.ranges.get(last)?;
        SmallIndex::new(last as u32).filter(|_| *on == track && ts_ns < *end_ns)
    }
}

/// What holds for the whole run.
pub(crate) struct RunContext {
    /// Platform, software, run type and optimizer; the rest differs from place to place.
    pub(crate) facts: RunFacts,
    /// Where gradients are filled with zeros.
    pub(crate) zero_grad: Regions,
    /// Where the autograd engine adds a gradient to the one that is there.
    pub(crate) accumulates: Regions,
    /// Where code of a compiler runs.
    pub(crate) compiled: Regions,
    /// Where a gradient is accumulated: there DistributedDataParallel starts its all-reduces.
    pub(crate) gradient_hooks: Regions,
    /// Where PyTorch's own fused attention, or its fallback of single ops, runs: nothing is left to call instead.
    pub(crate) own_attention: Regions,
    /// Where an op multiplies matrices.
    pub(crate) products: Regions,
    /// Where gradient checkpointing runs the forward pass again, in the backward pass.
    pub(crate) recomputed: Regions,
}

impl RunContext {
    /// Reads the names of a trace.
    #[inline(never)]
    pub(crate) fn of(trace: &Trace, platform: Platform, framework: Framework) -> Self {
        let stack = stack(framework);
        let facts = RunFacts {
            platform,
            stack,
            run: run_type(trace, stack),
            optimizer: optimizer(trace),
            compiled: Some(has_name(trace, is_generated)),
            foreach: Some(has_name(trace, |name| name.contains("multi_tensor_apply_kernel"))),
            recurrent: Some(has_name(trace, is_recurrent)),
            single_kernel_calls: Some(launches_one_a_call(trace)),
            asks_flashinfer: Some(has_name(trace, |name| {
                name.ends_with(": is_flashinfer_allreduce_unavailable")
            })),
            recorded: version(trace).map(released).or_else(|| recorded(trace)),
            ..RunFacts::default()
        };
        Self {
            facts,
            accumulates: Regions::of(trace, |name| {
                name.ends_with("torch::autograd::AccumulateGrad")
            }),
            zero_grad: Regions::of(trace, |name| {
                name.starts_with("Optimizer.zero_grad") || name.ends_with(": zero_grad")
            }),
            compiled: Regions::of(trace, is_compiled),
            gradient_hooks: Regions::of(trace, |name| {
                name.starts_with(
                    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                ) || name.starts_with("torch.distributed.ddp.reducer")
            }),
            own_attention: Regions::of(trace, |name| {
                matches!(
                    name,
                    "aten::scaled_dot_product_attention"
                        | "aten::_native_multi_head_attention"
                        | "aten::_transformer_encoder_layer_fwd"
                )
            }),
            products: Regions::of(trace, super::shapes::is_product),
            recomputed: Regions::of(trace, is_recomputed),
        }
    }
}

/// Of fewer calls of modules nothing is said.
const FEWEST_CALLS: usize = 3;

/// Whether nearly all launches are in calls of modules, each of which launches one kernel at most. Modules within others are part of
/// their call.
fn launches_one_a_call(trace: &Trace) -> bool {
    let calls = Regions::of(trace, |name| name.starts_with(dialect::kineto::MODULE));
    if calls.ranges.len() < FEWEST_CALLS {
        return false;
    }
    let launches = trace.strings.marked(&|name| {
        dialect::calls::launches_kernel(name) || dialect::calls::launches_graph(name)
    });
    let (mut inside, mut outside): (Vec<u32>, usize) = (Vec::new(), 0);
    each_row(trace, |row| {
        if launches[trace.name(row).0 as usize] && trace.phase(row) == Phase::Complete {
            match calls.around(trace, row) {
                Some(call) => inside.push(call.get()),
                None => outside += 1,
            }
        }
    });
    trace::sort(&mut inside);
    let in_one = inside.chunk_by(|a, b| a == b).filter(|own| own.len() == 1).count();
    in_one > 0 && in_one == inside.len() && outside.saturating_mul(10) <= inside.len()
}

/// The version of PyTorch, where a program wrote its list of packages into the file.
fn version(trace: &Trace) -> Option<(u32, u32)> {
    let texts = trace.metadata.members.iter().map(|(_, text)| text);
    let (_, version) = texts.filter_map(|text| text.split_once("\"torch==")).next()?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The month of the recording as `year * 100 + month`, if times count from 1970: those of later profilers count from another
/// base.
fn recorded(trace: &Trace) -> Option<u32> {
    const DAY_NS: i64 = 86_400_000_000_000;
    // 2017-07-14, before PyTorch's profiler wrote times.
    const EARLIEST_NS: i64 = 1_500_000_000_000_000_000;
    let mut first_ns = i64::MAX;
    each_row(trace, |row| {
        if trace.phase(row) == Phase::Complete && trace.flags(row).has(Flags::HAS_TS) {
            first_ns = first_ns.min(trace.ts_ns(row));
        }
    });
    (EARLIEST_NS..i64::MAX).contains(&first_ns).then(|| month(first_ns / DAY_NS))
}

/// The month of a day that is counted from 1970-01-01, by the calendar's cycle of 400 years.
fn month(day: i64) -> u32 {
    const CYCLE: i64 = 146_097;
    // (Years begin in March here, so that a leap day is the last one. 719,468 days lie between 0000-03-01 and 1970.)
    let day = day + 719_468;
    let (cycle, day) = (day.div_euclid(CYCLE), day.rem_euclid(CYCLE));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_based = (5 * day + 2) / 153;
    let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
    let year = cycle * 400 + year + i64::from(month <= 2);
    u32::try_from(year * 100 + month).unwrap_or_default()
}

/// Whether a frame runs the forward pass of a checkpoint again.
fn is_recomputed(name: &str) -> bool {
    catalog::known_code::RECOMPUTES.is(name)
}

/// Whether any name of the trace is `wanted`.
fn has_name(trace: &Trace, wanted: impl Fn(&str) -> bool) -> bool {
    (0..trace.strings.len() as u32).any(|id| wanted(trace.strings.get(StringId(id))))
}

/// Whether an op is a recurrent layer of cuDNN or MIOpen, forward or backward.
fn is_recurrent(name: &str) -> bool {
    name.contains("_cudnn_rnn") || name.contains("miopen_rnn")
}

/// Whether a slice shows that something of the run is compiled: a range of a compiler, or a kernel of TorchInductor.
fn is_generated(name: &str) -> bool {
    is_compiled(name)
        || name.contains("CompiledFunctionBackward")
        || ["triton_poi_fused", "triton_red_fused", "triton_per_fused"]
            .iter()
            .any(|kernel| name.starts_with(kernel))
        || name.starts_with("triton__")
}

/// The software in the terms of the table of remedies.
fn stack(framework: Framework) -> Option<Stack> {
    match framework {
        Framework::Sglang => Some(Stack::Sglang),
        Framework::Vllm => Some(Stack::Vllm),
        Framework::Trtllm => Some(Stack::TensorRtLlm),
        Framework::Tokenspeed => Some(Stack::TokenSpeed),
        Framework::Diffusers => Some(Stack::Diffusers),
        Framework::Pytorch => Some(Stack::Pytorch),
        Framework::Unknown => None,
    }
}

/// Training if a backward pass or an optimizer step is recorded. Inference if it is not, although ops are, or if a serving
/// framework runs.
fn run_type(trace: &Trace, stack: Option<Stack>) -> Option<RunType> {
    let names = || (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    let trains = |name: &str| {
        name.starts_with("Optimizer.step")
            || name.starts_with("autograd::engine::evaluate_function")
            || name.contains("AccumulateGrad")
    };
    if names().any(trains) {
        return Some(RunType::Training);
    }
    let serves =
        matches!(stack, Some(Stack::Sglang | Stack::Vllm | Stack::TensorRtLlm | Stack::TokenSpeed));
    (serves || names().any(|name| name.starts_with("aten::"))).then_some(RunType::Inference)
}

/// The optimizer that the annotations name: `Optimizer.step#SGD.step`.
fn optimizer(trace: &Trace) -> Option<Optimizer> {
    let names = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    let classes = names.filter_map(|name| {
        let (class, _) = name.strip_prefix("Optimizer.step#")?.split_once('.')?;
        Some(match class {
            "SGD" => Optimizer::Sgd,
            "Adam" => Optimizer::Adam,
            "AdamW" => Optimizer::AdamW,
            "Adagrad" => Optimizer::Adagrad,
            _ => Optimizer::Other,
        })
    });
    // Of several different ones it is not known which launched what.
    let mut found = None;
    for class in classes {
        found = match found {
            None => Some(class),
            Some(known) if known == class => Some(known),
            Some(_) => Some(Optimizer::Other),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, slice};

    #[test]
    fn the_month_of_a_day() {
        assert_eq!(month(0), 197_001);
        assert_eq!(month(18_787), 202_106);
        assert_eq!((month(19_781), month(19_782), month(19_783)), (202_402, 202_402, 202_403));
        assert_eq!((month(20_453), month(20_454)), (202_512, 202_601));
    }

    fn facts(names: &[&str], framework: Framework) -> RunFacts {
        let mut fixture = Fixture::default();
        for (name, at) in names.iter().zip(0..) {
            fixture.push(slice("cpu_op", name).on(1, 1).at(at, 1));
        }
        RunContext::of(&fixture.finish(), Platform::Cuda, framework).facts
    }

    #[test]
    fn what_the_run_is_for() {
        let run = |names: &[&str], framework| facts(names, framework).run;
        let pytorch = Framework::Pytorch;
        assert_eq!(run(&["aten::mm", "Optimizer.step#SGD.step"], pytorch), Some(RunType::Training));
        let backward = "autograd::engine::evaluate_function: MmBackward0";
        assert_eq!(run(&[backward], Framework::Vllm), Some(RunType::Training));
        assert_eq!(run(&["aten::mm"], pytorch), Some(RunType::Inference));
        assert_eq!(run(&[], Framework::Sglang), Some(RunType::Inference));
        assert_eq!(run(&["k"], Framework::Unknown), None);
    }

    #[test]
    fn calls_of_modules_with_one_launch() {
        let of = |n_launches: i64, outside: i64| {
            let mut fixture = Fixture::default();
            for call in 0..5 {
                let at = call * 100;
                let frame = |name| slice("python_function", name).on(1, 1);
                fixture.push(frame("nn.Module: Model_0").at(at, 90));
                fixture.push(frame("nn.Module: Linear_0").at(at + 10, 40));
                for launch in 0..n_launches {
                    let at = at + 20 + 30 * launch;
                    fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 5));
                }
            }
            for launch in 0..outside {
                let at = 1_000 + 10 * launch;
                fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 5));
            }
            let trace = fixture.finish();
            let facts = RunContext::of(&trace, Platform::Cuda, Framework::Pytorch).facts;
            facts.single_kernel_calls
        };
        assert_eq!(of(1, 0), Some(true));
        assert_eq!(of(2, 0), Some(false), "one of them in a module within");
        assert_eq!((of(1, 3), of(0, 3)), (Some(false), Some(false)));
    }

    #[test]
    fn which_optimizer() {
        let of = |names: &[&str]| facts(names, Framework::Pytorch).optimizer;
        assert_eq!(of(&["Optimizer.step#SGD.step"]), Some(Optimizer::Sgd));
        assert_eq!(of(&["Optimizer.step#AdamW.step"]), Some(Optimizer::AdamW));
        assert_eq!(of(&["Optimizer.step#FusedAdam.step"]), Some(Optimizer::Other));
        let two = ["Optimizer.step#SGD.step", "Optimizer.step#Adam.step"];
        assert_eq!(of(&two), Some(Optimizer::Other), "which one launched what is not known");
        assert_eq!(of(&["aten::mm"]), None);
    }

    #[test]
    fn a_version_of_pytorch_in_the_file_counts_as_its_release() {
        let with = |packages: &str| {
            let mut fixture = Fixture::default();
            fixture.metadata("metadata", packages);
            RunContext::of(&fixture.finish(), Platform::Cuda, Framework::Pytorch).facts.recorded
        };
        let of = |version: &str| {
            with(&format!(r#"{{"pip_packages": ["open_clip_torch==3.0.0", "torch=={version}"]}}"#))
        };
        assert_eq!((of("2.6.0"), of("2.10.0a1+git1")), (Some(202_404), Some(202_510)));
        assert_eq!((of("1.13.1"), with("{}")), (Some(0), None));
    }

    #[test]
    fn regions_are_of_their_thread() {
        let mut fixture = Fixture::default();
        fixture.push(
            slice("user_annotation", "Optimizer.zero_grad#SGD.zero_grad").on(1, 1).at(10, 10),
        );
        fixture.push(slice("cpu_op", "aten::zero_").on(1, 1).at(15, 1));
        fixture.push(slice("cpu_op", "aten::zero_").on(1, 2).at(15, 1));
        fixture.push(slice("cpu_op", "aten::zero_").on(1, 1).at(20, 1));
        let trace = fixture.finish();
        let run = RunContext::of(&trace, Platform::Cuda, Framework::Pytorch);
        let held: Vec<bool> = (1..4).map(|row| run.zero_grad.hold(&trace, row)).collect();
        assert_eq!(held, [true, false, false]);
    }
}
