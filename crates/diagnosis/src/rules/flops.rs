//! M14: floating point operations by the sizes of inputs.

use host::custom_ops::{Bound, CustomOpRow};
use host::flops::FlopsRow;
use host::rates::RateRow;
use host::traffic::UncoveredRow;
use report::units::{count, percent, plural, time};
use triage::WallPart;

use crate::{Confidence, Facts, Finding, Level, Rule};

/// Kernels of graphs from this share on: their ops are not in the file.
const GRAPHS: f64 = 0.5;
/// Below this share of the busy time, the ops that are counted tell nothing of the run.
const LEAST_COVERED: f64 = 0.05;
/// And from this share on no other op is worth a word.
const NEARLY_ALL: f64 = 0.8;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let flops = &facts.host.flops;
    let mut found = Vec::new();
    let busy = facts.busy_ns();
    let covered = flops.device_ns as f64 / busy.max(1) as f64;
    if flops.counted > 0 && (covered >= LEAST_COVERED || !facts.has_gpu()) {
        let mut text = counted(facts);
        if let Some(rate) = flops.tflops {
            text.push_str(&format!(
                "; while these run ({}) {}",
                facts.of_busy(flops.device_ns),
                per_second(rate)
            ));
        }
        text.push('.');
        text.push_str(&largest(facts, busy));
        let mut finding = Finding::fact(Rule::Flops, "counted", text).means(near_peak(facts)).with(
            "flops.total",
            "operations",
            flops.total,
        );
        if let Some(rate) = flops.tflops {
            finding = finding.with("flops.tflops", "TFLOP/s", format!("{rate:.6}"));
        }
        found.push(finding);
    }
    found.extend(custom_ops(facts));
    found.extend(misaligned(facts));
    found.extend(super::slow_products::slow_products(facts));
    // (Where graphs launch nearly all work, sizes of the few other ops would tell of nothing.)
    let in_graphs = facts
        .devices()
        .any(|device| device.figures.graphs.share_n.is_some_and(|share| share >= NEARLY_ALL));
    let without_sizes = || flops.ops.iter().filter(|row| row.uncovered > 0);
    // (Of a name's time the part of the calls without sizes.)
    let part = |row: &FlopsRow| {
        row.device_ns as f64 * row.uncovered as f64 / (row.uncovered + row.counted).max(1) as f64
    };
    let without_ns: f64 = without_sizes().map(part).sum();
    let is_much = !facts.has_gpu() || without_ns >= LEAST_COVERED * busy as f64;
    if flops.uncovered > 0 && !in_graphs && is_much {
        let mut rows: Vec<_> = without_sizes().collect();
        trace::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.uncovered));
        let named = rows.iter().take(NAMED);
        let named: Vec<String> =
            named.map(|row| format!("{} {}", count(row.uncovered), row.name)).collect();
        let text = format!(
            "{} with a formula {} no usable input sizes{} {}.",
            plural(flops.uncovered, "op", "ops"),
            if flops.uncovered == 1 { "has" } else { "have" },
            if rows.len() > NAMED { ", among them" } else { ":" },
            named.join(", ")
        );
        found.push(
            Finding::fact(Rule::Flops, "shapes_missing", text)
                .confidence(Confidence::High)
                .aside(is_seldom_busy(facts) || has_sizes(facts))
                .means(shapes_advice(facts))
                .with("flops.uncovered", "ops", count(flops.uncovered)),
        );
    }
    for device in facts.devices() {
        let share = device.figures.graphs.share_n.unwrap_or_default();
        if share >= GRAPHS {
            let text = format!(
                "No operations are counted for the {} of the kernels that graphs launched: their ops, and the modules inside the one \
                 that launched the graph, are not in the file.",
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

/// The operations of ops that launched GPU work, and those of ops that launched none: on tensors of the CPU, without data, or of which
/// the recording lost the work.
fn counted(facts: &Facts<'_>) -> String {
    let flops = &facts.host.flops;
    let with_gpu: u64 = flops.ops.iter().map(|row| row.counted_with_device).sum();
    let of = |flops: i128, n: u64| format!("{} in {}", operations(flops), plural(n, "op", "ops"));
    let (rest, n_rest) = (flops.total - flops.flops_with_device, flops.counted - with_gpu);
    match (with_gpu, n_rest) {
        _ if !facts.has_gpu() => of(flops.total, flops.counted),
        (_, 0) => of(flops.total, flops.counted),
        (0, _) => format!("{}, which launched no GPU work in this file", of(rest, n_rest)),
        _ => format!(
            "{} that launched GPU work (another {} launched none)",
            of(flops.flops_with_device, with_gpu),
            of(rest, n_rest)
        ),
    }
}

/// Recording sizes helps where none are in the file; profilers of 2021 write no strides and no padding with them.
fn shapes_advice(facts: &Facts<'_>) -> &'static str {
    if has_sizes(facts) {
        "Sizes are recorded, but not all that the formula needs (strides and padding of convolutions): older profilers of PyTorch do \
         not write it."
    } else {
        "Record with record_shapes=True."
    }
}

/// Whether the sizes of any op's inputs are recorded.
fn has_sizes(facts: &Facts<'_>) -> bool {
    facts.slices.ops.slices.iter().any(|op| facts.details.inputs(op.row).is_some())
}

/// A GPU that computes for less than this share of its wall time, in percent, waits most of the time: its rates are no lead.
const BUSY_PCT: f64 = 50.0;

/// Whether no device computes for half of its wall time.
fn is_seldom_busy(facts: &Facts<'_>) -> bool {
    let computes = facts.wall.iter().filter(|row| row.part == WallPart::Compute);
    computes.map(|row| row.share_pct).fold(0.0, f64::max) < BUSY_PCT
}

/// Ops that the sentence names.
const NAMED: usize = 2;
/// Kernels without a figure from this share of the busy time on.
const LEAST_UNCOVERED: f64 = 0.1;

/// The ops with most GPU time, each with its rate against the device's peak; and the op with most time without a figure.
fn largest(facts: &Facts<'_>, busy: i64) -> String {
    let rates = &facts.host.rates;
    let named = rates.rows.iter().take(NAMED).map(|row| {
        // (Where the bandwidth limits, the peak is out of reach.)
        let of_peak = || row.peak_pct.map(|pct| format!(", {} of the dense peak", percent(pct)));
        let of = match (row.limit, row.limit_pct) {
            (Some("memory"), Some(pct)) => {
                Some(format!(", {} of what the bandwidth of memory allows", percent(pct)))
            }
            (Some(_), _) => of_peak(),
            // (Of a convolution the bytes are not known: what limits it is not, either.)
            (None, _) => None,
        };
        let format = row.format.map(|format| format!(" in {format}")).unwrap_or_default();
        format!(
            "{}{format} {} for {}{}",
            row.name,
            per_second(row.tflops),
            time(row.device_ns),
            of.unwrap_or_default()
        )
    });
    let named: Vec<String> = named.collect();
    let mut text = match (&rates.device, named.is_empty()) {
        (_, true) => String::new(),
        (Some(device), false) => format!(" {}: {}.", device.title, named.join("; ")),
        (None, false) => format!(" {}.", named.join("; ")),
    };
    let without = facts.host.traffic.uncovered.iter();
    let without = without.filter(|row| row.device_ns as f64 >= LEAST_UNCOVERED * busy as f64);
    let named =
        |row: &UncoveredRow| Some(format!("{} ({})", row.name.as_deref()?, time(row.device_ns)));
    let named: Vec<String> = without.filter_map(named).take(NAMED).collect();
    if !named.is_empty() {
        text.push_str(&format!(" No figure is known for {}.", named.join(" and ")));
    }
    text
}

/// Of the dense peak, in percent: large products of cuBLAS in bf16 reach 70 to 80% on an H100, whose power limits its clock.
const NEAR_PEAK_PCT: f64 = 70.0;
/// Of the wall time: less is no reason to stop tuning.
const LEAST_NEAR_PEAK: f64 = 0.3;

/// What follows where the ops that take much of the wall time run about as fast as the device can.
fn near_peak(facts: &Facts<'_>) -> String {
    let rows = facts.host.rates.rows.iter();
    let is_near = |row: &&RateRow| {
        row.limit == Some("compute") && row.peak_pct.is_some_and(|pct| pct >= NEAR_PEAK_PCT)
    };
    let near: Vec<&RateRow> = rows.filter(is_near).take(NAMED).collect();
    let ns: i64 = near.iter().map(|row| row.device_ns).sum();
    // (Times of several devices are sums, and the wall time is of one.)
    if !facts.has_one_device() || (ns as f64) < LEAST_NEAR_PEAK * facts.wall_ns() as f64 {
        return String::new();
    }
    let names: Vec<&str> = near.iter().map(|row| row.name.as_str()).collect();
    let words = if names.len() == 1 { ("takes", "runs", "it") } else { ("take", "run", "them") };
    format!(
        "{} {} {} and {} near the peak: only fewer operations, or a smaller number format, make {} shorter.",
        names.join(" and "),
        words.0,
        time(ns),
        words.1,
        words.2
    )
}

/// Operations of custom ops that ran, apart from those of PyTorch's ops; what is a bound is told as one.
fn custom_ops(facts: &Facts<'_>) -> Option<Finding> {
    // (More than the device can do in that time is no bound.)
    let is_above = |row: &CustomOpRow| {
        row.tflops.zip(row.peak_tflops).is_some_and(|(tflops, peak)| tflops > peak)
    };
    let told = |row: &&CustomOpRow| row.device_ns > 0 && !is_above(row);
    let rows = || facts.host.custom_ops.rows.iter().filter(told);
    let of = |bound: Bound| {
        let flops: i128 =
            rows().filter(|row| row.bound == bound).map(|row| row.flops_with_device).sum();
        (flops > 0).then(|| match bound {
            Bound::Exact => operations(flops),
            Bound::AtMost => format!("at most {}", operations(flops)),
        })
    };
    let figures: Vec<String> = [Bound::Exact, Bound::AtMost].into_iter().filter_map(of).collect();
    let ns: i64 = rows().map(|row| row.device_ns).sum();
    let busy = facts.busy_ns();
    let first = rows().next()?;
    if figures.is_empty() {
        return None;
    }
    let share = ns as f64 / busy.max(1) as f64;
    let text = format!(
        "Custom ops with recorded sizes take {} ({} of the busy time) for {}; most time: {} ({}).",
        time(ns),
        percent(100.0 * share.min(1.0)),
        figures.join(" and "),
        first.name,
        time(first.device_ns)
    );
    Some(Finding::fact(Rule::Flops, "custom_ops", text).with(
        "custom_ops.rows",
        "GPU time of such ops",
        time(ns),
    ))
}

/// Of the busy time, and of the wall time: all misaligned products together.
const MISALIGNED: f64 = 0.01;
/// A device that is busy for this share is not kept waiting.
const BUSY: f64 = 0.8;

/// Products whose rows are no multiple of 16 bytes, where they take a part of the run.
pub(super) fn misaligned(facts: &Facts<'_>) -> Option<Finding> {
    let rows = &facts.host.misaligned;
    let first = rows.first()?;
    let busy = facts.busy_ns();
    let ns: i64 = rows.iter().map(|row| row.device_ns).sum();
    let share = ns as f64 / busy.max(1) as f64;
    if busy <= 0 || share < MISALIGNED || (ns as f64) < MISALIGNED * facts.wall_ns() as f64 {
        return None;
    }
    let text = format!(
        "Matrix products whose rows are not a multiple of 16 bytes take {} ({} of the busy time); the longest is {} {} with {:.1} TFLOP/s.",
        time(ns),
        percent(100.0 * share.min(1.0)),
        first.name,
        first.dims,
        first.tflops
    );
    let finding = Finding::fact(Rule::Flops, "misaligned", text)
        .level(Level::of_share(share))
        .confidence(Confidence::Medium)
        .with("misaligned", "GPU time of such products", time(ns));
    // (Where a device waits for something else, faster products shorten nothing.)
    let is_busy =
        facts.has_one_device() && facts.devices().all(|device| device.busy_share() >= BUSY);
    Some(match is_busy.then(|| above_peak_ns(facts)).flatten() {
        Some(bound_ns) => finding.bound(bound_ns).means(format!(
            "Tensor cores load 16 bytes at a time. At the dense peak of their number format these products would take {} less; other ops on \
             such rows may become faster, too.",
            time(bound_ns)
        )),
        None => finding.means("Tensor cores load 16 bytes at a time: pad these sizes to a multiple of 8 values of 16 bits, and measure."),
    })
}

/// How much less time the misaligned products would take at the dense peak of their number format; `None` where that is not known.
fn above_peak_ns(facts: &Facts<'_>) -> Option<i64> {
    let rates = &facts.host.rates.rows;
    let peak = |format: &str| rates.iter().find(|row| row.format == Some(format))?.peak_tflops;
    let less_ns = facts.host.misaligned.iter().map(|row| {
        let share = row.tflops / peak(row.format)?;
        Some((row.device_ns as f64 * (1.0 - share).max(0.0)) as i64)
    });
    let less_ns: i64 = less_ns.sum::<Option<i64>>()?;
    // (Products on streams beside each other shorten no more than the time in which the device is busy.)
    let busy_ns = facts.devices().filter_map(|device| Some(device.busy()?.1.busy_ns)).max()?;
    Some(less_ns.min(busy_ns))
}

/// `5.8 TFLOP/s`, `3.9 GFLOP/s`.
fn per_second(tflops: f64) -> String {
    match tflops {
        ..0.1 => format!("{:.1} GFLOP/s", tflops * 1e3),
        _ => format!("{tflops:.1} TFLOP/s"),
    }
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
