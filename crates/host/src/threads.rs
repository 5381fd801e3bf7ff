//! Threads, and lanes of GPU work, with their busy times.

use std::collections::BTreeMap;

use dialect::Records;
use serde::Serialize;
use timeline::absolute_ns;
use timeline::intervals::{Collector, Interval, length};
use trace::Details;

use crate::slices::{Family, Slices};

/// Threads of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// How many there are.
    pub n: usize,
    /// Those with most slices first.
    pub list: Vec<ThreadRow>,
}

/// One thread: what has one pid and tid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadRow {
    /// The pid as the file spells it.
    pub pid: String,
    /// The tid as the file spells it.
    pub tid: String,
    /// The last name that the file gives it.
    pub name: Option<String>,
    /// Every name that the file gives it; the last one last.
    pub names: Vec<String>,
    /// Slices.
    pub n: usize,
    /// Time covered by any slice, in ns.
    pub busy_ns: i64,
    /// Ops.
    pub n_ops: usize,
    /// Time covered by ops.
    pub op_busy_ns: i64,
    /// Sum of the self time of ops.
    pub op_self_ns: i64,
    /// Start of the first slice, on the clock of the file.
    pub first_ns: Option<i64>,
    /// End of the last slice.
    pub last_ns: Option<i64>,
    /// Slices by raw category, in lower case.
    pub by_cat: BTreeMap<String, u64>,
}

impl ThreadRow {
    /// Whether the host did anything on it: lanes of GPU work are none.
    #[must_use]
    pub(crate) fn is_of_host(&self) -> bool {
        self.by_cat.keys().any(|raw| {
            matches!(
                dialect::known(raw),
                Some(Records::Op | Records::Frame | Records::Call(_) | Records::Annotation)
            )
        })
    }
}

/// What is collected of a thread.
#[derive(Default)]
struct Open {
    n: usize,
    n_ops: usize,
    /// From the first start to the last end.
    span: Option<Interval>,
    all: Collector,
    ops: Collector,
    categories: Vec<u64>,
}

/// The table of threads. `own` is the self time of each op.
#[must_use]
pub fn threads(slices: &Slices<'_>, details: &Details, own: &[i64]) -> Threads {
    let trace = slices.trace;
    let mut open: Vec<Open> = slices.threads.iter().map(|_| Open::default()).collect();
    let categories = categories(slices);
    for (slice, family) in &slices.all {
        let one = &mut open[slices.thread(slice.row) as usize];
        one.n += 1;
        let (start, end) = slice.interval();
        one.span =
            Some(one.span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        one.all.add(start, end);
        if *family == Family::Op {
            one.n_ops += 1;
            one.ops.add(start, end);
        }
        let category = *categories.of.of(trace, slice.row);
        one.categories.resize(categories.names.len(), 0);
        one.categories[category] += 1;
    }
    let mut op_self = vec![0; open.len()];
    for (thread, range) in slices.ops.threads() {
        op_self[*thread as usize] = own[range.clone()].iter().sum();
    }
    let mut names: Vec<Vec<String>> = vec![Vec::new(); open.len()];
    for (row, name) in &details.thread_names {
        let Some(thread) = slices.thread_of(trace.track(*row)) else { continue };
        let name = details.texts.get(*name);
        let known = &mut names[thread as usize];
        known.retain(|other| other != name);
        known.push(name.to_owned());
    }
    let parts = open.into_iter().zip(names).zip(&slices.threads).zip(op_self);
    let mut list: Vec<ThreadRow> = parts
        .map(|(((one, names), thread), op_self_ns)| ThreadRow {
            pid: thread.pid.clone(),
            tid: thread.tid.clone(),
            name: names.last().cloned(),
            names,
            n: one.n,
            n_ops: one.n_ops,
            first_ns: one.span.and_then(|(start, _)| absolute_ns(trace, start)),
            last_ns: one.span.and_then(|(_, end)| absolute_ns(trace, end)),
            busy_ns: length(&one.all.union()),
            op_busy_ns: length(&one.ops.union()),
            op_self_ns,
            by_cat: categories.counts(&one.categories),
        })
        .collect();
    trace::sort_by(&mut list, |a, b| {
        b.n.cmp(&a.n).then_with(|| (&a.pid, &a.tid).cmp(&(&b.pid, &b.tid)))
    });
    Threads { n: list.len(), list }
}

/// Raw categories in lower case.
struct Categories {
    of: trace::ByRawCategory<usize>,
    names: Vec<String>,
}

fn categories(slices: &Slices<'_>) -> Categories {
    let names = std::cell::RefCell::new(Vec::new());
    let of = slices.trace.by_raw_category(|raw| {
        let lower = raw.to_ascii_lowercase();
        let mut names = names.borrow_mut();
        let known = names.iter().position(|name| *name == lower);
        known.unwrap_or_else(|| {
            names.push(lower);
            names.len() - 1
        })
    });
    Categories { of, names: names.into_inner() }
}

impl Categories {
    fn counts(&self, counts: &[u64]) -> BTreeMap<String, u64> {
        let named = self.names.iter().cloned().zip(counts.iter().copied());
        named.filter(|(_, n)| *n > 0).collect()
    }
}

/// Slices of the trace by raw category, in lower case.
#[must_use]
pub fn by_category(slices: &Slices<'_>) -> BTreeMap<String, u64> {
    let categories = categories(slices);
    let mut counts = vec![0; categories.names.len()];
    for (slice, _) in &slices.all {
        counts[*categories.of.of(slices.trace, slice.row)] += 1;
    }
    categories.counts(&counts)
}
