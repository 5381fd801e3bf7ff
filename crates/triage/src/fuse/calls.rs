//! Kernels of one call of an op: PyTorch splits it where a tensor is too large for indices of 32 bits (`TensorIterator::with_32bit_indexing`).

use super::find::{Candidate, Find};
use super::lanes::Lanes;
use crate::arguments::Arguments;

/// The largest tensor of a call that is one kernel, in bytes.
const MOST_BYTES: u64 = i32::MAX as u64;
/// Bytes of a number of 16 bits, and of others.
const HALF: u64 = 2;
const WHOLE: u64 = 4;

/// Adds to each place the other kernels of a call that is split: those before a part on its stream, with the same name and inputs.
pub(super) fn whole_calls(
    lanes: &Lanes<'_>,
    arguments: Option<&Arguments>,
    candidate: &mut Candidate,
) {
    let Some(arguments) = arguments else { return };
    let is_split = |at: u32| {
        let bytes = if arguments.is_half(at as usize) == Some(true) { HALF } else { WHOLE };
        let elements = arguments.elements(at as usize).unwrap_or_default();
        elements.saturating_mul(bytes) > MOST_BYTES
    };
    let is_same = |at: u32, other: u32| {
        lanes.code_of_slice(at).work == lanes.code_of_slice(other).work
            && arguments.call_index(at as usize) == arguments.call_index(other as usize)
    };
    let Candidate { split, slices, .. } = candidate;
    for find in split {
        let parts = slices.get(find.from as usize..find.to as usize).unwrap_or_default();
        if !parts.iter().any(|at| is_split(*at)) {
            continue;
        }
        let mut whole: Vec<u32> = Vec::with_capacity(parts.len());
        for part in parts {
            let others = lanes.before(*part);
            let others = others.take_while(|at| is_split(*part) && is_same(*at, *part));
            let mut own: Vec<u32> = others.filter(|at| !whole.contains(at)).collect();
            own.reverse();
            whole.extend(own);
            whole.push(*part);
        }
        whole.dedup();
        *find = Find { from: slices.len() as u32, to: (slices.len() + whole.len()) as u32 };
        slices.extend(whole);
    }
}
