//! Devices that run one program: what several of them show is printed once.

use report::units;

use super::FuseRow;

/// Of rows that advise one change in one stage of several devices, the one that saves the largest share speaks for all, and the others repeat it.
pub(crate) fn say_once(rows: &mut [FuseRow]) {
    let change = |row: &FuseRow| {
        let stage_and_pattern = (row.stage, row.pattern_id.clone());
        row.is_advice().then(|| (stage_and_pattern, row.candidate_fused_path.clone()))
    };
    for at in 0..rows.len() {
        let Some(own) = change(&rows[at]).filter(|_| !rows[at].repeats) else { continue };
        let mut same: Vec<usize> =
            (at..rows.len()).filter(|of| change(&rows[*of]).as_ref() == Some(&own)).collect();
        // (Of equal ones the first.)
        trace::sort_by(&mut same, |a, b| {
            let pct = |at: &usize| rows[*at].saved_pct().unwrap_or_default();
            pct(b).total_cmp(&pct(a))
        });
        let Some((most, others)) = same.split_first().filter(|(_, others)| !others.is_empty())
        else {
            continue;
        };
        let sentence = sentence(rows, others);
        rows[*most].rationale.push_str(&sentence);
        others.iter().for_each(|of| rows[*of].repeats = true);
    }
}

/// That others show the same, with their bounds.
fn sentence(rows: &[FuseRow], others: &[usize]) -> String {
    let bounds = || others.iter().filter_map(|at| rows[*at].savings_bound_ns);
    let bound = |ns: Option<i64>| units::time(ns.unwrap_or_default());
    let (most, least) = (bound(bounds().max()), bound(bounds().min()));
    let range = if least == most { most } else { format!("{least} to {most}") };
    let mut others = others.to_vec();
    trace::sort(&mut others);
    let names: Vec<&str> = others.iter().map(|at| rows[*at].device.as_str()).collect();
    match names.split_last() {
        Some((last, [])) => format!(" Device {last} shows the same: at most {range}."),
        Some((last, rest)) => {
            format!(" Devices {} and {last} show the same: at most {range}.", rest.join(", "))
        }
        None => String::new(),
    }
}
