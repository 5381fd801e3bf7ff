//! Cold iterations: those at the beginning of their class that set things up.
//!
//! An iteration is cold if it takes more than 1.5 times the median of at least three later ones of its class, or if it is no shorter than
//! that and code is loaded or memory allocated for 10% of it while the device waits, twice as long as in the median one of the later.
//! Only leading ones are: nothing in the middle is left out.

use std::collections::BTreeMap;

use serde::Serialize;
use triage::WallPart;

use super::Iteration;

/// So much longer than the later ones is a cold one.
const LONGER: f64 = 1.5;
/// So many later ones are needed.
const LATER: usize = 3;
/// So many later ones are looked at.
const MOST: usize = 101;
/// So much of it waits for loading or allocation.
const SET_UP: f64 = 0.1;

/// Why an iteration is cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// It takes more than 1.5 times the median of later ones.
    Longer,
    /// The device waits for 10% of it while code is loaded, libraries are set up or memory is allocated.
    SetsUp,
}

/// Marks the cold ones of each class; of a class nothing where fewer than three follow.
pub(super) fn mark(list: &mut [Iteration]) {
    let mut by_class: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, one) in list.iter().enumerate() {
        by_class.entry(one.class.clone()).or_default().push(at);
    }
    for own in by_class.values() {
        for (place, at) in own.iter().enumerate() {
            let later = || own[place + 1..].iter().take(MOST).map(|at| &list[*at]);
            let of = |value: fn(&Iteration) -> i64| {
                let mut values: Vec<i64> = later().map(value).collect();
                trace::sort(&mut values);
                values
            };
            let later = (of(|one| one.dur_ns), of(set_up_ns));
            let Some(cold) = cold(&list[*at], &later) else { break };
            list[*at].cold = Some(cold);
        }
    }
}

/// How long an iteration sets things up while its device waits.
fn set_up_ns(one: &Iteration) -> i64 {
    let part = |part: WallPart| one.parts.get(part.id()).copied().unwrap_or(0);
    part(WallPart::Loading) + part(WallPart::Allocation)
}

/// Whether an iteration is cold, by the durations of later ones of its class and what they set up; both sorted.
fn cold(one: &Iteration, (later, set_up): &(Vec<i64>, Vec<i64>)) -> Option<Cold> {
    if later.len() < LATER {
        return None;
    }
    let middle = (later.len() - 1) / 2;
    let (median, later_ns) = (*later.get(middle)?, *set_up.get(middle)?);
    let own_ns = set_up_ns(one);
    if one.dur_ns as f64 > LONGER * median as f64 {
        return Some(Cold::Longer);
    }
    // (What every iteration does is no set-up.)
    let sets_up = own_ns > 0 && own_ns as f64 >= SET_UP * one.dur_ns as f64;
    (sets_up && one.dur_ns >= median && own_ns >= later_ns.saturating_mul(2))
        .then_some(Cold::SetsUp)
}
