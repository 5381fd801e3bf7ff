//! The JSON of a breakdown, as `kinetoscope breakdown --json` prints it.

use serde::Serialize;

use crate::{CategoryRow, FamilyRow, GpuTotals, KernelRow, TraceReport};

/// `gpu`, `categories`, `families` and `kernels`. The caller adds the schema number, the problems and Perfetto's
/// verdict.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BreakdownJson<'a> {
    /// Sums over all GPU slices.
    pub gpu: &'a GpuTotals,
    /// Categories, most time first.
    pub categories: &'a [CategoryRow],
    /// Families, most time first.
    pub families: &'a [FamilyRow],
    /// Kernels by name, most time first.
    pub kernels: &'a [KernelRow],
}

impl TraceReport {
    /// The breakdown's part of the report.
    #[must_use]
    pub fn breakdown(&self) -> BreakdownJson<'_> {
        BreakdownJson {
            gpu: &self.overview.gpu,
            categories: &self.categories,
            families: &self.families,
            kernels: &self.kernels,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyze};

    #[test]
    fn the_promised_keys_are_there() {
        let report = analyze(&fixture::trace(), &Options::default());
        let json = serde_json::to_value(report.breakdown()).unwrap();
        for key in ["busy_ns", "idle_ns", "span_ns", "kernel_sum_ns", "n_kernels", "n_gpu_events"] {
            assert!(json["gpu"][key].is_number(), "gpu.{key}");
        }
        for key in ["category", "total_ns", "share_pct"] {
            assert!(!json["categories"][0][key].is_null(), "categories.{key}");
        }
        for key in ["kernel_name", "category", "family", "total_ns", "launches"] {
            assert!(!json["kernels"][0][key].is_null(), "kernels.{key}");
        }
    }
}
