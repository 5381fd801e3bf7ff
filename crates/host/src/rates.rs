//! Achieved rates of ops with counted operations, by number format, against the peaks of the device.
//!
//! The format is that of the operands in `Input type`. Of 32-bit floats only the kernels' names tell whether they ran as TF32;
//! where they do not, there is no share. Bytes are the least that a product must move: each operand read once and the result
//! written once.

mod by_kernel;
mod by_shape;
mod sections;

pub use by_shape::{ShapeRate, sizes};
pub(crate) use sections::OF_PEAKS;

use std::collections::BTreeMap;

use catalog::devices::{Format, NotKnown, Roof, Seen, roof_of};
use serde::Serialize;
use serde_json::Value;
use timeline::device::devices;
use trace::{Details, Trace};

use crate::flops::Counted;
use crate::links::GpuSide;
use crate::slices::Slices;

/// Rates of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// The device that the peaks are of; `None` where they are not known.
    pub device: Option<DevicePeaks>,
    /// Why there are no peaks.
    pub why_not: Option<String>,
    /// By op and format, most GPU time first.
    pub rows: Vec<RateRow>,
    /// The same by name of the kernel, of the calls that run one kernel.
    pub kernels: Vec<RateRow>,
    /// The same by op, format and sizes of the operands, of the calls that run one kernel and whose bytes are known.
    #[serde(skip)]
    pub shapes: Vec<ShapeRate>,
}

/// A device and where its peaks come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DevicePeaks {
    /// The product.
    pub title: &'static str,
    /// Memory bandwidth in GB/s.
    pub gb_per_s: f64,
    /// What large 16-bit products reach in TFLOP/s, where somebody measured it.
    pub ceiling_tflops: Option<f64>,
    /// Source of the figures.
    pub source: &'static str,
}

/// Calls of one op in one format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateRow {
    /// Name of the op.
    pub name: String,
    /// Number format of the operands; `None` where the types differ, or do not tell.
    pub format: Option<&'static str>,
    /// Counted calls that launched GPU work.
    pub calls: u64,
    /// Their operations.
    pub flops: i128,
    /// Their GPU time, in ns.
    pub device_ns: i64,
    /// Achieved TFLOP/s.
    pub tflops: f64,
    /// Dense peak of the format, in TFLOP/s.
    pub peak_tflops: Option<f64>,
    /// Achieved in percent of that.
    pub peak_pct: Option<f64>,
    /// Bytes that the calls move at least; `None` where an operand's size is not known.
    pub bytes_at_least: Option<i128>,
    /// These by GPU time, in GB/s.
    pub gb_per_s: Option<f64>,
    /// Operations by byte.
    pub intensity: Option<f64>,
    /// The lower limit at this intensity: `compute`, or `memory` where the bandwidth allows less than the peak.
    pub limit: Option<&'static str>,
    /// Achieved in percent of that limit.
    pub limit_pct: Option<f64>,
}

/// Calls of one op in one format.
#[derive(Clone, Copy)]
pub(crate) struct Sum {
    /// Calls that launched GPU work.
    pub calls: u64,
    /// Their operations.
    pub flops: i128,
    /// Their GPU time, in ns.
    pub device_ns: i64,
    /// Bytes that they move at least; `None` once a call's bytes are not known.
    pub bytes: Option<i128>,
}

impl Sum {
    /// No calls.
    pub(crate) const NONE: Self = Self { calls: 0, flops: 0, device_ns: 0, bytes: Some(0) };

    /// Adds a call.
    pub(crate) fn add(&mut self, flops: i128, device_ns: i64, bytes: Option<i128>) {
        self.calls += 1;
        self.flops = self.flops.saturating_add(flops);
        self.device_ns = self.device_ns.saturating_add(device_ns);
        self.bytes = self.bytes.zip(bytes).and_then(|(all, own)| all.checked_add(own));
    }
}

/// The peaks of the trace's devices, if all are one product.
pub(crate) fn peaks(trace: &Trace) -> Result<&'static Roof, NotKnown> {
    let all = devices(trace);
    let mut found = all.iter().map(|device| {
        roof_of(&Seen {
            name: &device.name,
            compute: device.compute.as_deref(),
            units: device.n_units,
            memory_bytes: device.memory_bytes,
            warp: device.warp_size,
        })
    });
    let first = found.next().ok_or(NotKnown::NoDevice)??;
    match found.all(|other| other == Ok(first)) {
        true => Ok(first),
        false => Err(NotKnown::Mixed),
    }
}

/// The rates. `counted` is what [`crate::flops::of_each`] finds, `device_ns` the GPU time of each op.
#[must_use]
pub fn rates(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    details: &Details,
    counted: &[Counted],
    device_ns: &[i64],
) -> Rates {
    let trace = slices.trace;
    let roof = peaks(trace);
    let singles = singles(slices, gpu);
    let own = by_kernel::of_ops(slices, gpu);
    let mut of_kernels: BTreeMap<(&str, Option<Format>), Sum> = BTreeMap::new();
    let mut shapes = by_shape::Shapes::default();
    let mut sums: BTreeMap<(&str, Option<Format>), Sum> = BTreeMap::new();
    let mut known: BTreeMap<(u32, u32), (Option<Format>, Option<i128>)> = BTreeMap::new();
    for &(at, ref operations) in counted {
        let op = slices.ops.slices[at];
        let on_gpu = device_ns.get(at).copied().unwrap_or(0);
        let (Ok(operations), true) = (operations, on_gpu > 0) else { continue };
        let Some(inputs) = details.inputs(op.row) else { continue };
        let of = known.entry((inputs.dims.0, inputs.types.0)).or_insert_with(|| {
            let (dims, types) = (details.texts.get(inputs.dims), details.texts.get(inputs.types));
            (format_of(types), bytes_read(dims, types))
        });
        let (mut format, read) = *of;
        if format == Some(Format::F32) {
            format = singles.get(&at).copied().flatten();
        }
        let name = slices.name(&op);
        let moved = read.zip(written(name, details.texts.get(inputs.dims), operations.flops));
        let size = of.0.map(Format::bytes);
        let moved = moved.zip(size).map(|((read, elements), size)| read + elements * size);
        let sum = sums.entry((name, format)).or_insert(Sum::NONE);
        sum.add(operations.flops, on_gpu, moved);
        // (What several kernels do together is the work of none of them.)
        if let Some((kernel, ns)) = by_kernel::only_kernel(&own, at, on_gpu) {
            let sum = of_kernels.entry((kernel, format)).or_insert(Sum::NONE);
            sum.add(operations.flops, ns, moved);
            if let Some((format, bytes)) = format.zip(moved) {
                shapes.add(at, (name, format, inputs.dims), (operations.flops, ns, bytes));
            }
        }
    }
    let row = |((name, format), sum): ((&str, Option<Format>), Sum)| {
        row(name, format, &sum, roof.as_ref().ok().copied())
    };
    let of = |sums: BTreeMap<(&str, Option<Format>), Sum>| {
        let mut rows: Vec<RateRow> = sums.into_iter().map(row).collect();
        trace::sort_by(&mut rows, |a, b| b.device_ns.cmp(&a.device_ns));
        rows
    };
    let (rows, kernels) = (of(sums), of(of_kernels));
    Rates {
        device: roof.as_ref().ok().map(|roof| DevicePeaks {
            title: roof.title,
            gb_per_s: roof.gb_per_s,
            ceiling_tflops: roof.ceiling_tflops,
            source: roof.source,
        }),
        why_not: roof.as_ref().err().map(ToString::to_string),
        rows,
        kernels,
        shapes: shapes.rows(details),
    }
}

/// The rates of calls against the peaks of a device.
pub(crate) fn row(name: &str, format: Option<Format>, sum: &Sum, roof: Option<&Roof>) -> RateRow {
    let tflops = sum.flops as f64 / sum.device_ns.max(1) as f64 / 1e3;
    let peak_tflops = roof.zip(format).and_then(|(roof, format)| roof.tflops(format));
    let bytes = sum.bytes.filter(|bytes| *bytes > 0);
    let intensity = bytes.map(|bytes| sum.flops as f64 / bytes as f64);
    let limit = roof.zip(peak_tflops).zip(intensity).map(|((roof, peak), intensity)| {
        let by_memory = intensity * roof.gb_per_s / 1e3;
        if by_memory < peak { ("memory", by_memory) } else { ("compute", peak) }
    });
    RateRow {
        name: name.to_owned(),
        format: format.map(Format::id),
        calls: sum.calls,
        flops: sum.flops,
        device_ns: sum.device_ns,
        tflops,
        peak_tflops,
        peak_pct: peak_tflops.map(|peak| 100.0 * tflops / peak),
        bytes_at_least: bytes,
        gb_per_s: bytes.map(|bytes| bytes as f64 / sum.device_ns.max(1) as f64),
        intensity,
        limit: limit.map(|(limit, _)| limit),
        limit_pct: limit.map(|(_, rate)| 100.0 * tflops / rate),
    }
}

/// By op that multiplied 32-bit floats on the GPU: how its kernels ran, if all their names tell the same.
fn singles(slices: &Slices<'_>, gpu: &GpuSide) -> BTreeMap<usize, Option<Format>> {
    let mut found: BTreeMap<usize, Option<Format>> = BTreeMap::new();
    for one in gpu.slices.iter().filter(|one| one.is_kernel) {
        let Some(owner) = one.owner else { continue };
        let name = slices.trace.strings.get(slices.trace.name(one.slice.row));
        let Some(ran) = ran_as(name) else { continue };
        let known = found.entry(owner).or_insert(Some(ran));
        if *known != Some(ran) {
            *known = None;
        }
    }
    found
}

/// How a product of 32-bit floats ran, by the name of its kernel; `None` where it does not tell, or is no product.
fn ran_as(kernel: &str) -> Option<Format> {
    let lower = kernel.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    if has("tf32") || has("s1688") || has("xf32") {
        return Some(Format::Tf32);
    }
    if catalog::is_f32_without_tensor_cores(kernel) || has("simt_sgemm") {
        return Some(Format::F32);
    }
    // (Tensile: the operands' type is the token after Cijk and the indexes.)
    let tensile = lower.strip_prefix("cijk_").and_then(|rest| rest.split('_').nth(2));
    tensile.filter(|token| token.starts_with("sb") || *token == "s").map(|_| Format::F32)
}

/// The one format of the operands; `None` where they differ.
pub(crate) fn format_of(types: &str) -> Option<Format> {
    let all: Vec<String> = serde_json::from_str(types).ok()?;
    let mut formats = all.iter().filter_map(|name| Format::of_type(name));
    let first = formats.next()?;
    formats.all(|other| other == first).then_some(first)
}

/// Bytes of all tensors among the inputs.
fn bytes_read(dims: &str, types: &str) -> Option<i128> {
    let dims: Vec<Value> = serde_json::from_str(dims).ok()?;
    let types: Vec<String> = serde_json::from_str(types).ok()?;
    let mut bytes = 0_i128;
    for (dims, name) in dims.iter().zip(&types) {
        let Some(dims) = dims.as_array().filter(|dims| !dims.is_empty()) else { continue };
        let size = Format::of_type(name)?.bytes();
        let mut elements = 1_i128;
        for dim in dims {
            elements = elements.checked_mul(i128::from(dim.as_i64()?))?;
        }
        bytes = bytes.checked_add(elements.checked_mul(size)?)?;
    }
    Some(bytes)
}

/// Elements of the result: of a product of matrices operations / (2 x inner dimension), of attention those of the query where
/// keys and values have one size. `None` for other ops.
fn written(op: &str, dims: &str, flops: i128) -> Option<i128> {
    const FORWARD: [&str; 4] = [
        "aten::_flash_attention_forward",
        "aten::_efficient_attention_forward",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention",
    ];
    let dims: Vec<Value> = serde_json::from_str(dims).ok()?;
    let dim = |at: usize| dims.get(at)?.as_array();
    let last = |at: usize| dim(at)?.last()?.as_i64().map(i128::from);
    let left = match op {
        "aten::mm" | "aten::bmm" | "aten::linear" | "aten::_scaled_mm" => 0,
        "aten::addmm" | "aten::baddbmm" => 1,
        op if FORWARD.contains(&op) && last(1) == last(2) => {
            let mut elements = 1_i128;
            for size in dim(0)? {
                elements = elements.checked_mul(i128::from(size.as_i64()?))?;
            }
            return Some(elements);
        }
        _ => return None,
    };
    let inner = last(left).filter(|inner| *inner > 0)?;
    Some(flops / (2 * inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_bytes_of_a_product() {
        let (dims, types) =
            ("[[8, 4], [4, 2], []]", "[\"c10::BFloat16\", \"c10::BFloat16\", \"\"]");
        assert_eq!(format_of(types), Some(Format::Bf16));
        assert_eq!(bytes_read(dims, types), Some((32 + 8) * 2));
        assert_eq!(written("aten::mm", dims, 2 * 8 * 4 * 2), Some(16));
        assert_eq!(format_of("[\"float\", \"c10::Half\"]"), None);
        assert_eq!(written("aten::conv2d", dims, 128), None);
    }

    #[test]
    fn kernels_of_32_bit_floats_say_how_they_ran() {
        for (name, ran) in [
            ("ampere_sgemm_128x64_tn", Some(Format::F32)),
            ("cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4", Some(Format::Tf32)),
            ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n", Some(Format::Tf32)),
            ("Cijk_Ailk_Bljk_SB_MT64x64x16", Some(Format::F32)),
            ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV", None),
            ("vectorized_elementwise_kernel", None),
        ] {
            assert_eq!(ran_as(name), ran, "{name}");
        }
    }
}
