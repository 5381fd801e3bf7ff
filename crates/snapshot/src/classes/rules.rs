//! The rules that tell what an allocation is for, by its life.
//!
//! Sources: the phases of a training step in PyTorch (autograd saves what forward hands it and frees it in backward; `AccumulateGrad`
//! keeps gradients until `zero_grad`; an optimizer keeps its state between steps).

use report::Confidence;

use super::marks::Marks;
use super::told::Run;
use super::{Class, Life};
use crate::site::{Phase, Update};

/// How one fact tells a class.
pub(super) struct Rule {
    pub(super) class: Class,
    /// The fact, for people; unique.
    pub(super) what: &'static str,
    pub(super) confidence: Confidence,
    pub(super) holds: fn(&Life, &Run) -> bool,
}

impl Rule {
    /// Whether it tells what forward saved for no backward pass, and what was freed with the graph.
    pub(super) fn is_of_unused_graph(&self) -> bool {
        [NEVER_USED, CAST_NEVER_USED].contains(&self.what)
    }
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

    /// Saved in forward, and freed with the graph of autograd in the same pass.
    fn is_of_unused_graph(&self, run: &Run) -> bool {
        self.death.is_some_and(|death| death.names.is_graph)
            && self.was_born(Phase::Forward)
            && !self.spans_phases
            && !run.has_nameless_backward
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

/// What no event of the recording allocates or frees.
pub(super) const STANDING: &str =
    "in use before the first event and after the last (weights, or state that is updated in place)";

/// Activations that no backward pass reads.
const NEVER_USED: &str =
    "saved in forward for backward, freed with the graph without a backward pass";

/// Copies by autocast that no backward pass reads.
const CAST_NEVER_USED: &str = "copied by autocast, freed with the graph without a backward pass";
const CAST_NOT_YET_FREED: &str = "copied by autocast, in use at the end, as what forward saved for no backward pass in the calls before";

/// Activations of the call before the recording.
const OLDER_GRAPH: &str = "allocated before the first event, freed with the graph without a backward pass; the recorded call allocates the same sizes";

/// What forward saved for no backward pass: what these rules tell, but for copies of weights.
pub(super) const UNUSED: [&str; 5] =
    [NEVER_USED, NOT_YET_FREED, CAST_NEVER_USED, CAST_NOT_YET_FREED, OLDER_GRAPH];

/// The same of the last call, whose graph is in use at the end.
pub(super) const NOT_YET_FREED: &str = "allocated in forward, in use at the end, as what forward saved for no backward pass in the calls before";

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
        class: Class::Cast,
        what: "kept by the cache of autocast until it ends",
        confidence: Confidence::High,
        holds: |life, _| life.death.is_some_and(|death| death.names.is_cache_cleared),
    },
    Rule {
        class: Class::Cast,
        what: "copied by autocast with half the size of a weight, freed with the graph without a backward pass",
        confidence: Confidence::Medium,
        holds: |life, run| life.is_copy && life.is_of_unused_graph(run),
    },
    Rule {
        class: Class::Cast,
        what: CAST_NEVER_USED,
        confidence: Confidence::High,
        holds: |life, run| {
            life.birth.is_some_and(|birth| birth.names.is_cast) && life.is_of_unused_graph(run)
        },
    },
    Rule {
        class: Class::Cast,
        what: CAST_NOT_YET_FREED,
        confidence: Confidence::Medium,
        holds: |life, _| {
            life.birth.is_some_and(|birth| birth.names.is_cast)
                && life.is_as_unused
                && !life.is_copy
        },
    },
    Rule {
        class: Class::Cast,
        what: "copied by autocast, in use at the end of the recording",
        confidence: Confidence::High,
        holds: |life, _| life.birth.is_some_and(|birth| birth.names.is_cast) && life.is_in_use(),
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
        holds: |life, run| life.is_of_unused_graph(run),
    },
    Rule {
        class: Class::Activation,
        what: OLDER_GRAPH,
        confidence: Confidence::Medium,
        holds: |life, run| {
            run.has_older_graph
                && life.born.is_none()
                && life.death.is_some_and(|death| death.names.is_graph)
        },
    },
    Rule {
        class: Class::Activation,
        what: NOT_YET_FREED,
        confidence: Confidence::Medium,
        holds: |life, _| life.is_as_unused,
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
        class: Class::Parameter,
        what: "allocated while a module was built, and freed by the optimizer, which makes a new one",
        confidence: Confidence::Medium,
        holds: |life, _| life.is_parameter() && life.has_ended(Phase::Optimizer),
    },
    Rule {
        class: Class::Parameter,
        what: "allocated in the optimizer in place of a parameter",
        confidence: Confidence::Medium,
        holds: |life, _| {
            life.replaces.is_some_and(|of| of.0 == Class::Parameter)
                && (life.spans_phases || life.is_in_use())
        },
    },
    Rule {
        class: Class::OptimizerState,
        what: "allocated while the optimizer was built",
        confidence: Confidence::Medium,
        holds: |life, _| {
            let is_kept = life.is_in_use() || life.has_ended(Phase::Optimizer);
            is_kept && life.birth.is_some_and(|birth| birth.is_state)
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
        what: STANDING,
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
