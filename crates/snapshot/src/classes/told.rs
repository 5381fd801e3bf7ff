//! Every allocation from its birth to its end, and the rule that tells what it is for.

use std::collections::HashMap;

use super::copies::{Before, Copies};
use super::marks::Marks;
use super::replaced::Replaced;
use super::rules::{RULES, Rule};
use super::{Class, class_of};
use crate::model::{Action, Event, Snapshot};
use crate::site::Phase;
use crate::stacks::StackId;

/// From an allocation to its free.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub(crate) address: u64,
    /// The stack that allocated; `None` where the file does not have it.
    pub(super) birth: Option<Marks>,
    /// The event; `None` before the first one.
    pub(crate) born: Option<usize>,
    /// The stack that freed; `None` while in use.
    pub(super) death: Option<Marks>,
    /// The event of the free.
    pub(crate) ended: Option<usize>,
    /// Requested bytes.
    pub(crate) size: i64,
    /// The stack that allocated; 0 where the file does not have it.
    pub(crate) stack: StackId,
    /// The stack that freed; 0 while in use, and where the file does not have it.
    pub(crate) freed_by: StackId,
    /// Whether something of another phase than that of the birth happened in between.
    pub(super) spans_phases: bool,
    /// What it replaces, if the optimizer made it in place of an older block, and the event that freed that.
    pub(super) replaces: Option<(Class, usize)>,
    /// Whether autocast made it, and it is in use over a step of the optimizer and into the forward pass after it.
    pub(super) is_stale_cast: bool,
    /// Whether it is in use at the end, and blocks of its stack and size were saved for a backward pass that did not run; or it is of
    /// forward, and a block of its size is of the graph of the call before the recording.
    pub(super) is_as_unused: bool,
    /// Whether autocast made it, and its size is that of the copy of a weight.
    pub(super) is_copy: bool,
}

/// What is known of the whole recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    /// Whether backward runs in threads whose stacks are not recorded, as when only Python frames are: much is allocated without
    /// a stack, next to nothing in backward, and it is a training step.
    pub(super) has_nameless_backward: bool,
    /// The phase of the last event that has one.
    pub(super) last: Option<Phase>,
    /// Whether something shows a step of training.
    pub(super) is_training: bool,
    /// Whether an event is of backward or of the optimizer.
    pub(super) has_backward: bool,
    /// The place of the failed allocation that ended the run: what is freed behind it was in use until then. The end of the events on
    /// another device than the one that failed.
    pub(super) failed: Option<usize>,
    /// Whether the graph of the call before the recording is freed in it.
    pub(super) has_older_graph: bool,
}

/// Calls `each` with every life and its class.
pub(crate) fn lives(
    snapshot: &Snapshot,
    device: i64,
    marks: &[Marks],
    mut each: impl FnMut(&Life, Class),
) {
    let _ = told(snapshot, device, marks, &mut |life, rule| each(life, class_of(rule)));
}

/// What was seen of the phases so far.
#[derive(Default)]
struct Seen {
    /// The last event of each.
    last: Vec<(Phase, usize)>,
    /// The first allocation of the last forward pass that follows a step of the optimizer.
    turn: Option<usize>,
}

impl Seen {
    fn see(&mut self, phase: Option<Phase>, at: usize) {
        let Some(phase) = phase else { return };
        match self.last.iter_mut().find(|(known, _)| *known == phase) {
            Some((_, last)) => *last = at,
            None => self.last.push((phase, at)),
        }
    }

    /// Sees an allocation in a phase.
    fn allocated(&mut self, phase: Option<Phase>, at: usize) {
        let is_new = |last: &usize| self.turn.is_none_or(|turn| *last > turn);
        let mut steps = self.last.iter().filter(|(phase, _)| *phase == Phase::Optimizer);
        if phase == Some(Phase::Forward) && steps.any(|(_, last)| is_new(last)) {
            self.turn = Some(at);
        }
        self.see(phase, at);
    }

    /// Whether an allocation is the copy of a weight that autocast made before the last step of the optimizer.
    fn is_stale(&self, birth: Option<Marks>, born: Option<usize>) -> bool {
        birth.is_some_and(|birth| birth.names.is_cast) && born.is_some() && born < self.turn
    }

    /// Whether a step of another phase was seen since an allocation.
    fn spans(&self, birth: Option<Marks>, born: Option<usize>) -> bool {
        let own = birth.map(|marks| marks.phase);
        let is_step = |phase: &Phase| {
            !matches!(phase, Phase::Unknown | Phase::Other | Phase::Moved | Phase::Method)
        };
        let mut others =
            self.last.iter().filter(|(phase, _)| is_step(phase) && Some(*phase) != own);
        others.any(|(_, at)| born.is_none_or(|born| *at > born))
    }
}

/// Calls `each` with every life and the place of the rule that tells it.
#[inline(never)]
pub(super) fn told(
    snapshot: &Snapshot,
    device: i64,
    marks: &[Marks],
    each: &mut dyn FnMut(&Life, usize),
) -> Run {
    let trace = snapshot.trace(device);
    let of = |stack: StackId| marks.get(stack as usize).copied().filter(|marks| marks.has_frames);
    let before = Before::of(snapshot, device, &of);
    let run = Run::of(snapshot, trace, &before, &of);
    let mut open: HashMap<u64, usize> = HashMap::new();
    let (mut unused, mut replaced) = (Vec::new(), Replaced::default());
    let mut freed_by: HashMap<u64, StackId> = HashMap::new();
    let mut seen = Seen::default();
    let mut copies = Copies::of(&before.standing);
    for (at, event) in trace.iter().enumerate() {
        match event.action {
            Action::Alloc => {
                open.insert(event.address, at);
                let birth = of(event.stack);
                let phase = birth.map(|marks| marks.phase);
                copies.allocated(event.address, event.size, birth);
                replaced.allocated(at, event.size, phase == Some(Phase::Optimizer));
                seen.allocated(phase, at);
            }
            Action::FreeRequested => {
                freed_by.insert(event.address, event.stack);
            }
            Action::FreeCompleted => {
                let born = open.remove(&event.address);
                let stack = freed_by.remove(&event.address).unwrap_or(event.stack);
                let allocated = born.and_then(|born| trace.get(born)).map(|event| event.stack);
                let birth = allocated.and_then(of);
                let death = of(stack);
                let is_unwound = run.failed.is_some_and(|failed| failed < at);
                let life = Life {
                    address: event.address,
                    birth,
                    born,
                    death: (!is_unwound).then(|| death.unwrap_or_default()),
                    ended: Some(at),
                    size: event.size,
                    stack: allocated.unwrap_or_default(),
                    freed_by: stack,
                    spans_phases: seen.spans(birth, born),
                    replaces: replaced.of(born),
                    is_stale_cast: seen.is_stale(birth, born),
                    is_copy: copies.gone(event.address, event.size),
                    ..Life::default()
                };
                replaced.gone(born);
                replaced.old(life.replaced_as(), life.size, at);
                if run.tell(&life, each).is_some_and(Rule::is_of_unused_graph) {
                    unused.push((life.stack, life.size));
                }
                seen.see(death.map(|marks| marks.phase), at);
            }
            _ => {}
        }
    }
    unused.sort_unstable();
    let is_as_unused = |stack: StackId, birth: Option<Marks>, size: i64| {
        before.has_like(birth, size) || unused.binary_search(&(stack, size)).is_ok()
    };
    for block in snapshot.live_at_end(device) {
        let born = open.remove(&block.address);
        let event = born.and_then(|born| trace.get(born));
        let stack = event.map_or(block.stack, |event| event.stack);
        let birth = of(stack);
        let size = event.map_or(block.requested, |event| event.size);
        let life = Life {
            address: block.address,
            birth,
            born,
            size,
            stack,
            spans_phases: seen.spans(birth, born),
            replaces: replaced.of(born),
            is_stale_cast: seen.is_stale(birth, born),
            is_as_unused: born.is_some() && is_as_unused(stack, birth, size),
            is_copy: copies.gone(block.address, size),
            ..Life::default()
        };
        run.tell(&life, each);
    }
    run
}

/// The place of a failed allocation that nothing is allocated after.
fn fatal(trace: &[Event]) -> Option<usize> {
    let is_end = |event: &Event| matches!(event.action, Action::Oom | Action::Alloc);
    let last = trace.iter().rposition(is_end)?;
    trace.get(last).filter(|event| event.action == Action::Oom).map(|_| last)
}

impl Life {
    /// The phase of the stack that allocated.
    pub(crate) fn birth_phase(&self) -> Phase {
        self.birth.map_or(Phase::Unknown, |birth| birth.phase)
    }

    /// What the optimizer frees with it, if that may have been replaced: a parameter, or state.
    fn replaced_as(&self) -> Option<Class> {
        self.death.filter(|death| death.phase == Phase::Optimizer)?;
        if self.birth.is_some_and(|birth| birth.is_parameter) {
            return Some(Class::Parameter);
        }
        let is_state = self.birth.is_some_and(|birth| birth.is_state);
        let is_kept = self.birth_phase() == Phase::Optimizer && self.spans_phases;
        let is_older = is_state || is_kept || self.born.is_none();
        self.replaces.map(|of| of.0).or_else(|| is_older.then_some(Class::OptimizerState))
    }

    /// Whether a function that computes attention allocated, and no fused kernel of it.
    pub(crate) fn is_attention(&self) -> bool {
        self.birth.as_ref().is_some_and(Marks::is_attention)
    }
}

impl Run {
    fn tell(&self, life: &Life, each: &mut dyn FnMut(&Life, usize)) -> Option<&'static Rule> {
        let rule = RULES.iter().position(|rule| (rule.holds)(life, self))?;
        each(life, rule);
        RULES.get(rule)
    }

    fn of(
        snapshot: &Snapshot,
        trace: &[Event],
        before: &Before,
        of: &impl Fn(StackId) -> Option<Marks>,
    ) -> Self {
        let has_failed = snapshot.traces.iter().any(|trace| fatal(trace).is_some());
        let failed = fatal(trace).or_else(|| has_failed.then_some(trace.len()));
        let has_older_graph = !before.graph.is_empty();
        let mut run = Self { failed, has_older_graph, ..Self::default() };
        let (mut nameless, mut backward) = (0u64, 0u64);
        for event in trace {
            let is_birth = event.action == Action::Alloc;
            let Some(marks) = of(event.stack) else {
                nameless += u64::from(is_birth);
                continue;
            };
            run.has_backward |= matches!(marks.phase, Phase::Optimizer | Phase::Backward);
            if is_birth || event.action == Action::FreeCompleted {
                backward += u64::from(is_birth && marks.phase == Phase::Backward);
                run.last = Some(marks.phase);
            }
        }
        run.is_training = run.has_backward;
        run.has_nameless_backward = run.is_training && nameless > 10 * backward;
        run.is_training |=
            snapshot.annotations.iter().any(|mark| mark.name.starts_with("Optimizer."));
        run
    }
}
