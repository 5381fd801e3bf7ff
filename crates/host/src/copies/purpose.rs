//! What an `aten::copy_` was for.

use serde::Serialize;
use timeline::inputs::{entries, numbers};
use trace::Details;

use super::is_copy;
use crate::links::GpuSlice;
use crate::slices::{HostSlice, Slices};

/// What an `aten::copy_` was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "docs/formats.md lists them")]
pub enum Purpose {
    NoGpu,
    #[serde(rename = "h2d_pageable")]
    ToDevicePageable,
    #[serde(rename = "h2d_pinned")]
    ToDevicePinned,
    #[serde(rename = "h2d_unknown")]
    ToDevice,
    #[serde(rename = "d2h_pageable")]
    ToHostPageable,
    #[serde(rename = "d2h_pinned")]
    ToHostPinned,
    #[serde(rename = "d2h_unknown")]
    ToHost,
    #[serde(rename = "p2p")]
    BetweenDevices,
    #[serde(rename = "d2d")]
    OnDevice,
    MemcpyOther,
    KernelUnknown,
    Cast,
    Broadcast,
    KernelSameDtype,
    Layout,
    Same,
}

impl Purpose {
    /// What a person reads.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::NoGpu => "no GPU work",
            Self::ToDevicePageable => "to the GPU, pageable memory",
            Self::ToDevicePinned => "to the GPU, pinned memory",
            Self::ToDevice => "to the GPU",
            Self::ToHostPageable => "to the CPU, pageable memory",
            Self::ToHostPinned => "to the CPU, pinned memory",
            Self::ToHost => "to the CPU",
            Self::BetweenDevices => "between GPUs",
            Self::OnDevice => "on the GPU",
            Self::MemcpyOther => "another copy",
            Self::KernelUnknown => "a kernel; input types are not recorded",
            Self::Cast => "another type",
            Self::Broadcast => "another size",
            Self::KernelSameDtype => "the same type and size; strides are not recorded",
            Self::Layout => "another layout",
            Self::Same => "the same type, size and layout",
        }
    }
}

/// What an `aten::copy_` was for: a copy on the GPU tells by its name, a kernel by what the op was called with.
pub(super) fn purpose(
    slices: &Slices<'_>,
    details: &Details,
    op: &HostSlice,
    gpu: &[&GpuSlice],
) -> Purpose {
    if gpu.is_empty() {
        return Purpose::NoGpu;
    }
    if let Some(copy) = gpu.iter().find(|one| is_copy(slices, one)) {
        let name = slices.name(&copy.slice);
        let by_memory = |[pageable, pinned, unknown]: [Purpose; 3]| {
            if name.contains("Pageable") {
                pageable
            } else if name.contains("Pinned") {
                pinned
            } else {
                unknown
            }
        };
        return if name.contains("HtoD") {
            by_memory([Purpose::ToDevicePageable, Purpose::ToDevicePinned, Purpose::ToDevice])
        } else if name.contains("DtoH") {
            by_memory([Purpose::ToHostPageable, Purpose::ToHostPinned, Purpose::ToHost])
        } else if name.contains("PtoP") {
            Purpose::BetweenDevices
        } else if name.contains("DtoD") {
            Purpose::OnDevice
        } else {
            Purpose::MemcpyOther
        };
    }
    by_inputs(details, op).unwrap_or(Purpose::KernelUnknown)
}

/// Whether the source of a copy is a view that repeats values, as `expand` makes it: one of its strides is 0.
pub(super) fn repeats(details: &Details, op: &HostSlice) -> bool {
    let Some(inputs) = details.inputs(op.row) else { return false };
    let source = |json: &str| entries(json).get(1).and_then(numbers);
    let dims = source(details.texts.get(inputs.dims));
    let strides = details.strides(op.row).and_then(source);
    let mut sizes = dims.into_iter().flatten().zip(strides.into_iter().flatten());
    sizes.any(|(n, stride)| n > 1 && stride == 0)
}

fn by_inputs(details: &Details, op: &HostSlice) -> Option<Purpose> {
    let inputs = details.inputs(op.row)?;
    let [types, dims] = [inputs.types, inputs.dims].map(|id| entries(details.texts.get(id)));
    let ([to_type, from_type, ..], [to_dims, from_dims, ..]) = (&types[..], &dims[..]) else {
        return None;
    };
    if to_type != from_type {
        return Some(Purpose::Cast);
    }
    if to_dims != from_dims {
        return Some(Purpose::Broadcast);
    }
    let strides = details.strides(op.row).map(entries).unwrap_or_default();
    let [to_strides, from_strides, ..] = &strides[..] else {
        return Some(Purpose::KernelSameDtype);
    };
    let dims = numbers(to_dims)?;
    let (to, from) = (numbers(to_strides)?, numbers(from_strides)?);
    let wide = |strides: &[i64]| -> Vec<i64> {
        dims.iter().zip(strides).filter(|(n, _)| **n > 1).map(|(_, stride)| *stride).collect()
    };
    let moves =
        !is_contiguous(&dims, &to) || !is_contiguous(&dims, &from) || wide(&to) != wide(&from);
    Some(if moves { Purpose::Layout } else { Purpose::Same })
}

/// Dense and row major; dimensions of size 1 do not matter.
fn is_contiguous(dims: &[i64], strides: &[i64]) -> bool {
    if dims.contains(&0) {
        return true;
    }
    let mut expected = 1_i64;
    for (n, stride) in dims.iter().zip(strides).rev() {
        if *n != 1 {
            if *stride != expected {
                return false;
            }
            expected = expected.saturating_mul(*n);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};
    use trace::OpInputs;

    use super::*;

    #[test]
    fn a_source_with_a_stride_of_0_repeats_its_values() {
        let of = |dims: &str, strides: &str| {
            let mut fixture = Fixture::default();
            fixture.push(slice("cpu_op", "aten::copy_").on(1, 1).at(0, 10));
            let trace = fixture.finish();
            let mut details = Details::default();
            let (dims, types) = (details.texts.intern(dims), details.texts.intern("[]"));
            details.inputs.push(OpInputs { dims, types });
            details.ops.push((0, 0));
            let strides = details.texts.intern(strides);
            details.strides.push((0, strides));
            let slices = Slices::of(&trace);
            repeats(&details, &slices.ops.slices[0])
        };
        assert!(of("[[4,8],[4,8],[]]", "[[8,1],[0,1],[]]"), "rows of an expanded row");
        assert!(!of("[[4,8],[4,8],[]]", "[[0,1],[8,1],[]]"), "the destination");
        assert!(!of("[[1,8],[1,8],[]]", "[[8,1],[0,1],[]]"), "a dimension of 1");
        assert!(!of("[[4,8],[4,8],[]]", ""), "not recorded");
    }
}
