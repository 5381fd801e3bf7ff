//! Kinds of memory with a remedy of their own: scores of attention, temporaries and state of optimizers, graphs of autograd that no
//! backward pass uses.

use report::units::{count, plural};
use report::{Confidence, Finding};

use super::peak::{LEAST_CLASS, NEARLY_EQUAL, calls, falls};
use crate::amounts::{percent, size};
use crate::claim::put;
use crate::classes::Class;
use crate::leader::leader;
use crate::report::Timeline;
use crate::site::{Update, of_it_in};

/// Attention that stores its scores is worth a finding from this share of the peak on, in percent.
const LEAST_ATTENTION: f64 = 10.0;

/// Activations that no backward pass uses are worth a finding from this share of the peak on, in percent.
const LEAST_UNUSED: f64 = 10.0;

/// State that is replaced is worth a finding from this share of the peak on, in percent.
const LEAST_REPLACED: f64 = 5.0;

/// Attention that saves less on top of what the finding on activations saves, in percent of the peak, is no finding of its own.
const LEAST_GAIN: f64 = 5.0;

/// Bytes are among others from this part on, in percent.
const NEARLY_ALL: f64 = 90.0;

/// Temporaries of the optimizer are worth a finding from this share of the peak on, in percent.
const LEAST_TEMPORARIES: f64 = 10.0;

/// Attention that stores the scores of all pairs of positions.
pub(super) fn attention(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (sites, peak) = (&timeline.classes.attention, timeline.replay.peak_requested);
    let bytes = sites.iter().fold(0_i64, |sum, row| sum.saturating_add(row.2));
    let share = percent(bytes, peak);
    let Some(rest) = timeline.classes.falls.attention else { return };
    let most = leader(&mut sites.iter().map(|row| (&*row.1, row.2)));
    let Some(most) = most.filter(|_| share >= LEAST_ATTENTION) else { return };
    let most = most.part(bytes, " of them");
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
            &(falls(
                timeline,
                "these blocks",
                (peak, rest),
                match timeline.classes.bytes_of(Class::Activation) {
                    // (Without a backward pass it has no temporaries.)
                    bytes if bytes <= timeline.classes.unused_activations() => {
                        "The outputs of attention, which are counted, stay."
                    }
                    _ => {
                        "Temporaries of their backward pass, which are not counted, go too; the outputs of attention, which are counted, \
                      stay."
                    }
                },
            ) + &on_top(timeline)),
            &format!("devices.{device}.replay.peak_by_site"),
        ],
    );
}

/// What is saved on top of the change that the finding on activations advises.
fn on_top(timeline: &Timeline) -> String {
    let Some(of) = timeline.classes.falls.both else { return String::new() };
    let bytes = of.bytes.saturating_add(of.casts);
    let share = percent(timeline.classes.never_used, timeline.replay.peak_requested);
    if share >= LEAST_UNUSED {
        return format!(
            " But {} of these are of the graph that inference_mode does not keep: after that change, only what one layer allocates here is in \
             use at a time, and no more than that is saved.",
            size(bytes)
        );
    }
    let share =
        percent(timeline.classes.bytes_of(Class::Activation), timeline.replay.peak_requested);
    if share < LEAST_CLASS {
        return String::new();
    }
    format!(
        " But {} of these are among the activations{}, which a checkpoint drops too: without both the recorded events peak at {}, without the \
         activations alone at {}.",
        size(bytes),
        if of.casts > 0 { " and their copies by autocast" } else { "" },
        size(of.rest),
        size(of.without)
    )
}

/// What attention alone would save, where the finding on activations is about the same bytes and saves as much without it: that finding
/// then has it.
#[inline(never)]
pub(crate) fn within_activations(timeline: &Timeline) -> Option<String> {
    let Timeline { classes, replay, ooms, .. } = timeline;
    let of = classes.falls.both?;
    let rest = classes.falls.attention?;
    let all = classes.attention.iter().fold(0_i64, |sum, row| sum.saturating_add(row.2));
    let gain = percent(of.without.saturating_sub(of.rest), replay.peak_requested);
    let is_unused = percent(classes.never_used, replay.peak_requested) >= LEAST_UNUSED;
    // (Of a failed allocation another finding has the activations.)
    let is_told = is_unused
        || ooms.is_empty() && classes.falls.class.is_some() && !on_top(timeline).is_empty();
    if !is_told
        || percent(of.bytes.saturating_add(of.casts), all) < NEARLY_ALL
        || gain >= LEAST_GAIN
    {
        return None;
    }
    // (A graph that is not kept needs nothing else.)
    Some(match is_unused {
        true => String::new(),
        false => format!(
            " Or compute attention with torch.nn.functional.scaled_dot_product_attention, which computes nothing twice: functions of \
             attention hold {} of these{}, and without {} the recorded events peak at {}.",
            size(of.bytes),
            match of.casts {
                0 => String::new(),
                casts => format!(" and {} of copies by autocast", size(casts)),
            },
            if of.casts > 0 { "both" } else { "them" },
            size(rest)
        ),
    })
}

/// Copies of weights by autocast that are used after the weights have changed.
pub(super) fn stale(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (n, bytes) = timeline.classes.stale;
    if n == 0 {
        return;
    }
    let observation = format!(
        "Device {device}: {} of weights by autocast ({}) {} in use over a step of the optimizer and into the forward pass after it.",
        plural(n, "copy", "copies"),
        size(bytes),
        if n == 1 { "stays" } else { "stay" }
    );
    put(
        to,
        "autocast-stale-weights",
        Confidence::Medium,
        [
            &observation,
            "One torch.autocast encloses several iterations: until it ends, it keeps the copies of the weights that the first one made, so \
             forward passes use weights from before the step.",
            "Let torch.autocast enclose only the forward pass and the loss of one iteration, and neither backward nor optimizer.step().",
            "Each iteration then copies the weights anew, and the losses change.",
            &format!("classes.{device}"),
        ],
    );
}

/// What makes the temporaries of an optimizer fewer.
pub(super) fn of_update(update: Update) -> String {
    const FUSED: &str = "Give the optimizer fused=True (Adam, AdamW; SGD from PyTorch 2.3): its kernel allocates no temporaries.";
    match (update.has_fused, update.is_foreach) {
        (true, true) => {
            format!("{FUSED} Or foreach=False: it then updates one parameter at a time.")
        }
        (true, false) => FUSED.to_owned(),
        (false, _) => {
            "Give the optimizer foreach=False: it then updates one parameter at a time.".to_owned()
        }
    }
}

/// Temporaries that an optimizer of PyTorch frees within its step.
pub(super) fn temporaries(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let peak = timeline.replay.peak_requested;
    let Some(of) = &timeline.classes.falls.temporaries else { return };
    let share = percent(of.bytes, peak);
    // (With another peak that is nearly as high they have a finding in common.)
    if share < LEAST_TEMPORARIES || timeline.classes.falls.pair.is_some() {
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
    let action = of_update(of.update);
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

/// That the cache of autocast keeps copies of weights without a graph, too.
fn kept_copies(timeline: &Timeline) -> String {
    let of = timeline.classes.falls.copies;
    if of.bytes == 0 {
        return String::new();
    }
    format!(
        " {} of copies of weights by autocast{} are counted: its cache keeps them without a graph, too, until torch.autocast ends. With \
         cache_enabled=False: {}.",
        size(of.bytes),
        match of.cached == of.bytes {
            true => "",
            false => " (an estimate by their sizes: half of a weight's)",
        },
        size(of.none)
    )
}

/// Activations that forward saved for a backward pass that did not run.
pub(super) fn unused_graph(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (bytes, peak) = (timeline.classes.never_used, timeline.replay.peak_requested);
    let share = percent(bytes, peak);
    if share < LEAST_UNUSED {
        return;
    }
    let observation = format!(
        "Device {device}: {} of the {} in use at the peak ({share:.0}%) were saved in forward for a backward pass that the recording \
         does not have.",
        size(bytes),
        size(peak),
    );
    let graphs = timeline.classes.falls.graphs.as_ref();
    let observation = observation + &graphs.map_or_else(String::new, |it| calls(it, "the graphs"));
    put(
        to,
        "graph-without-backward",
        Confidence::High,
        [
            &observation,
            "Outside torch.no_grad() and torch.inference_mode(), each layer keeps for backward what the next layers no longer need.",
            "For inference and evaluation, call the model under torch.inference_mode() or torch.no_grad().",
            &(timeline.classes.falls.unused.map_or_else(String::new, |rest| {
                falls(
                    timeline,
                    "these blocks",
                    (peak, rest),
                    "On top comes what one layer needs while it runs.",
                ) + &kept_copies(timeline)
            }) + &graphs.map_or_else(String::new, |it| {
                format!(
                    " With the graph, where the result is deleted (del) before the next call: {}.",
                    size(it.rest.0)
                )
            })),
            &format!("classes.{device}"),
        ],
    );
}

/// State and parameters that the optimizer makes anew in each step.
pub(super) fn replaced(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let (made, freed) = timeline.classes.state;
    let (parameters, peak) = (timeline.classes.parameters, timeline.replay.peak_requested);
    // (Of the first step nothing is freed.)
    let is_state = freed > 0 && freed >= made / 2;
    let anew = if is_state { freed.saturating_add(parameters) } else { parameters };
    if percent(anew, peak) < LEAST_REPLACED {
        return;
    }
    let state = match is_state {
        true => {
            format!("allocates {} of state and frees {} of older state", size(made), size(freed))
        }
        false => String::new(),
    };
    let weights = match (parameters, is_state) {
        (0, _) => String::new(),
        (_, true) => {
            format!(", and allocates {} of parameters in place of older ones", size(parameters))
        }
        (_, false) => {
            format!("allocates {} of parameters in place of older ones", size(parameters))
        }
    };
    let observation = format!("Device {device}: the optimizer {state}{weights}, in all its steps.");
    let rest = timeline.classes.falls.merged;
    let gain = peak.saturating_sub(rest);
    let is_memory = percent(gain, peak) >= LEAST_REPLACED;
    let at_once = "With each old tensor overwritten by its new one, the recorded events peak at";
    let validation = match (gain, is_memory) {
        (..=0, _) => {
            "This saves calls of the allocator and copies, and no memory: the peak stays, because old and new tensors are not in use \
             together there."
                .to_owned()
        }
        (_, false) => format!(
            "{at_once} {} instead of {}: old and new are in use together for few tensors at a time. This saves calls of the allocator and \
             copies, and hardly any memory.",
            size(rest),
            size(peak)
        ),
        (_, true) => format!("{at_once} {} instead of {}.", size(rest), size(peak)),
    };
    put(
        to,
        "optimizer-state-replaced",
        Confidence::Medium,
        [
            &observation,
            "Each step makes new tensors instead of writing to those that are there.",
            "Update parameters and state in place (mul_, add_, addcmul_, addcdiv_), or use an optimizer of torch.optim with fused=True, or \
             with foreach=False: its default makes a temporary per parameter at once.",
            &validation,
            &format!("classes.{device}"),
        ],
    );
}
