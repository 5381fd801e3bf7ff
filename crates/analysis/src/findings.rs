//! Findings from the figures of the overview.

use dialect::kineto::step_number;
use report::{Confidence, Finding, units};

use crate::{Overview, StepRow, percent};

/// Below this share of kernel time, in percent, early kernels do not distort the figures.
const WORTH_SAYING_PCT: f64 = 1.0;
/// From this share on, next to nothing is left.
const ALL_PCT: f64 = 99.0;

/// Kernels launched before profiling started that distort the sums.
pub(crate) fn before_window(overview: &Overview, steps: &[StepRow]) -> Option<Finding> {
    let before = &overview.before_window;
    let share = percent(before.kernel_ns, overview.gpu.kernel_sum_ns);
    if before.n_kernels == 0 || share < WORTH_SAYING_PCT {
        return None;
    }
    // Steps are numbered from 0, so a schedule left out the ones before: its last warm-up step launched these kernels.
    let first = steps.iter().find_map(|step| step_number(&step.name));
    let again = if first.is_some_and(|first| first > 0) {
        "a synchronization at the end of the warm-up, before the first active step"
    } else {
        "a wait or warm-up step and a synchronization before the active step"
    };
    Some(Finding {
        rule: "kernels-launched-before-the-window".into(),
        observation: format!(
            "{} launched before profiling started, by an earlier step: {}, {} of kernel time.",
            units::plural(before.n_kernels, "kernel was", "kernels were"),
            units::time(before.kernel_ns),
            units::percent(share)
        ),
        hypothesis: String::new(),
        first: String::new(),
        // (Where that is all, these tables are empty.)
        action: match share < ALL_PCT {
            true => format!(
                "Use the kernel tables of triage, which exclude these kernels, or record again with {again}."
            ),
            false => format!("Record again with {again}: the launches of all kernels are missing."),
        },
        place: String::new(),
        gain: String::new(),
        validation: String::new(),
        confidence: Confidence::High,
        evidence: vec!["kernels.before_window_ns".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyze};
    use fixture::{Fixture, kernel, slice};

    #[test]
    fn a_schedule_that_left_steps_out_needs_only_a_synchronization() {
        let action = |step: &str| {
            let mut fixture = Fixture::default();
            fixture.push(slice("user_annotation", step).on(1, 1).at(0, 100));
            fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(1).at(1, 2));
            fixture.push(kernel("early").at(4, 10).link(77));
            fixture.push(kernel("k").at(20, 10).link(1));
            let report = analyze(&fixture.finish(), &Options::default());
            let finding = super::before_window(&report.overview, &report.steps).unwrap();
            finding.action
        };
        assert!(action("ProfilerStep#0").contains("with a wait or warm-up step and"));
        let warm = action("ProfilerStep#2");
        assert!(
            warm.ends_with(
                "with a synchronization at the end of the warm-up, before the first active step."
            ),
            "{warm}"
        );
        assert!(action("my step").contains("with a wait or warm-up step and"));
    }
}
