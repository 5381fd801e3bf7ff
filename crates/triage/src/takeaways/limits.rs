//! The parts of the run that the CPU limits by its launches. What to do about that a diagnosis says, which knows more of the run.

use report::units;

use crate::idle::cause::Cause;
use crate::idle::sentences::Limited;
use crate::report::Coverage;
use crate::stages::{Stage, StageRow};
use timeline::percent;

/// Gaps before a stage's late launches are worth a sentence from this share of the GPU span on, in percent.
const LIMIT_PCT: f64 = 10.0;
/// How many times as long a step took with Python stacks as without the profiler, at most: recordings of our own on an H200 with
/// PyTorch 2.11 (docs/measured.md). Other machines may differ, so it only makes a finding unsure.
pub const SLOWED_BY_STACKS: f64 = 4.6;
/// A device that is busy for this share limits the run itself.
pub const LIMITING_SHARE: f64 = 0.8;
/// GPU time blocked from which the pace of launches says nothing, in percent of the span.
pub(crate) const BLOCKED_PCT: f64 = 10.0;

/// The parts of the run that the CPU limits by its launches.
pub(crate) struct Limits {
    /// `the run`, `stage forward and stage backward`.
    parts: String,
    /// The gaps before their late launches.
    late_ns: i64,
    /// Of their busy time and gaps, in percent, and that time.
    late_pct: f64,
    own_ns: f64,
    /// Whether there are no stages.
    whole: bool,
    /// Whether graphs launch a part of them already.
    pub(super) has_graphs: bool,
    /// What recording does to them, with a space before it; empty if little.
    caution: &'static str,
}

impl Limits {
    /// The stages whose limit is the CPU's launches. What belongs to no stage is named only where there are no stages.
    pub(crate) fn of(
        stages: &[StageRow],
        coverage: &Coverage,
        cause: Cause,
        span_ns: i64,
        several: bool,
    ) -> Option<Self> {
        // (In a first run, and where work was queued, launches come late for other reasons.)
        let other =
            matches!(cause, Cause::SetUp | Cause::Allocation | Cause::Queued | Cause::Between);
        if other || percent(coverage.gpu_blocked_ns, span_ns) >= BLOCKED_PCT {
            return None;
        }
        let staged = stages.iter().any(|row| !matches!(row.stage, Stage::All | Stage::Capture));
        let bound: Vec<&StageRow> = stages
            .iter()
            .filter(|row| row.launch_bound == Some(true) && row.stage != Stage::Capture)
            .filter(|row| row.stage != Stage::All || !staged)
            .collect();
        // (All of them are named where one of them is worth a sentence.)
        bound.iter().find(|row| percent(row.late_ns, span_ns) >= LIMIT_PCT)?;
        let (first, more) = bound.split_first()?;
        let named = |row: &StageRow| {
            let device = if several { format!(" on device {}", row.device) } else { String::new() };
            match row.stage {
                Stage::All => format!("the run{device}"),
                stage => format!("stage {}{device}", stage.title()),
            }
        };
        let mut parts = named(first);
        for (row, left) in more.iter().zip((0..more.len()).rev()) {
            parts.push_str(if left == 0 { " and " } else { ", " });
            parts.push_str(&named(row));
        }
        let late_ns = bound.iter().fold(0_i64, |sum, row| sum.saturating_add(row.late_ns));
        let own = |row: &&StageRow| row.late_ns as f64 * 100.0 / row.late_pct;
        let own_ns: f64 = bound.iter().map(own).sum();
        let is_busy = coverage.busy_ns as f64 * SLOWED_BY_STACKS >= span_ns as f64 * LIMITING_SHARE;
        let caution = match coverage.has_frames {
            true if is_busy => {
                " Recording Python stacks slows the CPU down: without stacks, the GPU's own work may be the limit."
            }
            true => {
                " Recording Python stacks slows the CPU down: confirm this in a trace without with_stack."
            }
            false => "",
        };
        Some(Self {
            parts,
            late_ns,
            whole: !staged && !several,
            late_pct: late_ns as f64 * 100.0 / own_ns,
            own_ns,
            has_graphs: bound.iter().any(|row| row.graphs),
            caution,
        })
    }

    /// For the sentence about idle time.
    pub(crate) fn limited(&self) -> Limited<'_> {
        let stages_ns = (!self.whole).then_some(self.late_ns);
        Limited { parts: &self.parts, stages_ns, caution: self.caution }
    }

    /// The sentence where something else costs more.
    pub(super) fn sentence(&self) -> String {
        let Self { parts, late_ns, late_pct, own_ns, caution, .. } = self;
        format!(
            "The CPU limits {parts}: the GPU waits for the next launch for {} ({} of {}: busy time and gaps, without set-up and single gaps \
             of 10% of the run or more).{caution}",
            units::time(*late_ns),
            units::percent(*late_pct),
            units::time(*own_ns as i64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn a_share_names_what_it_is_of() {
        let limits = Limits {
            parts: "the run".to_owned(),
            late_ns: 3_000_000,
            late_pct: 30.0,
            own_ns: 10_000_000.0,
            whole: true,
            has_graphs: false,
            caution: "",
        };
        let said = limits.sentence();
        assert!(
            said.contains("for 3.00 ms (30.0% of 10.0 ms: busy time and gaps, without"),
            "{said}"
        );
    }
}
