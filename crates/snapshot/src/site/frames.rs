//! What the frames of a stack show: the line or the cause that allocates, the phase of a step, and the optimizer that updates.

use super::{ANOMALY, BENCHMARK, NO_STACK, Phase, REDUCED, WORKSPACE, is_library, is_python};
use crate::spelling::has;
use crate::stacks::{Frame, Stacks};

/// The function of `torch/nn/modules/module.py` through which `to`, `cuda`, `half` and their like move or cast what a module holds.
pub(crate) const MOVE: &str = "_apply";

/// The methods of modules that move, cast or load what they hold.
const MOVES: &[&str] =
    &[MOVE, "to", "to_empty", "cuda", "cpu", "type", "half", "float", "double", "bfloat16"];

/// The file and the function of accelerate that moves a parameter or a buffer of a module.
pub(crate) const OFFLOAD: (&str, &str) =
    ("/accelerate/utils/modeling.py", "set_module_tensor_to_device");

/// Parts of installed packages whose lines call what they were given, and name no cause.
const WRAPPERS: &[&str] = &["torch/", "accelerate/hooks.py"];

/// Frames that belong to the recording of the stack or to the interpreter, and name no cause.
const OMITTED: &[&str] = &[
    "unwind::unwind",
    "CapturedTraceback::gather",
    "gather_with_cpp",
    "_start",
    "__libc_start_main",
    "PyEval_",
    "PyObject_",
    "PyFunction_",
    "CachingAllocator",
];

/// `XBackward0` of `torch::autograd::generated::XBackward0::apply`, or `AccumulateGrad`.
fn autograd_node(name: &str) -> Option<&str> {
    const NAMESPACE: &str = "torch::autograd::";
    let nodes = name.match_indices(NAMESPACE).find_map(|(at, _)| {
        let rest = name.get(at + NAMESPACE.len()..)?;
        let rest = rest.strip_prefix("generated::").unwrap_or(rest);
        let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric())?;
        let (node, rest) = rest.split_at_checked(end)?;
        let stem = node.trim_end_matches(|c: char| c.is_ascii_digit());
        let before =
            stem.strip_suffix("Backward").or_else(|| node.strip_suffix("AccumulateGrad"))?;
        (rest.starts_with("::apply") && !before.is_empty()).then_some(node)
    });
    nodes.or_else(|| has(name, "AccumulateGrad").then_some("AccumulateGrad"))
}

/// What one text shows as the path of a frame, and as its name. A snapshot has few texts, and each is in many stacks.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    is_python: bool,
    is_library: bool,
    /// Of an installed package, but not of PyTorch or another wrapper.
    is_package: bool,
    /// Of the optimizers of PyTorch.
    is_optimizer: bool,
    /// Where backward is run from, whatever the function.
    runs_backward: bool,
    /// Where backward is run from, as a function of that name.
    has_backward: bool,
    /// Of the class of all modules.
    is_module: bool,
    /// As a name in [`Shown::is_module`]: a call of a module.
    is_call: bool,
    /// As a name in [`Shown::is_module`]: moves or casts what a module holds (`to`, `cuda`, `half`...).
    is_move: bool,
    /// As a name in [`Shown::is_module`]: begins a move, a cast or a load.
    is_moves: bool,
    /// Moves single tensors of modules, where they are offloaded.
    is_offload: bool,
    /// As a name: `forward`.
    is_forward: bool,
    /// As a name: of the engine of autograd.
    is_engine: bool,
    /// As a name: of the recording or the interpreter.
    is_omitted: bool,
    /// As a name: makes the workspace of a library of CUDA (`aten/src/ATen/cuda/CublasHandlePool.cpp`).
    is_workspace: bool,
    /// Of Inductor or Triton.
    is_compiler: bool,
    /// As a name in [`Shown::is_compiler`]: runs kernels to time them.
    is_benchmark: bool,
    /// As a name: a function of ATen or c10, which everything that allocates calls.
    is_native: bool,
    /// As a name: of ATen, asks for NaN.
    is_nan_check: bool,
    /// As a name: sums a gradient to the shape of its operand.
    is_reduction: bool,
    /// As a name: the engine of autograd runs one node.
    runs_node: bool,
}

impl Shown {
    fn of(text: &str) -> Self {
        let path = text.replace('\\', "/");
        let package = path.rsplit_once("-packages/").map(|(_, package)| package);
        let is_engine = has(text, "Engine") || has(&text.to_ascii_lowercase(), "python_engine");
        Self {
            is_python: is_python(text),
            is_library: is_library(text),
            is_package: is_python(text)
                && package
                    .is_some_and(|it| !WRAPPERS.iter().any(|wrapper| it.starts_with(wrapper))),
            is_optimizer: has(&path, "/torch/optim/"),
            runs_backward: has(&path, "/torch/autograd/graph.py"),
            has_backward: has(&path, "/torch/autograd/__init__.py"),
            is_module: has(&path, "/nn/modules/module.py"),
            is_call: matches!(
                text,
                "_call_impl" | "_wrapped_call_impl" | "__call__" | "_slow_forward" | "inner"
            ),
            is_move: text == MOVE,
            is_moves: MOVES.contains(&text) || has(text, "load"),
            is_offload: has(&path, OFFLOAD.0),
            is_forward: text == "forward",
            is_engine: has(text, "torch::autograd::") && is_engine
                || text == "_engine_run_backward",
            is_omitted: OMITTED.iter().any(|omitted| has(text, omitted)),
            is_workspace: ["getNewWorkspace", "CurrentCUDABlas", "CUDABlasLtWorkspace"]
                .iter()
                .any(|part| has(text, part)),
            is_compiler: has(&path, "/torch/_inductor/") || has(&path, "/triton/"),
            is_benchmark: ["benchmark", "do_bench", "autotun", "coordinate_descent"]
                .iter()
                .any(|part| has(text, part)),
            // (A type may be before the name, and types of the same namespaces behind it.)
            is_native: ["at::", "c10::", "torch::autograd::VariableType"]
                .iter()
                .any(|space| plain(text).split(' ').any(|word| word.starts_with(space))),
            is_nan_check: text.starts_with("at::")
                && (has(text, "isnan") || has(text, "_is_any_true")),
            is_reduction: has(text, "InputMetadata::reduce_grad"),
            runs_node: has(text, "autograd::Engine::evaluate_function"),
        }
    }
}

/// The name of a function of C++ without its parameters.
fn plain(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name)
}

/// How an optimizer of PyTorch updates parameters (`torch/optim/*.py`: `_multi_tensor_adam`, `_single_tensor_sgd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Update {
    /// All parameters in one loop: its temporaries are as large as all of them.
    pub(crate) is_foreach: bool,
    /// Whether the optimizer has a fused kernel for GPUs.
    pub(crate) has_fused: bool,
}

impl Update {
    /// `None` for another function, and for one without a remedy.
    fn of(function: &str) -> Option<Self> {
        let foreach = function.strip_prefix("_multi_tensor_");
        let optimizer = foreach.or_else(|| function.strip_prefix("_single_tensor_"))?;
        let is_foreach = foreach.is_some();
        let has_fused = ["adam", "adamw", "sgd"].contains(&optimizer);
        (is_foreach || has_fused).then_some(Self { is_foreach, has_fused })
    }
}

/// The facts of every text, each looked at when it is asked for first.
pub(crate) struct Texts<'a> {
    stacks: &'a Stacks,
    shown: Vec<Option<Shown>>,
}

impl<'a> Texts<'a> {
    pub(crate) fn of(stacks: &'a Stacks) -> Self {
        Self { stacks, shown: Vec::new() }
    }

    fn shown(&mut self, id: u32) -> Shown {
        let at = id as usize;
        if at >= self.shown.len() {
            self.shown.resize(at + 1, None);
        }
        match self.shown.get_mut(at) {
            Some(shown) => *shown.get_or_insert_with(|| Shown::of(self.stacks.text(id))),
            None => Shown::default(),
        }
    }

    pub(super) fn phase(&mut self, frames: &[Frame]) -> Phase {
        if frames.is_empty() {
            return Phase::Unknown;
        }
        let (mut is_backward, mut is_module) = (false, false);
        let (mut is_call, mut is_moves, mut is_moved) = (false, false, false);
        let mut is_forward = false;
        for frame in frames {
            let (file, name) = (self.shown(frame.filename), self.shown(frame.name));
            if file.is_optimizer {
                return Phase::Optimizer;
            }
            is_backward |= file.runs_backward
                || name.is_engine
                || file.has_backward && self.stacks.text(frame.name) == "backward";
            is_forward |= name.is_forward && file.is_python && !file.is_library;
            is_module |= file.is_module;
            is_call |= file.is_module && name.is_call;
            is_moves |= file.is_module && name.is_moves;
            is_moved |= file.is_module && name.is_move
                || file.is_offload && self.stacks.text(frame.name) == OFFLOAD.1;
        }
        if is_backward {
            Phase::Backward
        } else if is_module && (is_moved || is_moves && !is_call) {
            Phase::Moved
        } else if is_module && is_call {
            Phase::Forward
        } else if is_module {
            Phase::Method
        } else if is_forward {
            Phase::Called
        } else {
            Phase::Other
        }
    }

    /// The functions `forward` of the program and of packages, the outermost first; and how many of them, from the outermost on, are
    /// called as modules.
    pub(crate) fn forwards(&mut self, frames: &[Frame]) -> (Vec<Frame>, usize) {
        let (mut chain, mut n_called, mut is_open) = (Vec::new(), 0, false);
        // (Decorators and hooks may be between a call of a module and its `forward`.)
        for frame in frames.iter().rev() {
            let (file, name) = (self.shown(frame.filename), self.shown(frame.name));
            is_open |= file.is_module && name.is_call;
            if name.is_forward && file.is_python && (!file.is_library || file.is_package) {
                n_called += usize::from(is_open && n_called == chain.len());
                chain.push(*frame);
                is_open = false;
            }
        }
        (chain, n_called)
    }

    /// Whether a stack has frames, and only those of Python.
    pub(super) fn is_python(&mut self, frames: &[Frame]) -> bool {
        !frames.is_empty() && frames.iter().all(|frame| self.shown(frame.filename).is_python)
    }

    /// Whether a frame is of the program.
    pub(crate) fn is_own(&mut self, frame: &Frame) -> bool {
        let file = self.shown(frame.filename);
        file.is_python && !file.is_library
    }

    /// The frames of installed packages, of PyTorch only those of its optimizers, below a call site, innermost first.
    pub(crate) fn below(&mut self, frames: &[Frame]) -> Vec<Frame> {
        let own = frames.iter().position(|frame| self.is_own(frame)).unwrap_or_default();
        let below = frames.get(..own).unwrap_or_default();
        let mut is_named = |frame: &&Frame| {
            let file = self.shown(frame.filename);
            file.is_package || file.is_optimizer
        };
        below.iter().filter(|frame| is_named(frame)).copied().collect()
    }

    /// How an optimizer of PyTorch updates, where it allocates. (Optimizers of a program or of another package are called through
    /// `torch/optim/optimizer.py`, too.)
    pub(crate) fn update(&mut self, frames: &[Frame]) -> Option<Update> {
        for frame in frames {
            let file = self.shown(frame.filename);
            if file.is_package || self.is_own(frame) {
                return None;
            }
            let update = Update::of(self.stacks.text(frame.name));
            if file.is_optimizer && update.is_some() {
                return update;
            }
        }
        None
    }

    /// What allocates, where that is no line of the program: a library for itself, a compiler that times kernels, C++ code.
    #[inline(never)]
    pub(super) fn cause(&mut self, frames: &[Frame]) -> Option<String> {
        let (mut is_benchmark, mut is_python) = (false, false);
        for frame in frames {
            let (file, name) = (self.shown(frame.filename), self.shown(frame.name));
            if name.is_workspace {
                return Some(WORKSPACE.to_owned());
            }
            is_python |= file.is_python;
            is_benchmark |= file.is_compiler && name.is_benchmark;
        }
        if is_benchmark {
            return Some(BENCHMARK.to_owned());
        }
        let stacks = self.stacks;
        let is_node = |frame: &Frame| autograd_node(stacks.text(frame.name)).is_some();
        if frames.iter().any(is_node) {
            return None;
        }
        if is_python {
            return self.caller_of_torch(frames);
        }
        let has = |texts: &mut Self, of: fn(&Shown) -> bool| {
            frames.iter().any(|frame| of(&texts.shown(frame.name)))
        };
        // (No node computes it: the engine itself does.)
        if has(self, |name| name.runs_node) && has(self, |name| name.is_nan_check) {
            return Some(ANOMALY.to_owned());
        }
        if has(self, |name| name.runs_node) && has(self, |name| name.is_reduction) {
            return Some(REDUCED.to_owned());
        }
        let named = |frame: &&Frame| {
            let name = self.shown(frame.name);
            !name.is_omitted && !name.is_native
        };
        let frame = frames.iter().find(named);
        frame.map(|frame| format!("<C++> {}", plain(stacks.text(frame.name))))
    }

    /// The innermost frame of an installed package that calls PyTorch, where no frame is of the program.
    fn caller_of_torch(&mut self, frames: &[Frame]) -> Option<String> {
        if frames.iter().any(|frame| self.is_own(frame)) {
            return None;
        }
        let frame = frames.iter().find(|frame| self.shown(frame.filename).is_package)?;
        Some(self.line(frame))
    }

    /// File, line and function of a frame.
    fn line(&self, frame: &Frame) -> String {
        let (file, name) = (self.stacks.text(frame.filename), self.stacks.text(frame.name));
        format!("{file}:{}:{name}", frame.line)
    }

    /// The innermost Python frame of the program; else the node of autograd, because the backward thread has no frame of the
    /// program; else the innermost Python frame; else the innermost C++ frame outside the allocator.
    pub(super) fn site(&mut self, frames: &[Frame]) -> String {
        let stacks = self.stacks;
        let chosen = frames.iter().find(|frame| self.is_own(frame));
        if chosen.is_none() {
            let node = frames.iter().find_map(|frame| autograd_node(stacks.text(frame.name)));
            if let Some(node) = node {
                return format!("<autograd> {node}");
            }
        }
        let chosen = chosen
            .or_else(|| frames.iter().find(|frame| self.shown(frame.filename).is_python))
            .or_else(|| frames.iter().find(|frame| !self.shown(frame.name).is_omitted));
        match chosen {
            Some(frame) => self.line(frame),
            None => NO_STACK.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_autograd_is_named_by_its_class() {
        for (name, node) in [
            ("torch::autograd::generated::MmBackward0::apply(std::vector)", Some("MmBackward0")),
            ("torch::autograd::CopyBackwards::apply(x)", None),
            ("torch::autograd::AccumulateGrad::apply(x)", Some("AccumulateGrad")),
            ("torch::autograd::Engine::execute()", None),
            (
                "x torch::autograd::Engine y torch::autograd::AddBackward1::apply",
                Some("AddBackward1"),
            ),
        ] {
            assert_eq!(autograd_node(name), node, "{name}");
        }
    }

    #[test]
    fn functions_of_aten_and_c10_name_no_cause() {
        for (name, is_native) in [
            ("at::detail::_empty_generic<long>(c10::ArrayRef<long>)", true),
            ("at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>)", true),
            ("c10::StorageImpl::StorageImpl(c10::SymInt)", true),
            ("torch::autograd::Engine::evaluate_function(at::Tensor)", false),
            ("main", false),
        ] {
            assert_eq!(Shown::of(name).is_native, is_native, "{name}");
        }
    }
}
