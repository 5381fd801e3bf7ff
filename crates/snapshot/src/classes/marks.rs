//! What the stack of an allocation or of a free shows of its purpose.

use std::collections::HashMap;

use super::Class;
use crate::site::{BENCHMARK, MOVE, OFFLOAD, Phase, Sites, Texts, Update, WORKSPACE};
use crate::spelling::has;
use crate::stacks::{Frame, StackId, Stacks};

/// What one stack shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) phase: Phase,
    pub(crate) has_frames: bool,
    /// A frame that builds, loads or moves a module.
    pub(super) is_parameter: bool,
    /// A method `__init__` of an optimizer of the program.
    pub(super) is_state: bool,
    /// A frame that moves or casts what a module holds: nothing else is allocated there.
    pub(super) is_move: bool,
    /// A frame of torch.utils.checkpoint.
    pub(super) is_checkpoint: bool,
    /// What the cause of the allocation says by itself.
    pub(super) class: Option<Class>,
    /// How an optimizer of PyTorch that allocates updates.
    pub(super) update: Option<Update>,
    /// What the names of its functions show.
    pub(super) names: Names,
}

/// What names of functions show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// `zero_grad`.
    pub(super) is_zero_grad: bool,
    /// Autocast makes a copy in another precision.
    pub(super) is_cast: bool,
    /// A function that computes attention, by its name.
    is_attention: bool,
    /// A softmax.
    is_softmax: bool,
    /// An attention kernel that stores no scores.
    is_fused: bool,
    /// FSDP makes room for the weights that it gathers (`torch/distributed/fsdp/_fully_shard/_fsdp_param.py`).
    pub(super) is_gathered: bool,
    /// The graph of autograd lets go of what forward saved.
    pub(super) is_graph: bool,
    /// Autocast lets go of the copies of weights that it keeps until it ends.
    pub(super) is_cache_cleared: bool,
}

impl Default for Marks {
    /// Without frames.
    fn default() -> Self {
        let names = Names::default();
        let (is_parameter, is_move, is_checkpoint) = (false, false, false);
        let is_state = false;
        let (phase, has_frames) = (Phase::Unknown, false);
        let (class, update) = (None, None);
        Self {
            phase,
            has_frames,
            is_parameter,
            is_state,
            is_move,
            is_checkpoint,
            class,
            update,
            names,
        }
    }
}

/// Frames that build, load or move modules: a part of the path, and the function (any, if empty).
const PARAMETER_FRAMES: &[(&str, &str)] = &[
    ("/torch/nn/modules/", "__init__"),
    ("/torch/nn/modules/", "reset_parameters"),
    ("/torch/nn/modules/module.py", MOVE),
    ("/torch/nn/modules/module.py", "_load_from_state_dict"),
    ("/torch/nn/init.py", ""),
    ("/torch/serialization.py", ""),
    ("/safetensors/", ""),
    ("/transformers/modeling_utils.py", ""),
    ("/transformers/core_model_loading.py", ""),
    OFFLOAD,
    ("/diffusers/models/model_loading_utils.py", ""),
    ("/model_loader/", ""),
];

/// Levels of functions `forward` of one file in a stack, from which on it has a whole model.
const WHOLE_MODEL: usize = 3;

/// The file whose `__exit__` clears the cache of autocast.
const AUTOCAST: &str = "autocast_mode.py";

/// The file whose functions run a part of a model without keeping its activations.
const CHECKPOINT: &str = "/torch/utils/checkpoint.py";

/// Methods of a program's own classes that tell what a class is: `forward` of a module, `step` of an optimizer; lines by file.
#[derive(Default)]
struct Builders(HashMap<u32, Vec<(i64, Class)>>);

impl Builders {
    #[inline(never)]
    fn of_program(stacks: &Stacks, sites: &Sites, texts: &mut Texts<'_>) -> Self {
        let mut found = Self::default();
        for stack in 0..stacks.len() {
            let class = match sites.phase(stack as StackId) {
                Phase::Optimizer => Class::OptimizerState,
                Phase::Forward | Phase::Called => Class::Parameter,
                _ => continue,
            };
            let name = if class == Class::Parameter { "forward" } else { "step" };
            for frame in stacks.frames(stack as StackId) {
                if stacks.text(frame.name) == name && texts.is_own(frame) {
                    let lines = found.0.entry(frame.filename).or_default();
                    if !lines.contains(&(frame.line, class)) {
                        lines.push((frame.line, class));
                    }
                }
            }
        }
        found
    }

    /// What the innermost `__init__` of a stack makes: the method that follows it in its file, else any of the file, tells its class.
    fn of(&self, frames: &[Frame], stacks: &Stacks, texts: &mut Texts<'_>) -> Option<Class> {
        let mut is_init =
            |frame: &&Frame| stacks.text(frame.name) == "__init__" && texts.is_own(frame);
        let frame = frames.iter().find(&mut is_init)?;
        let lines = self.0.get(&frame.filename)?;
        let behind = lines.iter().filter(|(line, _)| *line > frame.line).min_by_key(|it| it.0);
        behind.or_else(|| lines.first()).map(|(_, class)| *class)
    }
}

impl Marks {
    /// Of every stack of a snapshot.
    pub(crate) fn all(stacks: &Stacks, sites: &Sites) -> Vec<Self> {
        // A file has few paths, and each is in many stacks.
        let mut paths: HashMap<u32, (Vec<&'static str>, bool)> = HashMap::new();
        let mut of_module = |frame: &Frame| {
            let (known, is_checkpoint) = paths.entry(frame.filename).or_insert_with(|| {
                let file = stacks.text(frame.filename).replace('\\', "/");
                (functions(&file), has(&file, CHECKPOINT))
            });
            let name = stacks.text(frame.name);
            let is_known = |function: &&str| function.is_empty() || *function == name;
            let is_move = |function: &str| function == MOVE || function == OFFLOAD.1;
            let found = known.iter().find(|function| is_known(function));
            (found.is_some(), found.is_some_and(|function| is_move(function)), *is_checkpoint)
        };
        let mut names: HashMap<u32, Names> = HashMap::new();
        let mut texts = Texts::of(stacks);
        let files = Names::of_files(stacks, &mut texts);
        let builders = Builders::of_program(stacks, sites, &mut texts);
        let mut of = |stack: usize| {
            let frames = stacks.frames(stack as StackId);
            let mut found = (false, false, false);
            for frame in frames {
                let of = of_module(frame);
                found = (found.0 | of.0, found.1 | of.1, found.2 | of.2);
            }
            let (is_parameter, is_move, is_checkpoint) = found;
            let builds = match sites.phase(stack as StackId) {
                Phase::Other => builders.of(frames, stacks, &mut texts),
                _ => None,
            };
            let is_parameter = is_parameter || builds == Some(Class::Parameter);
            Self {
                is_state: builds == Some(Class::OptimizerState),
                phase: sites.phase(stack as StackId).of_step(),
                has_frames: !frames.is_empty(),
                is_parameter,
                is_move,
                is_checkpoint,
                class: match sites.name(sites.site(stack as StackId)) {
                    WORKSPACE => Some(Class::Workspace),
                    BENCHMARK => Some(Class::Temporary),
                    _ => None,
                },
                update: match sites.phase(stack as StackId) {
                    Phase::Optimizer => texts.update(frames),
                    _ => None,
                },
                names: frames.iter().fold(Names::default(), |mut sum, frame| {
                    let name = frame.name;
                    sum.is_cache_cleared |= stacks.text(name) == "__exit__"
                        && has(stacks.text(frame.filename), AUTOCAST);
                    let of_file = files.get(&frame.filename).copied().unwrap_or_default();
                    let own = *names.entry(name).or_insert_with(|| Names::of(stacks.text(name)));
                    sum.or(own).or(of_file)
                }),
            }
        };
        (0..stacks.len()).map(&mut of).collect()
    }

    /// Whether it is attention that stores its scores: a function named so takes a softmax, without a fused kernel.
    pub(crate) fn is_unfused_softmax(&self) -> bool {
        self.names.is_attention && self.names.is_softmax && !self.names.is_fused
    }

    /// Whether a function that is named after attention is on the stack, and no fused kernel of it.
    pub(crate) fn is_attention(&self) -> bool {
        self.names.is_attention && !self.names.is_fused
    }
}

impl Names {
    fn of(function: &str) -> Self {
        let has = |part: &str| has(function, part);
        // (C++ frames have signatures; a dispatcher's names of ops are not a model's.)
        let is_cpp = has("::") || has("(");
        Self {
            is_zero_grad: function == "zero_grad",
            // ATen/autocast_mode.cpp
            is_cast: has("at::autocast::cached_cast"),
            is_attention: !is_cpp && has("attention"),
            // (A loss takes the logarithm of it.)
            is_softmax: has("softmax") && !has("log_softmax"),
            // The ops behind scaled_dot_product_attention that are no composition, and packages of kernels.
            is_fused: (is_cpp || function.starts_with('_')) && has("_scaled_dot_product_")
                || has("flash")
                || has("efficient_attention"),
            is_gathered: function == "init_all_gather_outputs",
            is_graph: has("SavedVariable::reset_data")
                || has("torch::autograd::deleteNode")
                || is_cpp && has("Backward") && has("::release_variables"),
            // ATen/autocast_mode.cpp, and its binding in torch/csrc/autograd/init.cpp
            is_cache_cleared: has("at::autocast::clear_cache") || has("clear_autocast_cache"),
        }
    }

    /// What the names of a program's files show: `attention.py`, `softmax.py`. A file whose functions `forward` call each other over
    /// several levels has a whole model.
    #[inline(never)]
    fn of_files(stacks: &Stacks, texts: &mut Texts<'_>) -> HashMap<u32, Self> {
        let mut found: HashMap<u32, Self> = HashMap::new();
        for stack in 0..stacks.len() {
            let frames = stacks.frames(stack as StackId);
            for (at, frame) in frames.iter().enumerate() {
                let file = frame.filename;
                let of = found.entry(file).or_insert_with(|| {
                    let path = stacks.text(file).replace('\\', "/");
                    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
                    let is_own = texts.is_own(frame);
                    Self {
                        is_attention: is_own && has(&name, "attention"),
                        is_softmax: is_own && has(&name, "softmax") && !has(&name, "log_softmax"),
                        is_fused: is_own && has(&name, "flash"),
                        ..Self::default()
                    }
                });
                let is_same =
                    |other: &&Frame| other.filename == file && stacks.text(other.name) == "forward";
                let behind = frames.get(at..).unwrap_or_default();
                of.is_attention &= behind.iter().filter(is_same).count() < WHOLE_MODEL;
            }
        }
        // Of files that call each other only the one next to a softmax: others have the projections.
        let mut nearest = Vec::new();
        for stack in 0..stacks.len() {
            let frames = stacks.frames(stack as StackId);
            let of = |frame: &Frame| found.get(&frame.filename).copied().unwrap_or_default();
            let is_softmax = |frame: &Frame| {
                of(frame).is_softmax || Self::of(stacks.text(frame.name)).is_softmax
            };
            let file = frames.iter().find(|frame| of(frame).is_attention);
            let file = file.filter(|_| frames.iter().any(is_softmax));
            if let Some(file) = file
                && !nearest.contains(&file.filename)
            {
                nearest.push(file.filename);
            }
        }
        found.retain(|file, of| {
            of.is_attention &= nearest.contains(file);
            of.is_attention || of.is_softmax || of.is_fused
        });
        found
    }

    fn or(self, other: Self) -> Self {
        Self {
            is_zero_grad: self.is_zero_grad || other.is_zero_grad,
            is_cast: self.is_cast || other.is_cast,
            is_attention: self.is_attention || other.is_attention,
            is_softmax: self.is_softmax || other.is_softmax,
            is_fused: self.is_fused || other.is_fused,
            is_gathered: self.is_gathered || other.is_gathered,
            is_graph: self.is_graph || other.is_graph,
            is_cache_cleared: self.is_cache_cleared || other.is_cache_cleared,
        }
    }
}

/// The functions of a file that build, load or move modules; an empty name is any function.
fn functions(file: &str) -> Vec<&'static str> {
    let rows = PARAMETER_FRAMES.iter().filter(|(path, _)| has(file, path));
    rows.map(|(_, function)| *function).collect()
}
