//! What is below a call site that calls a module: the line of an installed package that allocates most of it.

use crate::site::Texts;
use crate::stacks::{Frame, StackId, Stacks};

/// Sums by key, sorted by key.
pub(crate) fn summed<K: Ord>(mut pairs: Vec<(K, i64)>) -> Vec<(K, i64)> {
    pairs.sort_unstable();
    pairs.dedup_by(|next, sum| {
        let is_same = next.0 == sum.0;
        if is_same {
            sum.1 = sum.1.saturating_add(next.1);
        }
        is_same
    });
    pairs
}

/// The deepest frame, of an installed package but not of PyTorch, that has at least half of the bytes of a call site, and these
/// bytes; `None` where the site calls no module, and where no frame has as much. `blocks` are those of one site.
#[inline(never)]
pub(crate) fn inside(stacks: &Stacks, blocks: Vec<(StackId, i64)>) -> Option<(String, i64)> {
    let mut texts = Texts::of(stacks);
    let blocks = summed(blocks);
    let whole = blocks.iter().fold(0_i64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    // (A function that calls itself is in a stack more than once.)
    let mut once: Vec<(Frame, i64)> = Vec::new();
    for (stack, bytes) in &blocks {
        let mut below = texts.below(stacks.frames(*stack));
        below.sort_unstable();
        below.dedup();
        once.extend(below.into_iter().map(|frame| (frame, *bytes)));
    }
    let mut large = summed(once);
    large.retain(|(_, bytes)| bytes.saturating_mul(2) >= whole);
    // In each stack the deepest of them; they differ where two have just a half.
    let deepest = blocks.iter().filter_map(|(stack, bytes)| {
        let below = texts.below(stacks.frames(*stack));
        let place = |frame: &Frame| large.binary_search_by_key(frame, |(frame, _)| *frame).ok();
        below.iter().find_map(place).map(|place| (place, *bytes))
    });
    let deepest = summed(deepest.collect());
    let (place, _) =
        deepest.into_iter().max_by_key(|(place, bytes)| (*bytes, std::cmp::Reverse(*place)))?;
    let (frame, bytes) = large.get(place)?;
    let file = stacks.text(frame.filename).replace('\\', "/");
    let package = file.rsplit_once("-packages/").map_or(&*file, |(_, package)| package);
    Some((format!("{package}:{}:{}", frame.line, stacks.text(frame.name)), *bytes))
}
