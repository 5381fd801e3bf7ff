//! What follows from the figures of a snapshot.
//!
//! The thresholds are heuristics of this project: no project publishes a level at which fragmentation matters. Each needs a gate in
//! bytes, because the ratio alone is high on healthy runs.

mod oom;
mod space;

pub(crate) use oom::at;

use report::units::{count, plural};
use report::{Confidence, Finding};

use crate::amounts::{percent, size};
use crate::claim::put;
use crate::classes::{AtPeak, Class, Falls};
use crate::model::Snapshot;
use crate::report::{SnapshotReport, Timeline};
use crate::site::{ANOMALY, NO_STACK, of_it_in};
use crate::spelling::has;

/// A class of memory is worth a finding from this share of the peak on, in percent.
pub(crate) const LEAST_CLASS: f64 = 30.0;

/// Attention that stores its scores is worth a finding from this share of the peak on, in percent.
const LEAST_ATTENTION: f64 = 10.0;

/// Activations that no backward pass uses are worth a finding from this share of the peak on, in percent.
const LEAST_UNUSED: f64 = 10.0;

/// State that is replaced is worth a finding from this share of the peak on, in percent.
const LEAST_REPLACED: f64 = 5.0;

/// Temporaries of the optimizer are worth a finding from this share of the peak on, in percent.
const LEAST_TEMPORARIES: f64 = 10.0;

/// A peak that is at least this part of the highest one, in percent, is nearly equal to it.
const NEARLY_EQUAL: f64 = 95.0;

/// What is known of a class of memory.
struct Lever {
    class: Class,
    /// Why it is in use, where its name does not say it.
    why: &'static str,
    /// What makes it smaller.
    action: &'static str,
    /// What the replay without it does not count.
    stays: &'static str,
}

const LEVERS: &[Lever] = &[
    Lever {
        class: Class::Activation,
        why: "",
        action: "Checkpoint each layer of the model (torch.utils.checkpoint; in Transformers gradient_checkpointing_enable()). One checkpoint \
                 around the whole model would save nothing: backward computes all of it again at once. Or reduce the batch or the sequence \
                 length.",
        stays: "On top comes what a checkpoint keeps: the inputs of the layers, and one layer while backward computes it again.",
    },
    Lever {
        class: Class::Gradient,
        why: "",
        action: "Shard gradients across GPUs, or free them before the next forward pass: zero_grad(set_to_none=True).",
        stays: "Of sharded gradients, the part of this GPU comes on top.",
    },
    Lever {
        class: Class::OptimizerState,
        why: "",
        action: "Use an optimizer with 8-bit state, shard the state across GPUs, or offload it.",
        stays: "8-bit state keeps a quarter of 32-bit state, and sharded state the part of this GPU: these come on top.",
    },
    Lever {
        class: Class::Cast,
        why: "Autocast copies each weight once per forward pass, and autograd keeps the copies until backward has used them.",
        action: "Hold the weights in the lower precision, so that autocast makes no copies; or checkpoint the modules.",
        stays: "Copies of activations, which these blocks include, stay where the weights alone change.",
    },
    Lever {
        class: Class::Parameter,
        why: "",
        action: "Load the weights in a lower precision, or shard them across GPUs.",
        stays: "16-bit weights keep half of 32-bit ones, sharded weights the part of this GPU: these come on top.",
    },
];

/// What helps against fragmentation where sizes differ from step to step.
const SHAPES: &str = " Or keep tensor shapes stable: sizes of the same lines differ between steps.";

/// What helps against fragmentation without a setting.
fn stable(has_varying_sizes: bool) -> &'static str {
    match has_varying_sizes {
        true => {
            "Keep tensor shapes stable: sizes of the same lines differ between steps. Allocate what stays before what goes, so that free \
             memory fits."
        }
        false => "Allocate what stays before what goes, so that free memory fits.",
    }
}

/// Every finding, the worst first per device.
pub(crate) fn findings(snapshot: &Snapshot, report: &SnapshotReport) -> Vec<Finding> {
    let settings = snapshot.settings.as_deref().unwrap_or_default();
    let is_expandable = report.format.expandable
        || settings.replace(' ', "").contains("\"expandable_segments\":true");
    let mut findings = Vec::new();
    if report.reading.is_partial() {
        // Sums and levels of a part of a file would be read as those of the run.
        return findings;
    }
    for (device, figures) in &report.devices {
        // Where another device ran out of memory, nothing of this one is what ended the run.
        if report.is_bystander(figures) {
            continue;
        }
        let has_failed = figures.has_failed();
        if let Some(timeline) = &figures.timeline {
            inconsistent(device, timeline, &mut findings);
            oom::out_of_memory(report, device, timeline, &mut findings);
            if timeline.is_usable() {
                unused_graph(device, timeline, &mut findings);
                attention(device, timeline, &mut findings);
                temporaries(device, timeline, &mut findings);
                // (A failed allocation has a finding that says what most of the memory is for.)
                if !has_failed {
                    peak(device, timeline, &mut findings);
                }
                replaced(device, timeline, &mut findings);
                anomaly(device, timeline, &mut findings);
            }
        }
        if let Some(releases) = report.cache_releases.get(device) {
            let setting = report.what_if.get(device).and_then(|it| it.fewer_retries());
            releases.findings(device, has_failed, setting, &mut findings);
        }
        space::leaking(device, figures, &mut findings);
        let what_if = report.what_if.get(device);
        // (Of a chosen range of events the state at the end is no finding, and none behind an error that freed most of it.)
        if report.reading.left_out_of(device).is_none()
            && !figures.timeline.as_ref().is_some_and(Timeline::is_unwound)
        {
            space::fragmentation(device, figures, is_expandable, what_if, &mut findings);
            space::rounding(device, figures, &mut findings);
        }
        if let Some(what_if) = what_if.filter(|_| !has_failed) {
            findings.extend(crate::whatif::advice(device, what_if));
        }
    }
    // A failed allocation is why the snapshot was written.
    findings.sort_by_key(|finding| finding.rule != "out-of-memory");
    findings
}

/// A trace that contradicts the segments.
fn inconsistent(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let replay = &timeline.replay;
    if replay.trace_matches_snapshot || !replay.timeline_usable {
        return;
    }
    let mut observation = format!("Device {device}: the events contradict the segments");
    if replay.trace_live_end > 0 {
        observation.push_str(&format!(
            "; {} of {} allocations alive at the end match a block",
            count(replay.agree),
            count(replay.trace_live_end)
        ));
    }
    if replay.max_live_over_reserved > 0 {
        let over = size(replay.max_live_over_reserved);
        observation.push_str(&format!("; live memory exceeds reserved memory by up to {over}"));
    }
    for (n, one, several) in [
        (replay.backward_orphan_allocs, "allocation without an end", "allocations without an end"),
        (replay.double_alloc, "double allocation", "double allocations"),
        (replay.backward_double_frees, "double free", "double frees"),
        (replay.size_mismatch, "size mismatch", "size mismatches"),
        (replay.negative_levels, "negative level", "negative levels"),
    ] {
        if n > 0 {
            observation.push_str(&format!("; {}", plural(n, one, several)));
        }
    }
    observation.push('.');
    put(
        to,
        "inconsistent-trace",
        Confidence::High,
        [
            &observation,
            "The file was edited, cut or assembled from several runs, or actions were skipped while recording. The \
                     timeline and the peak are not reliable; the totals of the segments do not depend on the events.",
            "Record the snapshot again in one process with torch.cuda.memory._record_memory_history().",
            "",
            &format!("devices.{device}.replay"),
        ],
    );
}

/// The peak without some blocks, and what that does not count.
#[inline(never)]
fn falls(timeline: &Timeline, what: &str, (peak, rest): (i64, i64), stays: &str) -> String {
    // (A range of the events may have nothing else.)
    if rest == 0 {
        return String::new();
    }
    let failed = if timeline.ooms.is_empty() { "" } else { " until memory ran out" };
    format!(
        "Without {what} the recorded events peak at {} instead of {}{failed}. {stays}",
        size(rest),
        size(peak)
    )
    .trim_end()
    .to_owned()
}

/// Attention that stores the scores of all pairs of positions.
fn attention(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (sites, peak) = (&timeline.classes.attention, timeline.replay.peak_requested);
    let bytes = sites.iter().fold(0_i64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let share = percent(bytes, peak);
    let Some(rest) = timeline.classes.falls.attention else { return };
    let Some((site, most)) = sites.first().filter(|_| share >= LEAST_ATTENTION) else { return };
    let most = match bytes == *most {
        true => format!("all from {site}"),
        false => format!("{} of them from {site}", size(*most)),
    };
    let observation = format!(
        "Device {device}: {} of the {} in use at the peak ({share:.0}%) were allocated in functions of attention that take a softmax, {most}.",
        size(bytes),
        size(peak),
    );
    put(
        to,
        "unfused-attention",
        Confidence::Medium,
        [
            &observation,
            "The scores of all pairs of positions are stored: their memory grows with the square of the sequence length.",
            "Compute attention with torch.nn.functional.scaled_dot_product_attention: its fused kernels store no scores, where data \
                 type, head size and mask permit them.",
            &falls(
                timeline,
                "these blocks",
                (peak, rest),
                match timeline.classes.bytes_of(Class::Activation) {
                    // (Without a backward pass it has no temporaries.)
                    bytes if bytes == timeline.classes.never_used => {
                        "The outputs of attention, which are counted, stay."
                    }
                    _ => {
                        "Temporaries of their backward pass, which are not counted, go too; the outputs of attention, which are counted, \
                      stay."
                    }
                },
            ),
            &format!("devices.{device}.replay.peak_by_site"),
        ],
    );
}

/// Temporaries that an optimizer of PyTorch frees within its step.
fn temporaries(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let peak = timeline.replay.peak_requested;
    let Some(of) = &timeline.classes.falls.temporaries else { return };
    let share = percent(of.bytes, peak);
    if share < LEAST_TEMPORARIES {
        return;
    }
    let observation = format!(
        "Device {device}: {} of the {} in use at the peak ({share:.0}%) are temporaries of the optimizer, freed within its step, in {}{}.",
        size(of.bytes),
        size(peak),
        plural(of.blocks, "block", "blocks"),
        of_it_in(of.inside.as_ref())
    );
    let why = match of.update.is_foreach {
        true => {
            "The optimizer updates all parameters in one loop (foreach): each temporary exists once per parameter at the same time."
        }
        false => {
            "The optimizer updates one parameter at a time, and the largest one sets the size of its temporaries."
        }
    };
    const FUSED: &str = "Give the optimizer fused=True (Adam, AdamW; SGD from PyTorch 2.3): its kernel allocates no temporaries.";
    let action = match (of.update.has_fused, of.update.is_foreach) {
        (true, true) => {
            format!("{FUSED} Or foreach=False: it then updates one parameter at a time.")
        }
        (true, false) => FUSED.to_owned(),
        (false, _) => {
            "Give the optimizer foreach=False: it then updates one parameter at a time.".to_owned()
        }
    };
    let stays = match of.update.is_foreach {
        true => "With foreach=False, the temporaries of one parameter come on top.",
        false => "",
    };
    let (rest, event) = of.rest;
    let mut validation = falls(timeline, "these temporaries", (peak, rest), stays);
    if percent(rest, peak) >= NEARLY_EQUAL {
        validation.push_str(&format!(
            " Memory in use then peaks before event {}: it falls further only where that peak falls, too.",
            count(event as u64)
        ));
    }
    put(
        to,
        "optimizer-temporaries",
        Confidence::High,
        [&observation, why, &action, &validation, &format!("classes.{device}")],
    );
}

/// Activations that forward saved for a backward pass that did not run.
fn unused_graph(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (bytes, peak) = (timeline.classes.never_used, timeline.replay.peak_requested);
    let share = percent(bytes, peak);
    if share < LEAST_UNUSED {
        return;
    }
    let observation = format!(
        "Device {device}: {} of the {} in use at the peak ({share:.0}%) were saved in forward for a backward pass and freed with the \
         graph of autograd, without a backward pass.",
        size(bytes),
        size(peak),
    );
    let is_all = timeline.classes.bytes_of(Class::Activation) == bytes;
    let rest = timeline.classes.falls.class.filter(|_| is_all);
    let rest =
        rest.filter(|_| timeline.classes.largest().is_some_and(|it| it.0 == Class::Activation));
    put(
        to,
        "graph-without-backward",
        Confidence::High,
        [
            &observation,
            "Outside torch.no_grad() and torch.inference_mode(), each layer keeps for backward what the next layers no longer need.",
            "For inference and evaluation, call the model under torch.inference_mode() or torch.no_grad().",
            &rest.map_or_else(String::new, |rest| {
                falls(
                    timeline,
                    "these blocks",
                    (peak, rest),
                    "On top comes what one layer needs while it runs.",
                )
            }),
            &format!("classes.{device}"),
        ],
    );
}

/// How many lines of a function are summed, if several are.
#[inline(never)]
fn lines_of(of: &AtPeak) -> String {
    if of.n_lines > 1 { format!(" ({} of its lines together)", of.n_lines) } else { String::new() }
}

/// The call sites that make the peak.
fn peak(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let named = class_of_peak(device, timeline, to);
    let Falls { sites: Some(rest), makers, .. } = &timeline.classes.falls else { return };
    let [top, others @ ..] = makers.as_slice() else { return };
    // (What is there from the first events to the end is what the recording is about: nothing frees it earlier.)
    if named.is_some_and(|site| *site == top.site) || top.stands_from.is_some() {
        return;
    }
    // (Temporaries of the optimizer have a finding of their own.)
    let is_loop = top.inside.as_ref().is_some_and(|inside| has(&inside.0, "_multi_tensor_"));
    let temporaries = timeline.classes.falls.temporaries.as_ref();
    if is_loop && others.is_empty() && temporaries.is_some_and(|of| of.bytes == top.bytes) {
        return;
    }
    let mut observation = format!(
        "Device {device}: {}{} allocated {} of the {} in use at the peak ({:.0}%) in {}{}.",
        top.site,
        lines_of(top),
        size(top.bytes),
        size(top.level),
        percent(top.bytes, top.level),
        plural(top.blocks, "block", "blocks"),
        of_it_in(top.inside.as_ref())
    );
    for other in others {
        observation.push_str(&format!(
            " Of the {} in use before event {}, {}{} allocated {}{}.",
            size(other.level),
            count(other.event as u64),
            other.site,
            lines_of(other),
            size(other.bytes),
            of_it_in(other.inside.as_ref())
        ));
    }
    let hypothesis = match others {
        [] => "",
        _ => {
            "These peaks are nearly equal: memory in use falls only where all of these call sites use less."
        }
    };
    let (action, stays) = match &top.inside {
        _ if top.activations.saturating_mul(2) >= top.bytes => (
            "Backward needs these bytes: checkpoint the function (torch.utils.checkpoint), or call it on smaller inputs.".to_owned(),
            "On top comes what a checkpoint keeps: the inputs of the function, and one call of it while backward computes it again.",
        ),
        Some((frame, _)) if has(frame, "_multi_tensor_") => (
            "Give the optimizer fused=True, or foreach=False: its loops over all tensors at once (foreach) keep temporaries of all of them."
                .to_owned(),
            "",
        ),
        Some((frame, _)) => {
            (format!("Compute what {frame} allocates in parts, or on smaller inputs."), "")
        }
        None if top.site.starts_with("<autograd>") => {
            ("The backward of this op holds these bytes: compute the op in parts, or on smaller inputs.".to_owned(), "")
        }
        None if top.n_lines > 1 => {
            ("Free what these lines allocate earlier, or compute it in place or in parts.".to_owned(), "")
        }
        None => ("Free what this line allocates earlier, or compute it in parts.".to_owned(), ""),
    };
    put(
        to,
        "dominant-site",
        Confidence::High,
        [
            &observation,
            hypothesis,
            &action,
            &falls(timeline, "these blocks", (top.level, *rest), stays),
            &format!("devices.{device}.replay.peak_by_site"),
        ],
    );
}

/// State that the optimizer makes anew in each step.
fn replaced(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (made, freed) = timeline.classes.state;
    // (Of the first step nothing is freed.)
    if percent(freed, timeline.replay.peak_requested) < LEAST_REPLACED || freed < made / 2 {
        return;
    }
    let observation = format!(
        "Device {device}: the optimizer allocates {} of state and frees {} of older state.",
        size(made),
        size(freed)
    );
    put(
        to,
        "optimizer-state-replaced",
        Confidence::Medium,
        [
            &observation,
            "Each step makes new tensors instead of writing to those that are there.",
            "Update the state in place (mul_, add_, addcmul_, addcdiv_), or use an optimizer of torch.optim with fused=True, or with \
             foreach=False: its default makes a temporary per parameter at once.",
            "After the first step, the optimizer allocates no state.",
            &format!("classes.{device}"),
        ],
    );
}

/// Checks for NaN by the engine of autograd.
fn anomaly(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let Some(checks) = timeline.alloc_sites.iter().find(|row| row.site == ANOMALY) else { return };
    let all = timeline.churn.alloc_count;
    let at_peak = timeline.replay.peak_sites.iter().find(|row| row.site == ANOMALY);
    let observation = format!(
        "Device {device}: {} of {} allocations ({}) are checks for NaN that the engine of autograd makes behind each op of backward: \
         anomaly detection is on.{}",
        count(checks.count),
        count(all),
        size(checks.bytes),
        at_peak.map_or_else(String::new, |row| {
            format!(" They hold {} at the peak.", size(row.bytes))
        }),
    );
    put(
        to,
        "anomaly-detection",
        Confidence::High,
        [
            &observation,
            "Each check launches kernels and waits for their result on the GPU, and forward writes down a Python stack for each \
                     op: training takes longer.",
            "Turn anomaly detection off once the NaN is found: torch.autograd.set_detect_anomaly, torch.autograd.detect_anomaly, in \
                 Lightning Trainer(detect_anomaly=...).",
            "A new snapshot has no such allocations.",
            &format!("devices.{device}.alloc_by_site"),
        ],
    );
}

/// What most of the peak is for; returns the call site that it names.
fn class_of_peak<'a>(
    device: &str,
    timeline: &'a Timeline,
    to: &mut Vec<Finding>,
) -> Option<&'a str> {
    let peak = timeline.replay.peak_requested;
    let (class, bytes, site, of_site) = timeline.classes.largest()?;
    let (share, lever) = (percent(bytes, peak), LEVERS.iter().find(|of| of.class == class)?);
    if share < LEAST_CLASS {
        return None;
    }
    // (They have a finding of their own.)
    if class == Class::Activation && timeline.classes.never_used.saturating_mul(2) >= bytes {
        return Some(site);
    }
    let rest = timeline.classes.falls.class?;
    let most = match site {
        NO_STACK => String::new(),
        site if of_site == bytes => format!(", all from {site}"),
        site => format!(", {} of them from {site}", size(of_site)),
    };
    let least = if timeline.classes.may_be_more(class) { "at least " } else { "" };
    let observation = format!(
        "Device {device}: {least}{} of the {} in use at the peak ({share:.0}%) are {}{most}.",
        size(bytes),
        size(peak),
        class.label(),
    );
    // A checkpoint drops the copies that autocast makes of activations, too.
    let casts = timeline.classes.bytes_of(Class::Cast);
    let what = match class {
        Class::Activation if casts > 0 => &*format!(
            "these blocks and the {} of copies by autocast, which a checkpoint drops too,",
            size(casts)
        ),
        _ => "these blocks",
    };
    let steady = &timeline.classes.falls.steady;
    let validation = match steady.as_ref().filter(|_| class == Class::OptimizerState) {
        Some(it) => format!(
            "The optimizer allocates this state from event {} on, and it stays: the next step peaks near {} ({} before that event and the \
             state; an estimate), without the state near {}. {}",
            count(it.event as u64),
            size(it.peak()),
            size(it.before),
            size(it.before.max(rest)),
            lever.stays
        ),
        None => falls(timeline, what, (peak, rest), lever.stays),
    };
    put(
        to,
        "peak-class",
        timeline.classes.confidence(class),
        [&observation, lever.why, lever.action, &validation, &format!("classes.{device}")],
    );
    Some(site)
}
