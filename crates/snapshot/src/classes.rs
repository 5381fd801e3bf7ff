//! What allocations are for: parameters, gradients, activations, states of the optimizer, temporaries.
//!
//! Files do not record it. Two facts tell it for most bytes: the phase of the stack that allocates, and the phase of the stack that
//! frees ([`rules`]). What no rule tells is unknown, with the reason.

mod copies;
mod falls;
mod marks;
mod pair;
mod rebound;
mod replaced;
mod rules;
mod told;

use std::collections::BTreeMap;

use report::{Cell, Column, Confidence, Row, Unit};
use serde::Serialize;

use crate::amounts::amount;
use crate::leader::{Leader, leader};
use crate::model::Snapshot;
use crate::shown::Shown;
use crate::site::{NO_STACK, Phase, Sites};
use crate::spelling::has;
use falls::Lives;
pub(crate) use falls::{AtPeak, Falls, LEAST_FALL};
pub(crate) use marks::Marks;
pub(crate) use rebound::Rebound;
use rules::{MAYBE_ACTIVATIONS, RULES, Rule, STANDING, UNUSED};
use told::told;
pub(crate) use told::{Life, lives};

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    Parameter,
    Gradient,
    OptimizerState,
    Activation,
    /// A copy in a lower precision that autocast makes: of a weight, or of an input.
    Cast,
    Temporary,
    /// What a library of CUDA keeps for itself: one per stream, until the process ends.
    Workspace,
    Unknown,
}

const N_CLASSES: usize = Class::Unknown as usize + 1;

impl Class {
    /// Whether a program keeps it for the whole run.
    fn is_kept(self) -> bool {
        matches!(self, Self::Parameter | Self::OptimizerState)
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Parameter => "parameters",
            Self::Gradient => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activation => "activations",
            Self::Cast => "copies by autocast",
            Self::Temporary => "temporaries",
            Self::Workspace => "library workspace",
            Self::Unknown => "unknown",
        }
    }
}

/// The bytes that one rule tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ClassRow {
    pub(crate) class: Class,
    /// What tells it.
    pub(crate) rule: &'static str,
    pub(crate) confidence: &'static str,
    /// Requested bytes in use at the peak.
    pub(crate) peak_bytes: i64,
    pub(crate) peak_count: u64,
    /// Requested bytes of the recorded allocations.
    pub(crate) allocated_bytes: i64,
    pub(crate) allocations: u64,
}

/// The classes of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Classes {
    /// In the order of the rules.
    pub(crate) rows: Vec<ClassRow>,
    /// Bytes in use at the peak by class and site, most first.
    pub(crate) peak_sites: Vec<ClassSite>,
    /// Bytes in use at the peak of functions that compute attention and store its scores, by site, most first; empty where no
    /// such function takes a softmax.
    pub(crate) attention: Vec<ClassSite>,
    /// Bytes of state that the optimizer allocated, and of state that it freed: where it makes its state anew, and does not write to it.
    pub(crate) state: (i64, i64),
    /// Copies of weights by autocast that are used after a step of the optimizer, and their bytes.
    pub(crate) stale: (u64, i64),
    /// Bytes of parameters that the optimizer made in place of older ones.
    pub(crate) parameters: i64,
    /// Bytes of activations at the peak that were allocated inside of torch.utils.checkpoint.
    pub(crate) checkpointed: i64,
    /// Bytes at the peak that forward saved for no backward pass: activations, and copies by autocast.
    pub(crate) never_used: i64,
    /// Whether what stands has the sizes of the gradients three times, and an optimizer is Adam: weights and two moments.
    pub(crate) has_adam: bool,
    /// Whether it is a training step whose backward pass and optimizer step are not recorded.
    pub(crate) is_before_backward: bool,
    /// The peak without some of them.
    pub(crate) falls: Falls,
}

/// Sums the bytes by rule. The events must agree with the segments. `levels` are those of requested bytes.
pub(crate) fn classes(
    snapshot: &Snapshot,
    device: i64,
    (levels, shown): (&[i64], &Shown),
    sites: &Sites,
    marks: &[Marks],
) -> Classes {
    let peak = shown.index;
    let mut sums = Sums {
        peak,
        rows: vec![(0, 0, 0, 0); RULES.len()],
        sites: BTreeMap::new(),
        attention: BTreeMap::new(),
        has_softmax: false,
        state: (0, 0),
        parameters: 0,
        weights: Vec::new(),
        stale: Vec::new(),
        checkpointed: 0,
        standing: Vec::new(),
        gradients: [Vec::new(), Vec::new()],
    };
    let mut lives = Lives::default();
    let run = told(snapshot, device, marks, &mut |life, rule| {
        sums.add(life, rule, sites);
        lives.add(life, rule);
    });
    // (Adamax has no second moment.)
    let is_adam = |name: &str| has(name, "#Adam") && !has(name, "#Adamax");
    let is_adam = snapshot.annotations.iter().any(|mark| is_adam(&mark.name));
    let has_adam = is_adam && sums.is_thrice();
    let mut classes = sums.finish(sites);
    classes.has_adam = has_adam;
    // (A ring of events may have lost those of a step that is marked.)
    let has_step = snapshot.annotations.iter().any(|mark| mark.name.starts_with("Optimizer.step"));
    classes.is_before_backward = run.is_training && !run.has_backward && !has_step;
    let class = classes.largest(true).map(|largest| largest.0);
    let at = (levels.get(peak).copied().unwrap_or_default(), peak);
    let is_replaced = classes.state.1 > 0;
    classes.falls = lives.falls((levels, shown.settled), at, class, (&snapshot.stacks, sites));
    classes.falls.steady = lives.steady(levels).filter(|_| !is_replaced);
    classes
}

fn class_of(rule: usize) -> Class {
    RULES.get(rule).map_or(Class::Unknown, |rule| rule.class)
}

/// A class, a call site and its bytes.
type ClassSite = (Class, String, i64);
type BySite = BTreeMap<(Class, usize), i64>;

/// The call sites by name, most bytes first.
#[inline(never)]
fn named(sums: BySite, sites: &Sites) -> Vec<ClassSite> {
    let named = |((class, site), bytes)| (class, sites.name(site).to_owned(), bytes);
    let mut rows: Vec<ClassSite> = sums.into_iter().map(named).collect();
    rows.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (a.0, &a.1).cmp(&(b.0, &b.1))));
    rows
}

struct Sums {
    peak: usize,
    /// Per rule: bytes and blocks at the peak, bytes and allocations in all.
    rows: Vec<(i64, u64, i64, u64)>,
    sites: BySite,
    attention: BySite,
    has_softmax: bool,
    /// State of an optimizer: allocated, freed by it.
    state: (i64, i64),
    /// Sizes of parameters and of what is older than the recording.
    weights: Vec<i64>,
    /// Sizes of copies by autocast that are used after a step of the optimizer.
    stale: Vec<i64>,
    /// Parameters that an optimizer made in place of older ones.
    parameters: i64,
    checkpointed: i64,
    /// Sizes of what no event allocates or frees; of gradients from before the first event, and in use at the end.
    standing: Vec<i64>,
    gradients: [Vec<i64>; 2],
}

impl Sums {
    fn add(&mut self, life: &Life, at: usize, sites: &Sites) {
        let site = sites.site(life.stack);
        let (Some(row), Some(rule)) = (self.rows.get_mut(at), RULES.get(at)) else { return };
        if life.born.is_some() {
            row.2 = row.2.saturating_add(life.size);
            row.3 += 1;
        }
        if rule.class == Class::OptimizerState {
            let sum =
                |sum: i64, is_part: bool| sum.saturating_add(if is_part { life.size } else { 0 });
            let is_freed = life.has_ended(Phase::Optimizer);
            let is_made = life.born.is_some() && life.birth_phase() == Phase::Optimizer;
            self.state = (sum(self.state.0, is_made), sum(self.state.1, is_freed));
        }
        if rule.class == Class::Parameter || life.born.is_none() {
            self.weights.push(life.size);
        }
        if rule.what == STANDING {
            self.standing.push(life.size);
        }
        if rule.class == Class::Gradient && (life.born.is_none() || life.ended.is_none()) {
            let of =
                if life.born.is_none() { &mut self.gradients[0] } else { &mut self.gradients[1] };
            of.push(life.size);
        }
        // (What autograd saved is used by its own backward pass.)
        if life.is_stale_cast && !life.has_ended(Phase::Backward) {
            self.stale.push(life.size);
        }
        if rule.class == Class::Parameter && life.replaces.is_some() {
            self.parameters = self.parameters.saturating_add(life.size);
        }
        let is_at_peak = life.born.is_none_or(|born| born < self.peak)
            && life.ended.is_none_or(|ended| ended >= self.peak);
        if is_at_peak {
            row.0 = row.0.saturating_add(life.size);
            row.1 += 1;
            let sum = self.sites.entry((rule.class, site)).or_default();
            *sum = sum.saturating_add(life.size);
            if rule.class == Class::Activation && life.birth.is_some_and(|it| it.is_checkpoint) {
                self.checkpointed = self.checkpointed.saturating_add(life.size);
            }
            if let Some(birth) = life.birth.filter(Marks::is_attention) {
                self.has_softmax |= birth.is_unfused_softmax();
                let sum = self.attention.entry((Class::Activation, site)).or_default();
                *sum = sum.saturating_add(life.size);
            }
        }
    }

    /// Whether what stands has each size of a gradient three times for each gradient, and next to nothing else.
    #[inline(never)]
    fn is_thrice(&mut self) -> bool {
        let [old, new] = &mut self.gradients;
        let (gradients, standing) = (if old.is_empty() { new } else { old }, &mut self.standing);
        gradients.sort_unstable();
        standing.sort_unstable();
        let sum = |sizes: &[i64]| sizes.iter().fold(0_i64, |sum, size| sum.saturating_add(*size));
        let all = sum(standing);
        let rest = all.saturating_sub(sum(gradients).saturating_mul(3));
        let is_there = |equal: &[i64]| {
            let size = equal.first().copied().unwrap_or_default();
            let from = standing.partition_point(|it| *it < size);
            standing.partition_point(|it| *it <= size) - from >= 3 * equal.len()
        };
        let mut equal = gradients.chunk_by(|a, b| a == b);
        !gradients.is_empty() && rest.saturating_mul(100) <= all && equal.all(is_there)
    }

    /// The copies by autocast that are half as large as a weight.
    #[inline(never)]
    fn stale(&mut self) -> (u64, i64) {
        self.weights.sort_unstable();
        let has_weight = |size: &i64| self.weights.binary_search(&size.saturating_mul(2)).is_ok();
        self.stale.retain(has_weight);
        let bytes = self.stale.iter().fold(0_i64, |sum, size| sum.saturating_add(*size));
        (self.stale.len() as u64, bytes)
    }

    fn finish(mut self, sites: &Sites) -> Classes {
        let stale = self.stale();
        let row = |(rule, sum): (&Rule, &(i64, u64, i64, u64))| ClassRow {
            class: rule.class,
            rule: rule.what,
            confidence: match rule.class {
                Class::Unknown => "none",
                _ => rule.confidence.id(),
            },
            peak_bytes: sum.0,
            peak_count: sum.1,
            allocated_bytes: sum.2,
            allocations: sum.3,
        };
        let is_used = |(_, sum): &(&Rule, &(i64, u64, i64, u64))| sum.1 + sum.3 > 0;
        let rows: Vec<_> = RULES.iter().zip(&self.rows).filter(is_used).map(row).collect();
        let peak_sites = named(self.sites, sites);
        let attention = if self.has_softmax { named(self.attention, sites) } else { Vec::new() };
        let (state, parameters, checkpointed) = (self.state, self.parameters, self.checkpointed);
        let is_unused = |row: &&ClassRow| UNUSED.contains(&row.rule);
        let never_used = rows
            .iter()
            .filter(is_unused)
            .fold(0_i64, |sum, row| sum.saturating_add(row.peak_bytes));
        let rest = Classes::default();
        Classes {
            rows,
            peak_sites,
            attention,
            stale,
            state,
            parameters,
            checkpointed,
            never_used,
            ..rest
        }
    }
}

impl Classes {
    /// The known class that stays and has most bytes at the peak, with its bytes, and the call site that holds most of them.
    /// `with_nameless`: bytes without a stack count.
    #[inline(never)]
    pub(crate) fn largest(&self, with_nameless: bool) -> Option<(Class, i64, Leader)> {
        let mut sums = [0_i64; N_CLASSES];
        let stays = |class| !matches!(class, Class::Unknown | Class::Temporary | Class::Workspace);
        let is_in = |row: &&ClassSite| stays(row.0) && (with_nameless || row.1 != NO_STACK);
        let (mut class, mut bytes) = (Class::Unknown, 0);
        for row in self.peak_sites.iter().filter(is_in) {
            let Some(sum) = sums.get_mut(row.0 as usize) else { continue };
            *sum = sum.saturating_add(row.2);
            if *sum > bytes {
                (class, bytes) = (row.0, *sum);
            }
        }
        let own = self.peak_sites.iter().filter(is_in).filter(|row| row.0 == class);
        Some((class, bytes, leader(&mut own.map(|row| (&*row.1, row.2)))?))
    }

    /// Bytes of a class at the peak.
    #[inline(never)]
    pub(crate) fn bytes_of(&self, class: Class) -> i64 {
        let rows = self.rows.iter().filter(|row| row.class == class);
        rows.fold(0, |sum, row| sum.saturating_add(row.peak_bytes))
    }

    /// Bytes of activations at the peak that forward saved for no backward pass.
    #[inline(never)]
    pub(crate) fn unused_activations(&self) -> i64 {
        let is_in = |row: &&ClassRow| row.class == Class::Activation && UNUSED.contains(&row.rule);
        let rows = self.rows.iter().filter(is_in);
        rows.fold(0, |sum, row| sum.saturating_add(row.peak_bytes))
    }

    /// Bytes without a stack that no event allocates or frees.
    pub(crate) fn standing(&self) -> i64 {
        let row = self.rows.iter().find(|row| row.rule == STANDING);
        row.map_or(0, |row| row.peak_bytes)
    }

    /// Whether unknown bytes at the peak may be of a class.
    pub(crate) fn may_be_more(&self, class: Class) -> bool {
        let is_open = |row: &ClassRow| row.peak_bytes > 0 && MAYBE_ACTIVATIONS.contains(&row.rule);
        class == Class::Activation && self.rows.iter().any(is_open)
    }

    /// The least confidence of the rules that tell a class at the peak.
    pub(crate) fn confidence(&self, class: Class) -> Confidence {
        let rules = RULES.iter().filter(|rule| {
            let row = self.rows.iter().find(|row| row.rule == rule.what);
            rule.class == class && row.is_some_and(|row| row.peak_bytes > 0)
        });
        rules.map(|rule| rule.confidence).min().unwrap_or(Confidence::Low)
    }
}

impl Row for ClassRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "class",
            title: "For",
            unit: Unit::Text,
            help: "What the allocations are for (an estimate; files do not record it).",
            cell: |row| row.class.label().into(),
        },
        Column {
            key: "rule",
            title: "Told by",
            unit: Unit::Text,
            help: "The fact that shows it.",
            cell: |row| row.rule.into(),
        },
        Column {
            key: "confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "How sure the fact is.",
            cell: |row| row.confidence.into(),
        },
        Column {
            key: "peak_bytes",
            title: "At the peak",
            unit: Unit::Bytes,
            help: "Requested bytes in use at the peak. The rows add up to the peak.",
            cell: |row| amount(row.peak_bytes),
        },
        Column {
            key: "peak_count",
            title: "Blocks",
            unit: Unit::Count,
            help: "Blocks in use at the peak.",
            cell: |row| Cell::Count(row.peak_count),
        },
        Column {
            key: "allocated_bytes",
            title: "Allocated",
            unit: Unit::Bytes,
            help: "Requested bytes of all recorded allocations.",
            cell: |row| amount(row.allocated_bytes),
        },
        Column {
            key: "allocations",
            title: "Allocations",
            unit: Unit::Count,
            help: "Recorded allocations.",
            cell: |row| Cell::Count(row.allocations),
        },
    ];
}
