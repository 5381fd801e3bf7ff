//! What most of the memory in use at the peak is for, and which call sites allocated it.

use report::units::{count, plural};
use report::{Confidence, Finding};

use super::within_activations;
use crate::amounts::{percent, size};
use crate::claim::put;
use crate::classes::{AtPeak, Class, Falls, Rebound};
use crate::leader::{function_of, leader, lines_of};
use crate::leaks::LeakRow;
use crate::report::Timeline;
use crate::site::{NO_STACK, of_it_in};
use crate::spelling::has;

/// A class of memory is worth a finding from this share of the peak on, in percent.
pub(crate) const LEAST_CLASS: f64 = 30.0;

/// Copies of weights are worth a finding from this share of the peak on, in percent.
const LEAST_COPIES: f64 = 10.0;

/// What is left of a peak is named where it holds this part of it, in percent.
const LEAST_LEFT: f64 = 30.0;

/// A peak that is at least this part of the highest one, in percent, is nearly equal to it.
pub(super) const NEARLY_EQUAL: f64 = 95.0;

/// What is known of a class of memory.
pub(super) struct Lever {
    pub(super) class: Class,
    /// Why it is in use, where its name does not say it.
    pub(super) why: &'static str,
    /// What makes it smaller.
    pub(super) action: &'static str,
    /// What the replay without it does not count.
    pub(super) stays: &'static str,
}

pub(super) const LEVERS: &[Lever] = &[
    Lever {
        class: Class::Activation,
        why: "",
        action: "Checkpoint each layer of the model (torch.utils.checkpoint; in Transformers gradient_checkpointing_enable()). One checkpoint \
                 around the whole model would save nothing: backward computes all of it again at once.",
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
        why: "Autocast copies each weight at its first use: its cache keeps the copies until torch.autocast ends, and autograd until backward \
              has used them.",
        action: "Hold the weights in the lower precision, so that autocast makes no copies. Or, without backward, set cache_enabled=False of \
                 torch.autocast: it then copies at each use; with backward, checkpoint the modules.",
        stays: "",
    },
    Lever {
        class: Class::Parameter,
        why: "",
        action: "Load the weights in a lower precision, or shard them across GPUs.",
        stays: "16-bit weights keep half of 32-bit ones, sharded weights the part of this GPU: these come on top.",
    },
];

/// The peak without some blocks, and what that does not count.
#[inline(never)]
pub(super) fn falls(
    timeline: &Timeline,
    what: &str,
    (peak, rest): (i64, i64),
    stays: &str,
) -> String {
    // (A range of the events may have nothing else.)
    if rest == 0 {
        return String::new();
    }
    let failed = if timeline.ooms.is_empty() { "" } else { " until memory ran out" };
    let events = match timeline.classes.falls.from {
        0 => "the recorded events peak".to_owned(),
        // (Before, blocks of an earlier iteration are in use that were not recorded.)
        from => format!("the events from {} on peak", count(from as u64)),
    };
    format!("Without {what} {events} at {} instead of {}{failed}. {stays}", size(rest), size(peak))
        .trim_end()
        .to_owned()
}

/// That results of several calls are in use at once, as the end of an observation.
pub(super) fn calls(of: &Rebound, what: &str) -> String {
    format!(
        " They are {what} of {} calls: {} frees the oldest only after the next call has allocated its own.",
        of.calls, of.freed_by
    )
}

/// What deleting the result before the next call does to the peak, and what is left then.
pub(super) fn deleted(timeline: &Timeline, of: &Rebound) -> String {
    let peak = timeline.replay.peak_requested;
    let left = of.left.as_ref().filter(|left| percent(left.1, of.rest.0) >= LEAST_LEFT);
    let mut text = format!(
        "Freed before the next call allocates, memory in use peaks at {} instead of {}, before event {}",
        size(of.rest.0),
        size(peak),
        count(of.rest.1 as u64)
    );
    match left {
        Some((site, bytes, both)) => text.push_str(&format!(
            ", where {site} holds {}. Without these, too, it peaks at {}.",
            size(*bytes),
            size(*both)
        )),
        None => text.push('.'),
    }
    text
}

/// Results of several calls that one line allocates.
fn of_calls(device: &str, timeline: &Timeline, top: &AtPeak, of: &Rebound, to: &mut Vec<Finding>) {
    let observation = format!(
        "Device {device}: {} allocated {} of the {} in use at the peak ({:.0}%) in {}.{}",
        top.site,
        size(top.bytes),
        size(top.level),
        percent(top.bytes, top.level),
        plural(top.blocks, "block", "blocks"),
        calls(of, "results")
    );
    let left = of.left.as_ref().filter(|left| percent(left.1, of.rest.0) >= LEAST_LEFT);
    let left = left.map_or_else(String::new, |(site, ..)| {
        format!(" Compute what {site} allocates in parts, too: its peak then remains.")
    });
    let action = format!("Delete the result before the next call (del).{left}");
    put(
        to,
        "dominant-site",
        Confidence::High,
        [
            &observation,
            "A name keeps the result of a call until the result of the next one is bound to it.",
            &action,
            &deleted(timeline, of),
            &format!("devices.{device}.replay.peak_by_site"),
        ],
    );
}

/// Whether another finding says what the call sites of the peak do, or nothing can be done about them.
fn is_told(
    timeline: &Timeline,
    (top, others): (&AtPeak, &[AtPeak]),
    named: Option<String>,
    leaks: &[LeakRow],
) -> bool {
    // (What is there from the first events to the end is what the recording is about: nothing frees it earlier.)
    let is_named = |name: String| name == top.site || Some(name) == function_of(&top.site);
    if named.is_some_and(is_named) || top.stands_from.is_some() {
        return true;
    }
    // (Growing memory is a finding that says more.)
    if others.is_empty() && leaks.iter().any(|leak| leak.site == top.site) {
        return true;
    }
    // (Temporaries of the optimizer have a finding of their own.)
    let is_loop = top.inside.as_ref().is_some_and(|inside| has(&inside.0, "_multi_tensor_"));
    let temporaries = timeline.classes.falls.temporaries.as_ref();
    if is_loop && others.is_empty() && temporaries.is_some_and(|of| of.bytes == top.bytes) {
        return true;
    }
    // (A graph that no backward pass uses has a finding of its own.)
    let unused = timeline.classes.unused_activations().saturating_mul(2);
    top.activations.saturating_mul(2) >= top.bytes
        && unused >= timeline.classes.bytes_of(Class::Activation)
}

/// The call sites that make the peak.
pub(super) fn peak(device: &str, timeline: &Timeline, leaks: &[LeakRow], to: &mut Vec<Finding>) {
    let named = class_of_peak(device, timeline, to);
    let Falls { sites: Some(rest), makers, .. } = &timeline.classes.falls else { return };
    let [top, others @ ..] = makers.as_slice() else { return };
    if is_told(timeline, (top, others), named, leaks) {
        return;
    }
    let is_graph = top.activations.saturating_mul(2) >= top.bytes;
    if let (Some(of), [], false) = (&top.rebound, others, is_graph) {
        of_calls(device, timeline, top, of, to);
        return;
    }
    let mut observation = format!(
        "Device {device}: {}{} allocated {} of the {} in use at the peak ({:.0}%) in {}{}.",
        top.site,
        lines_of(top.n_lines),
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
            lines_of(other.n_lines),
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

/// Copies by autocast: where most of the peak is of their class, or where weights in the lower precision lower the peak.
pub(super) fn copies(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (classes, peak) = (&timeline.classes, timeline.replay.peak_requested);
    let of = &classes.falls.copies;
    let bytes = classes.bytes_of(Class::Cast);
    let is_largest = classes.largest(true).is_some_and(|most| most.0 == Class::Cast)
        && percent(bytes, peak) >= LEAST_CLASS;
    let is_worth = of.lower.is_some() && percent(of.bytes, peak) >= LEAST_COPIES;
    let lever = LEVERS.iter().find(|lever| lever.class == Class::Cast);
    let Some(lever) = lever.filter(|_| is_largest || is_worth) else { return };
    let own = classes.peak_sites.iter().filter(|row| row.0 == Class::Cast);
    let most = leader(&mut own.map(|row| (&*row.1, row.2))).filter(|most| most.name != NO_STACK);
    let observation = format!(
        "Device {device}: {} of the {} in use at the peak ({:.0}%) are {}{}{}.",
        size(bytes),
        size(peak),
        percent(bytes, peak),
        Class::Cast.label(),
        most.map_or_else(String::new, |most| format!(", {}", most.part(bytes, " of them"))),
        match (of.bytes, of.others) {
            (1.., 1..) => format!("; {} of them are copies of weights", size(of.bytes)),
            _ => String::new(),
        }
    );
    let estimate = match of.cached == of.bytes {
        true => "",
        false => "Which copies are of weights is an estimate by their sizes.",
    };
    let uncached = match of.cached {
        0 => String::new(),
        _ => format!(
            " Without the copies alone (cache_enabled=False): {}; the copies of one layer come on top.",
            size(of.uncached)
        ),
    };
    let validation = match (of.lower, classes.falls.class.filter(|_| is_largest)) {
        (Some(rest), _) => {
            falls(
                timeline,
                "the copies of weights, and with these weights at half their size,",
                (peak, rest),
                estimate,
            ) + &uncached
        }
        (None, Some(rest)) => falls(timeline, "these blocks", (peak, rest), ""),
        (None, None) => return,
    };
    put(
        to,
        "peak-class",
        classes.confidence(Class::Cast),
        [&observation, lever.why, lever.action, &validation, &format!("classes.{device}")],
    );
}

/// What most of the peak is for; returns the call site that it names.
fn class_of_peak(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) -> Option<String> {
    let peak = timeline.replay.peak_requested;
    let (class, bytes, most) = timeline.classes.largest(true)?;
    let (share, lever) = (percent(bytes, peak), LEVERS.iter().find(|of| of.class == class)?);
    if share < LEAST_CLASS {
        return None;
    }
    // (They have a finding of their own.)
    let unused = timeline.classes.unused_activations();
    if class == Class::Activation && unused.saturating_mul(2) >= bytes {
        return Some(most.name);
    }
    let rest = timeline.classes.falls.class?;
    if class == Class::Cast {
        return Some(most.name);
    }
    let from = match &*most.name {
        NO_STACK => String::new(),
        _ => ", ".to_owned() + &most.part(bytes, " of them"),
    };
    let least = if timeline.classes.may_be_more(class) { "at least " } else { "" };
    let twice = match timeline.classes.falls.twice {
        0 => String::new(),
        twice => format!(
            "; {} of it are older copies that the optimizer has already made anew",
            size(twice)
        ),
    };
    let observation = format!(
        "Device {device}: {least}{} of the {} in use at the peak ({share:.0}%) are {}{from}{twice}.",
        size(bytes),
        size(peak),
        class.label(),
    );
    // A checkpoint drops the copies that autocast makes of activations, too.
    let casts = timeline.classes.falls.dropped_casts;
    let what = match class {
        Class::Activation if casts > 0 => &*format!(
            "these blocks and the {} of copies by autocast, which a checkpoint drops too,",
            size(casts)
        ),
        _ => "these blocks",
    };
    let has_copies = class == Class::Activation && timeline.classes.falls.copies.bytes > 0;
    let stays = match has_copies {
        true => {
            lever.stays.to_owned()
                + " Copies of weights by autocast, which are counted, stay until torch.autocast ends."
        }
        false => lever.stays.to_owned(),
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
        None => falls(timeline, what, (peak, rest), &stays),
    };
    let attention = within_activations(timeline).filter(|_| class == Class::Activation);
    let action = lever.action.to_owned() + &attention.unwrap_or_default();
    put(
        to,
        "peak-class",
        timeline.classes.confidence(class),
        [&observation, lever.why, &action, &validation, &format!("classes.{device}")],
    );
    Some(most.name)
}
