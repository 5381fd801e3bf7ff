//! Two peaks that are nearly equal: what lowers both of them.

use report::units::count;
use report::{Confidence, Finding};

use super::classes::of_update;
use super::peak::falls;
use crate::amounts::size;
use crate::claim::put;
use crate::classes::LEAST_FALL;
use crate::report::Timeline;

/// Activations in forward and backward, and temporaries of the optimizer.
pub(super) fn pair(device: &str, timeline: &Timeline, to: &mut Vec<Finding>) {
    let Some(of) = &timeline.classes.falls.pair else { return };
    let observation = format!(
        "Device {device}: two peaks are nearly equal: {} before event {}, with {} of activations{}, and {} before event {}, with {} of temporaries \
         of the optimizer, freed within its step.",
        size(of.of_activations.0),
        count(of.of_activations.1 as u64),
        size(of.activations),
        if of.casts > 0 { " and of copies of them by autocast" } else { "" },
        size(of.of_temporaries.0),
        count(of.of_temporaries.1 as u64),
        size(of.temporaries.bytes)
    );
    let (attention, alone) = match of.attention {
        Some(rest) => (
            ", or compute attention with torch.nn.functional.scaled_dot_product_attention",
            format!(" With what attention allocates instead of all activations: {}.", size(rest)),
        ),
        None => ("", String::new()),
    };
    let action = format!(
        "Lower both: checkpoint each layer of the model (torch.utils.checkpoint){attention}. {}",
        of_update(of.temporaries.update)
    );
    let validation = falls(
        timeline,
        "both",
        (timeline.replay.peak_requested, of.rest),
        "On top comes what a checkpoint keeps: the inputs of the layers, and one layer while backward computes it again.",
    ) + &alone;
    put(
        to,
        "near-equal-peaks",
        Confidence::Medium,
        [
            &observation,
            &format!(
                "A change for one of them alone lowers the peak by less than {LEAST_FALL}%, because the other one stays."
            ),
            &action,
            &validation,
            &format!("classes.{device}"),
        ],
    );
}
