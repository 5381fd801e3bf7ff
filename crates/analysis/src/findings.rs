//! Findings from the figures of the overview.

use report::{Confidence, Finding, units};

use crate::{Overview, percent};

/// Below this share of kernel time, in percent, early kernels do not distort the figures.
const WORTH_SAYING_PCT: f64 = 1.0;

/// Kernels launched before profiling started that distort the sums.
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
        hypothesis: "These kernels were launched before profiling started. They belong to an earlier step, of which the file \
                     contains only a part."
            .to_owned(),
        action: "Use the kernel tables of triage, which exclude these kernels, or record again with a wait or warm-up step \
                 and a synchronization before the active step."
            .to_owned(),
        validation: "The count is 0 in a trace that starts on an idle GPU.".to_owned(),
        confidence: Confidence::High,
        evidence: vec!["kernels.before_window_ns".to_owned()],
    })
}
