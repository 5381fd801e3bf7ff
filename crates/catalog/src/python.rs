//! Python frames: chooses the frame of a call chain that is most useful to a person.

mod packages;
mod roots;

pub use self::roots::Roots;

use self::roots::From;

/// Where AITER's compiled kernels are called from, as their frames name it: its folder lies on Python's path.
const AITER_CALLS: &str = "csrc/cpp_itfs/";

/// Functions that only hand a call on.
#[rustfmt::skip]
const PASS_ON: [&str; 14] = [
    "__torch_function__", "__torch_dispatch__", "__call__", "_call_impl", "_wrapped_call_impl", "wrapper",
    "decorate_context", "inner", "_fn", "compile_wrapper", "wrapped", "run_until_complete", "_wrapped", "__get__",
];

/// Modules that wrap calls to measure or to register them, and those of torch.compile that call compiled code.
const PASS_ON_MODULES: [&str; 11] = [
    "torch_guard.py",
    "kernel_shape_profiler.py",
    "torch/_ops.py",
    "vllm/_custom_ops.py",
    "vllm/_aiter_ops.py",
    "torch/_dynamo/eval_frame.py",
    "torch/_functorch/aot_autograd.py",
    "torch/_functorch/_aot_autograd/runtime_wrappers.py",
    "torch/_functorch/_aot_autograd/utils.py",
    "torch/_inductor/output_code.py",
    "torch/_inductor/utils.py",
];

/// Parts of packages that only hand collectives and copies between devices on: the model's line that asks for one says
/// more.
#[rustfmt::skip]
const COLLECTIVES: [&str; 12] = [
    "vllm/distributed/", "sglang/srt/distributed/", "sglang/srt/layers/dp_attention.py",
    "xfuser/core/distributed/group_coordinator.py", "xfuser/core/distributed/parallel_state.py", "aiter/dist/",
    "deepspeed/comm/", "megatron/core/tensor_parallel/mappings.py", "megatron/core/parallel_state.py",
    "tensorrt_llm/_torch/distributed/", "lmdeploy/pytorch/distributed.py", "torchtitan/distributed/",
];

/// Of functions that only hand a call on, those that do not: the `__call__` of a pipeline is its whole loop.
const PIPELINE: &str = "pipeline";

/// Modules of Python's standard library, as frames name them.
#[rustfmt::skip]
const STDLIB: [&str; 72] = [
    "abc", "argparse", "ast", "base64", "bisect", "calendar", "codecs", "collections", "copy", "copyreg", "csv",
    "ctypes", "dataclasses", "datetime", "decimal", "dis", "email", "encodings", "enum", "fractions", "functools",
    "gc", "genericpath", "gettext", "glob", "gzip", "hashlib", "heapq", "html", "http", "inspect", "io", "ipaddress",
    "itertools", "json", "linecache", "locale", "logging", "ntpath", "numbers", "operator", "os", "pathlib",
    "pickle", "pkgutil", "platform", "posixpath", "pprint", "random", "re", "reprlib", "shutil", "signal", "ssl",
    "stat", "statistics", "string", "struct", "subprocess", "tempfile", "textwrap", "timeit", "token", "tokenize",
    "traceback", "types", "typing", "unittest", "urllib", "uuid", "warnings", "weakref",
];

/// Modules of the standard library and of tools that never are the place one looks for.
#[rustfmt::skip]
const NOISE: [&str; 16] = [
    "threading.py", "multiprocessing/", "contextlib.py", "runpy.py", "asyncio/", "selectors.py", "queue.py",
    "socket.py", "socketserver.py", "tqdm/", "concurrent/futures", "<string>", "importlib", "functools.py",
    "uvloop", "torch/profiler",
];

/// How much a frame says about where work came from; the frame with the highest rank is shown, of equal ones the
/// innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameRank {
    /// Machinery: threads, queues, the profiler.
    Noise,
    /// A built-in or a wrapper that hands the call on.
    PassesOn,
    /// The standard library.
    Stdlib,
    /// PyTorch, Triton.
    Framework,
    /// Code that a compiler wrote: nobody's, but it says which kernel is called where.
    Compiled,
    /// Some other installed package.
    Package,
    /// A package that holds models or serves them.
    Model,
    /// The user's own code: installed nowhere.
    User,
}

/// The path, line and function of a frame that is named `path(line): function`. Modules (`nn.Module: Linear_3`) and built-ins are
/// no lines.
#[must_use]
pub fn frame_parts(name: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = name.split_once("): ")?;
    let (path, line) = place.rsplit_once('(')?;
    Some((path, line.parse().ok()?, function))
}

/// A name without the address of its object, which differs from run to run: `<built-in method to of Tensor object at 0x7fec>`. Of functions
/// of pybind11 the object says nothing: it is a record of pybind11's own.
#[must_use]
pub fn without_address(name: &str) -> &str {
    let Some((name, _)) = name.split_once(" at 0x") else { return name };
    let name = name.split_once(" of pybind11_builtins.").map_or(name, |(name, _)| name);
    name.trim_start_matches('<')
}

/// Whether a frame is of a function that has no line of Python: `<built-in function collect>`.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    name.starts_with("<built-in")
}

/// The path as it is shown, and the frame's rank.
///
/// `path` and `function` are those of a frame named `path(line): function`; `roots` are those of the frames of its trace.
#[must_use]
pub fn frame(roots: &Roots, path: &str, function: &str) -> (String, FrameRank) {
    let roots::Shown { path: shown, from } = roots.shown(path);
    if path.starts_with('<') || NOISE.iter().any(|noise| shown.contains(noise)) {
        return (shown, FrameRank::Noise);
    }
    let base = rank_of_path(path, &shown, from);
    let pipeline = function == "__call__" && shown.contains(PIPELINE);
    let passes_on = (PASS_ON.contains(&function) && !pipeline)
        || function.starts_with("_wrapped_")
        || PASS_ON_MODULES.iter().any(|module| shown.ends_with(module));
    (shown, if passes_on { base.min(FrameRank::PassesOn) } else { base })
}

fn rank_of_path(path: &str, shown: &str, from: From) -> FrameRank {
    let first = shown.split('/').next().unwrap_or_default();
    if from == From::Own {
        return FrameRank::User;
    }
    if from == From::Compiled || first == roots::COMPILED {
        return FrameRank::Compiled;
    }
    let first = first.trim_end_matches(".py");
    if COLLECTIVES.iter().any(|part| shown.starts_with(part)) {
        return FrameRank::Package;
    }
    if packages::is_model(first) {
        return FrameRank::Model;
    }
    if packages::is_kernel(first) || path.starts_with(AITER_CALLS) {
        return FrameRank::Package;
    }
    if packages::is_framework(first) {
        return FrameRank::Framework;
    }
    if from == From::Installed {
        return FrameRank::Package;
    }
    // The profiler cuts what lies on Python's path off: the standard library's frames begin with a module.
    if from == From::Stdlib || STDLIB.contains(&first) {
        return FrameRank::Stdlib;
    }
    FrameRank::User
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn frames_are_ranked_by_who_wrote_them() {
        let rows = [
            ("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", "run", "sglang/srt/managers/scheduler.py", FrameRank::Model),
            ("/usr/local/lib/python3.12/dist-packages/vllm/v1/worker.py", "f", "vllm/v1/worker.py", FrameRank::Model),
            ("/home/me/train.py", "step", "/home/me/train.py", FrameRank::User),
            ("train.py", "step", "train.py", FrameRank::User),
            ("torch/nn/modules/linear.py", "forward", "torch/nn/modules/linear.py", FrameRank::Framework),
            ("torch/nn/modules/module.py", "_call_impl", "torch/nn/modules/module.py", FrameRank::PassesOn),
            ("/opt/lib/python3.11/site-packages/einops/einops.py", "reduce", "einops/einops.py", FrameRank::Package),
            ("threading.py", "_bootstrap", "threading.py", FrameRank::Noise),
            ("/usr/lib/python3.12/contextlib.py", "inner", "contextlib.py", FrameRank::Noise),
            ("/usr/lib/python3.12/statistics.py", "mean", "statistics.py", FrameRank::Stdlib),
            ("/var/torchinductor_root/ys/cys3.py", "call", "torchinductor/ys/cys3.py", FrameRank::Compiled),
            ("diffusers/pipelines/flux/pipeline_flux.py", "__call__", "diffusers/pipelines/flux/pipeline_flux.py", FrameRank::Model),
            ("vllm/compilation/decorators.py", "__call__", "vllm/compilation/decorators.py", FrameRank::PassesOn),
            ("/opt/lib/python3.12/site-packages/torch/_inductor/utils.py", "run", "torch/_inductor/utils.py", FrameRank::PassesOn),
            ("inspect.py", "signature", "inspect.py", FrameRank::Stdlib),
            ("csrc/cpp_itfs/pa/pa_ragged.py", "paged_attention_ragged", "csrc/cpp_itfs/pa/pa_ragged.py", FrameRank::Package),
            ("aiter/tuned_gemm.py", "torch_gemm", "aiter/tuned_gemm.py", FrameRank::Package),
            ("torch_guard.py", "wrapper_custom", "torch_guard.py", FrameRank::PassesOn),
            ("transformers/models/qwen2/modeling_qwen2.py", "forward", "transformers/models/qwen2/modeling_qwen2.py", FrameRank::Model),
            ("vllm/distributed/parallel_state.py", "all_reduce", "vllm/distributed/parallel_state.py", FrameRank::Package),
            ("torch/distributed/c10d_logger.py", "wrapper", "torch/distributed/c10d_logger.py", FrameRank::PassesOn),
            ("torch/distributed/distributed_c10d.py", "all_reduce", "torch/distributed/distributed_c10d.py", FrameRank::Framework),
            ("functools.py", "wrapper", "functools.py", FrameRank::Noise),
            ("/app/xDiT/xfuser/core/distributed/runtime_state.py", "f", "xfuser/core/distributed/runtime_state.py", FrameRank::Model),
            ("/workspace/transformers/train.py", "f", "/workspace/transformers/train.py", FrameRank::User),
            ("/workspace/json/train.py", "f", "/workspace/json/train.py", FrameRank::User),
            ("<string>", "<module>", "<string>", FrameRank::Noise),
        ];
        for (path, function, shown, rank) in rows {
            let roots = Roots::of([path].into_iter());
            assert_eq!(frame(&roots, path, function), (shown.to_owned(), rank), "{path} {function}");
        }
    }

    #[test]
    fn the_users_code_comes_first() {
        assert!(FrameRank::User > FrameRank::Model && FrameRank::Model > FrameRank::Package);
        assert!(
            FrameRank::Package > FrameRank::Compiled && FrameRank::Compiled > FrameRank::Framework
        );
        assert!(FrameRank::Framework > FrameRank::Stdlib && FrameRank::PassesOn > FrameRank::Noise);
    }
}
