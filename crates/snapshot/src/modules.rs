//! Memory by module, as far as stacks tell.
//!
//! A snapshot records neither classes nor instances of modules. What it has are the functions `forward` in the stack of an allocation,
//! of the program and of installed packages (but not of PyTorch): each calls the next one at a line. The chain of these lines names a
//! module; its first call is the model. Modules that one line calls, as the layers of a loop, are one row. Memory that is allocated
//! outside of them (parameters, gradients, optimizer state, backward) is in a row of its own, and so is what a library keeps for itself,
//! whichever module called it first.

use report::{Cell, Column, Confidence, Row, Unit};
use serde::Serialize;

use crate::amounts::amount;
use crate::model::{Action, Event};
use crate::site::{Sites, Texts};
use crate::stacks::{Frame, Stacks};

/// Rows of a device. What is called in further modules counts for those that call them.
const MOST_ROWS: usize = 300;

/// The row of what is allocated outside of modules.
const OUTSIDE: &str = "outside of forward functions";

/// A module of a device; requested bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ModuleRow {
    /// File and line at which each `forward` calls the next one, the model first.
    pub(crate) module: String,
    /// How many modules it is called within.
    pub(crate) depth: usize,
    /// `high` where each `forward` is called by `torch/nn/modules/module.py`, `medium` where one is not: it may be that of an
    /// `autograd.Function`. `none` outside of modules.
    pub(crate) confidence: &'static str,
    /// In use at the peak, with the modules that it calls.
    pub(crate) peak_bytes: i64,
    pub(crate) peak_count: u64,
    /// The part of `peak_bytes` that no module within it allocated.
    pub(crate) peak_own_bytes: i64,
    /// Allocated in all, with the modules that it calls.
    pub(crate) allocated_bytes: i64,
    pub(crate) allocations: u64,
}

impl Row for ModuleRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "module",
            title: "Module",
            unit: Unit::Text,
            help: "File and line at which each forward function calls the next one, the model first. Snapshots record no names of \
                   modules, and modules that one line calls are one row.",
            cell: |row| row.module.as_str().into(),
        },
        Column {
            key: "confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "High: each forward function is called as a module. Medium: one is called directly, which may be an \
                   autograd.Function.",
            cell: |row| row.confidence.into(),
        },
        Column {
            key: "peak_bytes",
            title: "At the peak",
            unit: Unit::Bytes,
            help: "In use at the peak, with the modules that it calls.",
            cell: |row| amount(row.peak_bytes),
        },
        Column {
            key: "peak_own_bytes",
            title: "Own",
            unit: Unit::Bytes,
            help: "The part of it that no module within it allocated.",
            cell: |row| amount(row.peak_own_bytes),
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
            help: "Sum over all recorded allocations, with the modules that it calls.",
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

/// Bytes and blocks of a stack at the peak, and of all its allocations.
#[derive(Clone, Copy, Default)]
struct Sums {
    peak: (i64, u64),
    all: (i64, u64),
}

/// A place in the tree of calls: its parent, and the call that leads here (the file of a model, without a line).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    parent: Option<usize>,
    call: (u32, i64),
    /// The file of its `forward`.
    file: u32,
}

/// The modules of a device, most bytes at the peak first; none where no stack has a `forward`. `at_peak`: bytes and blocks by stack.
#[inline(never)]
pub(crate) fn modules(
    stacks: &Stacks,
    sites: &Sites,
    trace: &[Event],
    at_peak: &[(i64, u64)],
) -> Vec<ModuleRow> {
    let mut sums = vec![Sums::default(); stacks.len()];
    for (sum, peak) in sums.iter_mut().zip(at_peak) {
        sum.peak = *peak;
    }
    for event in trace.iter().filter(|event| event.action == Action::Alloc) {
        if let Some(sum) = sums.get_mut(event.stack as usize) {
            sum.all = (sum.all.0.saturating_add(event.size), sum.all.1 + 1);
        }
    }
    let mut texts = Texts::of(stacks);
    let (mut places, mut rows) = (Vec::<Place>::new(), Vec::<ModuleRow>::new());
    let mut outside = ModuleRow::new(OUTSIDE.to_owned(), 0, "none");
    for (stack, sums) in (0..).zip(&sums).filter(|(_, sums)| sums.peak.1 + sums.all.1 > 0) {
        let frames = match sites.is_line(sites.site(stack)) {
            true => stacks.frames(stack),
            false => &[],
        };
        let (chain, n_called) = texts.forwards(frames);
        let mut parent: Option<usize> = None;
        for (depth, frame) in chain.iter().enumerate() {
            let before = depth.checked_sub(1).and_then(|at| chain.get(at));
            let call = before.map_or((frame.filename, 0), |frame| (frame.filename, frame.line));
            let place = Place { parent, call, file: frame.filename };
            let known = places.iter().position(|known| *known == place);
            let at = match known {
                Some(at) => at,
                None if places.len() < MOST_ROWS => {
                    places.push(place);
                    let name = name(stacks, chain.get(..=depth).unwrap_or_default());
                    rows.push(ModuleRow::new(name, depth, Confidence::High.id()));
                    places.len() - 1
                }
                None => break,
            };
            if let Some(row) = rows.get_mut(at) {
                row.add(sums);
                if depth >= n_called {
                    row.confidence = Confidence::Medium.id();
                }
            }
            parent = Some(at);
        }
        let own = match parent.and_then(|at| rows.get_mut(at)) {
            Some(row) => row,
            None => {
                outside.add(sums);
                &mut outside
            }
        };
        own.peak_own_bytes = own.peak_own_bytes.saturating_add(sums.peak.0);
    }
    if rows.is_empty() {
        return rows;
    }
    rows.push(outside);
    // (A module is found before those that it calls, and has at least as much.)
    let mut order: Vec<(u64, i64)> = (0..)
        .zip(&rows)
        .map(|(at, row)| (u64::MAX - row.peak_bytes.max(0).unsigned_abs(), at))
        .collect();
    order.sort_unstable();
    let row = |(_, at): (u64, i64)| rows.get(usize::try_from(at).ok()?).cloned();
    order.into_iter().filter_map(row).collect()
}

impl ModuleRow {
    fn new(module: String, depth: usize, confidence: &'static str) -> Self {
        let (peak_bytes, peak_count, peak_own_bytes) = (0, 0, 0);
        let (allocated_bytes, allocations) = (0, 0);
        Self {
            module,
            depth,
            confidence,
            peak_bytes,
            peak_count,
            peak_own_bytes,
            allocated_bytes,
            allocations,
        }
    }

    fn add(&mut self, sums: &Sums) {
        self.peak_bytes = self.peak_bytes.saturating_add(sums.peak.0);
        self.peak_count += sums.peak.1;
        self.allocated_bytes = self.allocated_bytes.saturating_add(sums.all.0);
        self.allocations += sums.all.1;
    }
}

/// The chain of calls as a text: a file is written where it is another than before.
fn name(stacks: &Stacks, chain: &[Frame]) -> String {
    let (mut text, mut file) = (String::new(), None);
    for (at, frame) in chain.iter().enumerate() {
        let is_new = file.replace(frame.filename) != Some(frame.filename);
        if is_new {
            let path = stacks.text(frame.filename);
            text.push_str(path.rsplit_once("-packages/").map_or(path, |(_, package)| package));
        }
        if at + 1 < chain.len() {
            text.push_str(&format!(":{} → ", frame.line));
        } else {
            text.push_str(if is_new { ":forward" } else { "forward" });
        }
    }
    text
}
