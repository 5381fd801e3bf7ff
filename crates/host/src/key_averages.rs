//! The table that PyTorch itself prints: `prof.key_averages()`.
//!
//! The rule was measured against PyTorch 2.6 and 2.15 (`spec/inputs.md` 1): ops and annotations, and from 2.15 on frames of
//! Python as well, are nested on their thread; an event counts as inside another only if it ends with it or before. One whose
//! parent has the same name, and which is the only child, is part of its parent: overloads call each other. Asynchronous events
//! take no part in the nesting. Steps count under one name.

use std::collections::BTreeMap;

use serde::Serialize;
use trace::Details;

use crate::by_name::ByName;
use crate::slices::{Family, HostSlice, Slices, ThreadId, is_step};

/// How the name of an event begins that starts on one thread and ends on another.
const ASYNCHRONOUS: &str = "gloo:";
/// The name of all steps.
const STEPS: &str = "ProfilerStep*";

/// One row of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Average {
    /// Calls.
    pub count: u64,
    /// Time in no event inside, in ns.
    pub self_cpu_ns: i64,
    /// Sum of durations.
    pub cpu_total_ns: i64,
}

/// One event in the tree.
struct Node {
    slice: HostSlice,
    family: Family,
    parent: Option<usize>,
    n_children: usize,
    /// Time of the children, in ns.
    children_ns: i64,
    /// Whether it is part of its parent.
    dissolved: bool,
}

/// The table, by name.
#[must_use]
pub fn key_averages(slices: &Slices<'_>, details: &Details) -> BTreeMap<String, Average> {
    let trace = slices.trace;
    let mut rows: ByName<Average> = ByName::new(trace);
    let mut add = |slice: &HostSlice, own: i64, total: i64| {
        let row = rows.entry(trace.name(slice.row));
        row.count += 1;
        row.self_cpu_ns += own;
        row.cpu_total_ns += total;
    };
    let with_frames = details.frames_have_call_sites;
    let is_asynchronous = trace.strings.marked(&|name| name.starts_with(ASYNCHRONOUS));
    let mut events: Vec<(ThreadId, HostSlice, Family)> = Vec::new();
    for (slice, family) in &slices.all {
        let counts = match family {
            Family::Op | Family::Annotation => true,
            Family::Frame => with_frames,
            Family::Gpu | Family::Call | Family::Other => false,
        };
        if !counts {
            continue;
        }
        if is_asynchronous[trace.name(slice.row).0 as usize] {
            add(slice, 0, slice.dur_ns());
        } else {
            events.push((slices.thread(slice.row), *slice, *family));
        }
    }
    events.sort_unstable_by_key(|(thread, slice, _)| {
        (*thread, slice.start_ns, std::cmp::Reverse(slice.end_ns), slice.row)
    });
    for of_thread in events.chunk_by(|(a, ..), (b, ..)| a == b) {
        for node in tree(slices, of_thread) {
            if node.family != Family::Frame && !node.dissolved {
                let own = node.slice.dur_ns() - node.children_ns;
                add(&node.slice, own, node.slice.dur_ns());
            }
        }
    }
    let mut by_text: BTreeMap<String, Average> = BTreeMap::new();
    for (name, row) in rows.iter() {
        let name = trace.strings.get(name);
        let name = if is_step(name) { STEPS } else { name };
        let sum = by_text.entry(name.to_owned()).or_default();
        sum.count += row.count;
        sum.self_cpu_ns += row.self_cpu_ns;
        sum.cpu_total_ns += row.cpu_total_ns;
    }
    by_text
}

fn tree(slices: &Slices<'_>, events: &[(ThreadId, HostSlice, Family)]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(events.len());
    let mut stack: Vec<usize> = Vec::new();
    for (_, slice, family) in events {
        // The parent ends with the event or after it: one that is crossed is not open any more.
        while stack.last().is_some_and(|top| nodes[*top].slice.end_ns < slice.end_ns) {
            stack.pop();
        }
        let parent = stack.last().copied();
        if let Some(parent) = parent {
            nodes[parent].n_children += 1;
        }
        stack.push(nodes.len());
        nodes.push(Node {
            slice: *slice,
            family: *family,
            parent,
            n_children: 0,
            children_ns: 0,
            dissolved: false,
        });
    }
    // An only child of its parent's name gives its children to the parent. From the inside out, so that chains dissolve.
    for at in (0..nodes.len()).rev() {
        let Some(parent) = nodes[at].parent else { continue };
        let same =
            slices.trace.name(nodes[at].slice.row) == slices.trace.name(nodes[parent].slice.row);
        if same && nodes[parent].n_children == 1 {
            nodes[at].dissolved = true;
            nodes[parent].n_children = nodes[at].n_children;
            nodes[parent].children_ns += nodes[at].children_ns;
        } else {
            nodes[parent].children_ns += nodes[at].slice.dur_ns();
        }
    }
    nodes
}
