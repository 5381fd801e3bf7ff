//! What the CPU reads from the GPU in the middle of an iteration: no graph goes over it.

use host::HostSlice;
use host::class::Class;

use crate::Facts;
use crate::rules::reads::n_read;

/// What keeps a graph from being captured: a capture ends with an error where the CPU reads a value (documentation of `torch.cuda.graph`),
/// and torch.compile splits its graph there.
pub(super) fn broken_by_reads(facts: &Facts<'_>) -> String {
    let (between, all) = (reads_between_launches(facts) as u64, n_read(facts));
    let count = report::units::count;
    let of_all = if between < all { format!(" of {}", count(all)) } else { String::new() };
    let (which, those) = match between {
        0 => return String::new(),
        1 if of_all.is_empty() => ("one is".to_owned(), "before and after it, or move it"),
        // (M6 counts all.)
        1 => (format!("1{of_all} is"), "before and after it, or move it"),
        n => (format!("{}{of_all} are", count(n)), "between them, or move them"),
    };
    format!(
        " A graph ends where the CPU reads a value from the GPU, and {which} read between the launches of an iteration: capture {those}."
    )
}

/// Of the launches of an iteration, so many percent at least come before and after what interrupts it.
const APART_PCT: usize = 5;

/// How many values are read from the GPU in the middle of an iteration: after the last launch, as a loss is, one is in no graph's way.
fn reads_between_launches(facts: &Facts<'_>) -> usize {
    let ops = &facts.slices.ops;
    let is_read = |op: &usize| {
        matches!(facts.slices.name(&ops.slices[*op]), "aten::_local_scalar_dense" | "aten::nonzero")
    };
    let copies = facts.gpu.linked().filter(|one| !one.is_kernel).filter_map(|one| one.owner);
    let mut reads: Vec<usize> = copies.filter_map(|owner| ops.chain(owner).find(is_read)).collect();
    trace::sort(&mut reads);
    reads.dedup();
    if reads.is_empty() {
        return 0;
    }
    let calls = &facts.slices.calls;
    let is_launch = |call: &&HostSlice| facts.slices.class(call) == Class::Launch;
    let mut launches: Vec<i64> = calls.iter().filter(is_launch).map(|call| call.start_ns).collect();
    trace::sort(&mut launches);
    let whole = vec![(i64::MIN, i64::MAX)];
    let mut windows = facts
        .iterations
        .as_ref()
        .map_or(whole, |iterations| iterations.list.iter().map(crate::Iteration::window).collect());
    trace::sort(&mut windows);
    let lies_between = |read: &&usize| {
        let read_ns = ops.slices[**read].start_ns;
        let after = windows.partition_point(|(from, _)| *from <= read_ns);
        let window = after.checked_sub(1).and_then(|at| windows.get(at));
        window.filter(|(_, to)| read_ns < *to).is_some_and(|(from, to)| {
            let at = |ns: i64| launches.partition_point(|launch| *launch < ns);
            let (first, own, last) = (at(*from), at(read_ns), at(*to));
            let least = (last - first) * APART_PCT / 100;
            own - first > least && last - own > least
        })
    };
    reads.iter().filter(lies_between).count()
}
