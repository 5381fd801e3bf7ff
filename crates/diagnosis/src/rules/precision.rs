//! M19: products of 32-bit floats. The types are those of the op's inputs; whether they ran as TF32 only the kernel's name tells.

use catalog::Category;
use host::flops;
use report::units::{percent, time};
use timeline::inputs::entries;

use crate::{Facts, Finding, Level, Rule};

/// From this share of the busy time on.
const LEAST_SHARE: f64 = 0.1;
/// The GPU is busy for this part of the wall time at least.
const LEAST_BUSY: f64 = 0.5;
/// Parts of kernel names that tell TF32: cuBLAS and cutlass, by the shape of the instruction.
const TF32: [&str; 3] = ["tf32", "s1688", "s16816gemm_f32"];

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let nested = &facts.slices.ops;
    let on_gpu = host::ops::device_of_each(nested, facts.gpu);
    let layouts = layouts(facts);
    let (mut all, mut floats) = (0, 0);
    let mut is_float = vec![false; nested.slices.len()];
    for (at, operations) in flops::of_each(facts.slices, facts.details) {
        if operations.is_err() || on_gpu[at] == 0 {
            continue;
        }
        let own = on_gpu[at] - layouts[at];
        all += own;
        if takes_floats(facts, nested.slices[at].row) {
            floats += own;
            is_float[at] = true;
        }
    }
    let busy = facts.busy_ns();
    let share = floats as f64 / (all as f64).max(1.0);
    if all == 0 {
        return by_kernels(facts, busy).into_iter().collect();
    }
    if (floats as f64) < LEAST_SHARE * busy as f64 || floats == 0 {
        return Vec::new();
    }
    let tf32: i64 = facts
        .gpu
        .linked()
        .filter(|one| one.owner.is_some_and(|owner| nested.chain(owner).any(|at| is_float[at])))
        .filter(|one| {
            let name = facts.slices.name(&one.slice).to_ascii_lowercase();
            TF32.iter().any(|part| name.contains(part))
        })
        .map(|one| one.slice.dur_ns())
        .sum();
    let mut text = format!(
        "Products and convolutions of 32-bit floats take {} of GPU time ({} of all such products{})",
        time(floats),
        percent(100.0 * share),
        // (Those have no op, and so no types of inputs.)
        if facts.has_graphs() { " outside graphs" } else { "" }
    );
    if tf32 > 0 {
        text.push_str(&format!("; {} of it runs as TF32", time(tf32)));
    }
    text.push('.');
    let verdict = if tf32 > 0 { "fp32_tf32" } else { "fp32" };
    let finding = Finding::fact(Rule::Precision, verdict, text).with(
        "flops.device_ns",
        "GPU time of 32-bit products",
        time(floats),
    );
    vec![match (computes(facts), is_advised(facts)) {
        (true, false) => finding.level(Level::Medium).means(
            "bf16 or fp16 (torch.autocast) runs such products faster on GPUs with matrix units.",
        ),
        (_, true) => finding,
        (false, false) if slowed(facts) => finding.means(SLOWED),
        (false, false) => finding.means(WAITS).aside(true),
    }]
}

/// By op: what changes of the layout by a library take in it. They multiply nothing.
fn layouts(facts: &Facts<'_>) -> Vec<i64> {
    let rows = facts.triage.merged.iter().filter(|row| row.category == Category::Layout);
    let mut names: Vec<&str> = rows.map(|row| row.kernel_name.as_str()).collect();
    trace::sort(&mut names);
    let ops = &facts.slices.ops;
    let mut sums = vec![0_i64; ops.slices.len()];
    let is_layout = facts.trace.strings.marked(&|name| names.binary_search(&name).is_ok());
    for one in
        facts.gpu.linked().filter(|one| is_layout[facts.trace.name(one.slice.row).0 as usize])
    {
        for op in one.owner.into_iter().flat_map(|owner| ops.chain(owner)) {
            sums[op] = sums[op].saturating_add(one.slice.dur_ns());
        }
    }
    sums
}

/// What faster products bring where the GPUs stand still for most of the time.
const WAITS: &str =
    "The GPU is idle most of the time: faster products shorten the run only once it is not.";

/// The same where that may be so only because it is recorded.
const SLOWED: &str = "The GPU is idle for most of the recording; without the profiler its own work may be the limit, and faster products \
                      shorten it.";

/// Whether the GPUs work for most of the time: else faster products shorten nothing.
fn computes(facts: &Facts<'_>) -> bool {
    facts.devices().all(|device| device.busy_share() >= LEAST_BUSY)
}

/// The same where a replay of the launches says that it saves too little to advise it, and the GPU waits for them.
const LAUNCHES_LIMIT: &str =
    "The GPU waits for launches: faster products shorten the run only once launches come sooner.";

/// From this share of its wall time on in which a device waits for launches, they limit it, in percent.
const LATE_PCT: f64 = 20.0;

/// Whether the GPUs wait for launches, and no saving by faster products could be told.
fn launches_limit(facts: &Facts<'_>) -> bool {
    !is_worth_it(facts) && facts.devices().all(|one| one.late().1 >= LATE_PCT)
}

/// Whether an action says more than this rule.
pub(super) fn is_advised(facts: &Facts<'_>) -> bool {
    is_worth_it(facts) && facts.devices().all(|device| device.is_told())
}

/// Whether faster products save what can be measured, in the recording or where launches come as without the profiler.
fn is_worth_it(facts: &Facts<'_>) -> bool {
    let plain = facts.triage.plain_products.as_ref();
    plain.is_some_and(|plain| plain.counts.shortens(slowed(facts)))
}

/// Whether launches may be late because they are recorded.
fn slowed(facts: &Facts<'_>) -> bool {
    facts.devices().any(|device| device.may_be_slowed())
}

/// The first compute capability, times ten, with tensor cores (CUDA C++ Programming Guide, "Compute Capabilities").
const TENSOR_CORES: u32 = 70;

/// Without types of inputs: kernels whose names say that they multiply 32-bit floats without tensor cores.
fn by_kernels(facts: &Facts<'_>, busy: i64) -> Option<Finding> {
    let rows = &facts.triage.merged;
    let plain = rows.iter().filter(|row| catalog::is_f32_without_tensor_cores(&row.kernel_name));
    let ns: i64 = plain.map(|row| row.total_ns).sum();
    if ns == 0 || (ns as f64) < LEAST_SHARE * busy as f64 || is_advised(facts) {
        return None;
    }
    let has_none = |id: &str| facts.capability(id).is_some_and(|own| own < TENSOR_CORES);
    if facts.devices().all(|device| has_none(device.name)) {
        return None;
    }
    // (On streams beside each other they take more than the time in which the GPU is busy.)
    let share = match ns <= busy {
        true => format!("{} of the busy time", percent(100.0 * ns as f64 / busy as f64)),
        false => "in all: several run at a time".to_owned(),
    };
    let text = format!("FP32 matrix products do not use tensor cores for {} ({share}).", time(ns));
    let finding = Finding::fact(Rule::Precision, "fp32", text).with(
        "triage",
        "GPU time of such kernels",
        time(ns),
    );
    Some(match (computes(facts), launches_limit(facts)) {
        (false, _) if slowed(facts) => finding.means(SLOWED),
        (false, _) => finding.means(WAITS).aside(true),
        (true, true) => finding.means(LAUNCHES_LIMIT).aside(true),
        (true, false) => finding.level(Level::Medium),
    })
}

/// Whether the first tensors of an op are 32-bit floats.
fn takes_floats(facts: &Facts<'_>, row: trace::Row) -> bool {
    let Some(inputs) = facts.details.inputs(row) else { return false };
    let types = entries(facts.details.texts.get(inputs.types));
    let mut tensors = types.iter().filter_map(serde_json::Value::as_str).filter(|kind| {
        ["float", "double", "c10::Half", "c10::BFloat16", "signedchar", "unsignedchar"]
            .contains(kind)
            || kind.contains("Float8")
    });
    tensors.next() == Some("float")
}
