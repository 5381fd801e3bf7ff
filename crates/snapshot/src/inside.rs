//! What is below a call site that calls a package: the line of it that allocates most. And what is above a call site that nearly all
//! memory goes through, as a wrapper of `torch.empty`: the lines that call it.

use crate::site::Texts;
use crate::stacks::{Frame, StackId, Stacks};

/// A call site with less of all bytes, in percent, is no wrapper of all of them.
const LEAST_OF_WRAPPER: i64 = 80;
/// Callers split a call site where none has more of its bytes, in percent.
const MOST_OF_CALLER: i64 = 80;
/// Callers that are named.
const MOST_CALLERS: usize = 3;

/// Bytes by stack, and their sum.
fn by_stack(stacks: &Stacks, blocks: &[(StackId, i64)]) -> (Vec<i64>, i64) {
    let mut sums = vec![0_i64; stacks.len()];
    let mut whole = 0_i64;
    for (stack, bytes) in blocks {
        whole = whole.saturating_add(*bytes);
        if let Some(sum) = sums.get_mut(*stack as usize) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    (sums, whole)
}

/// The sum of each frame, by frame.
#[inline(never)]
fn summed(mut parts: Vec<(Frame, i64)>) -> Vec<(Frame, i64)> {
    parts.sort_unstable();
    parts.dedup_by(|next, sum| {
        let is_same = next.0 == sum.0;
        if is_same {
            sum.1 = sum.1.saturating_add(next.1);
        }
        is_same
    });
    parts
}

/// The lines of the program that call the call site of these blocks, most bytes first, where it has nearly all of `all` bytes in several
/// blocks; those of the nearest callers that differ. Empty where one caller has nearly all of it.
#[inline(never)]
pub(crate) fn callers(stacks: &Stacks, blocks: &[(StackId, i64)], all: i64) -> Vec<(String, i64)> {
    let mut texts = Texts::of(stacks);
    let (sums, whole) = by_stack(stacks, blocks);
    let mut found = Vec::new();
    if blocks.len() < 2 || whole.saturating_mul(100) < all.saturating_mul(LEAST_OF_WRAPPER) {
        return found;
    }
    for depth in 1.. {
        let mut parts = Vec::new();
        for (stack, bytes) in sums.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            let frames = stacks.frames(stack as StackId).iter();
            let caller = frames.filter(|frame| texts.is_own(frame)).nth(depth);
            parts.extend(caller.map(|caller| (*caller, *bytes)));
        }
        let mut parts = summed(parts);
        let most = parts.iter().map(|part| part.1).max().unwrap_or_default();
        if parts.is_empty() {
            return found;
        }
        if most.saturating_mul(100) > whole.saturating_mul(MOST_OF_CALLER) {
            continue;
        }
        while found.len() < MOST_CALLERS
            && let Some(at) = (0..parts.len()).rev().max_by_key(|at| parts.get(*at).map(|it| it.1))
        {
            let (frame, bytes) = parts.remove(at);
            // (A few bytes are no part that anybody looks for.)
            if bytes.saturating_mul(100) < whole {
                break;
            }
            let (file, name) = (stacks.text(frame.filename), stacks.text(frame.name));
            found.push((format!("{file}:{}:{name}", frame.line), bytes));
        }
        break;
    }
    found
}

/// The deepest frame, of an installed package but not of PyTorch, that has at least half of the bytes of a call site, and these
/// bytes; `None` where the site calls no package, and where no frame has as much. `blocks` are those of one site.
#[inline(never)]
pub(crate) fn inside(stacks: &Stacks, blocks: &[(StackId, i64)]) -> Option<(String, i64)> {
    let mut texts = Texts::of(stacks);
    let (sums, whole) = by_stack(stacks, blocks);
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
    let mut large = summed(large);
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
