//! Maps device names, and architecture words in kernel names, to architectures and peak rates.

mod by_units;
mod peaks;

pub use by_units::{ByUnits, by_units};
pub use peaks::{Peak, peak_of};

/// One device.
pub struct Device {
    /// Part of the device name as the runtime reports it, in lower case.
    pub name: &'static str,
    /// The architecture, as compilers spell it.
    pub arch: &'static str,
    /// Where the fact comes from, and whether a trace has shown it.
    pub source: &'static str,
}

const AMD: &str = "AMD GPU hardware specifications (LLVM target names)";
const NVIDIA: &str = "NVIDIA CUDA GPU compute capability table";

/// Devices; the first row whose name occurs as a word decides, so longer names come first.
pub(crate) const DEVICES: &[Device] = &[
    Device { name: "mi355", arch: "gfx950", source: AMD },
    Device { name: "mi350", arch: "gfx950", source: AMD },
    Device { name: "mi325", arch: "gfx942", source: AMD },
    Device { name: "mi308", arch: "gfx942", source: AMD },
    Device { name: "mi300", arch: "gfx942", source: AMD },
    Device { name: "mi250", arch: "gfx90a", source: AMD },
    Device { name: "mi210", arch: "gfx90a", source: AMD },
    Device { name: "mi100", arch: "gfx908", source: AMD },
    Device { name: "mi50", arch: "gfx906", source: AMD },
    Device { name: "mi60", arch: "gfx906", source: AMD },
    Device { name: "rx 9070", arch: "gfx1201", source: AMD },
    Device { name: "rx 9060", arch: "gfx1200", source: AMD },
    Device { name: "rx 7900", arch: "gfx1100", source: AMD },
    Device { name: "w7900", arch: "gfx1100", source: AMD },
    Device { name: "gb300", arch: "sm_103", source: NVIDIA },
    Device { name: "b300", arch: "sm_103", source: NVIDIA },
    Device { name: "gb200", arch: "sm_100", source: NVIDIA },
    Device { name: "b200", arch: "sm_100", source: NVIDIA },
    Device { name: "b100", arch: "sm_100", source: NVIDIA },
    Device { name: "rtx pro 6000", arch: "sm_120", source: NVIDIA },
    Device { name: "rtx 5090", arch: "sm_120", source: NVIDIA },
    Device { name: "rtx 5080", arch: "sm_120", source: NVIDIA },
    Device { name: "rtx 5070", arch: "sm_120", source: NVIDIA },
    Device { name: "rtx 5060", arch: "sm_120", source: NVIDIA },
    Device { name: "rtx 5050", arch: "sm_120", source: NVIDIA },
    Device { name: "gh200", arch: "sm_90", source: NVIDIA },
    Device { name: "h200", arch: "sm_90", source: NVIDIA },
    Device { name: "h100", arch: "sm_90", source: NVIDIA },
    Device { name: "h800", arch: "sm_90", source: NVIDIA },
    Device { name: "h20", arch: "sm_90", source: NVIDIA },
    Device { name: "l40s", arch: "sm_89", source: NVIDIA },
    Device { name: "l40", arch: "sm_89", source: NVIDIA },
    Device { name: "l20", arch: "sm_89", source: NVIDIA },
    Device { name: "l4", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 6000 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 5000 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4500 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4000 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4000 sff ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 3500 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 3000 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 2000 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 1000 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 500 ada", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4090", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4080", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4070", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4060", arch: "sm_89", source: NVIDIA },
    Device { name: "rtx 4050", arch: "sm_89", source: NVIDIA },
    Device { name: "a100", arch: "sm_80", source: NVIDIA },
    Device { name: "a800", arch: "sm_80", source: NVIDIA },
    Device { name: "pg509-210", arch: "sm_80", source: NVIDIA },
    Device { name: "a30", arch: "sm_80", source: NVIDIA },
    Device { name: "a40", arch: "sm_86", source: NVIDIA },
    Device { name: "a10g", arch: "sm_86", source: NVIDIA },
    Device { name: "a10", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a6000", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a5500", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a5000", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a4500", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a4000", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a3000", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx a2000", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx 3090", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx 3080", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx 3070", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx 3060", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx 3050", arch: "sm_86", source: NVIDIA },
    Device { name: "rtx 8000", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 6000", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 5000", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 4000", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 3000", arch: "sm_75", source: NVIDIA },
    Device { name: "titan rtx", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 2080", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 2070", arch: "sm_75", source: NVIDIA },
    Device { name: "rtx 2060", arch: "sm_75", source: NVIDIA },
    Device { name: "t4", arch: "sm_75", source: NVIDIA },
    Device { name: "v100", arch: "sm_70", source: NVIDIA },
    Device { name: "titan v", arch: "sm_70", source: NVIDIA },
    Device { name: "p100", arch: "sm_60", source: NVIDIA },
];

/// The architecture of the device called `name` (`AMD Instinct MI300X VF`, `NVIDIA H100 80GB HBM3`).
#[must_use]
pub fn of_device(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    DEVICES.iter().find(|device| occurs(&name, device.name)).map(|device| device.arch)
}

/// Whether `word` occurs in `text`, not as part of a longer word or number in front, and not followed
/// by a digit: `h20` is not in `h200`, but `mi300` is in `mi300x`.
fn occurs(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_alphanumeric())
            && !after.is_some_and(|c| c.is_ascii_digit())
    })
}

/// The architecture of an NVIDIA device of this compute capability.
#[must_use]
pub fn of_compute_capability(major: u32, minor: u32) -> String {
    format!("sm_{major}{minor}")
}

/// The architecture of an AMD device by the numbers its runtime reports. (9, 0) is two
/// generations, distinguished by the number of compute units.
#[must_use]
pub fn of_amd_numbers(major: u32, minor: u32, compute_units: u32) -> Option<&'static str> {
    match (major, minor, compute_units) {
        (9, 4, _) => Some("gfx942"),
        (9, 5, _) => Some("gfx950"),
        (9, 0, 104 | 110) => Some("gfx90a"),
        (9, 0, 120) => Some("gfx908"),
        (11, 0, _) => Some("gfx1100"),
        (12, 0, _) => Some("gfx1201"),
        _ => None,
    }
}

/// Architectures of one family: what ran on one of them says something about the others.
pub struct Related {
    /// The family's name.
    pub name: &'static str,
    /// Its architectures, as compilers spell them.
    pub members: &'static [&'static str],
    /// Which results on one apply to another, and which do not, as half a sentence.
    pub carries_over: &'static str,
}

/// Families of architectures that are similar enough for some results on one to apply to another.
pub(crate) const RELATED: &[Related] = &[
    Related {
        name: "CDNA 3 and 4",
        members: &["gfx942", "gfx950"],
        carries_over: "kernel sequences and gaps carry over; kernel selection, FP4 and FP6 paths, tile sizes and \
                       absolute times do not",
    },
    Related {
        name: "Blackwell data centre",
        members: &["sm_100", "sm_103"],
        carries_over: "kernel sequences and gaps carry over; kernel selection, tile sizes and absolute times do not",
    },
];

/// The family with both architectures.
#[must_use]
pub fn related(a: &str, b: &str) -> Option<&'static Related> {
    RELATED.iter().find(|family| family.members.contains(&a) && family.members.contains(&b))
}

/// An architecture as compilers spell it, from how runtimes and people do: `gfx942:sramecc+:xnack-`, `GFX942`,
/// `sm90`, `sm_90a`. `None` for what names no architecture.
#[must_use]
pub fn spelled(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.split(':').next().unwrap_or_default();
    if let Some(number) = text.strip_prefix("gfx") {
        let good = (3..=4).contains(&number.len())
            && number.starts_with(|c: char| c.is_ascii_digit())
            && number.bytes().all(|b| b.is_ascii_hexdigit());
        return good.then(|| text.to_owned());
    }
    let number = text.strip_prefix("sm_").or_else(|| text.strip_prefix("sm"))?;
    // sm_90a is sm_90 with features that are not portable: the same device.
    let digits = number.trim_end_matches(['a', 'f']);
    let good = (2..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    good.then(|| format!("sm_{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_has_one_spelling() {
        for (text, arch) in [
            ("gfx942", Some("gfx942")),
            ("gfx90a:sramecc+:xnack-", Some("gfx90a")),
            (" GFX1100 ", Some("gfx1100")),
            ("sm_90a", Some("sm_90")),
            ("sm100", Some("sm_100")),
            ("gfx9", None),
            ("gfxabc", None),
            ("x86_64", None),
            ("sm_", None),
            ("", None),
        ] {
            assert_eq!(spelled(text).as_deref(), arch, "{text}");
        }
    }

    #[test]
    fn families_hold_architectures_that_have_devices() {
        for family in RELATED {
            for arch in family.members {
                assert_eq!(spelled(arch).as_deref(), Some(*arch));
                assert!(DEVICES.iter().any(|device| device.arch == *arch), "{arch}");
            }
        }
        assert!(related("gfx942", "gfx950").is_some());
        assert!(related("gfx90a", "gfx950").is_none());
        assert!(related("sm_90", "sm_100").is_none());
    }

    #[test]
    fn devices() {
        for (name, arch) in [
            ("AMD Instinct MI300X", Some("gfx942")),
            ("AMD Instinct MI300X VF", Some("gfx942")),
            ("AMD Instinct MI325X", Some("gfx942")),
            ("AMD Instinct MI210", Some("gfx90a")),
            ("AMD Instinct MI250X", Some("gfx90a")),
            ("AMD Instinct MI355X", Some("gfx950")),
            ("NVIDIA H100 80GB HBM3", Some("sm_90")),
            ("NVIDIA H200", Some("sm_90")),
            ("NVIDIA H20", Some("sm_90")),
            ("NVIDIA GB200", Some("sm_100")),
            ("NVIDIA B200", Some("sm_100")),
            ("NVIDIA A100-SXM4-80GB", Some("sm_80")),
            ("Tesla V100-SXM2-16GB", Some("sm_70")),
            ("NVIDIA L4", Some("sm_89")),
            ("NVIDIA L40S", Some("sm_89")),
            ("NVIDIA RTX 4000 Ada Generation", Some("sm_89")),
            ("Quadro RTX 4000", Some("sm_75")),
            ("NVIDIA GeForce RTX 4090 Laptop GPU", Some("sm_89")),
            ("NVIDIA RTX A4000", Some("sm_86")),
            ("AMD Radeon Graphics", None),
            ("", None),
        ] {
            assert_eq!(of_device(name), arch, "{name}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(of_compute_capability(10, 0), "sm_100");
        assert_eq!(of_amd_numbers(9, 0, 104), Some("gfx90a"));
        assert_eq!(of_amd_numbers(9, 0, 120), Some("gfx908"));
        assert_eq!(of_amd_numbers(9, 4, 304), Some("gfx942"));
        assert_eq!(of_amd_numbers(9, 0, 7), None);
    }

    #[test]
    fn every_device_finds_itself() {
        for device in DEVICES {
            assert_eq!(of_device(device.name), Some(device.arch), "{}", device.name);
            assert!(!device.source.is_empty());
        }
    }
}
