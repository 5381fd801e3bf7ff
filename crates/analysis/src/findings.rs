//! What follows from the first figures.

use report::{Confidence, Finding, units};

use crate::{Overview, percent};

/// Below this share of kernel time a few early kernels distort nothing.
const WORTH_SAYING_PCT: f64 = 1.0;

/// Kernels of earlier work in the sums.
pub(crate) fn before_window(overview: &Overview) -> Option<Finding> {
    let before = &overview.before_window;
    let share = percent(before.kernel_ns, overview.gpu.kernel_sum_ns);
    if before.n_kernels == 0 || share < WORTH_SAYING_PCT {
        return None;
    }
    Some(Finding {
        rule: "kernels-launched-before-the-window".into(),
        observation: format!(
            "The launch call of {} is not in the file: {}, {} of kernel time.",
            units::plural(before.n_kernels, "kernel", "kernels"),
            units::time(before.kernel_ns),
            units::percent(share)
        ),
        hypothesis: "The calls were made before recording began: the work belongs to an earlier step, which \
                     sums over the file count in part."
            .to_owned(),
        action: "Read the figures without them, or record again with a wait or warm-up step and a \
                 synchronisation before the active one."
            .to_owned(),
        validation: "The count is 0 in a trace that starts on an idle GPU.".to_owned(),
        confidence: Confidence::High,
        evidence: vec!["kernels.before_window_ns".to_owned()],
    })
}
