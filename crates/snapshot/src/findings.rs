//! What follows from the figures of a snapshot.
//!
//! The thresholds are heuristics of this project: no project publishes a level at which fragmentation matters. Each needs a gate in
//! bytes, because the ratio alone is high on healthy runs.

use report::units::{count, plural};
use report::{Confidence, Finding};

use crate::amounts::{percent, size};
use crate::classes::Class;
use crate::classes::{AtPeak, Falls};
use crate::model::Snapshot;
use crate::report::{DeviceReport, OomRow, SnapshotReport, Timeline};
use crate::site::{NO_STACK, of_it_in};
use crate::whatif::{Run, WhatIf};

const GIB: i64 = 1 << 30;

/// A class of memory is worth a finding from this share of the peak on, in percent.
const LEAST_CLASS: f64 = 30.0;

/// Attention that stores its scores is worth a finding from this share of the peak on, in percent.
const LEAST_ATTENTION: f64 = 10.0;

/// Why a class of memory is in use, where its name does not say it, and what makes it smaller.
const LEVERS: &[(Class, &str, &str)] = &[
    (
        Class::Activation,
        "",
        "Checkpoint each layer of the model (torch.utils.checkpoint; in Transformers gradient_checkpointing_enable()). One checkpoint \
         around the whole model would save nothing: backward computes all of it again at once. Or reduce the batch or the sequence \
         length.",
    ),
    (
        Class::Gradient,
        "Gradients stay in use from backward until zero_grad, or until the optimizer's step if it frees them.",
        "Shard gradients across GPUs, or free them before the next forward pass: zero_grad(set_to_none=True).",
    ),
    (
        Class::OptimizerState,
        "The optimizer keeps it from step to step; Adam two values per parameter.",
        "Use an optimizer with 8-bit state, shard the state across GPUs, or offload it.",
    ),
    (
        Class::Cast,
        "Autocast copies each weight once per forward pass, and autograd keeps the copies until backward has used them.",
        "Hold the weights in the lower precision, so that autocast makes no copies; or checkpoint the modules.",
    ),
    (Class::Parameter, "", "Load the weights in a lower precision, or shard them across GPUs."),
];

/// What helps against fragmentation without a setting.
const STABLE: &str = "Keep tensor shapes stable, and allocate what stays before what goes, so that free memory fits.";

/// Every finding, the worst first per device.
pub(crate) fn findings(snapshot: &Snapshot, report: &SnapshotReport) -> Vec<Finding> {
    let settings = snapshot.settings.as_deref().unwrap_or_default();
    let is_expandable = report.format.expandable
        || settings.replace(' ', "").contains("\"expandable_segments\":true");
    let mut findings = Vec::new();
    let has_ooms = |figures: &DeviceReport| {
        figures.timeline.as_ref().is_some_and(|timeline| !timeline.ooms.is_empty())
    };
    let any_failed = report.devices.values().any(has_ooms);
    if report.reading.is_partial() {
        // Sums and levels of a part of a file would be read as those of the run.
        return findings;
    }
    for (device, figures) in &report.devices {
        if let Some(timeline) = &figures.timeline {
            inconsistent(device, timeline, &mut findings);
            for oom in &timeline.ooms {
                let expandable = report.what_if.get(device).and_then(WhatIf::expandable);
                let uneven = uneven(report, device, timeline);
                findings.push(out_of_memory(device, oom, timeline, expandable, uneven));
            }
            // (Where one device ran out of memory, the peak of another is not what ended the run.)
            if timeline.is_usable() && (has_ooms(figures) || !any_failed) {
                attention(device, timeline, &mut findings);
                peak(device, timeline, &mut findings);
            }
        }
        if let Some(releases) = report.cache_releases.get(device) {
            let has_failed = has_ooms(figures);
            let setting = report.what_if.get(device).and_then(WhatIf::fewer_retries);
            findings.extend(releases.findings(device, has_failed, setting));
        }
        leaking(device, figures, &mut findings);
        let what_if = report.what_if.get(device);
        // (Of a chosen range of events the state at the end is no finding.)
        if report.reading.left_out_of(device).is_none() {
            fragmentation(device, figures, is_expandable, what_if, &mut findings);
            rounding(device, figures, &mut findings);
        }
        if let Some(what_if) = what_if {
            findings.extend(crate::whatif::advice(device, what_if));
        }
    }
    // A failed allocation is why the snapshot was written: the state at its end is that after unwinding.
    findings.sort_by_key(|finding| finding.rule != "out-of-memory");
    findings
}

fn finding(rule: &'static str, confidence: Confidence, observation: String) -> Finding {
    Finding {
        rule: rule.into(),
        observation,
        hypothesis: String::new(),
        action: String::new(),
        validation: String::new(),
        confidence,
        evidence: Vec::new(),
    }
}

/// A trace that contradicts the segments.
fn inconsistent(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let replay = &timeline.replay;
    if replay.trace_matches_snapshot || !replay.timeline_usable {
        return;
    }
    let observation = format!(
        "Device {device}: the events contradict the segments. {} of {} allocations alive at the end match a block; live \
         memory exceeds reserved memory by up to {}; {} allocations without an end, {} double allocations, {} double \
         frees, {} size mismatches, {} negative levels.",
        count(replay.agree),
        count(replay.trace_live_end),
        size(replay.max_live_over_reserved),
        count(replay.backward_orphan_allocs),
        count(replay.double_alloc),
        count(replay.backward_double_frees),
        count(replay.size_mismatch),
        count(replay.negative_levels),
    );
    to.push(Finding {
        hypothesis: "The file was edited, cut or assembled from several runs, or actions were skipped while recording. The \
                     timeline and the peak are not reliable; the totals of the segments do not depend on the events."
            .to_owned(),
        action: "Record the snapshot again in one process with torch.cuda.memory._record_memory_history().".to_owned(),
        validation: "trace_matches_snapshot is true.".to_owned(),
        evidence: vec![format!("devices.{device}.replay")],
        ..finding("inconsistent-trace", Confidence::High, observation)
    });
}

fn out_of_memory(
    device: &str,
    oom: &OomRow,
    timeline: &Timeline,
    expandable: Option<&Run>,
    uneven: Option<String>,
) -> Finding {
    let free = oom.device_free.map_or("an unrecorded amount".to_owned(), size);
    let mut observation = format!(
        "Device {device}, event {}: an allocation of {} failed at {}. Live (requested bytes): {}, reserved: {}, free on the device: \
         {free}, largest free range: {}, free ranges of the stream: at most {}.",
        count(oom.index as u64),
        size(oom.size),
        oom.site,
        size(oom.live_requested),
        size(oom.reserved),
        size(oom.largest_cached_free),
        size(oom.cached_free_same_stream),
    );
    let mut less = less(timeline);
    if let Some(uneven) = uneven {
        observation.push_str(&uneven);
        less = format!("Give each device an equal part of the input. {less}");
    }
    // The narrower test: default pool and segment type of the request.
    let fits = oom.size <= oom.cached_free_same_pool.saturating_add(oom.device_free.unwrap_or(0));
    // Events do not record the pool: only when all free ranges of the stream are too small, the pool does not matter.
    let is_certain = !oom.fits_if_defragmented && oom.device_free.is_some();
    let (hypothesis, action) = if fits {
        (
            "Fragmentation: the free ranges of the same stream and pool would hold the request if they were one range (upper \
             bound: the rounded size of blocks that were freed later is not recorded).",
            match expandable.is_some_and(|run| run.served_ooms.contains(&oom.index)) {
                true => {
                    "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: a model that reproduces the run has room for the request \
                     (an estimate). Or keep tensor shapes stable."
                        .to_owned()
                }
                false => STABLE.to_owned(),
            },
        )
    } else {
        (
            "Capacity: the free ranges of the same stream and pool together are smaller than the request.",
            less,
        )
    };
    Finding {
        hypothesis: hypothesis.to_owned(),
        action,
        validation: if fits { String::new() } else { needs_more(oom) },
        evidence: vec![format!("devices.{device}.ooms")],
        ..finding(
            "out-of-memory",
            if is_certain { Confidence::High } else { Confidence::Medium },
            observation,
        )
    }
}

/// What is certain of the need of a run that failed.
fn needs_more(oom: &OomRow) -> String {
    format!(
        "The run needs at least the {} in use and requested at this event; how much more is not recorded.",
        size(oom.live_requested.saturating_add(oom.size))
    )
}

/// What the call site with most bytes at the peak of a device holds at the peaks of the others, where each has less than half of it.
fn uneven(report: &SnapshotReport, device: &str, timeline: &Timeline) -> Option<String> {
    let top = timeline.replay.peak_sites.first().filter(|top| !top.site.starts_with('<'))?;
    let others = report.devices.iter().filter(|(other, _)| *other != device);
    let mut text = String::new();
    for (other, figures) in others {
        let sites = &figures.timeline.as_ref()?.replay.peak_sites;
        let bytes = sites.iter().find(|row| row.site == top.site)?.bytes;
        if bytes > top.bytes / 2 {
            return None;
        }
        text.push_str(&format!(", {} at that of device {other}", size(bytes)));
    }
    (!text.is_empty()).then(|| {
        format!(" {} holds {} at the peak of this device{text}.", top.site, size(top.bytes))
    })
}

/// What makes the memory in use smaller, as far as the file tells what it is for.
fn less(timeline: &Timeline) -> String {
    let replay = &timeline.replay;
    if let Some((class, bytes, ..)) = timeline.classes.largest()
        && percent(bytes, replay.peak_requested) >= LEAST_CLASS
        && let Some((_, _, action)) = LEVERS.iter().find(|lever| lever.0 == class)
    {
        return (*action).to_owned();
    }
    match replay.peak_sites.first().filter(|top| top.site != NO_STACK) {
        Some(top) => format!(
            "Reduce the memory in use, first what {} holds: {} at the peak.",
            top.site,
            size(top.bytes)
        ),
        None => "Reduce the memory in use: a smaller batch, or shorter sequences.".to_owned(),
    }
}

/// The peak without some blocks. It is a bound where the action removes these blocks and no others, and none where memory ran out: there
/// the run was not recorded as a whole.
fn falls(timeline: &Timeline, peak: i64, rest: i64, is_bound: bool) -> String {
    if let Some(oom) = timeline.ooms.last().filter(|oom| timeline.replay.peak_index <= oom.index) {
        return needs_more(oom);
    }
    if !is_bound {
        return format!(
            "Without these blocks the recorded events peak at {} instead of {}. The new peak is lower where the action removes others, \
             too, and higher where some of these stay.",
            size(rest),
            size(peak)
        );
    }
    format!(
        "The peak in use falls from {} to {} at best, which is that of the recorded events without these blocks.",
        size(peak),
        size(rest)
    )
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
    to.push(Finding {
        hypothesis: "The scores of all pairs of positions are stored: their memory grows with the square of the sequence length."
            .to_owned(),
        action: "Compute attention with torch.nn.functional.scaled_dot_product_attention: its fused kernels store no scores, where data \
                 type, head size and mask permit them."
            .to_owned(),
        validation: falls(timeline, peak, rest, false),
        evidence: vec![format!("devices.{device}.replay.peak_by_site")],
        ..finding("unfused-attention", Confidence::Medium, observation)
    });
}

/// How many lines of a function are summed, if several are.
fn lines_of(of: &AtPeak) -> String {
    if of.n_lines > 1 { format!(" ({} of its lines together)", of.n_lines) } else { String::new() }
}

/// The call sites that make the peak.
fn peak(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let named = class_of_peak(device, timeline, to);
    let Falls { sites: Some(rest), makers, .. } = &timeline.classes.falls else { return };
    let [top, others @ ..] = makers.as_slice() else { return };
    if named.is_some_and(|site| *site == top.site) {
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
    let action = match &top.inside {
        Some((frame, _)) => {
            format!("Call the module on smaller inputs, or compute in parts what {frame} allocates.")
        }
        None if top.site.starts_with("<autograd>") => {
            "The backward of this op holds these bytes: compute the op in parts, or on smaller inputs.".to_owned()
        }
        None if top.n_lines > 1 => {
            "Free what these lines allocate earlier, or compute it in place or in parts.".to_owned()
        }
        None => "Free what this line allocates earlier, or compute it in parts.".to_owned(),
    };
    // (Smaller inputs make other blocks smaller, too.)
    let is_bound = action.starts_with("Free");
    to.push(Finding {
        hypothesis: hypothesis.to_owned(),
        action,
        validation: falls(timeline, top.level, *rest, is_bound),
        evidence: vec![format!("devices.{device}.replay.peak_by_site")],
        ..finding("dominant-site", Confidence::High, observation)
    });
}

/// What most of the peak is for; returns the call site that it names.
fn class_of_peak<'a>(
    device: &str,
    timeline: &'a Timeline,
    to: &mut Vec<Finding>,
) -> Option<&'a str> {
    let peak = timeline.replay.peak_requested;
    let (class, bytes, site, of_site) = timeline.classes.largest()?;
    let (share, (_, why, action)) = (percent(bytes, peak), LEVERS.iter().find(|of| of.0 == class)?);
    if share < LEAST_CLASS {
        return None;
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
    to.push(Finding {
        hypothesis: (*why).to_owned(),
        action: (*action).to_owned(),
        validation: falls(timeline, peak, rest, false),
        evidence: vec![format!("classes.{device}")],
        ..finding("peak-class", timeline.classes.confidence(class), observation)
    });
    Some(site)
}

fn leaking(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    for leak in figures.leaks.iter().flatten().take(3) {
        let observation = format!(
            "Device {device}: live memory of {} grew in each of {} consecutive steps, by {} per step ({} in all).",
            leak.site,
            leak.steps,
            size(leak.bytes_per_step),
            size(leak.total)
        );
        to.push(Finding {
            hypothesis: "References to its tensors accumulate: for example a list of losses that keep their graphs. Caches that \
                         fill up look the same."
                .to_owned(),
            action: "Store detached values (loss.item(), tensor.detach().cpu()), or bound the container.".to_owned(),
            validation: "bytes_per_step is 0.".to_owned(),
            evidence: vec![format!("devices.{device}.leaks")],
            ..finding("growing-memory", Confidence::Medium, observation)
        });
    }
}

fn fragmentation(
    device: &str,
    figures: &DeviceReport,
    expandable: bool,
    what_if: Option<&WhatIf>,
    to: &mut Vec<Finding>,
) {
    let (reserved, hard) = (figures.totals.reserved, figures.free.hard);
    let share = percent(hard, reserved);
    // Below 1 GiB the ratio is high on healthy runs.
    if reserved < GIB || share < 10.0 {
        return;
    }
    // The replay of the run has the answer, and a finding of its own.
    if what_if.is_some_and(WhatIf::is_decisive) {
        return;
    }
    // What the peak of reserved memory has beyond the memory in use is all that can be gained.
    let gain = figures.timeline.as_ref().filter(|it| it.replay.trace_matches_snapshot).map(|it| {
        percent(it.replay.peak_reserved - it.replay.peak_requested, it.replay.peak_reserved)
    });
    if gain.is_some_and(|gain| gain < 10.0) {
        return;
    }
    let observation = format!(
        "Device {device}: {} of {} reserved ({share:.0}%) are free ranges that empty_cache cannot return, because other blocks \
         of their segments are in use.",
        size(hard),
        size(reserved)
    );
    let action = if expandable {
        "Expandable segments are already on: keep tensor shapes stable, or allocate long-lived tensors first. Do not add \
         max_split_size_mb: together they can grow reserved memory without bound (pytorch#193400)."
            .to_owned()
    } else if let Some(run) = what_if.and_then(WhatIf::expandable) {
        format!(
            "{STABLE} Under {} a model that reproduces the recorded events reserves {} at most, recorded are {} (an estimate).",
            run.setting,
            size(run.peak_reserved),
            size(run.peak_reserved.saturating_add(run.saved))
        )
    } else {
        format!(
            "{STABLE} What expandable_segments:True would change cannot be computed from this file."
        )
    };
    let level = if share >= 30.0 { "High" } else { "Medium" };
    to.push(Finding {
        hypothesis: format!("{level} fragmentation at the time of the snapshot (heuristic: 10% and 30% of reserved)."),
        action,
        validation: format!("inactive_split falls below {}.", size(figures.totals.inactive_split)),
        evidence: vec![format!("devices.{device}.totals.inactive_split")],
        ..finding("fragmentation", Confidence::Medium, observation)
    });
}

fn rounding(device: &str, figures: &DeviceReport, to: &mut Vec<Finding>) {
    let (active, waste) = (figures.totals.active, figures.totals.rounding_waste);
    if waste < 256 << 20 || percent(waste, active) < 10.0 {
        return;
    }
    let observation = format!(
        "Device {device}: blocks in use are {} larger than what was requested ({:.0}% of {}).",
        size(waste),
        percent(waste, active),
        size(active)
    );
    to.push(Finding {
        hypothesis: "Sizes are rounded to 512 bytes, and remainders up to 1 MiB of the large pool are not split off."
            .to_owned(),
        action: "Allocate many tensors of similar size as one and use views, or choose sizes that are multiples of 2 MiB."
            .to_owned(),
        validation: format!("rounding_waste falls below {}.", size(waste)),
        evidence: vec![format!("devices.{device}.totals.rounding_waste")],
        ..finding("rounding", Confidence::Medium, observation)
    });
}
