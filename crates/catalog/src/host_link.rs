//! How fast a device reads memory of the host at most: the width and the generation of its bus.

use crate::architectures;

/// One direction of 16 lanes, in GB/s, of the third, fourth and fifth generation (PCI Express Base Specification: 8, 16 and 32 GT/s a
/// lane, 128 of 130 bits are data).
const PCIE: [f64; 3] = [15.75, 31.5, 63.0];
/// One direction of NVLink-C2C between Grace and its GPU, in GB/s (NVIDIA GH200 Grace Hopper Superchip, datasheet: 900 both ways).
const C2C: f64 = 450.0;

/// Modules of GPUs with a Grace CPU, in lower case.
const WITH_GRACE: [&str; 3] = ["gh200", "gb200", "gb300"];
/// AMD's accelerators on a bus of the fifth and of the fourth generation (their data sheets). Of an MI250X in a node of its own, and an
/// MI300A, which shares the memory of its CPU, nothing is said.
const AMD: [(&str, f64); 7] = [
    ("mi300x", PCIE[2]),
    ("mi308x", PCIE[2]),
    ("mi325x", PCIE[2]),
    ("mi350x", PCIE[2]),
    ("mi355x", PCIE[2]),
    ("mi210", PCIE[1]),
    ("mi100", PCIE[1]),
];

/// At most so many GB/s go from the host to a device, by its name and its compute capability times ten, if it has one; `None` where that is
/// not known. A card may have fewer lanes.
#[must_use]
pub fn host_link_gb_per_s(name: &str, capability: Option<u32>) -> Option<f64> {
    let name = name.to_ascii_lowercase();
    if WITH_GRACE.iter().any(|module| name.contains(module)) {
        return Some(C2C);
    }
    if let Some((_, rate)) = AMD.iter().find(|(part, _)| name.contains(part)) {
        return Some(*rate);
    }
    if name.is_empty()
        || name.contains("amd")
        || architectures::of_device(&name).is_some_and(|arch| arch.starts_with("gfx"))
    {
        return None;
    }
    // (NVIDIA's white papers of each generation; Hopper's and Blackwell's cards have the fifth.)
    match capability? {
        // (Modules that share the memory of their CPU.)
        62 | 72 | 87 => None,
        60..80 => Some(PCIE[0]),
        80..90 => Some(PCIE[1]),
        90.. => Some(PCIE[2]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::host_link_gb_per_s;

    #[test]
    fn a_bus_is_of_a_generation() {
        for (name, capability, rate) in [
            ("NVIDIA H100 80GB HBM3", Some(90), Some(63.0)),
            ("NVIDIA GH200 480GB", Some(90), Some(450.0)),
            ("NVIDIA A100-SXM4-80GB", Some(80), Some(31.5)),
            ("NVIDIA GeForce RTX 4060", Some(89), Some(31.5)),
            ("Tesla T4", Some(75), Some(15.75)),
            ("AMD Instinct MI300X", Some(94), Some(63.0)),
            ("AMD Instinct MI250X", Some(90), None),
            ("Orin", Some(87), None),
            ("", Some(80), None),
            ("", None, None),
        ] {
            assert_eq!(host_link_gb_per_s(name, capability), rate, "{name}");
        }
    }
}
