//! The actions that tables of triage advise: fusion, overlap and the number format.

use std::cmp::Ordering;

use catalog::fuse_patterns::patterns;

use super::{Action, Place, Whole};
use crate::facts::Device;
use crate::{Confidence, Facts, Rule};

/// The one of a kernel that the framework has.
const FRAMEWORK_KERNEL: &str = "framework-kernel";

/// What a fused kernel saves without the profiler, where an iteration was timed, and why that is not what the recording shows.
fn without_profiler(facts: &Facts<'_>, row: &triage::FuseRow, bound_ns: i64) -> (i64, String) {
    let gone_ns = row.together.map_or(row.gone_ns, |all| all.gone_ns);
    let device = facts.devices().find(|device| device.name == row.device);
    let Some(timed) = device.as_ref().and_then(Device::timed_as_recorded) else {
        return (bound_ns, String::new());
    };
    // (An iteration was timed warm, and what a recording with cold ones has of the others is not known to be like it.)
    let is_work = timed.is_work() && facts.left_out().is_none();
    let most_ns = if is_work { bound_ns.max(gone_ns) } else { bound_ns };
    let most_ns = most_ns.min(gone_ns.saturating_add(timed.rest_in_all_ns())).min(timed.all_ns());
    let ns = report::units::time(most_ns);
    let why = match most_ns.cmp(&bound_ns) {
        Ordering::Less => format!(
            " Without the profiler that is at most {ns}: the time on the device and the cost of late launches."
        ),
        Ordering::Equal => String::new(),
        Ordering::Greater => format!(
            " That holds for the recording: without the profiler the GPU's work limits the run, and all {ns} count."
        ),
    };
    (most_ns, why)
}

/// What to do in the place of a chain of kernels; `None` where nothing is advised.
fn fused_action(row: &triage::FuseRow) -> Option<String> {
    match row.remedy {
        // (The column that this row of the table refers to is not printed here.)
        FRAMEWORK_KERNEL if !row.candidate_fused_path.is_empty() => {
            let pattern = patterns().find(|pattern| pattern.id == row.pattern_id)?;
            Some(pattern.action(&row.candidate_fused_path))
        }
        _ => Some(row.action.clone()).filter(|action| !action.is_empty()),
    }
}

/// The advised rows of the overlap and the fusion table, and the number format of products. Bounds of the first are of all iterations.
pub(super) fn of_triage(facts: &Facts<'_>) -> Vec<Action> {
    let mut all = advised(facts);
    if let Some((_, n)) = facts.left_out() {
        let text = format!("The bound covers all {n} iterations, including the cold ones.");
        let of_all = all.iter_mut().filter(|action| action.rule == "overlap");
        of_all.for_each(|action| action.add(&text));
    }
    all
}

fn advised(facts: &Facts<'_>) -> Vec<Action> {
    let overlap = facts.triage.overlap.iter().filter_map(|row| {
        let remedy = row.advised?;
        let bound_ns = row.savings_bound_ns?;
        let device = facts.devices().find(|device| device.name == row.device && row.pins());
        let (bound_ns, left) =
            device.map_or((bound_ns, String::new()), |device| device.with_pinned_memory(bound_ns));
        Some(Action {
            rule: "overlap".to_owned(),
            device: Some(row.device.clone()),
            observation: row.because.clone(),
            first: String::new(),
            action: remedy.action.to_owned(),
            remedy: "",
            hypothesis: left.trim_start().to_owned(),
            bound_ns,
            bound_pct: 0.0,
            bound_of: Whole::Steps,
            confidence: Confidence::Medium,
            place: row.python_scope.clone().unwrap_or_else(|| row.kernel_name.clone()),
            validation: remedy.check.to_owned(),
            check: Place {
                path: "overlap".to_owned(),
                what: "The row of the overlap table".to_owned(),
                now: row.formal_signal.clone(),
            },
        })
    });
    // One change is one action, also where it acts in several stages.
    let rows = facts.triage.fuse.iter().filter(|row| row.together.is_none_or(|all| all.is_first));
    let fuse = rows.filter_map(|row| {
        let observation = match row.together {
            Some(all) => {
                format!("{} The same change applies in {} stages: the bound covers all of them, the other figures this one.", row.what, all.n_stages)
            }
            None => row.what.clone(),
        };
        let bound_ns = row.together.map(|all| all.saved_ns).or(row.savings_bound_ns)?;
        let (bound_ns, capped) = without_profiler(facts, row, bound_ns);
        Some(Action {
            rule: "fuse".to_owned(),
            device: Some(row.device.clone()),
            observation,
            first: String::new(),
            action: fused_action(row)?,
            remedy: row.remedy,
            hypothesis: format!("{}{capped}", row.estimate),
            bound_ns,
            bound_pct: 0.0,
            bound_of: Whole::Steps,
            confidence: Confidence::Medium,
            place: row.current_location.clone(),
            validation: row.check.clone(),
            check: Place {
                path: "fuse".to_owned(),
                what: "GPU time of the kernels concerned".to_owned(),
                now: report::units::time(row.related_ns),
            },
        })
    });
    overlap.chain(fuse).chain(precision(facts)).collect()
}

/// The number format of products, where it saves something: in the recording, or where recording makes the launches late, without it.
fn precision(facts: &Facts<'_>) -> Option<Action> {
    let plain = facts.triage.plain_products.as_ref()?;
    let device = facts.devices().find(|device| device.name == plain.device);
    let is_slowed = device.is_some_and(|device| device.may_be_slowed());
    if !plain.counts.shortens(is_slowed) {
        return None;
    }
    // (A difference that rounding hides is none.)
    let is_more = is_slowed && plain.gone_ns as f64 > 1.02 * plain.saved_ns as f64;
    let recorded = match plain.is_told() {
        true => "That holds for the recording, which delays launches",
        false => "Recording delays launches",
    };
    let without = match is_more {
        true => format!(
            " {recorded}: without the profiler it saves at most {}.",
            report::units::time(plain.gone_ns)
        ),
        false => String::new(),
    };
    Some(Action {
        rule: Rule::Precision.id().to_owned(),
        device: Some(plain.device.clone()),
        observation: plain.observation.clone(),
        first: String::new(),
        action: plain.action.to_owned(),
        remedy: "",
        hypothesis: format!("{}{without}", plain.gain),
        bound_ns: if is_more { plain.gone_ns } else { plain.saved_ns },
        bound_pct: 0.0,
        bound_of: Whole::Steps,
        confidence: Confidence::Medium,
        place: String::new(),
        validation: "In a new trace, kernels with tensor cores run these products.".to_owned(),
        check: Place {
            path: "triage".to_owned(),
            what: "GPU time of these products".to_owned(),
            now: report::units::time(plain.total_ns),
        },
    })
}
