//! What devices can do at most.

use super::occurs;

/// What a device can do at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Part of the device name, in lower case.
    pub name: &'static str,
    /// The name to print.
    pub title: &'static str,
    /// Dense 16-bit matrix products with 32-bit sums, in TFLOPS.
    pub half_tflops: f64,
    /// Dense TF32 matrix products, in TFLOPS; 0 where the device has none.
    pub tf32_tflops: f64,
    /// 32-bit matrix products without tensor cores, in TFLOPS.
    pub f32_tflops: f64,
    /// Memory bandwidth, in GB/s.
    pub gb_per_s: f64,
    /// Where the figures come from.
    pub source: &'static str,
}

const fn peak(
    name: &'static str,
    title: &'static str,
    [half_tflops, tf32_tflops, f32_tflops]: [f64; 3],
    gb_per_s: f64,
    source: &'static str,
) -> Peak {
    Peak { name, title, half_tflops, tf32_tflops, f32_tflops, gb_per_s, source }
}

const CDNA: &str = "AMD data sheet of the Instinct GPU";
const RDNA: &str = "AMD product page and ROCm hardware specifications (WMMA rate per compute unit)";
const SHEET: &str = "NVIDIA data sheet of the GPU";
// A multiprocessor does 128 32-bit multiply-adds per cycle. Its tensor cores do as many in TF32 and twice as many in 16 bits with
// 32-bit sums on GeForce, and double of both on professional GPUs. The clock is the boost clock.
const BLACKWELL: &str = "NVIDIA RTX Blackwell white paper: rates per multiprocessor; product page: cores, clock, bandwidth";
const ADA: &str =
    "NVIDIA Ada white paper: rates per multiprocessor; product page: cores, clock, bandwidth";
const AMPERE: &str =
    "NVIDIA GA102 white paper: rates per multiprocessor; product page: cores, clock, bandwidth";
// 64 32-bit multiply-adds per cycle; 512 in 16 bits, with 32-bit sums half of that on GeForce. No TF32.
const TURING: &str =
    "NVIDIA Turing white paper: rates per multiprocessor; product page: cores, clock, bandwidth";

/// Peak rates, without sparsity; of several variants the fastest, so that what follows from them stays a bound. The first row
/// whose name occurs as a word decides.
#[rustfmt::skip]
const PEAKS: &[Peak] = &[
    peak("mi355", "MI355X", [2516.0, 0.0, 157.3], 8000.0, CDNA),
    peak("mi350", "MI350X", [2309.0, 0.0, 144.2], 8000.0, CDNA),
    peak("mi325", "MI325X", [1307.4, 653.7, 163.4], 6000.0, CDNA),
    peak("mi300a", "MI300A", [980.6, 490.3, 122.6], 5300.0, CDNA),
    peak("mi300", "MI300X", [1307.4, 653.7, 163.4], 5300.0, CDNA),
    peak("mi250", "MI250X", [383.0, 0.0, 95.7], 3277.0, CDNA),
    peak("mi210", "MI210", [181.0, 0.0, 45.3], 1638.0, CDNA),
    peak("mi100", "MI100", [184.6, 0.0, 46.1], 1228.8, CDNA),
    peak("w7900", "Radeon PRO W7900", [122.6, 0.0, 61.3], 864.0, RDNA),
    peak("rx 7900 xtx", "RX 7900 XTX", [123.0, 0.0, 61.4], 960.0, RDNA),
    peak("rx 7900 xt", "RX 7900 XT", [103.0, 0.0, 51.6], 800.0, RDNA),
    peak("gb300", "GB300", [2500.0, 1250.0, 80.0], 8000.0, SHEET),
    peak("b300", "B300", [2250.0, 1125.0, 75.0], 8000.0, SHEET),
    peak("gb200", "GB200", [2500.0, 1250.0, 80.0], 8000.0, SHEET),
    peak("b200", "B200", [2250.0, 1125.0, 75.0], 8000.0, SHEET),
    peak("gh200", "GH200", [989.0, 494.0, 67.0], 4900.0, SHEET),
    peak("h200", "H200", [989.0, 494.0, 67.0], 4800.0, SHEET),
    peak("h100 pcie", "H100 PCIe", [756.0, 378.0, 51.2], 2039.0, SHEET),
    peak("h100 nvl", "H100 NVL", [835.0, 417.0, 60.0], 3938.0, SHEET),
    peak("h100", "H100", [989.0, 494.0, 67.0], 3900.0, SHEET),
    peak("h800", "H800", [989.0, 494.0, 67.0], 3350.0, SHEET),
    peak("h20", "H20", [148.0, 74.0, 44.0], 4800.0, SHEET),
    peak("a100", "A100", [312.0, 156.0, 19.5], 2039.0, SHEET),
    peak("pg509-210", "A100", [312.0, 156.0, 19.5], 2039.0, SHEET),
    peak("a800", "A800", [312.0, 156.0, 19.5], 2039.0, SHEET),
    peak("a30", "A30", [165.0, 82.0, 10.3], 933.0, SHEET),
    peak("a40", "A40", [149.7, 74.8, 37.4], 696.0, SHEET),
    peak("a10g", "A10G", [70.0, 35.0, 35.0], 600.0, SHEET),
    peak("a10", "A10", [125.0, 62.5, 31.2], 600.0, SHEET),
    peak("l40s", "L40S", [362.0, 183.0, 91.6], 864.0, SHEET),
    peak("l40", "L40", [181.0, 90.5, 90.5], 864.0, SHEET),
    peak("l4", "L4", [121.0, 60.0, 30.3], 300.0, SHEET),
    peak("v100-pcie", "V100 PCIe", [112.0, 0.0, 14.0], 900.0, SHEET),
    peak("v100", "V100", [125.0, 0.0, 15.7], 900.0, SHEET),
    peak("t4", "T4", [65.0, 0.0, 8.1], 320.0, SHEET),
    peak("rtx pro 6000 blackwell workstation edition", "RTX PRO 6000", [503.8, 251.9, 125.9], 1792.0, BLACKWELL),
    peak("rtx 5090", "RTX 5090", [209.6, 104.8, 104.8], 1792.0, BLACKWELL),
    peak("rtx 5080", "RTX 5080", [112.6, 56.3, 56.3], 960.0, BLACKWELL),
    peak("rtx 5070 ti", "RTX 5070 Ti", [87.8, 43.9, 43.9], 896.0, BLACKWELL),
    peak("rtx 5070", "RTX 5070", [61.8, 30.9, 30.9], 672.0, BLACKWELL),
    peak("rtx 5060 ti", "RTX 5060 Ti", [47.4, 23.7, 23.7], 448.0, BLACKWELL),
    peak("rtx 5060", "RTX 5060", [38.4, 19.2, 19.2], 448.0, BLACKWELL),
    peak("rtx 6000 ada generation", "RTX 6000 Ada", [364.4, 182.2, 91.1], 960.0, ADA),
    peak("rtx 5000 ada generation", "RTX 5000 Ada", [261.2, 130.6, 65.3], 576.0, ADA),
    peak("rtx 4500 ada generation", "RTX 4500 Ada", [158.4, 79.2, 39.6], 432.0, ADA),
    peak("rtx 4000 ada generation", "RTX 4000 Ada", [106.8, 53.4, 26.7], 360.0, ADA),
    peak("rtx 4090", "RTX 4090", [165.2, 82.6, 82.6], 1008.0, ADA),
    peak("rtx 4090 d", "RTX 4090 D", [147.0, 73.5, 73.5], 1008.0, ADA),
    peak("rtx 4080 super", "RTX 4080 SUPER", [104.4, 52.2, 52.2], 736.0, ADA),
    peak("rtx 4080", "RTX 4080", [97.4, 48.7, 48.7], 717.0, ADA),
    peak("rtx 4070 ti super", "RTX 4070 Ti SUPER", [88.2, 44.1, 44.1], 672.0, ADA),
    peak("rtx 4070 ti", "RTX 4070 Ti", [80.2, 40.1, 40.1], 504.0, ADA),
    peak("rtx 4070 super", "RTX 4070 SUPER", [71.0, 35.5, 35.5], 504.0, ADA),
    peak("rtx 4070", "RTX 4070", [58.2, 29.1, 29.1], 504.0, ADA),
    peak("rtx 4060 ti", "RTX 4060 Ti", [44.2, 22.1, 22.1], 288.0, ADA),
    peak("rtx 4060", "RTX 4060", [30.2, 15.1, 15.1], 272.0, ADA),
    peak("rtx a6000", "RTX A6000", [154.8, 77.4, 38.7], 768.0, AMPERE),
    peak("rtx a5500", "RTX A5500", [136.4, 68.2, 34.1], 768.0, AMPERE),
    peak("rtx a5000", "RTX A5000", [111.2, 55.6, 27.8], 768.0, AMPERE),
    peak("rtx a4500", "RTX A4500", [94.8, 47.4, 23.7], 640.0, AMPERE),
    peak("rtx a4000", "RTX A4000", [76.8, 38.4, 19.2], 448.0, AMPERE),
    peak("rtx a2000", "RTX A2000", [32.0, 16.0, 8.0], 288.0, AMPERE),
    peak("rtx 3090 ti", "RTX 3090 Ti", [80.0, 40.0, 40.0], 1008.0, AMPERE),
    peak("rtx 3090", "RTX 3090", [71.2, 35.6, 35.6], 936.0, AMPERE),
    peak("rtx 3080 ti", "RTX 3080 Ti", [68.2, 34.1, 34.1], 912.0, AMPERE),
    peak("rtx 3080", "RTX 3080", [61.2, 30.6, 30.6], 912.0, AMPERE),
    peak("rtx 3070 ti", "RTX 3070 Ti", [43.4, 21.7, 21.7], 608.0, AMPERE),
    peak("rtx 3070", "RTX 3070", [40.6, 20.3, 20.3], 448.0, AMPERE),
    peak("rtx 3060 ti", "RTX 3060 Ti", [32.4, 16.2, 16.2], 608.0, AMPERE),
    peak("rtx 3060", "RTX 3060", [25.4, 12.7, 12.7], 360.0, AMPERE),
    peak("rtx 3050", "RTX 3050", [18.2, 9.1, 9.1], 224.0, AMPERE),
    peak("quadro rtx 8000", "Quadro RTX 8000", [130.5, 0.0, 16.3], 672.0, TURING),
    peak("quadro rtx 6000", "Quadro RTX 6000", [130.5, 0.0, 16.3], 672.0, TURING),
    peak("quadro rtx 5000", "Quadro RTX 5000", [89.2, 0.0, 11.2], 448.0, TURING),
    peak("quadro rtx 4000", "Quadro RTX 4000", [57.0, 0.0, 7.1], 416.0, TURING),
    peak("titan rtx", "TITAN RTX", [130.5, 0.0, 16.3], 672.0, TURING),
    peak("rtx 2080 ti", "RTX 2080 Ti", [56.9, 0.0, 14.2], 616.0, TURING),
    peak("rtx 2080 super", "RTX 2080 SUPER", [44.6, 0.0, 11.2], 496.0, TURING),
    peak("rtx 2080", "RTX 2080", [42.4, 0.0, 10.6], 448.0, TURING),
    peak("rtx 2070 super", "RTX 2070 SUPER", [36.3, 0.0, 9.1], 448.0, TURING),
    peak("rtx 2070", "RTX 2070", [31.5, 0.0, 7.9], 448.0, TURING),
    peak("rtx 2060 super", "RTX 2060 SUPER", [28.7, 0.0, 7.2], 448.0, TURING),
    peak("rtx 2060", "RTX 2060", [28.7, 0.0, 7.2], 336.0, TURING),
];

/// Devices of one name with other units or another memory: the name, the units (0 where they are the same), the memory in GiB as the
/// driver reports it (from, to), and what that one can do. (Where the memory tells, it is some hundred MiB less than the nominal size.)
#[rustfmt::skip]
const VARIANTS: &[(u64, [u64; 2], Peak)] = &[
    (104, ANY, peak("mi250", "MI250 (one die)", [181.0, 0.0, 45.3], 1638.0, CDNA)),
    (110, ANY, peak("mi250", "MI250X (one die)", [191.5, 0.0, 47.9], 1638.0, CDNA)),
    (0, [84, 97], peak("gh200", "GH200 (96 GB)", [989.0, 494.0, 67.0], 4000.0, SHEET)),
    (132, [72, 81], peak("h100", "H100 (80 GB)", [989.0, 494.0, 67.0], 3350.0, SHEET)),
    (0, [84, 97], peak("h20", "H20 (96 GB)", [148.0, 74.0, 44.0], 4000.0, SHEET)),
    (0, [36, 41], peak("a100", "A100 (40 GB)", [312.0, 156.0, 19.5], 1555.0, SHEET)),
    (0, [36, 41], peak("a800", "A800 (40 GB)", [312.0, 156.0, 19.5], 1555.0, SHEET)),
    (68, ANY, peak("rtx 3080", "RTX 3080 (10 GB)", [59.6, 29.8, 29.8], 760.0, AMPERE)),
    (0, [6, 8], peak("rtx 3060", "RTX 3060 (8 GB)", [25.4, 12.7, 12.7], 240.0, AMPERE)),
    (18, ANY, peak("rtx 3050", "RTX 3050 (6 GB)", [13.6, 6.8, 6.8], 168.0, AMPERE)),
    (30, ANY, peak("rtx 2060", "RTX 2060 (6 GB)", [25.8, 0.0, 6.5], 336.0, TURING)),
];

/// Any memory.
const ANY: [u64; 2] = [0, u64::MAX];

/// Product lines in which another suffix is another device: `RTX 3060 Ti`, `RTX 4090 Laptop GPU`, `Quadro RTX 5000 with Max-Q
/// Design`.
const LINES: [&str; 4] = ["rtx ", "quadro ", "titan ", "rx "];

/// What the device called `name` can do at most: of several variants the one with these units and this memory, where the file has
/// them, else the fastest.
#[must_use]
pub fn peak_of(name: &str, units: Option<u64>, memory_bytes: Option<u64>) -> Option<&'static Peak> {
    let peak = peak_named(name)?;
    let is_it = |(own_units, [from, to], of): &&(u64, [u64; 2], Peak)| {
        let has_units = *own_units == 0 || units == Some(*own_units);
        let gib = memory_bytes.map(|bytes| bytes >> 30);
        let has_memory = [*from, *to] == ANY || gib.is_some_and(|gib| (*from..=*to).contains(&gib));
        of.name == peak.name && has_units && has_memory
    };
    Some(VARIANTS.iter().find(is_it).map_or(peak, |(.., variant)| variant))
}

/// The row of a name.
fn peak_named(name: &str) -> Option<&'static Peak> {
    let name = name.trim().to_ascii_lowercase();
    PEAKS.iter().find(|peak| {
        if LINES.iter().any(|line| peak.name.starts_with(line)) {
            is_exactly(&name, peak.name)
        } else {
            occurs(&name, peak.name)
        }
    })
}

/// Whether `name` ends with `device`, or with a size of memory behind it: `nvidia geforce rtx 3060`, `... rtx 3080 12gb`.
fn is_exactly(name: &str, device: &str) -> bool {
    let rest = name.match_indices(device).map(|(at, _)| (&name[..at], &name[at + device.len()..]));
    rest.into_iter().any(|(before, after)| {
        let size = after.strip_prefix(' ').and_then(|size| size.strip_suffix("gb"));
        let is_size = |size: &str| !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit());
        let line = before.trim_end();
        // (A Quadro RTX 5000 is no GeForce; the names of rows with a line of their own contain it.)
        let known = ["", "nvidia", "geforce", "nvidia geforce", "amd radeon", "radeon"];
        known.contains(&line) && (after.is_empty() || size.is_some_and(is_size))
    })
}

#[cfg(test)]
mod tests {
    use super::super::of_device;
    use super::*;

    #[test]
    fn peaks_are_of_known_devices() {
        for peak in PEAKS {
            assert!(of_device(peak.name).is_some(), "{}", peak.name);
            assert!(peak.half_tflops >= peak.tf32_tflops && peak.f32_tflops > 0.0, "{}", peak.name);
            assert!(peak.gb_per_s > 0.0 && !peak.source.is_empty(), "{}", peak.name);
            assert_eq!(peak_of(peak.name, None, None), Some(peak), "{} hides it", peak.name);
        }
    }

    #[test]
    fn names_as_drivers_report_them() {
        for (name, title) in [
            ("NVIDIA A100-SXM4-80GB", Some("A100")),
            ("NVIDIA H100 80GB HBM3", Some("H100")),
            ("NVIDIA H100 PCIe", Some("H100 PCIe")),
            ("AMD Instinct MI300X VF", Some("MI300X")),
            ("AMD Instinct MI300A", Some("MI300A")),
            ("AMD Radeon RX 7900 XTX", Some("RX 7900 XTX")),
            ("NVIDIA GeForce RTX 3090", Some("RTX 3090")),
            ("GeForce RTX 2080 Ti", Some("RTX 2080 Ti")),
            ("NVIDIA GeForce RTX 3060", Some("RTX 3060")),
            ("NVIDIA GeForce RTX 3060 Ti", Some("RTX 3060 Ti")),
            ("NVIDIA GeForce RTX 4070 Ti SUPER", Some("RTX 4070 Ti SUPER")),
            ("NVIDIA GeForce RTX 4060 Ti 16GB", Some("RTX 4060 Ti")),
            ("NVIDIA GeForce RTX 4090 D", Some("RTX 4090 D")),
            ("NVIDIA RTX A5000", Some("RTX A5000")),
            ("NVIDIA RTX 5000 Ada Generation", Some("RTX 5000 Ada")),
            ("Quadro RTX 5000", Some("Quadro RTX 5000")),
            ("NVIDIA TITAN RTX", Some("TITAN RTX")),
            ("Tesla V100-SXM2-32GB", Some("V100")),
            ("Tesla V100-PCIE-16GB", Some("V100 PCIe")),
            ("Tesla T4", Some("T4")),
            ("NVIDIA A10G", Some("A10G")),
            ("NVIDIA A10", Some("A10")),
            // Other clocks, other numbers of cores.
            ("NVIDIA GeForce RTX 3060 Laptop GPU", None),
            ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
            ("NVIDIA RTX 500 Ada Generation Laptop GPU", None),
            ("NVIDIA RTX A4000 Laptop GPU", None),
            ("Quadro RTX 5000 with Max-Q Design", None),
            ("NVIDIA GeForce RTX 3080 Lite", None),
            ("Radeon", None),
            ("", None),
        ] {
            assert_eq!(peak_of(name, None, None).map(|peak| peak.title), title, "{name}");
        }
    }

    #[test]
    fn of_devices_of_one_name_units_and_memory_tell_which() {
        const GIB: u64 = 1 << 30;
        for (name, units, bytes, title) in [
            ("NVIDIA GeForce RTX 3080", Some(68), Some(10 * GIB - 1), "RTX 3080 (10 GB)"),
            ("NVIDIA GeForce RTX 3080", Some(70), Some(12 * GIB - 1), "RTX 3080"),
            ("NVIDIA GeForce RTX 3080", None, None, "RTX 3080"),
            ("NVIDIA GeForce RTX 3060", Some(28), Some(12 * GIB - 1), "RTX 3060"),
            ("NVIDIA GeForce RTX 3060", Some(28), Some(8 * GIB - 1), "RTX 3060 (8 GB)"),
            ("NVIDIA A100-PCIE-40GB", Some(108), Some(42_505_273_344), "A100 (40 GB)"),
            ("NVIDIA A100-SXM4-80GB", Some(108), Some(85_899_345_920), "A100"),
            ("NVIDIA H100 80GB HBM3", Some(132), Some(85_028_765_696), "H100 (80 GB)"),
            ("AMD Instinct MI250X/MI250", Some(104), Some(64 * GIB), "MI250 (one die)"),
        ] {
            assert_eq!(peak_of(name, units, bytes).map(|peak| peak.title), Some(title), "{name}");
        }
        for (_, [from, to], variant) in VARIANTS {
            let row = peak_named(variant.name).unwrap();
            assert!(row.name == variant.name && from < to, "{variant:?}");
            // (Without units and memory, what follows stays a bound.)
            assert!(row.half_tflops >= variant.half_tflops && row.gb_per_s >= variant.gb_per_s);
        }
    }

    #[test]
    fn sums_of_32_bits_run_at_half_rate_on_geforce() {
        let rates = |name| {
            let peak = peak_of(name, None, None).unwrap();
            (peak.half_tflops / peak.f32_tflops).round() as u32
        };
        assert_eq!(rates("NVIDIA GeForce RTX 3060"), 2);
        assert_eq!(rates("NVIDIA GeForce RTX 4090"), 2);
        assert_eq!(rates("NVIDIA GeForce RTX 2080"), 4);
        assert_eq!(rates("NVIDIA RTX A6000"), 4);
        assert_eq!(rates("Quadro RTX 6000"), 8);
    }
}
