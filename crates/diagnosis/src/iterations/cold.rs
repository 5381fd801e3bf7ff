//! Cold iterations: those at the beginning that set things up.
//!
//! An iteration is cold if it takes more than 1.5 times the median of at least three later ones of its class, or if code is loaded
//! or memory allocated for 10% of it while the device waits. Only leading ones are: nothing in the middle is left out.

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

/// Marks the cold ones; nothing where fewer than three follow.
pub(super) fn mark(list: &mut [Iteration]) {
    for at in 0..list.len() {
        let Some((own, later)) = list[at..].split_first() else { return };
        let of_class = later.iter().filter(|one| one.class == own.class).take(MOST);
        let mut of_class: Vec<i64> = of_class.map(|one| one.dur_ns).collect();
        if of_class.len() < LATER {
            return;
        }
        trace::sort(&mut of_class);
        let median = of_class.get((of_class.len() - 1) / 2).copied().unwrap_or(0);
        let part = |part: WallPart| own.parts.get(part.id()).copied().unwrap_or(0);
        let set_up = part(WallPart::Loading) + part(WallPart::Allocation);
        let cold = if own.dur_ns as f64 > LONGER * median as f64 {
            Cold::Longer
        } else if set_up as f64 >= SET_UP * own.dur_ns as f64 && set_up > 0 {
            Cold::SetsUp
        } else {
            return;
        };
        list[at].cold = Some(cold);
    }
}
