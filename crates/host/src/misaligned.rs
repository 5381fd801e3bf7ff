//! Matrix products whose rows are no multiple of 16 bytes.
//!
//! Tensor cores of NVIDIA work at their best where the leading dimension of each matrix is a multiple of 16 bytes: 8 values of
//! 16 bits (NVIDIA, "Matrix Multiplication Background User's Guide", section 3). Where it is not, libraries choose kernels with
//! narrow loads. What that costs the file does not tell; the table has the sizes, the time and the kernel that ran.

use std::collections::BTreeMap;

use catalog::Platform;
use catalog::devices::Format;
use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;
use serde_json::Value;
use timeline::device::platform;
use trace::Details;

use crate::flops::Counted;
use crate::links::GpuSide;
use crate::rates::format_of;
use crate::slices::Slices;

/// What a row is a multiple of, in bytes.
const ALIGNMENT: i64 = 16;
/// Rows that a document prints.
const PREVIEW: u32 = 15;

/// Calls of one op with equal sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Misaligned {
    /// Name of the op.
    pub name: String,
    /// Sizes of the two matrices: `[64,1001] [1001,512]`.
    pub dims: String,
    /// Their number format.
    pub format: &'static str,
    /// Bytes of a row of the left matrix, the right one and the result: the distance from one to the next.
    pub rows_bytes: [i64; 3],
    /// Calls.
    pub calls: u64,
    /// Their operations.
    pub flops: i128,
    /// Their GPU time, in ns.
    pub device_ns: i64,
    /// Achieved TFLOP/s.
    pub tflops: f64,
    /// The kernel with most of that time.
    pub kernel: String,
}

/// Where a product has its matrices, and whether the right one is transposed.
fn operands(op: &str) -> Option<(usize, bool)> {
    Some(match op {
        "aten::mm" | "aten::bmm" | "aten::_scaled_mm" => (0, false),
        "aten::addmm" | "aten::baddbmm" | "aten::_addmm_activation" => (1, false),
        "aten::linear" => (0, true),
        _ => return None,
    })
}

/// The products, most GPU time first; none of other platforms than CUDA. `counted` is what [`crate::flops::of_each`]
/// finds, `device_ns` the GPU time of each op.
#[must_use]
pub fn misaligned(
    slices: &Slices<'_>,
    gpu: &GpuSide,
    details: &Details,
    counted: &[Counted],
    device_ns: &[i64],
) -> Vec<Misaligned> {
    if platform(slices.trace) != Platform::Cuda {
        return Vec::new();
    }
    let nested = &slices.ops;
    let mut rows: BTreeMap<(&str, String), Misaligned> = BTreeMap::new();
    let mut group_of: BTreeMap<usize, (&str, String)> = BTreeMap::new();
    for &(at, ref operations) in counted {
        let op = nested.slices[at];
        let on_gpu = device_ns.get(at).copied().unwrap_or_default();
        let (Ok(operations), true) = (operations, on_gpu > 0) else { continue };
        let (name, inputs) = (slices.name(&op), details.inputs(op.row));
        let found = operands(name).zip(inputs).and_then(|((left, transposed), inputs)| {
            let format = format_of(details.texts.get(inputs.types))?;
            let dims = details.texts.get(inputs.dims);
            let strides = details.strides(op.row).unwrap_or_default();
            let (shape, rows_bytes) = rows_of(dims, strides, left, transposed, format)?;
            Some((shape, format, rows_bytes))
        });
        let Some((dims, format, rows_bytes)) = found else { continue };
        let key = (name, format!("{dims} {rows_bytes:?}"));
        group_of.insert(at, key.clone());
        let row = rows.entry(key).or_insert_with(|| Misaligned {
            name: name.to_owned(),
            dims,
            format: format.id(),
            rows_bytes,
            calls: 0,
            flops: 0,
            device_ns: 0,
            tflops: 0.0,
            kernel: String::new(),
        });
        row.calls += 1;
        row.flops = row.flops.saturating_add(operations.flops);
        row.device_ns = row.device_ns.saturating_add(on_gpu);
    }
    let mut kernels: BTreeMap<(&(&str, String), &str), i64> = BTreeMap::new();
    for one in gpu.linked().filter(|one| one.is_kernel) {
        let Some(key) =
            one.owner.and_then(|owner| nested.chain(owner).find_map(|at| group_of.get(&at)))
        else {
            continue;
        };
        *kernels.entry((key, slices.name(&one.slice))).or_default() += one.slice.dur_ns();
    }
    let mut longest: BTreeMap<&(&str, String), (i64, &str)> = BTreeMap::new();
    for ((key, name), ns) in kernels {
        let best = longest.entry(key).or_insert((ns, name));
        if ns > best.0 {
            *best = (ns, name);
        }
    }
    let mut found: Vec<Misaligned> = rows
        .into_iter()
        .map(|(key, row)| Misaligned {
            tflops: row.flops as f64 / row.device_ns.max(1) as f64 / 1e3,
            kernel: longest.get(&key).map(|(_, name)| (*name).to_owned()).unwrap_or_default(),
            ..row
        })
        .collect();
    trace::sort_by(&mut found, |a, b| b.device_ns.cmp(&a.device_ns));
    found
}

/// The sizes of a product and the bytes of the rows of its three matrices, where one is no multiple of 16; `None` else, for
/// formats without tensor cores of their own, and for vectors.
fn rows_of(
    dims: &str,
    strides: &str,
    left: usize,
    transposed: bool,
    format: Format,
) -> Option<(String, [i64; 3])> {
    if !matches!(format, Format::F16 | Format::Bf16 | Format::F8 | Format::I8) {
        return None;
    }
    let dims: Vec<Value> = serde_json::from_str(dims).ok()?;
    let strides: Vec<Value> = serde_json::from_str(strides).unwrap_or_default();
    let list = |all: &[Value], at: usize| -> Option<Vec<i64>> {
        all.get(at)?.as_array()?.iter().map(Value::as_i64).collect()
    };
    let (a, b) = (list(&dims, left)?, list(&dims, left + 1)?);
    let last_two = |dims: &[i64]| match dims {
        [.., rows, columns] => Some((*rows, *columns)),
        _ => None,
    };
    let (m, _) = last_two(&a)?;
    let (rows, columns) = last_two(&b)?;
    let n = if transposed { rows } else { columns };
    if m <= 1 || n <= 1 {
        return None;
    }
    let size = i64::try_from(format.bytes()).ok()?;
    let bytes = [
        leading(&a, list(&strides, left).as_deref())?.checked_mul(size)?,
        leading(&b, list(&strides, left + 1).as_deref())?.checked_mul(size)?,
        n.checked_mul(size)?,
    ];
    let shape = format!("{} {}", dims.get(left)?, dims.get(left + 1)?);
    bytes.iter().any(|bytes| bytes % ALIGNMENT != 0).then_some((shape, bytes))
}

/// The leading dimension of a matrix, or of each of a batch: by its strides, else as if it were contiguous.
fn leading(dims: &[i64], strides: Option<&[i64]>) -> Option<i64> {
    let contiguous = dims.last().copied();
    match strides.filter(|strides| strides.len() == dims.len()) {
        Some([.., row, 1]) if *row > 0 => Some(*row),
        Some([.., 1, column]) if *column > 0 => Some(*column),
        Some(_) => None,
        None => contiguous,
    }
}

impl Row for Misaligned {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Op",
            unit: Unit::Name,
            help: "Innermost op with a formula.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "dims",
            title: "Sizes",
            unit: Unit::Text,
            help: "Sizes of the two matrices.",
            cell: |row| row.dims.as_str().into(),
        },
        Column {
            key: "format",
            title: "Format",
            unit: Unit::Text,
            help: "Number format of the operands.",
            cell: |row| row.format.into(),
        },
        Column {
            key: "rows_bytes",
            title: "Bytes of a row",
            unit: Unit::Text,
            help: "Leading dimension of the left matrix, the right one and the result in bytes; by strides where they are recorded.",
            cell: |row| row.rows_bytes.map(|bytes| bytes.to_string()).join(", ").into(),
        },
        Column {
            key: "calls",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls with these sizes.",
            cell: |row| Cell::Count(row.calls),
        },
        Column {
            key: "device_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "GPU time of these calls.",
            cell: |row| Cell::Ns(row.device_ns),
        },
        Column {
            key: "tflops",
            title: "TFLOP/s",
            unit: Unit::Text,
            help: "Operations / GPU time.",
            cell: |row| format!("{:.1}", row.tflops).into(),
        },
        Column {
            key: "kernel",
            title: "Kernel",
            unit: Unit::Name,
            help: "The kernel with most of the time.",
            cell: |row| row.kernel.as_str().into(),
        },
    ];
}

/// Adds the table, where there are such products.
pub(crate) fn add_to(rows: &[Misaligned], section: &mut Section) {
    if !rows.is_empty() {
        let title = "Matrix products whose rows are not a multiple of 16 bytes";
        section.tables.push(Table::of("misaligned", title, rows).preview(PREVIEW));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_dimension_of_each_matrix_counts() {
        let rows = |dims, strides, format| {
            rows_of(dims, strides, 0, false, format).map(|(_, bytes)| bytes)
        };
        let (odd, even) = ("[[64,1001],[1001,512]]", "[[63,1024],[1024,512]]");
        assert_eq!(rows(odd, "[]", Format::Bf16), Some([2002, 1024, 1024]));
        // The number of rows does not matter, and a padded matrix is aligned.
        assert_eq!(rows(even, "[]", Format::Bf16), None);
        assert_eq!(rows(odd, "[[1008,1],[512,1]]", Format::Bf16), None);
        // A transposed left matrix has rows of its other size.
        assert_eq!(rows(even, "[[1,63],[512,1]]", Format::Bf16), Some([126, 1024, 1024]));
        assert_eq!(rows(odd, "[]", Format::F32), None);
        assert_eq!(rows("[[1,1001],[1001,512]]", "[]", Format::Bf16), None);
    }
}
