//! M14: floating point operations by the sizes of inputs.

use report::units::{count, percent};

use crate::{Confidence, Facts, Finding, Rule};

/// Kernels of graphs from this share on: their ops are not in the file.
const GRAPHS: f64 = 0.5;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let flops = &facts.host.flops;
    let mut found = Vec::new();
    if flops.counted > 0 {
        let mut text = format!("{} in {} ops", operations(flops.total), count(flops.counted));
        let busy: i64 = facts.devices().filter_map(|device| Some(device.busy()?.1.busy_ns)).sum();
        let covered = flops.device_ns as f64 / busy.max(1) as f64;
        if let Some(rate) = flops.tflops {
            text.push_str(&format!(
                "; while these run ({} of the busy time) {rate:.1} TFLOP/s",
                percent(100.0 * covered.min(1.0))
            ));
        }
        text.push('.');
        let mut finding = Finding::fact(Rule::Flops, "counted", text).with(
            "flops.total",
            "operations",
            flops.total,
        );
        if let Some(rate) = flops.tflops {
            finding = finding.with("flops.tflops", "TFLOP/s", format!("{rate:.6}"));
        }
        found.push(finding);
    }
    if flops.uncovered > 0 {
        let text =
            format!("{} ops with a formula have no usable input sizes.", count(flops.uncovered));
        found.push(
            Finding::fact(Rule::Flops, "shapes_missing", text)
                .confidence(Confidence::High)
                .means("Record with record_shapes=True.")
                .with("flops.uncovered", "ops", count(flops.uncovered)),
        );
    }
    for device in facts.devices() {
        let share = device.figures.graphs.share_n.unwrap_or_default();
        if share >= GRAPHS {
            let text = format!(
                "Graphs launched {} of the kernels: their ops and modules are not in the file.",
                percent(100.0 * share)
            );
            found.push(
                Finding::fact(Rule::Flops, "not_coverable", text)
                    .on(device.name)
                    .means("A trace of the graph's capture has them.")
                    .with(
                        format!("verdicts.devices.{}.M17", device.name),
                        "kernels in graphs",
                        count(device.figures.graphs.kernels_in_graphs as u64),
                    ),
            );
        }
    }
    found
}

/// `5.761 TFLOP`, `8.19 GFLOP`, `820 kFLOP`.
fn operations(flops: i128) -> String {
    let (unit, size) = match flops {
        1_000_000_000_000.. => ("TFLOP", 1e12),
        1_000_000_000.. => ("GFLOP", 1e9),
        1_000_000.. => ("MFLOP", 1e6),
        _ => ("kFLOP", 1e3),
    };
    format!("{:.3} {unit}", flops as f64 / size)
}
