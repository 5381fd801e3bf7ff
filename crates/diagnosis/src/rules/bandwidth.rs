//! M21: ops that move bytes at nearly the bandwidth of the device's memory, products of a matrix and a vector, and elementwise ops whose
//! inputs are laid out in different ways.

use report::units::{percent, time};

use timeline::intervals::{length, union};

use super::layouts;
use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Of the busy time and of the wall time, for one op.
const LEAST_SHARE: f64 = 0.01;
/// From this share of an op's time on, its other calls are not worth a word.
const MOST_OF_OP: f64 = 0.9;
/// Ops that the sentence names.
const NAMED: usize = 3;
/// What kernels of cuBLAS, rocBLAS and vLLM for such products are called, in lower case.
const MATRIX_VECTOR: &str = "gemv";
/// Of the busy time and of the wall time, for all of them.
const LEAST_MATRIX_VECTOR: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = of_ops(facts);
    let is_matrix_vector = |name: &str| name.to_ascii_lowercase().contains(MATRIX_VECTOR);
    let is_it = facts.trace.strings.marked(&is_matrix_vector);
    found.extend(facts.devices().filter_map(|device| matrix_vector(facts, &device, &is_it)));
    found.extend(layouts::check(facts));
    found
}

/// Products of a matrix and a vector: each weight is read for one row, so that their time is that of the weights' bytes.
fn matrix_vector(facts: &Facts<'_>, device: &Device<'_>, is_it: &[bool]) -> Option<Finding> {
    let own = device.slices().filter(|one| one.is_kernel);
    let own = own.filter(|one| is_it[facts.trace.name(one.slice.row).0 as usize]);
    let times = union(own.map(|one| one.slice.interval()).collect());
    let ns = length(&times);
    let busy = length(facts.gpu.busy(device.id())).max(1) as f64;
    if (ns as f64) < LEAST_MATRIX_VECTOR * busy.max(facts.wall_ns() as f64) {
        return None;
    }
    let share = ns as f64 / busy;
    let text = format!(
        "Matrix-vector products (gemv) take {} ({} of the busy time).",
        time(ns),
        percent(100.0 * share.min(1.0))
    );
    Some(
        Finding::fact(Rule::Bandwidth, "matrix_vector", text)
            .level(Level::of_share(share))
            .on(device.name)
            .means(
                "Each matrix element is read for one row only, so memory bandwidth limits them. More rows per pass (a larger batch, \
                 speculative decoding) cost little more time, and a matrix in fewer bits takes less.",
            )
            .with("triage", "GPU time of such kernels", time(ns)),
    )
}

fn of_ops(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(device) = &facts.host.rates.device else { return Vec::new() };
    let busy = facts.busy_ns();
    let mut limited: Vec<_> = facts
        .host
        .traffic
        .rows
        .iter()
        .filter(|row| row.limited_ns as f64 >= LEAST_SHARE * busy as f64)
        // (Of a run that stands still, it is not the memory that limits.)
        .filter(|row| row.limited_ns as f64 >= LEAST_SHARE * facts.wall_ns() as f64)
        .collect();
    if limited.is_empty() || busy <= 0 {
        return Vec::new();
    }
    trace::sort_by_key(&mut limited, |row| std::cmp::Reverse(row.limited_ns));
    let total: i64 = limited.iter().map(|row| row.limited_ns).sum();
    let named: Vec<String> = limited
        .iter()
        .take(NAMED)
        .map(|row| {
            let of = percent(row.limited_pct);
            // (Other calls of the op may take most of its time.)
            let all = match row.limited_ns as f64 >= MOST_OF_OP * row.device_ns as f64 {
                true => String::new(),
                false => format!(" of its {}", time(row.device_ns)),
            };
            format!("{} ({}{all}, {of} of the bandwidth)", row.name, time(row.limited_ns))
        })
        .collect();
    let more = match limited.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let share = total as f64 / busy as f64;
    let text = format!(
        "Memory bandwidth limits {}{more}: together {} of GPU time ({} of the busy time).",
        named.join(", "),
        time(total),
        percent(100.0 * share.min(1.0))
    );
    let mut finding = Finding::fact(Rule::Bandwidth, "bandwidth_bound", text)
        .level(Level::of_share(share))
        .confidence(Confidence::Medium)
        .means(match compiles(facts) {
            true => "They get faster only by moving fewer bytes: fuse them with their neighbours (torch.compile), or use a smaller number format.",
            false => "They get faster only by moving fewer bytes: fuse them with their neighbours, or use a smaller number format.",
        })
        .with("rates.device.gb_per_s", "GB/s of the device", device.gb_per_s);
    for row in limited.iter().take(NAMED) {
        let gb_per_s = row.limited_pct / 100.0 * device.gb_per_s;
        finding = finding.with("traffic.rows", &row.name, format!("{gb_per_s:.1} GB/s"));
    }
    vec![finding]
}

/// Whether this PyTorch has torch.compile, by the date of the recording: one without a date has it.
fn compiles(facts: &Facts<'_>) -> bool {
    let recorded = facts.triage.run_facts.recorded;
    recorded.is_none_or(|recorded| recorded >= catalog::remedies::PYTORCH_2_0)
}
