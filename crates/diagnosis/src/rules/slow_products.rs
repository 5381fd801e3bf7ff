//! M14: products of a size that the library's kernel runs slower than other sizes of the same run, without a reason in the sizes.

use catalog::devices::Format;
use host::rates::ShapeRate;
use report::units::{percent, plural, time};

use crate::{Confidence, Facts, Finding, Level, Rule};

/// A rate below this part of another one is slow: rates of one kernel vary by some percent from size to size.
const SLOW: f64 = 0.85;
/// Calls of a size, for a rate that is no accident.
const LEAST_CALLS: usize = 3;
/// Of the wall time: all that such products take more.
const LEAST_SHARE: f64 = 0.01;

/// The pattern of attention in single kernels, and the products in it.
const ATTENTION: &str = "K04";
const BATCHED: [&str; 2] = ["aten::bmm", "aten::baddbmm"];

/// A size that is slow, and the one that shows it.
struct Slow<'a> {
    own: &'a ShapeRate,
    best: &'a ShapeRate,
}

impl Slow<'_> {
    /// The part of its time that would go away at the other's rate.
    fn part(&self) -> f64 {
        1.0 - self.own.tflops / self.best.tflops
    }

    fn more_ns(&self) -> i64 {
        (self.own.device_ns as f64 * self.part()) as i64
    }
}

/// The fastest of the sizes that could not be faster for their size: no more operations in a call, and no more for each byte.
fn best_of<'a>(own: &ShapeRate, all: &'a [ShapeRate]) -> Option<&'a ShapeRate> {
    let is_harder = |other: &&ShapeRate| {
        (&other.name, other.format) == (&own.name, own.format)
            && other.flops <= own.flops
            && other.intensity <= own.intensity
            && other.ops.len() >= LEAST_CALLS
    };
    let best = all.iter().filter(is_harder).max_by(|a, b| a.tflops.total_cmp(&b.tflops))?;
    (own.tflops < SLOW * best.tflops).then_some(best)
}

pub(super) fn slow_products(facts: &Facts<'_>) -> Option<Finding> {
    let all = &facts.host.rates.shapes;
    // (Rows that are no multiple of 16 bytes are a reason, and have a finding of their own.)
    let is_aligned = |own: &ShapeRate| {
        !facts
            .host
            .misaligned
            .iter()
            .any(|row| row.name == own.name && own.dims.ends_with(&row.dims))
    };
    // (In another number format other kernels run them: both gains are of the same time.)
    let is_replaced = super::precision::is_advised(facts);
    let keeps_kernel = |own: &&ShapeRate| !is_replaced || own.format != Format::F32.id();
    // (A fused attention replaces its products.)
    let fuses = facts.triage.fuse.iter().any(|row| row.pattern_id == ATTENTION && row.is_printed());
    let remains = |own: &&ShapeRate| !fuses || !BATCHED.contains(&own.name.as_str());
    let counts = |own: &&ShapeRate| own.ops.len() >= LEAST_CALLS && is_aligned(own);
    let slow = all.iter().filter(counts).filter(keeps_kernel).filter(remains).filter_map(|own| {
        let best = best_of(own, all)?;
        Some(Slow { own, best })
    });
    let slow: Vec<Slow<'_>> = slow.collect();
    let more_ns = slow.iter().fold(0_i64, |sum, one| sum.saturating_add(one.more_ns()));
    let wall_ns = facts.wall_ns();
    if (more_ns as f64) < LEAST_SHARE * wall_ns as f64 {
        return None;
    }
    let most = slow.iter().max_by_key(|one| one.more_ns())?;
    let saved_ns = saved_ns(facts, &slow);
    let share = saved_ns as f64 / wall_ns as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let Slow { own, best } = most;
    let text = format!(
        "{} {} in {} reaches {:.1} TFLOP/s in {} ({}); {}, with no more operations, reaches {:.1} TFLOP/s.",
        own.name,
        own.dims,
        own.format,
        own.tflops,
        plural(own.ops.len() as u64, "call", "calls"),
        time(own.device_ns),
        best.dims,
        best.tflops,
    );
    let others = match slow.len() - 1 {
        0 => String::new(),
        n => format!(
            "; with {}, {} in all",
            plural(n as u64, "other slow size", "other slow sizes"),
            time(more_ns)
        ),
    };
    let meaning = format!(
        "At the faster rate it would take {} less ({} of its time){others}. An estimate: a long product may run at a lower clock, too.",
        time(most.more_ns()),
        percent(100.0 * most.part()),
    );
    let finding = Finding::fact(Rule::Flops, "slow_products", text)
        .level(Level::of_share(share))
        .confidence(Confidence::Medium)
        .bound(saved_ns)
        .means(meaning)
        .with("rates", "GPU time of this size", time(own.device_ns));
    Some(finding)
}

/// How much sooner the run ends if all slow products reach the rates of the others.
fn saved_ns(facts: &Facts<'_>, slow: &[Slow<'_>]) -> i64 {
    let of_size = |one: &Slow<'_>| {
        let part = one.part();
        one.own.ops.iter().map(move |op| (*op, part)).collect::<Vec<_>>()
    };
    let ops: Vec<(usize, f64)> = slow.iter().flat_map(of_size).collect();
    let saved = facts.devices().map(|device| device.saved_by_faster_ns(&ops));
    saved.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &str, flops: i128, intensity: f64, tflops: f64) -> ShapeRate {
        ShapeRate {
            name: "aten::mm".to_owned(),
            format: "bf16",
            dims: dims.to_owned(),
            flops,
            device_ns: 1_000_000,
            tflops,
            intensity,
            ops: vec![1, 2, 3],
        }
    }

    #[test]
    fn a_size_is_slow_where_one_that_is_no_larger_is_faster() {
        let best = |own: &ShapeRate, others: &[ShapeRate]| {
            best_of(own, others).map(|one| one.dims.clone())
        };
        let own = shape("own", 100, 50.0, 400.0);
        let smaller = shape("smaller", 60, 40.0, 600.0);
        assert_eq!(best(&own, std::slice::from_ref(&smaller)), Some("smaller".to_owned()));
        // More operations, or more for each byte, are a reason to be faster.
        assert_eq!(best(&own, &[shape("larger", 200, 50.0, 600.0)]), None);
        assert_eq!(best(&own, &[shape("denser", 60, 80.0, 600.0)]), None);
        assert_eq!(best(&own, &[shape("close", 60, 40.0, 440.0)]), None, "rates vary by that much");
        assert_eq!(best(&own, &[ShapeRate { format: "fp32", ..smaller.clone() }]), None);
        assert_eq!(best(&own, &[ShapeRate { ops: vec![1], ..smaller }]), None, "one call");
        let slow = Slow { own: &own, best: &shape("best", 60, 40.0, 800.0) };
        assert_eq!(slow.more_ns(), 500_000);
    }
}
