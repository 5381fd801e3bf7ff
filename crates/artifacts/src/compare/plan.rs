//! Whether what was to be done helped: the actions of the first run and the parts of its wall time, read again in the second.
//!
//! Both are read from the reports of the runs (`report.json`), so runs of other machines and vendors compare, too: rules and
//! parts have the same ids everywhere.

mod rows;

use std::collections::BTreeSet;

use report::units;
use serde::Deserialize;

pub use rows::{PlanRow, WallDeltaRow};

/// What `report.json` says of a run, as far as it is compared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RunPlan {
    wall: Vec<Wall>,
    diagnosis: Vec<Said>,
    actions: Vec<Asked>,
    #[serde(default)]
    steps: Option<Steps>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Wall {
    device: String,
    part: String,
    total_ns: i64,
    share_pct: f64,
    of_steps: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Said {
    rule: String,
    device: Option<String>,
    bound_ns: Option<i64>,
    evidence: Vec<Metric>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Asked {
    rule: String,
    device: Option<String>,
    action: String,
    bound_ns: i64,
    bound_pct: f64,
    place: String,
    validation_metric: Metric,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Metric {
    path: String,
    what: String,
    #[serde(alias = "value")]
    now: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Steps {
    n: u64,
    mean_ns: f64,
    std_ns: Option<f64>,
}

/// What moved between two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The steps, and whether their means differ by more than steps do; then what the figures are of.
    pub sentences: Vec<String>,
    /// The actions of the first run, in their order.
    pub plan: Vec<PlanRow>,
    /// The parts of the wall time, in the order of the bar; of one device of each run.
    pub wall: Vec<WallDeltaRow>,
}

/// Compares the plans of two runs; `None` for a run without a report.
pub(super) fn progress(a: Option<&RunPlan>, b: Option<&RunPlan>) -> Progress {
    let (Some(a), Some(b)) = (a, b) else {
        let text = "The effect of the first run's actions is unknown: one of the runs has no report.json (kinetoscope report --json-out).";
        return Progress { sentences: vec![text.to_owned()], ..Progress::default() };
    };
    let mut sentences = vec![steps_sentence(a.steps, b.steps)];
    let (wall, of_one_step) = wall(a, b);
    let note = match of_one_step {
        true => "The parts of the wall time are of one step (mean).",
        false => {
            "The parts of the wall time are of the whole window of each run: compare their shares, unless both runs did the same work."
        }
    };
    sentences.extend(Some(note).filter(|_| !wall.is_empty()).map(str::to_owned));
    sentences.extend(pace([a.steps, b.steps], &wall, of_one_step));
    Progress { sentences, plan: plan(a, b), wall }
}

/// Whether mean steps differ by more than chance: twice the standard error of their difference (Welch).
fn steps_sentence(a: Option<Steps>, b: Option<Steps>) -> String {
    let (Some(a), Some(b)) = (a, b) else {
        return "Steps are not compared: one of the runs records none.".to_owned();
    };
    let mean = |steps: Steps| units::time(steps.mean_ns as i64);
    let change = if a.mean_ns > 0.0 { 100.0 * (b.mean_ns - a.mean_ns) / a.mean_ns } else { 0.0 };
    let mut text = format!(
        "A step takes {} on the CPU in A and {} in B ({change:+.1}%; {} and {} steps)",
        mean(a),
        mean(b),
        units::count(a.n),
        units::count(b.n)
    );
    let spread =
        |steps: Steps| steps.std_ns.filter(|_| steps.n >= 3).map(|std| std * std / steps.n as f64);
    text.push_str(&match spread(a).zip(spread(b)) {
        None => {
            "; with fewer than 3 steps in a run, the spread between steps is not known.".to_owned()
        }
        Some((a_error, b_error)) => {
            let limit = 2.0 * (a_error + b_error).sqrt();
            let is = if (b.mean_ns - a.mean_ns).abs() > limit { "more" } else { "not more" };
            format!(
                ": the difference is {is} than twice its standard error, which makes {}.",
                units::time(limit as i64)
            )
        }
    });
    text
}

/// Where the GPU is busy for this share of its window in both runs, in percent, it sets their pace.
const BUSY_PCT: f64 = 80.0;

/// What a step takes the GPU, where it sets the pace of both runs: the CPU may be far ahead, and its steps say little then.
fn pace(steps: [Option<Steps>; 2], wall: &[WallDeltaRow], of_one: bool) -> Option<String> {
    let is_idle = |row: &&WallDeltaRow| {
        triage::WallPart::ALL.into_iter().any(|part| part.is_idle() && part.id() == row.part)
    };
    let busy = |share: fn(&WallDeltaRow) -> f64| {
        100.0 - wall.iter().filter(is_idle).map(share).sum::<f64>()
    };
    let (a_busy, b_busy) = (busy(|row| row.a_share_pct), busy(|row| row.b_share_pct));
    let [Some(a_steps), Some(b_steps)] = steps else { return None };
    if wall.is_empty() || a_busy < BUSY_PCT || b_busy < BUSY_PCT || a_steps.n == 0 || b_steps.n == 0
    {
        return None;
    }
    // (Times of steps are of one step already.)
    let per = |ns: i64, steps: Steps| if of_one { ns as f64 } else { ns as f64 / steps.n as f64 };
    let a_ns = per(wall.iter().map(|row| row.a_ns).sum(), a_steps);
    let b_ns = per(wall.iter().map(|row| row.b_ns).sum(), b_steps);
    let change = if a_ns > 0.0 { 100.0 * (b_ns - a_ns) / a_ns } else { 0.0 };
    let how = if of_one { "" } else { "; the GPU's span divided by the steps" };
    Some(format!(
        "The GPU sets the pace of both runs (it is busy {} and {} of the time): a step takes it {} in A and {} in B ({change:+.1}%{how}).",
        units::percent(a_busy),
        units::percent(b_busy),
        units::time(a_ns as i64),
        units::time(b_ns as i64),
    ))
}

/// The parts of the device with the longest window of each run, and whether they are of one step.
fn wall(a: &RunPlan, b: &RunPlan) -> (Vec<WallDeltaRow>, bool) {
    fn longest(rows: &[Wall]) -> &[Wall] {
        let of = |rows: &&[Wall]| rows.iter().map(|row| i128::from(row.total_ns)).sum::<i128>();
        rows.chunk_by(|a, b| a.device == b.device).max_by_key(of).unwrap_or(&[])
    }
    let (a_rows, b_rows) = (longest(&a.wall), longest(&b.wall));
    if a_rows.is_empty() || b_rows.is_empty() {
        return (Vec::new(), false);
    }
    let of_steps = |rows: &[Wall], steps: Option<Steps>| {
        steps.map(|steps| steps.n).filter(|n| *n > 0 && rows.iter().all(|row| row.of_steps))
    };
    let both = of_steps(a_rows, a.steps).zip(of_steps(b_rows, b.steps));
    let (a_n, b_n) = both.unwrap_or((1, 1));
    // In the order of the bar, which both follow.
    let parts: BTreeSet<&str> = a_rows.iter().chain(b_rows).map(|row| &*row.part).collect();
    let of = |rows: &[Wall], part: &str, n: u64| {
        let row = rows.iter().find(|row| row.part == part);
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        row.map_or((0, 0.0), |row| (row.total_ns / n, row.share_pct))
    };
    let row = |part: &str| {
        let (a_ns, a_share_pct) = of(a_rows, part, a_n);
        let (b_ns, b_share_pct) = of(b_rows, part, b_n);
        let part = part.to_owned();
        WallDeltaRow {
            part,
            a_ns,
            b_ns,
            delta_ns: b_ns.saturating_sub(a_ns),
            a_share_pct,
            b_share_pct,
        }
    };
    let known = triage::WallPart::ALL.iter().map(|part| part.id());
    let rows = known.filter(|part| parts.contains(part)).map(row);
    (rows.collect(), both.is_some())
}

fn plan(a: &RunPlan, b: &RunPlan) -> Vec<PlanRow> {
    let devices = |run: &RunPlan| {
        run.wall.iter().map(|row| row.device.clone()).collect::<BTreeSet<String>>().len()
    };
    // Of one device each, the same work may have another number.
    let several = devices(a) > 1 || devices(b) > 1;
    let same = |one: &Option<String>, other: &Option<String>| !several || one == other;
    let row = |asked: &Asked| {
        // A row of the overlap or fusion table is known by its place, a rule by its id.
        let of_table = asked.validation_metric.path == asked.rule;
        let again = b.actions.iter().find(|other| {
            other.rule == asked.rule
                && same(&other.device, &asked.device)
                && (!of_table || (other.place == asked.place && other.action == asked.action))
        });
        let said = b
            .diagnosis
            .iter()
            .filter(|said| said.rule == asked.rule && same(&said.device, &asked.device));
        let bound = said.clone().find_map(|said| said.bound_ns);
        let mut metrics = said.flat_map(|said| &said.evidence);
        let what = &asked.validation_metric.what;
        let value = match (again, of_table) {
            (Some(again), _) => Some(again.validation_metric.now.clone()),
            (None, true) => None,
            (None, false) => {
                metrics.find(|metric| metric.what == *what).map(|metric| metric.now.clone())
            }
        };
        PlanRow {
            action: asked.action.clone(),
            rule: asked.rule.clone(),
            place: asked.place.clone(),
            a_bound_ns: asked.bound_ns,
            a_bound_pct: asked.bound_pct,
            b_bound_ns: again.map(|again| again.bound_ns).or(bound.filter(|_| !of_table)),
            b_bound_pct: again.map(|again| again.bound_pct),
            metric: what.clone(),
            a_value: asked.validation_metric.now.clone(),
            b_value: value,
        }
    };
    a.actions.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of steps of 10 ms, in each of which the GPU waits for `launch_ns`; with an action if that is any.
    fn run(n: u64, mean_ns: f64, std_ns: Option<f64>, launch_ns: i64) -> RunPlan {
        let wall = |part: &str, ns: i64| serde_json::json!({"device": "0", "part": part, "total_ns": ns * n as i64, "share_pct": ns as f64 / 1e5, "of_steps": true});
        let metric = serde_json::json!({"path": "verdicts.devices.0.M2", "what": "GPU busy", "now": format!("{launch_ns}")});
        let mut evidence = metric.clone();
        evidence["value"] = evidence["now"].take();
        evidence.as_object_mut().unwrap().remove("now");
        let action = serde_json::json!({
            "rule": "M2", "device": "0", "action": "Make fewer launches.", "bound_ns": launch_ns * n as i64,
            "bound_pct": launch_ns as f64 / 1e5, "place": "", "validation_metric": metric,
        });
        let actions = if launch_ns > 100_000 { vec![action] } else { Vec::new() };
        serde_json::from_value(serde_json::json!({
            "wall": [wall("compute", 10_000_000 - launch_ns), wall("launch", launch_ns)],
            "diagnosis": [{"rule": "M2", "device": "0", "bound_ns": launch_ns * n as i64, "evidence": [evidence]}],
            "actions": actions,
            "steps": {"n": n, "mean_ns": mean_ns, "std_ns": std_ns},
        }))
        .unwrap()
    }

    #[test]
    fn an_action_is_read_again_in_the_second_run() {
        let (a, b) = (run(2, 1e7, None, 4_000_000), run(4, 1e7, None, 50_000));
        let found = progress(Some(&a), Some(&b));
        let [row] = &found.plan[..] else { panic!("{:?}", found.plan) };
        assert_eq!((row.a_bound_ns, row.b_bound_ns), (8_000_000, Some(200_000)));
        assert_eq!((row.a_bound_pct, row.b_bound_pct), (40.0, None), "no action any more");
        assert_eq!((&*row.a_value, row.b_value.as_deref()), ("4000000", Some("50000")));
        let walls: Vec<(&str, i64, i64)> =
            found.wall.iter().map(|row| (&*row.part, row.a_ns, row.delta_ns)).collect();
        assert_eq!(walls, [("compute", 6_000_000, 3_950_000), ("launch", 4_000_000, -3_950_000)]);
        assert!(found.sentences[0].ends_with("the spread between steps is not known."));
    }

    #[test]
    fn steps_differ_only_beyond_their_spread() {
        let of = |mean_ns: f64, std_ns: f64| run(4, mean_ns, Some(std_ns), 0);
        let sentence = |a: &RunPlan, b: &RunPlan| progress(Some(a), Some(b)).sentences[0].clone();
        // 2 * sqrt(2 * 400 000^2 / 4) = 565 685 ns.
        let said = sentence(&of(1e7, 4e5), &of(9.4e6, 4e5));
        assert!(
            said.contains("(-6.0%; 4 and 4 steps): the difference is more than twice"),
            "{said}"
        );
        let said = sentence(&of(1e7, 4e5), &of(9.5e6, 4e5));
        assert!(
            said.contains("the difference is not more than twice") && said.contains("566 µs"),
            "{said}"
        );
    }

    #[test]
    fn where_the_gpu_sets_the_pace_its_time_for_a_step_is_told() {
        let sentences = |a: i64, b: i64| {
            let of = |launch_ns| run(4, 1e6, Some(1e3), launch_ns);
            progress(Some(&of(a)), Some(&of(b))).sentences
        };
        let said = sentences(50_000, 40_000);
        let expected = "The GPU sets the pace of both runs (it is busy 99.5% and 99.6% of the time): a step takes it 10.0 ms in A \
                        and 10.0 ms in B (+0.0%).";
        assert_eq!(said.last().map(String::as_str), Some(expected));
        let said = sentences(50_000, 4_000_000);
        assert!(!said.iter().any(|text| text.contains("pace")), "{said:?}");
    }

    #[test]
    fn without_a_report_nothing_is_claimed() {
        let found = progress(None, Some(&run(4, 1e7, None, 0)));
        assert!(found.plan.is_empty() && found.sentences[0].contains("report.json"));
    }
}
