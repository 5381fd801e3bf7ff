//! GPUs of which a file tells neither name nor compute capability: by the number of their multiprocessors and by the generation that
//! their kernels were made for.
//!
//! Neither is enough alone. A library runs kernels of an earlier generation where it has none of the device's own (cuBLAS has `volta_sgemm`
//! on Turing, `ampere_sgemm` on Hopper), and GPUs of two generations have 80 multiprocessors.

/// A GPU, or several of one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByUnits {
    /// The latest generations of which it has kernels, as compute capabilities times ten.
    pub generations: &'static [u32],
    /// Its multiprocessors.
    pub units: u64,
    /// The architecture, as compilers spell it.
    pub arch: &'static str,
    /// Its name in the table of peak rates, where all such GPUs have these.
    pub name: &'static str,
    /// Where the number of multiprocessors comes from.
    pub source: &'static str,
}

/// The rows; a GPU that is in none is not known.
pub(crate) const BY_UNITS: &[ByUnits] = &[
    // (A GeForce RTX 3080 Ti has as many, and kernels of its own generation.)
    ByUnits {
        generations: &[70],
        units: 80,
        arch: "sm_70",
        name: "v100",
        source: "NVIDIA Tesla V100 GPU Architecture, white paper, table 1",
    },
    // (And a GeForce RTX 2070 SUPER.)
    ByUnits {
        generations: &[70, 75],
        units: 40,
        arch: "sm_75",
        name: "",
        source: "NVIDIA T4 data sheet: 2560 CUDA cores, 64 of a multiprocessor",
    },
    ByUnits {
        generations: &[70, 75, 80],
        units: 108,
        arch: "sm_80",
        name: "a100",
        source: "NVIDIA A100 Tensor Core GPU Architecture, white paper, table 4",
    },
    ByUnits {
        generations: &[80, 90],
        units: 132,
        arch: "sm_90",
        name: "",
        source: "NVIDIA H100 Tensor Core GPU Architecture, white paper, table 3 (SXM5)",
    },
    ByUnits {
        generations: &[80, 90],
        units: 114,
        arch: "sm_90",
        name: "",
        source: "NVIDIA H100 Tensor Core GPU Architecture, white paper, table 3 (PCIe)",
    },
];

/// The GPU with so many multiprocessors that has kernels of this generation, and of no later one.
#[must_use]
pub fn by_units(generation: u32, units: u64) -> Option<&'static ByUnits> {
    BY_UNITS.iter().find(|row| row.units == units && row.generations.contains(&generation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architectures::peak_of;

    #[test]
    fn a_generation_and_a_number_are_one_gpu() {
        let arch = |generation, units| by_units(generation, units).map(|row| row.arch);
        assert_eq!(arch(70, 80), Some("sm_70"));
        assert_eq!(arch(86, 80), None, "a GeForce RTX 3080 Ti");
        assert_eq!(arch(70, 68), None, "kernels of Volta on a GeForce RTX 2080 Ti");
        assert_eq!((arch(80, 108), arch(80, 132)), (Some("sm_80"), Some("sm_90")));
    }

    #[test]
    fn names_have_peak_rates_and_rows_their_sources() {
        for row in BY_UNITS {
            assert!(row.name.is_empty() || peak_of(row.name, None, None).is_some(), "{row:?}");
            assert!(!row.source.is_empty() && !row.generations.is_empty(), "{row:?}");
        }
    }
}
