//! What data centre GPUs do at most, by the name that the runtime gives them: dense rates, without sparsity.
//!
//! A share of a peak is only as good as the peak, so a device is named exactly or not at all: partitions, slices of MIG and capped
//! variants have none ([`NotKnown`]). Rates are theoretical; `ceiling_tflops` is what somebody measured with large products.

/// A number format of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// 64-bit floats.
    F64,
    /// 32-bit floats on the vector units; on AMD also on matrix units.
    F32,
    /// 32-bit floats rounded to 10 bits of mantissa.
    Tf32,
    /// IEEE 16-bit floats.
    F16,
    /// bfloat16.
    Bf16,
    /// 8-bit floats.
    F8,
    /// 8-bit integers.
    I8,
    /// 6-bit floats with a scale for each block.
    F6,
    /// 4-bit floats with a scale for each block.
    F4,
}

impl Format {
    /// Its name.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::F64 => "fp64",
            Self::F32 => "fp32",
            Self::Tf32 => "tf32",
            Self::F16 => "fp16",
            Self::Bf16 => "bf16",
            Self::F8 => "fp8",
            Self::I8 => "int8",
            Self::F6 => "fp6",
            Self::F4 => "fp4",
        }
    }

    /// Bytes of a value; of what is packed into bytes, of one that holds it alone.
    #[must_use]
    pub fn bytes(self) -> i128 {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::Tf32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::F8 | Self::I8 | Self::F6 | Self::F4 => 1,
        }
    }

    /// The format that PyTorch's profiler calls so in `Input type`, without blanks, as it is kept; `None` for others.
    #[must_use]
    pub fn of_type(name: &str) -> Option<Self> {
        Some(match name {
            "double" => Self::F64,
            "float" => Self::F32,
            "c10::Half" => Self::F16,
            "c10::BFloat16" => Self::Bf16,
            "signedchar" | "unsignedchar" => Self::I8,
            name if name.starts_with("c10::Float8") => Self::F8,
            _ => return None,
        })
    }
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    /// The name to print.
    pub title: &'static str,
    /// Names of the runtime in lower case, without the vendor and the way in which it is attached.
    pub names: &'static [&'static str],
    /// Multiprocessors or compute units.
    pub units: u64,
    /// Memory in GiB, nominal.
    pub memory_gib: &'static [u64],
    /// Rates of matrix products in TFLOP/s, 0 where the device has none or sources differ: fp64, fp32, tf32, fp16, bf16, fp8, int8,
    /// fp6, fp4.
    rates: [f64; 9],
    /// Memory bandwidth in GB/s.
    pub gb_per_s: f64,
    /// What large 16-bit products reach in TFLOP/s, where somebody measured it.
    pub ceiling_tflops: Option<f64>,
    /// Where the figures come from.
    pub source: &'static str,
}

impl Roof {
    /// The dense peak of matrix products in a format, in TFLOP/s.
    #[must_use]
    pub fn tflops(&self, format: Format) -> Option<f64> {
        let all = [
            Format::F64,
            Format::F32,
            Format::Tf32,
            Format::F16,
            Format::Bf16,
            Format::F8,
            Format::I8,
            Format::F6,
            Format::F4,
        ];
        let at = all.iter().position(|of| *of == format)?;
        Some(self.rates[at]).filter(|rate| *rate > 0.0)
    }
}

/// Why a device has no known peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotKnown {
    /// The file lists no device.
    NoDevice,
    /// The table has no such name.
    Name(String),
    /// It has another number of units than the product: a slice or a partition of it.
    Part {
        /// The product.
        of: &'static str,
        /// Its units.
        whole: u64,
        /// Units in the trace.
        units: u64,
    },
    /// The file lists devices of different products.
    Mixed,
}

impl std::fmt::Display for NotKnown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDevice => write!(out, "the file lists no device"),
            Self::Name(name) if name.is_empty() => {
                write!(out, "the file has no name of its device")
            }
            Self::Name(name) => write!(out, "no peak rates are known for {name}"),
            Self::Part { of, whole, units } => {
                write!(out, "the device has {units} units and {of} has {whole}: a part of one")
            }
            Self::Mixed => write!(out, "the file lists devices of different products"),
        }
    }
}

const ML: &str = "stas00/ml-engineering, compute/accelerator (2026-08)";
const ROCM: &str = "ROCm gpu-arch-specs; rates per compute unit of rocprofiler-compute";
const SHEET: &str = "NVIDIA data sheet, dense figures";

const fn roof(
    title: &'static str,
    names: &'static [&'static str],
    (units, memory_gib): (u64, &'static [u64]),
    rates: [f64; 9],
    (gb_per_s, ceiling_tflops): (f64, Option<f64>),
    source: &'static str,
) -> Roof {
    Roof { title, names, units, memory_gib, rates, gb_per_s, ceiling_tflops, source }
}

/// fp64, fp32, tf32, fp16, bf16, fp8, int8, fp6, fp4; fp32 of NVIDIA is that of the vector units. The 4-bit rate of B300 differs by source
/// (12,600 to 15,000), that of B200 is the one of its own sheet (9,000; the sheet of DGX has 10,000). AMD's 6- and 4-bit rates are one:
/// 16,384 operations a cycle and compute unit.
#[rustfmt::skip]
pub(crate) const ROOFS: &[Roof] = &[
    roof("V100 SXM2", &["tesla v100-sxm2-16gb", "tesla v100-sxm2-32gb"], (80, &[16, 32]), [7.8, 15.7, 0.0, 125.0, 0.0, 0.0, 0.0, 0.0, 0.0], (900.0, None), SHEET),
    roof("V100 PCIe", &["tesla v100-pcie-16gb", "tesla v100-pcie-32gb"], (80, &[16, 32]), [7.0, 14.0, 0.0, 112.0, 0.0, 0.0, 0.0, 0.0, 0.0], (900.0, None), SHEET),
    roof("T4", &["tesla t4"], (40, &[15, 16]), [0.0, 8.1, 0.0, 65.0, 0.0, 0.0, 130.0, 0.0, 0.0], (320.0, None), SHEET),
    roof("A100 SXM4 40 GB", &["a100-sxm4-40gb", "a100-pg509-200"], (108, &[40]), [19.5, 19.5, 156.0, 312.0, 312.0, 0.0, 624.0, 0.0, 0.0], (1555.0, Some(271.2)), ML),
    roof("A100 SXM4 80 GB", &["a100-sxm4-80gb", "pg509-210", "a100-pg509-210"], (108, &[80]), [19.5, 19.5, 156.0, 312.0, 312.0, 0.0, 624.0, 0.0, 0.0], (2039.0, Some(271.2)), ML),
    roof("A100 PCIe 40 GB", &["a100-pcie-40gb"], (108, &[40]), [19.5, 19.5, 156.0, 312.0, 312.0, 0.0, 624.0, 0.0, 0.0], (1555.0, Some(252.9)), ML),
    roof("A100 PCIe 80 GB", &["a100 80gb pcie"], (108, &[80]), [19.5, 19.5, 156.0, 312.0, 312.0, 0.0, 624.0, 0.0, 0.0], (1935.0, Some(252.9)), ML),
    roof("A10", &["a10"], (72, &[24]), [0.0, 31.2, 62.5, 125.0, 125.0, 0.0, 250.0, 0.0, 0.0], (600.0, None), SHEET),
    roof("L4", &["l4"], (58, &[24]), [0.0, 30.3, 60.0, 121.0, 121.0, 242.5, 242.5, 0.0, 0.0], (300.0, None), SHEET),
    roof("L40S", &["l40s"], (142, &[48]), [0.0, 91.6, 183.0, 362.0, 362.0, 733.0, 733.0, 0.0, 0.0], (864.0, None), ML),
    roof("H100 SXM5", &["h100 80gb hbm3"], (132, &[80]), [67.0, 66.9, 494.5, 989.4, 989.4, 1979.0, 1979.0, 0.0, 0.0], (3350.0, Some(794.5)), ML),
    roof("H100 PCIe", &["h100 pcie"], (114, &[80]), [51.0, 51.2, 378.0, 756.0, 756.0, 1513.0, 1513.0, 0.0, 0.0], (2039.0, None), ML),
    roof("H200", &["h200"], (132, &[141, 140]), [67.0, 66.9, 494.5, 989.4, 989.4, 1979.0, 1979.0, 0.0, 0.0], (4800.0, Some(794.5)), ML),
    roof("H800", &["h800"], (132, &[80]), [0.0, 66.9, 494.5, 989.4, 989.4, 1979.0, 1979.0, 0.0, 0.0], (3350.0, None), SHEET),
    roof("H20", &["h20"], (78, &[96]), [1.0, 44.0, 74.0, 148.0, 148.0, 296.0, 296.0, 0.0, 0.0], (4000.0, Some(136.5)), SHEET),
    roof("B200", &["b200"], (148, &[180]), [37.0, 75.0, 1125.0, 2250.0, 2250.0, 4500.0, 4500.0, 0.0, 9000.0], (8000.0, Some(1745.0)), ML),
    roof("GB200", &["gb200"], (152, &[186]), [0.0, 80.0, 1250.0, 2500.0, 2500.0, 5000.0, 5000.0, 0.0, 10000.0], (8000.0, Some(1822.0)), ML),
    roof("GB300", &["gb300"], (152, &[277, 288]), [0.0, 80.0, 1250.0, 2500.0, 2500.0, 5000.0, 0.0, 0.0, 15000.0], (8000.0, None), ML),
    roof("B300", &["b300 sxm6 ac"], (148, &[270, 288]), [0.0, 75.0, 1125.0, 2250.0, 2250.0, 4500.0, 0.0, 0.0, 0.0], (8000.0, Some(1769.0)), ML),
    roof("MI210", &["mi210"], (104, &[64]), [45.3, 45.3, 0.0, 181.0, 181.0, 0.0, 181.0, 0.0, 0.0], (1638.0, None), ROCM),
    // What the driver gives no name, by its units and memory: the same rates either way.
    roof("MI210 or one die of MI250", &[], (104, &[64]), [45.3, 45.3, 0.0, 181.0, 181.0, 0.0, 181.0, 0.0, 0.0], (1638.0, None), ROCM),
    roof("MI250 (one die)", &["mi250", "mi250x/mi250"], (104, &[64]), [45.3, 45.3, 0.0, 181.0, 181.0, 0.0, 181.0, 0.0, 0.0], (1638.0, None), ROCM),
    roof("MI250X (one die)", &["mi250x"], (110, &[64]), [47.9, 47.9, 0.0, 191.5, 191.5, 0.0, 191.5, 0.0, 0.0], (1638.0, None), ROCM),
    roof("MI300A", &["mi300a"], (228, &[128]), [122.6, 122.6, 490.3, 980.6, 980.6, 1961.0, 1961.0, 0.0, 0.0], (5300.0, None), ROCM),
    roof("MI300X", &["mi300x"], (304, &[192]), [163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 0.0, 0.0], (5300.0, Some(708.0)), ROCM),
    roof("MI325X", &["mi325x"], (304, &[256]), [163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 0.0, 0.0], (6000.0, Some(843.0)), ROCM),
    roof("MI350X", &["mi350x"], (256, &[288]), [72.1, 144.2, 0.0, 2306.9, 2306.9, 4614.0, 4614.0, 9227.0, 9227.0], (8000.0, None), ROCM),
    roof("MI355X", &["mi355x"], (256, &[288]), [78.6, 157.3, 0.0, 2516.6, 2516.6, 5033.0, 5033.0, 10066.0, 10066.0], (8000.0, Some(1565.0)), ROCM),
];

/// What a trace says of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    /// Its name; may be empty.
    pub name: &'a str,
    /// Compute capability or version of the architecture: `9.4`.
    pub compute: Option<&'a str>,
    /// Multiprocessors or compute units.
    pub units: Option<u64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Threads of a warp: 64 on AMD's data centre devices.
    pub warp: Option<u64>,
}

/// A name without the vendor and what tells how it is attached.
fn normal(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let mut text = lower.trim();
    for start in ["nvidia ", "amd instinct ", "amd "] {
        text = text.strip_prefix(start).unwrap_or(text);
    }
    for end in [" vf", " oam"] {
        text = text.strip_suffix(end).unwrap_or(text);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The peaks of a device.
///
/// # Errors
/// When the table does not have it, or the trace shows a part of it.
pub fn roof_of(seen: &Seen<'_>) -> Result<&'static Roof, NotKnown> {
    let name = normal(seen.name);
    let named = ROOFS.iter().find(|roof| roof.names.contains(&&*name));
    let found = named
        .or_else(|| unnamed(&name, seen))
        .ok_or_else(|| NotKnown::Name(seen.name.to_owned()))?;
    match seen.units {
        Some(units) if units != found.units => {
            Err(NotKnown::Part { of: found.title, whole: found.units, units })
        }
        _ => Ok(found),
    }
}

/// A device of AMD that the driver gives no name, by its units and memory: MI300X has 304 and 192 GiB, one die of MI250 has 104
/// and 64 GiB, as MI210 has, with the same rates.
fn unnamed(name: &str, seen: &Seen<'_>) -> Option<&'static Roof> {
    if seen.warp != Some(64) || !["", "radeon graphics"].contains(&name) {
        return None;
    }
    let title = match (seen.compute?, seen.units?, seen.memory_bytes? >> 30) {
        ("9.4", 304, 186..=192) => "MI300X",
        ("9.0", 104, 62..=64) => "MI210 or one die of MI250",
        _ => return None,
    };
    ROOFS.iter().find(|roof| roof.title == title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, units: u64) -> Result<&'static str, NotKnown> {
        roof_of(&Seen { name, units: Some(units), ..Seen::default() }).map(|roof| roof.title)
    }

    #[test]
    fn names_of_traces() {
        for (name, units, title) in [
            ("NVIDIA H100 80GB HBM3", 132, "H100 SXM5"),
            ("NVIDIA A100-SXM4-80GB", 108, "A100 SXM4 80 GB"),
            ("A100-SXM4-40GB", 108, "A100 SXM4 40 GB"),
            ("AMD Instinct MI300X VF", 304, "MI300X"),
            ("AMD Instinct MI250X/MI250", 104, "MI250 (one die)"),
            ("NVIDIA H20", 78, "H20"),
            // (Of 85.0e9 bytes and 108 multiprocessors: the board is named, not the product.)
            ("NVIDIA PG509-210", 108, "A100 SXM4 80 GB"),
        ] {
            assert_eq!(named(name, units), Ok(title), "{name}");
        }
        let nameless = Seen {
            name: "",
            compute: Some("9.4"),
            units: Some(304),
            memory_bytes: Some(206_141_652_992),
            warp: Some(64),
        };
        assert_eq!(roof_of(&nameless).map(|roof| roof.title), Ok("MI300X"));
    }

    #[test]
    fn narrow_floats_have_a_peak_where_sources_agree() {
        let of = |title: &str, format| {
            let roof = ROOFS.iter().find(|roof| roof.title == title);
            roof.and_then(|roof| roof.tflops(format))
        };
        assert_eq!((of("B200", Format::F4), of("B200", Format::F6)), (Some(9000.0), None));
        assert_eq!((of("B300", Format::F4), of("H100 SXM5", Format::F4)), (None, None));
        for (title, clock_ghz) in [("MI350X", 2.2), ("MI355X", 2.4)] {
            // 256 units, 16,384 operations a cycle, in TFLOP/s.
            let derived = 256.0 * 16_384.0 * clock_ghz / 1e3;
            let [f4, f6] = [Format::F4, Format::F6].map(|format| of(title, format).unwrap());
            assert!(f4 == f6 && (f4 - derived).abs() < 1.0, "{title}: {f4} and {derived}");
        }
        assert_eq!(named("NVIDIA GB300", 152), Ok("GB300"));
    }

    #[test]
    fn what_is_not_whole_has_no_peak() {
        assert!(matches!(named("AMD Instinct MI300X", 38), Err(NotKnown::Part { units: 38, .. })));
        assert!(matches!(named("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16), Err(NotKnown::Name(_))));
        assert!(named("NVIDIA GeForce RTX 9999", 1).is_err());
    }

    /// What triage bounds its advice by has a table of its own, with rates that no device exceeds (`architectures/peaks.rs`).
    #[test]
    fn both_tables_of_peaks_agree() {
        let mut differ = Vec::new();
        for roof in ROOFS {
            assert!(!roof.source.is_empty(), "{}", roof.title);
            let memory = roof.memory_gib.last().map(|gib| gib << 30);
            for name in roof.names {
                let peak = crate::architectures::peak_of(name, Some(roof.units), memory)
                    .unwrap_or_else(|| panic!("{name} is not in architectures/peaks.rs"));
                for (format, other) in [
                    (Format::F16, peak.half_tflops),
                    (Format::Tf32, peak.tf32_tflops),
                    (Format::F32, peak.f32_tflops),
                ] {
                    let own = roof.tflops(format).unwrap_or(0.0);
                    if (own - other).abs() > 0.02 * own {
                        differ.push(format!("{name}, {}: {own} and {other}", format.id()));
                    }
                }
                // (There it is that of the fastest variant.)
                if peak.gb_per_s < 0.98 * roof.gb_per_s {
                    differ.push(format!("{name}: {} and {} GB/s", roof.gb_per_s, peak.gb_per_s));
                }
            }
        }
        assert!(differ.is_empty(), "{differ:#?}");
    }

    #[test]
    fn every_name_has_one_row_and_reads_back() {
        for (at, roof) in ROOFS.iter().enumerate() {
            for name in roof.names {
                assert_eq!(normal(name), *name);
                let others = ROOFS.iter().enumerate().filter(|(other, _)| *other != at);
                assert!(!others.into_iter().any(|(_, other)| other.names.contains(name)), "{name}");
            }
            assert!(roof.tflops(Format::F32).is_some() && roof.gb_per_s > 0.0, "{}", roof.title);
        }
    }
}
