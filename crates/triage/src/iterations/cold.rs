//! Cold iterations: those at the beginning of their class that set things up.
//!
//! An iteration is cold if it takes more than 1.5 times the median of at least three later ones of its class, and hardly one of them takes as
//! long for the same work, or if it is no shorter than
//! that and code is loaded or memory allocated for 10% of it while the device waits, twice as long as in the median one of the later.
//! Only leading ones are: nothing in the middle is left out.
//!
//! An iteration that does other work is none: it has 1.5 times as many ops that launch as the later ones, or as few, and the work that they
//! launched makes it longer. It gets a class of its own. Nor is one whose CPU waits that long for the work of an earlier one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Range;
use crate::{WallPart, WallTimes};

/// So much longer than the later ones is a cold one.
const LONGER: f64 = 1.5;
/// A later one is as long if it is so many times shorter or longer at most, and does the same work if its GPU work takes as long as this; one in so many
/// of them may be as long, for another reason.
const AS_LONG: f64 = 1.1;
const SAME_WORK: f64 = 1.25;
const SELDOM: usize = 20;
/// So many later ones are needed.
const LATER: usize = 3;
/// So many later ones are looked at.
const MOST: usize = 101;
/// So much of it waits for loading or allocation.
const SET_UP: f64 = 0.1;

/// Ops that launch, of an iteration with other work: so many times as many as in the later ones, or as few.
const OTHER: f64 = 1.5;
/// What an iteration with other work adds to the name of its class.
const WITH_OTHER_WORK: &str = " (other work)";

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
pub(super) fn mark(list: &mut [Range], times: Option<&WallTimes>) {
    // By iteration: its duration without what it waits for earlier ones, and how long it sets things up while its device waits.
    let figures: Vec<(i64, i64)> = list
        .iter()
        .map(|one| {
            let parts = times.map_or_else(Vec::new, |times| times.within(one.slice.interval()));
            let sets_up = parts
                .iter()
                .filter(|(part, _)| matches!(part, WallPart::Loading | WallPart::Allocation));
            // (What the CPU waits for earlier work is none of its own.)
            let own_ns = one.slice.dur_ns().saturating_sub(one.behind_ns);
            (own_ns, sets_up.map(|(_, ns)| ns).sum())
        })
        .collect();
    let mut by_class: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, one) in list.iter().enumerate() {
        by_class.entry(one.class.clone()).or_default().push(at);
    }
    for own in by_class.values() {
        let others = others(list, own);
        own[..others].iter().for_each(|at| list[*at].class.push_str(WITH_OTHER_WORK));
        let own = &own[others..];
        for (place, at) in own.iter().enumerate() {
            let later = || own[place + 1..].iter().take(MOST).map(|at| figures[*at]);
            let of = |value: fn((i64, i64)) -> i64| {
                let mut values: Vec<i64> = later().map(value).collect();
                trace::sort(&mut values);
                values
            };
            let later = (of(|(dur_ns, _)| dur_ns), of(|(_, set_up_ns)| set_up_ns));
            let alike = own[place + 1..].iter().take(MOST).filter(|other| {
                let (one, other) = (list[*at].compute_ns as f64, list[**other].compute_ns as f64);
                one <= SAME_WORK * other && other <= SAME_WORK * one
            });
            let alike: Vec<i64> = alike.map(|at| figures[*at].0).collect();
            let Some(cold) = cold(figures[*at], &later, &alike) else { break };
            list[*at].cold = Some(cold);
        }
    }
}

/// How many of the first ones of a class do other work than the later ones.
fn others(list: &[Range], own: &[usize]) -> usize {
    let is_other = |place: usize| {
        let median = |value: fn(&Range) -> i64| {
            let later = own[place + 1..].iter().take(MOST);
            let mut values: Vec<i64> = later.map(|at| value(&list[*at])).collect();
            trace::sort(&mut values);
            values.get(values.len().checked_sub(1)? / 2).copied().filter(|_| values.len() >= LATER)
        };
        let one = &list[own[place]];
        let longer = |value: fn(&Range) -> i64| Some(value(one) - median(value)?);
        let n_later = median(|later| later.n_ops as i64)? as f64;
        let n = one.n_ops as f64;
        let (longer_ns, work_ns) =
            (longer(|one| one.slice.dur_ns())?, longer(|one| one.compute_ns)?);
        let differs = n_later > 0.0 && (n >= OTHER * n_later || n * OTHER <= n_later);
        Some(differs && longer_ns > 0 && work_ns.saturating_mul(2) >= longer_ns)
    };
    (0..own.len()).take_while(|place| is_other(*place) == Some(true)).count()
}

/// Whether an iteration is cold, by its own duration and what it sets up, and those of later ones of its class, both sorted; and by the
/// durations of those that do the same work, in their order.
fn cold(
    (dur_ns, own_ns): (i64, i64),
    (later, set_up): &(Vec<i64>, Vec<i64>),
    alike: &[i64],
) -> Option<Cold> {
    if later.len() < LATER {
        return None;
    }
    let middle = (later.len() - 1) / 2;
    let (median, later_ns) = (*later.get(middle)?, *set_up.get(middle)?);
    // (What half of the later ones take, too, is no start; nor is what comes again.)
    let as_long = |ns: &&i64, times: f64| **ns as f64 * times > dur_ns as f64;
    // (Those that follow at once are cold, too.)
    let again = alike.iter().skip_while(|ns| as_long(ns, AS_LONG));
    let equal = again.filter(|ns| as_long(ns, AS_LONG) && **ns as f64 <= AS_LONG * dur_ns as f64);
    let comes_again = equal.count() * SELDOM > later.len();
    let is_few = later.iter().filter(|ns| as_long(ns, LONGER)).count() * 2 < later.len();
    if dur_ns as f64 > LONGER * median as f64 && is_few && !comes_again {
        return Some(Cold::Longer);
    }
    // (What every iteration does is no set-up.)
    let sets_up = own_ns > 0 && own_ns as f64 >= SET_UP * dur_ns as f64;
    let as_much = set_up.iter().filter(|ns| **ns as f64 * LONGER > own_ns as f64).count();
    let sets_up = sets_up && as_much * 2 < set_up.len();
    (sets_up && dur_ns >= median && own_ns >= later_ns.saturating_mul(2)).then_some(Cold::SetsUp)
}

#[cfg(test)]
mod tests {
    use super::{Cold, cold};

    #[test]
    fn an_iteration_that_takes_no_longer_than_later_ones_is_not_cold() {
        let of = |later: [i64; 4]| cold((219, 0), &(later.to_vec(), vec![0; 4]), &later);
        assert_eq!(of([2, 2, 2, 190]), Some(Cold::Longer));
        assert_eq!(of([2, 2, 2, 210]), None, "it comes again");
        assert_eq!(of([2, 2, 190, 190]), None, "half of them");
        let many = |n: usize| {
            let later = [vec![2; 40 - n], vec![210; n]].concat();
            cold((219, 0), &(later.clone(), vec![0; 40]), &later)
        };
        let other = [2, 2, 2, 210].to_vec();
        let of = |alike: [i64; 4]| cold((219, 0), &(vec![2, 2, 210, 215], vec![0; 4]), &alike);
        assert_eq!(of([215, 210, 2, 2]), None, "half of them");
        let of = |alike: [i64; 5]| cold((219, 0), &(vec![2, 2, 2, 210, 215], vec![0; 5]), &alike);
        assert_eq!(of([215, 210, 2, 2, 2]), Some(Cold::Longer), "three cold ones");
        assert_eq!(of([215, 2, 2, 210, 2]), None, "it comes again");
        assert_eq!(of([215, 2, 2, 900, 2]), Some(Cold::Longer), "another pause");
        assert_eq!(cold((219, 0), &(other, vec![0; 4]), &[2, 2]), Some(Cold::Longer), "other work");
        assert_eq!((many(2), many(3)), (Some(Cold::Longer), None));
        let of = |set_up: [i64; 4]| cold((219, 204), &(vec![2, 2, 210, 210], set_up.to_vec()), &[]);
        assert_eq!(of([0, 0, 0, 208]), Some(Cold::SetsUp));
        assert_eq!(of([0, 0, 208, 208]), None);
    }
}
