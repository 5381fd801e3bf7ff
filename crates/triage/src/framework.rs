//! Detects the framework by a vote over all Python paths, annotations, ops and kernel names.
//!
//! A look at the first few events would not do: start-up code, and kernels that one framework borrows from
//! another (SGLang on ROCm runs kernels of vLLM and AITER), name the wrong one. Python paths weigh most,
//! because they are the program itself; kernels only count where nothing else speaks.

use dialect::kineto;
use serde::{Deserialize, Serialize};
use trace::{Flags, StringId, Trace, each_row};

use timeline::recorded::{Recorded, recorded};

/// A framework, as artifacts spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Framework {
    /// SGLang.
    #[serde(rename = "sglang")]
    Sglang,
    /// vLLM.
    #[serde(rename = "vllm")]
    Vllm,
    /// TensorRT-LLM.
    #[serde(rename = "trtllm")]
    Trtllm,
    /// TokenSpeed.
    #[serde(rename = "tokenspeed")]
    Tokenspeed,
    /// Diffusers, alone or under xDiT.
    #[serde(rename = "diffusers/xdit")]
    Diffusers,
    /// PyTorch without any of these.
    #[serde(rename = "pytorch")]
    Pytorch,
    /// Not recorded.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Framework {
    /// The id in artifacts and options.
    #[must_use]
    pub fn id(self) -> &'static str {
        MARKS.iter().find(|marks| marks.framework == self).map_or("unknown", |marks| marks.id)
    }
}

/// What gives a framework away.
struct Marks {
    framework: Framework,
    id: &'static str,
    /// Folders of Python packages.
    packages: &'static [&'static str],
    /// Folders in them that programs use without the framework.
    alone: &'static [&'static str],
    /// How annotations begin.
    annotations: &'static [&'static str],
    /// Namespaces of ops.
    ops: &'static [&'static str],
    /// Parts of kernel names.
    kernels: &'static [&'static str],
}

/// One row per framework; of those with equal votes, the first.
const MARKS: &[Marks] = &[
    Marks {
        framework: Framework::Sglang,
        id: "sglang",
        packages: &["sglang", "sgl_kernel"],
        alone: &[],
        annotations: &["step[EXTEND", "step[DECODE", "step[PREFILL", "step[MIXED", "step[IDLE"],
        ops: &["sglang::", "sgl_kernel::"],
        kernels: &["sglang", "sgl_kernel", "sgl_hip", "sgl_per_token"],
    },
    Marks {
        framework: Framework::Vllm,
        id: "vllm",
        packages: &["vllm"],
        alone: &[],
        annotations: &["execute_context_", "execute_model_context_", "execute_new_"],
        ops: &["vllm::", "_vllm_fa", "_C_cache_ops::"],
        kernels: &["vllm"],
    },
    Marks {
        framework: Framework::Trtllm,
        id: "trtllm",
        packages: &["tensorrt_llm"],
        alone: &[],
        annotations: &["[Executor] _forward_step"],
        ops: &["trtllm::", "tensorrt_llm::"],
        kernels: &["tensorrt_llm"],
    },
    Marks {
        framework: Framework::Tokenspeed,
        id: "tokenspeed",
        packages: &["tokenspeed", "tokenspeed_kernel", "tokenspeed_mla"],
        alone: &[],
        annotations: &[],
        ops: &["tokenspeed::"],
        kernels: &["tokenspeed"],
    },
    Marks {
        framework: Framework::Diffusers,
        id: "diffusers/xdit",
        packages: &["diffusers", "xfuser"],
        alone: &["schedulers", "utils"],
        annotations: &[],
        ops: &[],
        kernels: &[],
    },
    Marks {
        framework: Framework::Pytorch,
        id: "pytorch",
        packages: &["torch"],
        alone: &[],
        annotations: &[kineto::NUMBERED_STEP],
        ops: &["aten::"],
        kernels: &["at::native"],
    },
];

/// The vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameworkVote {
    /// Who won.
    pub framework: Framework,
    /// The votes as half sentences, the winner's first.
    pub evidence: Vec<String>,
}

/// Votes of one framework, by kind.
#[derive(Clone, Copy, Default)]
struct Votes {
    frames: u64,
    ops: u64,
    kernels: u64,
}

/// Counts the votes.
#[inline(never)]
pub(crate) fn framework(trace: &Trace) -> FrameworkVote {
    let votes = votes(trace);
    let Some((pytorch, others)) = votes.split_last() else { return nothing() };
    // The first kind of evidence that names any framework above PyTorch decides.
    let kinds: [fn(&Votes) -> u64; 3] =
        [|votes| votes.frames, |votes| votes.ops, |votes| votes.kernels];
    let most = |kind: fn(&Votes) -> u64| {
        let (at, n) = others
            .iter()
            .map(kind)
            .enumerate()
            .fold((0, 0), |best, (at, n)| if n > best.1 { (at, n) } else { best });
        (n > 0).then_some(at)
    };
    let any_torch = pytorch.frames + pytorch.ops + pytorch.kernels > 0;
    let winner = kinds.into_iter().find_map(most).or(any_torch.then_some(others.len()));
    let Some(winner) = winner else { return nothing() };
    let mut evidence = vec![said(&MARKS[winner], &votes[winner])];
    for (at, (marks, votes)) in MARKS.iter().zip(&votes).enumerate() {
        let any = votes.frames + votes.ops + votes.kernels > 0;
        if at != winner && any && marks.framework != Framework::Pytorch {
            evidence.push(said(marks, votes));
        }
    }
    FrameworkVote { framework: MARKS[winner].framework, evidence }
}

fn nothing() -> FrameworkVote {
    let evidence =
        vec!["no Python path, annotation, op or kernel name of a known framework".to_owned()];
    FrameworkVote { framework: Framework::Unknown, evidence }
}

fn said(marks: &Marks, votes: &Votes) -> String {
    let parts = [
        (votes.frames, "Python call", "Python calls"),
        (votes.ops, "op or annotation", "ops and annotations"),
        (votes.kernels, "kernel by name", "kernels by name"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| report::units::plural(n, one, many))
        .collect();
    format!("{}: {}", marks.id, parts.join(", "))
}

#[inline(never)]
fn votes(trace: &Trace) -> Vec<Votes> {
    let recorded = recorded(trace);
    // A name is looked at once, however often it occurs; what it was counts as part of its key.
    let mut counts = vec![[0_u64; 3]; trace.strings.len()];
    each_row(trace, |row| {
        let kind = match recorded.of(trace, row) {
            Recorded::Frame => 0,
            Recorded::Op | Recorded::Annotation | Recorded::GpuAnnotation => 1,
            _ if trace.flags(row).has(Flags::KERNEL) => 2,
            _ => return,
        };
        if let Some(count) = counts.get_mut(trace.name(row).0 as usize) {
            count[kind] += 1;
        }
    });
    let mut votes = vec![Votes::default(); MARKS.len()];
    for (id, [frames, ops, kernels]) in counts.into_iter().enumerate() {
        if frames + ops + kernels == 0 {
            continue;
        }
        let name = trace.strings.get(StringId(id as u32));
        for (marks, votes) in MARKS.iter().zip(&mut votes) {
            if frames > 0 && marks.packages.iter().any(|of| is_in_package(name, of, marks.alone)) {
                votes.frames += frames;
            }
            let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
            if ops > 0 && (begins(marks.ops) || begins(marks.annotations)) {
                votes.ops += ops;
            }
            if kernels > 0 && marks.kernels.iter().any(|part| name.contains(part)) {
                votes.kernels += kernels;
            }
        }
    }
    votes
}

/// Whether the path of a frame (`path(line): function`) lies in a folder of `package`: in a folder with that
/// name that holds another folder, so that `/home/me/vllm/bench.py` is no call of vLLM. Those of `alone` do not count.
fn is_in_package(frame: &str, package: &str, alone: &[&str]) -> bool {
    let path = frame.split_once('(').map_or(frame, |(path, _)| path);
    let mut parts = path.split(['/', '\\']).peekable();
    while let Some(part) = parts.next() {
        let is_its = |next: &&str| !next.ends_with(".py") && !alone.contains(next);
        if part == package && parts.peek().is_some_and(is_its) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel, slice};

    fn vote(slices: &[(&str, &str)]) -> FrameworkVote {
        let mut fixture = Fixture::default();
        for (at, (category, name)) in slices.iter().enumerate() {
            let new = if *category == "kernel" { kernel(name) } else { slice(category, name) };
            fixture.push(new.at(at as i64 * 10, 5));
        }
        framework(&fixture.finish())
    }

    const PYTHON: &str = "python_function";

    #[test]
    fn python_paths_weigh_more_than_borrowed_kernels() {
        let found = vote(&[
            (PYTHON, "/sgl-workspace/sglang/python/sglang/srt/models/llama.py(12): forward"),
            (PYTHON, "torch/nn/modules/module.py(9): _call_impl"),
            (PYTHON, "torch/nn/modules/module.py(9): _call_impl"),
            ("kernel", "void vllm::rms_norm_kernel<float>()"),
            ("kernel", "void vllm::rms_norm_kernel<float>()"),
        ]);
        assert_eq!(found.framework, Framework::Sglang);
        assert_eq!(found.evidence, ["sglang: 1 Python call", "vllm: 2 kernels by name"]);
    }

    #[test]
    fn a_scheduler_of_diffusers_around_an_own_network_is_not_diffusers() {
        let with = |path: &str| vote(&[(PYTHON, path), ("cpu_op", "aten::mm")]).framework;
        let site = "site-packages/diffusers";
        assert_eq!(
            with(&format!("{site}/schedulers/scheduling_ddpm.py(358): step")),
            Framework::Pytorch
        );
        assert_eq!(
            with(&format!("{site}/models/unets/unet_1d.py(9): forward")),
            Framework::Diffusers
        );
    }

    #[test]
    fn without_python_ops_and_then_kernels_decide() {
        let found = vote(&[
            ("user_annotation", "execute_context_1(8_8)_generation_0(0)"),
            (PYTHON, "a.py(1): f"),
        ]);
        assert_eq!(found.framework, Framework::Vllm);
        assert_eq!(
            vote(&[("kernel", "void tensorrt_llm::kernels::cutlass()")]).framework,
            Framework::Trtllm
        );
    }

    #[test]
    fn plain_pytorch_is_not_a_server() {
        let found = vote(&[
            (PYTHON, "transformers/models/qwen2/modeling_qwen2.py(9): forward"),
            (PYTHON, "/home/me/vllm/bench.py(3): main"),
            ("cpu_op", "aten::mm"),
        ]);
        assert_eq!(found.framework, Framework::Pytorch);
        assert_eq!(found.evidence, ["pytorch: 1 op or annotation"]);
        assert_eq!(
            vote(&[(PYTHON, "/opt/xfuser/core/distributed/group.py(2): f")]).framework,
            Framework::Diffusers
        );
        assert_eq!(vote(&[("kernel", "my_kernel")]).framework, Framework::Unknown);
    }

    #[test]
    fn every_framework_has_one_id() {
        for marks in MARKS {
            assert_eq!(marks.framework.id(), marks.id);
            let json = serde_json::to_string(&marks.framework).unwrap();
            assert_eq!(json, format!("\"{}\"", marks.id));
        }
    }
}
