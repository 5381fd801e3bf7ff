//! GPU slices in stream order, each as a small number that says what it is: names are matched once, then
//! only numbers are walked over.

use std::collections::HashMap;

use catalog::fuse_patterns::{FusePattern, Kinds, Part, Role, Roles, Text, between, kind_of, part};
use catalog::{Category, Class, RawKind};
use trace::{BuildIdHasher, SmallIndex};

use super::super::facts::Regions;
use super::super::iterations::WarmSlices;
use super::super::site::Attribution;
use super::handover::by_stream;
use crate::stages::Stage;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// A longer pause ends a chain: the next kernel belongs to another step of the program. (Eager programs
/// that wait for their launches leave some 100 µs between the kernels of one layer: measured.)
const MAX_GAP_NS: i64 = 1_000_000;

/// Neighbours on one stream in one stage: a range of [`Lanes::order`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub stage: usize,
    pub from: usize,
    pub to: usize,
}

/// Everything that kernels are matched by.
pub(super) struct Lanes<'a> {
    pub gpu: &'a Gpu<'a>,
    /// Stages by first appearance.
    pub stages: Vec<StageTime>,
    /// GPU slices that count by stream, then by start; collectives where they are waited for ([`super::handover`]).
    pub order: Vec<u32>,
    pub runs: Vec<Run>,
    /// What each GPU slice is: an index of `codes`.
    code_of: Vec<u32>,
    pub codes: Vec<Code>,
    /// What each code is in each pattern: `codes` times patterns.
    parts: Vec<Option<Part>>,
    n_patterns: usize,
    /// The warm iterations, if only these count.
    pub warm: Option<WarmSlices<'a>>,
    /// By slice: the call of `zero_grad` that launched it.
    zero_grad: Vec<Option<SmallIndex>>,
}

/// A stage with its time.
pub(super) struct StageTime {
    pub stage: Stage,
    pub total_ns: i64,
}

/// A kernel name at a place of the program.
pub(super) struct Code {
    pub work: u32,
    pub kinds: Kinds,
    pub category: Category,
    /// May stand between two parts.
    pub between: bool,
}

impl<'a> Lanes<'a> {
    #[inline(never)]
    pub(super) fn of(
        gpu: &'a Gpu<'a>,
        launches: &Launches,
        stage_of: impl Fn(usize) -> Stage,
        attribution: Option<&Attribution>,
        patterns: &[&FusePattern],
        (zero_grad, warm): (&Regions, Option<WarmSlices<'a>>),
    ) -> Self {
        let streams = by_stream(gpu, launches);
        let mut lanes = Self {
            gpu,
            stages: Vec::new(),
            order: Vec::with_capacity(gpu.len()),
            runs: Vec::new(),
            code_of: Vec::with_capacity(gpu.len()),
            codes: Vec::new(),
            parts: Vec::new(),
            warm,
            n_patterns: patterns.len(),
            zero_grad: (0..gpu.len())
                .map(|at| zero_grad.around(gpu.trace, launches.of_slice(at)?))
                .collect(),
        };
        lanes.name(attribution, patterns);
        for stream in &streams {
            lanes.cut(stream, &stage_of);
        }
        lanes
    }

    /// Gives every slice its code.
    #[inline(never)]
    fn name(&mut self, attribution: Option<&Attribution>, patterns: &[&FusePattern]) {
        let gpu = self.gpu;
        let mut texts = Texts { patterns, known: HashMap::new(), roles: Vec::new() };
        let by_work: Vec<(u32, Kinds, Category, bool)> = gpu
            .works
            .iter()
            .map(|work| {
                let name = gpu.trace.strings.get(work.name);
                let class = Class { category: work.category, family: work.family, rule: "" };
                let kinds = kind_of(work.kind, name, &class);
                let head = if work.kind == RawKind::Kernel {
                    catalog::head(name)
                } else {
                    name.to_ascii_lowercase()
                };
                let roles = texts.of(TextOf::Kernel, &head);
                (roles, kinds, work.category, kinds.meets(between()))
            })
            .collect();
        let none = texts.of(TextOf::Kernel, "");
        let by_site: Vec<[u32; 3]> = attribution.map_or_else(
            || vec![[none; 3]],
            |attribution| {
                let sites = attribution.sites.iter();
                sites
                    .map(|site| {
                        let op = site.cpu_op.as_deref().unwrap_or_default();
                        // (What fuses the forward pass does not say what fuses the backward pass.)
                        let own = site.forward_op.is_none();
                        let function = site.location.as_ref().filter(|_| own);
                        let function = function.map_or("", |location| location.function.as_str());
                        let stack = site.stack.iter().filter(|_| own);
                        let callers: Vec<&str> = stack.map(|line| function_of(line)).collect();
                        [
                            texts.of(TextOf::Op, op),
                            texts.of(TextOf::Function, function),
                            texts.of(TextOf::Callers, &callers.join(" ")),
                        ]
                    })
                    .collect()
            },
        );
        // Two sites that say the same are one code.
        let mut known: HashMap<(u32, [u32; 3]), u32, BuildIdHasher> = HashMap::default();
        each_place(gpu.len(), &mut |at| {
            let work = gpu.slice(at).work;
            let site = attribution.map_or(0, |attribution| attribution.site_of[at] as usize);
            let [op, function, callers] = by_site[site];
            let (head, kinds, category, between) = by_work[work];
            let code = *known.entry((work as u32, by_site[site])).or_insert_with(|| {
                for (index, pattern) in patterns.iter().enumerate() {
                    // A copy is what its name says: where it is launched says what it is for.
                    let texts_of =
                        if between { &[head][..] } else { &[head, op, function, callers] };
                    let roles = texts_of
                        .iter()
                        .fold(0, |roles, text| roles | texts.roles[*text as usize][index]);
                    let role = pattern.heavy.role(category);
                    self.parts.push(part(roles).filter(|part| match role {
                        Role::None => false,
                        Role::Beside => *part != Part::Active,
                        Role::Counted => true,
                    }));
                }
                self.codes.push(Code { work: work as u32, kinds, category, between });
                self.codes.len() as u32 - 1
            });
            self.code_of.push(code);
        });
    }

    /// Takes a stream, cuts it where the stage changes, and sums up the stages.
    #[inline(never)]
    fn cut(&mut self, stream: &[u32], stage_of: &impl Fn(usize) -> Stage) {
        let mut last = None;
        for &slice in stream {
            let at = self.order.len();
            let here = self.gpu.slice(slice as usize);
            // (A cold iteration tries algorithms and sets up what no later one does.)
            if !self.counts(slice as usize) {
                last = None;
                continue;
            }
            self.order.push(slice);
            let of = stage_of(slice as usize);
            let stage = self.stages.iter().position(|known| known.stage == of);
            let stage = stage.unwrap_or_else(|| {
                self.stages.push(StageTime { stage: of, total_ns: 0 });
                self.stages.len() - 1
            });
            self.stages[stage].total_ns = self.stages[stage].total_ns.saturating_add(here.dur_ns);
            match self.runs.last_mut() {
                Some(run) if last == Some(stage) => run.to = at + 1,
                _ => self.runs.push(Run { stage, from: at, to: at + 1 }),
            }
            last = Some(stage);
        }
    }

    /// Whether a slice counts.
    pub(super) fn counts(&self, slice: usize) -> bool {
        self.warm.is_none_or(|warm| warm.has(slice))
    }

    /// The code of the slice at a place of `order`.
    #[inline]
    pub(super) fn code(&self, at: usize) -> &Code {
        &self.codes[self.code_index(at)]
    }

    #[inline]
    pub(super) fn code_index(&self, at: usize) -> usize {
        self.code_of[self.order[at] as usize] as usize
    }

    /// The slices before one on its stream, the nearest first.
    pub(super) fn before(&self, slice: u32) -> impl Iterator<Item = u32> {
        (0..slice).rev().filter(move |at| self.are_on_one_stream(*at, slice))
    }

    /// The slices after one on its stream.
    pub(super) fn after(&self, slice: u32) -> impl Iterator<Item = u32> {
        (slice + 1..self.gpu.len() as u32).filter(move |at| self.are_on_one_stream(*at, slice))
    }

    fn are_on_one_stream(&self, one: u32, other: u32) -> bool {
        let stream = |at: u32| self.gpu.trace.track(self.gpu.row(at as usize));
        stream(one) == stream(other)
    }

    /// The code of a slice.
    pub(super) fn code_of_slice(&self, slice: u32) -> &Code {
        &self.codes[self.code_of[slice as usize] as usize]
    }

    /// What a code is in a pattern.
    #[inline]
    pub(super) fn part(&self, code: usize, pattern: usize) -> Option<Part> {
        self.parts[code * self.n_patterns + pattern]
    }

    /// Whether `zero_grad` launched the slice at a place of `order`.
    pub(super) fn is_zero_grad(&self, at: usize) -> bool {
        self.zero_grad_of(self.order[at]).is_some()
    }

    /// The call of `zero_grad` that launched a slice.
    pub(super) fn zero_grad_of(&self, slice: u32) -> Option<SmallIndex> {
        self.zero_grad.get(slice as usize).copied().flatten()
    }

    pub(super) fn dur_ns(&self, at: usize) -> i64 {
        self.gpu.slice(self.order[at] as usize).dur_ns
    }

    /// Whether what stands at `at` follows closely on what stands before it.
    pub(super) fn follows(&self, at: usize) -> bool {
        let slice = |at: usize| self.gpu.slice(self.order[at] as usize);
        slice(at).start_ns.saturating_sub(slice(at - 1).end_ns()) <= MAX_GAP_NS
    }

    /// The name of a work.
    pub(super) fn name_of(&self, work: u32) -> &'a str {
        self.gpu.trace.strings.get(self.gpu.works[work as usize].name)
    }
}

/// (Loops of their own: a browser compiles twice what loops, with all that is around the loop.)
#[inline(never)]
fn each_place(n: usize, each: &mut dyn FnMut(usize)) {
    for at in 0..n {
        each(at);
    }
}

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TextOf {
    Kernel,
    Op,
    Function,
    Callers,
}

/// The function of a line of a stack: `forward` of `models/qwen3.py:263 forward`.
fn function_of(line: &str) -> &str {
    line.rsplit_once(' ').map_or(line, |(_, function)| function)
}

/// What each distinct text says about each pattern.
struct Texts<'p> {
    patterns: &'p [&'p FusePattern],
    known: HashMap<(TextOf, String), u32>,
    roles: Vec<Vec<Roles>>,
}

impl Texts<'_> {
    #[inline(never)]
    fn of(&mut self, from: TextOf, text: &str) -> u32 {
        *self.known.entry((from, text.to_owned())).or_insert_with(|| {
            let text = match from {
                TextOf::Kernel => Text::kernel(text),
                TextOf::Op => Text::op(text),
                TextOf::Function => Text::function(text),
                TextOf::Callers => Text::callers(text),
            };
            let roles = self.patterns.iter().map(|pattern| pattern.roles(&text));
            self.roles.push(roles.collect());
            self.roles.len() as u32 - 1
        })
    }
}
