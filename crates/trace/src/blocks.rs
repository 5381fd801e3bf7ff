//! Long loops in blocks, so that a browser runs them in optimised code.
//!
//! V8 compiles wasm with a baseline compiler first and optimises later, and a running function keeps the code it
//! started with: a loop over a million events would run to its end in slow baseline code. A function that has run
//! for a while is optimised even if it never runs again, at a cost that grows faster than its size. So
//! the body of a long loop is a small function that is called block by block, and functions with
//! such loops are not inlined (`#[inline(never)]`). Measured: docs/performance.md.

use crate::{Row, Trace};

const BLOCK: usize = 2048;

/// Calls `each` with every event, in file order.
pub fn each_row(trace: &Trace, mut each: impl FnMut(Row)) {
    #[inline(never)]
    fn block(rows: std::ops::Range<Row>, each: &mut impl FnMut(Row)) {
        for row in rows {
            each(row);
        }
    }
    let end = trace.len() as Row;
    for start in (0..end).step_by(BLOCK) {
        block(start..end.min(start.saturating_add(BLOCK as Row)), &mut each);
    }
}

/// The same for the items of a list.
pub fn each_of<T: Copy>(items: &[T], mut each: impl FnMut(T)) {
    #[inline(never)]
    fn block<T: Copy>(items: &[T], each: &mut impl FnMut(T)) {
        for item in items {
            each(*item);
        }
    }
    for items in items.chunks(BLOCK) {
        block(items, &mut each);
    }
}
