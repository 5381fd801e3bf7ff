//! The rules that tell what an allocation is for, and the frames that they look for.
//!
//! Sources: the phases of a training step in PyTorch (autograd saves what forward hands it and frees it in backward; `AccumulateGrad`
//! keeps gradients until `zero_grad`; an optimizer keeps its state between steps).

use std::collections::HashMap;

use report::Confidence;

use super::{Class, Life, Run};
use crate::site::{BENCHMARK, MOVE, OFFLOAD, Phase, Sites, Texts, Update, WORKSPACE};
use crate::spelling::has;
use crate::stacks::{Frame, StackId, Stacks};

/// What one stack shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) phase: Phase,
    pub(crate) has_frames: bool,
    /// A frame that builds, loads or moves a module.
    is_parameter: bool,
    /// A frame that moves or casts what a module holds: nothing else is allocated there.
    is_move: bool,
    /// A frame of torch.utils.checkpoint.
    pub(super) is_checkpoint: bool,
    /// What the cause of the allocation says by itself.
    class: Option<Class>,
    /// How an optimizer of PyTorch that allocates updates.
    update: Option<Update>,
    /// What the names of its functions show.
    names: Names,
}

/// What names of functions show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Names {
    /// `zero_grad`.
    is_zero_grad: bool,
    /// Autocast makes a copy in another precision.
    is_cast: bool,
    /// A function that computes attention, by its name.
    is_attention: bool,
    /// A softmax.
    is_softmax: bool,
    /// An attention kernel that stores no scores.
    is_fused: bool,
    /// FSDP makes room for the weights that it gathers (`torch/distributed/fsdp/_fully_shard/_fsdp_param.py`).
    is_gathered: bool,
    /// The graph of autograd lets go of what forward saved.
    is_graph: bool,
}

impl Default for Marks {
    /// Without frames.
    fn default() -> Self {
        let names = Names::default();
        let (is_parameter, is_move, is_checkpoint) = (false, false, false);
        let (phase, has_frames) = (Phase::Unknown, false);
        let (class, update) = (None, None);
        Self { phase, has_frames, is_parameter, is_move, is_checkpoint, class, update, names }
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

/// The file whose functions run a part of a model without keeping its activations.
const CHECKPOINT: &str = "/torch/utils/checkpoint.py";

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
        let mut of = |stack: usize| {
            let frames = stacks.frames(stack as StackId);
            let mut found = (false, false, false);
            for frame in frames {
                let of = of_module(frame);
                found = (found.0 | of.0, found.1 | of.1, found.2 | of.2);
            }
            let (is_parameter, is_move, is_checkpoint) = found;
            Self {
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
                names: frames.iter().fold(Names::default(), |sum, frame| {
                    let name = frame.name;
                    sum.or(*names.entry(name).or_insert_with(|| Names::of(stacks.text(name))))
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
            is_softmax: has("softmax"),
            // The ops behind scaled_dot_product_attention that are no composition, and packages of kernels.
            is_fused: (is_cpp || function.starts_with('_')) && has("_scaled_dot_product_")
                || has("flash")
                || has("efficient_attention"),
            is_gathered: function == "init_all_gather_outputs",
            is_graph: has("SavedVariable::reset_data")
                || has("torch::autograd::deleteNode")
                || is_cpp && has("Backward") && has("::release_variables"),
        }
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
        }
    }
}

/// The functions of a file that build, load or move modules; an empty name is any function.
fn functions(file: &str) -> Vec<&'static str> {
    let rows = PARAMETER_FRAMES.iter().filter(|(path, _)| has(file, path));
    rows.map(|(_, function)| *function).collect()
}

/// How one fact tells a class.
pub(super) struct Rule {
    pub(super) class: Class,
    /// The fact, for people; unique.
    pub(super) what: &'static str,
    pub(super) confidence: Confidence,
    pub(super) holds: fn(&Life, &Run) -> bool,
}

impl Life {
    fn was_born(&self, phase: Phase) -> bool {
        self.birth.is_some_and(|birth| birth.phase == phase)
    }

    pub(super) fn has_ended(&self, phase: Phase) -> bool {
        self.death.is_some_and(|death| death.phase == phase)
    }

    fn is_parameter(&self) -> bool {
        self.birth.is_some_and(|birth| birth.is_parameter)
    }

    /// Allocated in the recording, by a stack without frames.
    fn is_nameless(&self) -> bool {
        self.born.is_some() && self.birth.is_none()
    }

    /// How the optimizer of PyTorch updates that allocated it, where it is freed within its step.
    pub(super) fn update(&self) -> Option<Update> {
        // (Files of older versions have no stacks of frees.)
        let is_freed = |death: Marks| death.phase == Phase::Optimizer || !death.has_frames;
        self.death.filter(|death| is_freed(*death) && !self.spans_phases)?;
        self.birth?.update
    }

    fn is_made_as(&self, class: Class) -> bool {
        self.birth.is_some_and(|birth| birth.class == Some(class))
    }

    fn is_in_use(&self) -> bool {
        self.death.is_none()
    }
}

/// Unknown bytes that may be activations: what these rules tell.
pub(super) const MAYBE_ACTIVATIONS: [&str; 3] = [AT_FAILURE, STILL_IN_USE, FREED_LATER];
const AT_FAILURE: &str = "allocated in forward, in use when memory ran out";
const STILL_IN_USE: &str = "allocated in forward, in use at the end of the recording";
const FREED_LATER: &str = "allocated in forward, freed later by other code";

/// Activations that no backward pass reads.
pub(super) const NEVER_USED: &str =
    "saved in forward for backward, freed with the graph without a backward pass";

/// The first that holds counts; the last ones hold for every life.
pub(super) const RULES: &[Rule] = &[
    Rule {
        class: Class::Workspace,
        what: "kept by cuBLAS for itself, one per stream",
        confidence: Confidence::High,
        holds: |life, _| life.is_made_as(Class::Workspace),
    },
    Rule {
        class: Class::Temporary,
        what: "allocated by a compiler that times kernels (autotuning)",
        confidence: Confidence::High,
        holds: |life, _| life.is_made_as(Class::Temporary),
    },
    Rule {
        class: Class::Gradient,
        what: "freed by zero_grad",
        confidence: Confidence::High,
        holds: |life, _| life.death.is_some_and(|death| death.names.is_zero_grad),
    },
    Rule {
        class: Class::Parameter,
        what: "moved or cast with its module (Module.to, Module.cuda), and freed later",
        confidence: Confidence::High,
        holds: |life, _| life.birth.is_some_and(|birth| birth.is_move) && !life.is_in_use(),
    },
    Rule {
        class: Class::Parameter,
        what: "gathered from its shards by FSDP, and in use",
        confidence: Confidence::High,
        holds: |life, _| {
            life.birth.is_some_and(|birth| birth.names.is_gathered) && life.is_in_use()
        },
    },
    Rule {
        class: Class::Cast,
        what: "copied by autocast, freed in backward",
        confidence: Confidence::High,
        holds: |life, _| {
            life.birth.is_some_and(|birth| birth.names.is_cast) && life.has_ended(Phase::Backward)
        },
    },
    Rule {
        class: Class::Activation,
        what: "allocated in forward, freed in backward",
        confidence: Confidence::High,
        holds: |life, _| life.was_born(Phase::Forward) && life.has_ended(Phase::Backward),
    },
    Rule {
        class: Class::Activation,
        what: "allocated outside modules, freed in backward",
        confidence: Confidence::Medium,
        holds: |life, _| life.was_born(Phase::Other) && life.has_ended(Phase::Backward),
    },
    Rule {
        class: Class::Activation,
        what: "allocated before the first event, freed in backward",
        confidence: Confidence::Medium,
        holds: |life, _| life.born.is_none() && life.has_ended(Phase::Backward),
    },
    Rule {
        class: Class::Activation,
        what: NEVER_USED,
        confidence: Confidence::High,
        holds: |life, run| {
            let is_graph = life.death.is_some_and(|death| death.names.is_graph);
            is_graph
                && life.was_born(Phase::Forward)
                && !life.spans_phases
                && !run.has_nameless_backward
        },
    },
    Rule {
        class: Class::Activation,
        what: "allocated in forward, freed by a thread without Python frames, as that of autograd",
        confidence: Confidence::Medium,
        holds: |life, run| {
            life.was_born(Phase::Forward)
                && life.has_ended(Phase::Unknown)
                && run.has_nameless_backward
        },
    },
    Rule {
        class: Class::Parameter,
        what: "allocated while a module was built, loaded or moved, and still in use",
        confidence: Confidence::Medium,
        holds: |life, _| life.is_parameter() && life.is_in_use(),
    },
    Rule {
        class: Class::Temporary,
        what: "allocated and freed in backward",
        confidence: Confidence::High,
        holds: |life, _| life.was_born(Phase::Backward) && life.has_ended(Phase::Backward),
    },
    Rule {
        class: Class::Gradient,
        what: "allocated in backward, in use after it",
        confidence: Confidence::Medium,
        holds: |life, _| life.was_born(Phase::Backward) && (life.spans_phases || !life.is_in_use()),
    },
    Rule {
        class: Class::Gradient,
        what: "allocated in backward, in use at the end of the recording",
        confidence: Confidence::Medium,
        holds: |life, run| life.was_born(Phase::Backward) && run.last != Some(Phase::Backward),
    },
    Rule {
        class: Class::Gradient,
        what: "allocated by a thread without Python frames, as that of autograd, and freed in the optimizer",
        confidence: Confidence::Medium,
        holds: |life, run| {
            life.is_nameless() && life.has_ended(Phase::Optimizer) && run.has_nameless_backward
        },
    },
    Rule {
        class: Class::OptimizerState,
        what: "allocated in the optimizer, in use after its step",
        confidence: Confidence::High,
        holds: |life, _| life.was_born(Phase::Optimizer) && life.spans_phases,
    },
    Rule {
        class: Class::OptimizerState,
        what: "allocated in the optimizer, in use at the end of the recording",
        confidence: Confidence::Medium,
        holds: |life, _| life.was_born(Phase::Optimizer) && life.is_in_use(),
    },
    Rule {
        class: Class::Temporary,
        what: "allocated and freed in one step of the optimizer",
        confidence: Confidence::High,
        holds: |life, _| life.was_born(Phase::Optimizer) && life.has_ended(Phase::Optimizer),
    },
    Rule {
        class: Class::OptimizerState,
        what: "allocated before the first event, freed in the optimizer",
        confidence: Confidence::Low,
        holds: |life, _| life.born.is_none() && life.has_ended(Phase::Optimizer),
    },
    Rule {
        class: Class::Temporary,
        what: "allocated and freed in one forward pass",
        confidence: Confidence::High,
        holds: |life, _| {
            life.was_born(Phase::Forward) && life.has_ended(Phase::Forward) && !life.spans_phases
        },
    },
    Rule {
        class: Class::Temporary,
        what: "allocated and freed by threads without Python frames, as that of autograd",
        confidence: Confidence::Medium,
        holds: |life, run| {
            life.is_nameless() && life.has_ended(Phase::Unknown) && run.has_nameless_backward
        },
    },
    Rule {
        class: Class::Activation,
        what: "allocated in forward of a training step, in use when memory ran out",
        confidence: Confidence::Low,
        holds: |life, run| {
            life.was_born(Phase::Forward)
                && life.is_in_use()
                && run.failed.is_some()
                && run.is_training
        },
    },
    Rule {
        class: Class::Unknown,
        what: AT_FAILURE,
        confidence: Confidence::Low,
        holds: |life, run| {
            life.was_born(Phase::Forward) && life.is_in_use() && run.failed.is_some()
        },
    },
    Rule {
        class: Class::Unknown,
        what: STILL_IN_USE,
        confidence: Confidence::Low,
        holds: |life, _| life.was_born(Phase::Forward) && life.is_in_use(),
    },
    Rule {
        class: Class::Unknown,
        what: FREED_LATER,
        confidence: Confidence::Low,
        holds: |life, _| life.was_born(Phase::Forward),
    },
    Rule {
        class: Class::Unknown,
        what: "in use before the first event and after the last (weights, or state that is updated in place)",
        confidence: Confidence::Low,
        holds: |life, _| life.born.is_none() && life.birth.is_none() && life.is_in_use(),
    },
    Rule {
        class: Class::Unknown,
        what: "allocated before the first event, without a stack",
        confidence: Confidence::Low,
        holds: |life, _| life.born.is_none() && life.birth.is_none(),
    },
    Rule {
        class: Class::Unknown,
        what: "recorded without a stack",
        confidence: Confidence::Low,
        holds: |life, _| life.birth.is_none(),
    },
    Rule {
        class: Class::Unknown,
        what: "allocated in backward, in use when the recording ended in it",
        confidence: Confidence::Low,
        holds: |life, _| life.was_born(Phase::Backward),
    },
    Rule {
        class: Class::Unknown,
        what: "allocated outside forward, backward and optimizer",
        confidence: Confidence::Low,
        holds: |_, _| true,
    },
];
