//! Cold iterations: those at the beginning of their class that set things up.
//!
//! An iteration is cold if it takes more than 1.5 times the median of at least three later ones of its class, or if code is loaded
//! or memory allocated for 10% of it while the device waits. Only leading ones are: nothing in the middle is left out.

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
            let later = own[place + 1..].iter().take(MOST);
            let mut later: Vec<i64> = later.map(|at| list[*at].dur_ns).collect();
            trace::sort(&mut later);
            let Some(cold) = cold(&list[*at], &later) else { break };
            list[*at].cold = Some(cold);
        }
    }
}

/// Whether an iteration is cold, by the durations of later ones of its class.
fn cold(one: &Iteration, later: &[i64]) -> Option<Cold> {
    if later.len() < LATER {
        return None;
    }
    let median = later.get((later.len() - 1) / 2).copied()?;
    let part = |part: WallPart| one.parts.get(part.id()).copied().unwrap_or(0);
    let set_up = part(WallPart::Loading) + part(WallPart::Allocation);
    if one.dur_ns as f64 > LONGER * median as f64 {
        Some(Cold::Longer)
    } else {
        (set_up > 0 && set_up as f64 >= SET_UP * one.dur_ns as f64).then_some(Cold::SetsUp)
    }
}
