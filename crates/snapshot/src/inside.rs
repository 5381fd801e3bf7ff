//! What is below a call site that calls a module: the line of an installed package that allocates most of it.

use crate::site::Texts;
use crate::stacks::{Frame, StackId, Stacks};

/// The deepest frame, of an installed package but not of PyTorch, that has at least half of the bytes of a call site, and these
/// bytes; `None` where the site calls no module, and where no frame has as much. `blocks` are those of one site.
#[inline(never)]
pub(crate) fn inside(stacks: &Stacks, blocks: &[(StackId, i64)]) -> Option<(String, i64)> {
    let mut texts = Texts::of(stacks);
    let mut sums = vec![0_i64; stacks.len()];
    let mut whole = 0_i64;
    for (stack, bytes) in blocks {
        whole = whole.saturating_add(*bytes);
        if let Some(sum) = sums.get_mut(*stack as usize) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    let used = || sums.iter().enumerate().filter(|(_, bytes)| **bytes > 0);
    let mut large: Vec<(Frame, i64)> = Vec::new();
    for (stack, bytes) in used() {
        let below = texts.below(stacks.frames(stack as StackId));
        // (A function that calls itself is in a stack more than once.)
        let mut once = below;
        once.sort_unstable();
        once.dedup();
        large.extend(once.into_iter().map(|frame| (frame, *bytes)));
    }
    large.sort_unstable();
    large.dedup_by(|next, sum| {
        let is_same = next.0 == sum.0;
        if is_same {
            sum.1 = sum.1.saturating_add(next.1);
        }
        is_same
    });
    large.retain(|(_, bytes)| bytes.saturating_mul(2) >= whole);
    // In each stack the deepest of them; they differ where two have just a half.
    let mut deepest = vec![0_i64; large.len()];
    for (stack, bytes) in used() {
        let below = texts.below(stacks.frames(stack as StackId));
        let place = |frame: &Frame| large.binary_search_by_key(frame, |(frame, _)| *frame).ok();
        if let Some(sum) = below.iter().find_map(place).and_then(|at| deepest.get_mut(at)) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    let place = (0..large.len()).rev().max_by_key(|at| deepest.get(*at))?;
    let (frame, bytes) = large.get(place)?;
    let file = stacks.text(frame.filename).replace('\\', "/");
    let package = file.rsplit_once("-packages/").map_or(&*file, |(_, package)| package);
    Some((format!("{package}:{}:{}", frame.line, stacks.text(frame.name)), *bytes))
}
