//! Files below the timeline of another one, on one clock: where each begins, and by what that is known.

use kinetoscope::report::units;

use crate::features::timeline::state::Beneath;
use crate::protocol::{JobId, LanesFacts, SharedAxis};
use crate::shared::Shared;
use crate::state::{FileEntry, State};

/// Files that were recorded further apart, in ns, are of two runs, or of parts of one that nobody looks at together: on one clock each of
/// them would be a dot.
const MOST_APART_NS: i64 = 60_000_000_000;
/// An offset that a person sets is smaller, in ns (13 days). Times of a picture are floats, which are exact up to 2^53.
const MOST_OFFSET_NS: i64 = 1 << 50;
/// Letters of a file's name in a label of the picture. The end of a long name tells it from those of other ranks.
const MOST_LETTERS: usize = 32;

/// By what two files are placed on one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// Both tell when they were recorded; and how many ns are added to the times of the other one so that collectives end together.
    Clocks(i64),
    /// A step that both have is assumed to begin at the same time.
    Step(String, Reason),
    /// Their first slices are.
    Starts(Reason),
}

/// Why it is not by their clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    NoClock,
    /// How long after one of them the other begins, in ns.
    Apart(i64),
}

/// Where a file begins, unless a person moves it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    /// From the first slice of the file above to its own, in ns.
    offset_ns: i64,
    by: By,
}

impl Placed {
    /// `correction_ns`: what is added to the times of the other one so that the collectives of both end together.
    fn of(own: &LanesFacts, other: &LanesFacts, correction_ns: i64) -> Self {
        let between = own.starts_ns.zip(other.starts_ns);
        let by_clock = between.map(|(own, other)| other.saturating_sub(own));
        let by_clock = by_clock.map(|offset_ns| offset_ns.saturating_add(correction_ns));
        let apart = |offset_ns: i64| {
            let after = offset_ns.saturating_sub(own.span_ns);
            let before = offset_ns.saturating_add(other.span_ns).saturating_neg();
            after.max(before)
        };
        let reason = match by_clock {
            Some(offset_ns) if apart(offset_ns) <= MOST_APART_NS => {
                return Self { offset_ns, by: By::Clocks(correction_ns) };
            }
            Some(offset_ns) => Reason::Apart(apart(offset_ns)),
            None => Reason::NoClock,
        };
        let common = own.steps.iter().find_map(|(name, own)| {
            let (_, other) = other.steps.iter().find(|(other, _)| other == name)?;
            Some((name, own.saturating_sub(*other)))
        });
        match common {
            Some((name, offset_ns)) => Self { offset_ns, by: By::Step(name.clone(), reason) },
            None => Self { offset_ns: 0, by: By::Starts(reason) },
        }
    }

    /// In a sentence.
    fn said(&self) -> String {
        let assumed = |what: &str, reason: Reason| {
            let reason = match reason {
                Reason::NoClock => "not both files record a clock".to_owned(),
                Reason::Apart(ns) => {
                    format!("the files were recorded {} apart", units::time(ns))
                }
            };
            format!("Assumption: {what} at the same time in both files ({reason}).")
        };
        match &self.by {
            By::Clocks(0) => "By the clocks of both files.".to_owned(),
            By::Clocks(ns) => format!(
                "By the clocks of both files; {} are added, with which collectives end together.",
                units::time(*ns)
            ),
            By::Step(name, reason) => assumed(&format!("{name} begins"), *reason),
            By::Starts(reason) => assumed("the first slice begins", *reason),
        }
    }
}

/// The files that are shown below another one, and those that could be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together {
    /// Those that are, from the top.
    pub below: Vec<Below>,
    /// Those that could be: job and name.
    pub others: Vec<(JobId, String)>,
}

/// A file below another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Below {
    /// The file.
    pub file: Shared<FileEntry>,
    /// From the first slice of the file above to its own, in ns; `None` until both are read.
    pub offset_ns: Option<i64>,
    /// Whether a person set it.
    pub is_by_hand: bool,
    /// By what it is known.
    pub said: String,
}

/// What is below the timeline of a file, and what could be.
#[must_use]
pub fn together(state: &State, job: JobId) -> Together {
    let Some(own) = state.file(job) else { return Together::default() };
    let is_below = |other: JobId| own.beneath.iter().any(|beneath| beneath.job == other);
    let others = state.files.iter().filter(|file| file.job != job && !is_below(file.job));
    let others = others.filter(|file| file.opened.is_some() || file.has_memory_over_time());
    Together {
        below: below(state, own),
        others: others.map(|file| (file.job, file.name.clone())).collect(),
    }
}

fn below(state: &State, own: &FileEntry) -> Vec<Below> {
    let one = |beneath: &Beneath| {
        let file = state.file(beneath.job)?.clone();
        let clock = own.clocks.iter().find(|(job, _)| *job == beneath.job);
        let correction_ns = clock.map_or(0, |(_, ns)| *ns);
        let facts = own.lanes.ready().zip(file.lanes.ready());
        let placed = facts.map(|(own, other)| Placed::of(own, other, correction_ns));
        let default_ns = placed.as_ref().map(|placed| placed.offset_ns);
        let said = match (&placed, beneath.by_hand_ns) {
            (None, _) => String::new(),
            (Some(placed), None) => placed.said(),
            (Some(placed), Some(_)) => {
                format!(
                    "Set by hand. Without that {}: {}",
                    units::time(placed.offset_ns),
                    placed.said()
                )
            }
        };
        Some(Below {
            offset_ns: default_ns.map(|default| beneath.by_hand_ns.unwrap_or(default)),
            is_by_hand: beneath.by_hand_ns.is_some(),
            file,
            said,
        })
    };
    own.beneath.iter().filter_map(one).collect()
}

/// The pictures of a clock: the file above and those below it that are read, with their offsets.
fn members(state: &State, own: &Shared<FileEntry>) -> Vec<(Shared<FileEntry>, i64)> {
    let below = below(state, own);
    let below = below.into_iter().filter_map(|below| Some((below.file, below.offset_ns?)));
    std::iter::once((own.clone(), 0)).chain(below).collect()
}

/// The axis of each picture of a clock; none where a file is alone.
#[must_use]
pub fn axes(state: &State, own: &Shared<FileEntry>) -> Vec<(JobId, Option<SharedAxis>)> {
    let members = members(state, own);
    if members.len() < 2 {
        return vec![(own.job, None)];
    }
    let end = |(file, offset): &(Shared<FileEntry>, i64)| {
        offset.saturating_add(file.lanes.ready().map_or(0, |facts| facts.span_ns))
    };
    let first = members.iter().map(|(_, offset)| *offset).min().unwrap_or_default();
    let last = members.iter().map(end).max().unwrap_or_default();
    let axis = |(nth, (file, offset)): (usize, &(Shared<FileEntry>, i64))| {
        let axis = SharedAxis {
            from: first.saturating_sub(*offset),
            to: last.saturating_sub(*offset),
            offset: *offset,
            name: short(&file.name),
            nth: nth as u32,
        };
        (file.job, Some(axis))
    };
    members.iter().enumerate().map(axis).collect()
}

/// The pictures that show what the picture of a job shows, and what is added to its times for each.
#[must_use]
pub fn followers(state: &State, job: JobId) -> Vec<(JobId, i64)> {
    let Some(own) = state.selected_file() else { return Vec::new() };
    let members = members(state, own);
    let Some(offset) = members.iter().find(|(file, _)| file.job == job).map(|(_, ns)| *ns) else {
        return Vec::new();
    };
    let others = members.iter().filter(|(file, _)| file.job != job);
    others.map(|(file, of_other)| (file.job, offset.saturating_sub(*of_other))).collect()
}

/// An offset in µs as a person types it, in ns.
#[must_use]
pub fn offset_ns(us: f64) -> Option<i64> {
    let ns = (us * 1_000.0).round();
    // (The cast saturates.)
    ns.is_finite().then(|| (ns as i64).clamp(-MOST_OFFSET_NS, MOST_OFFSET_NS))
}

/// The same as a field shows it: digits and a point.
#[must_use]
pub fn in_us(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (us, rest) = (ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000);
    match rest {
        0 => format!("{sign}{us}"),
        rest => format!("{sign}{us}.{rest:03}"),
    }
}

/// A file's name for labels: without its extension, and not long.
fn short(name: &str) -> String {
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    match stem.char_indices().nth_back(MOST_LETTERS - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &stem[at..]),
        _ => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn facts(starts_ns: Option<i64>, steps: &[(&str, i64)]) -> LanesFacts {
        let steps = steps.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect();
        LanesFacts { starts_ns, span_ns: SECOND, steps, ..LanesFacts::default() }
    }

    fn placed(own: &LanesFacts, other: &LanesFacts) -> (i64, String) {
        let placed = Placed::of(own, other, 0);
        (placed.offset_ns, placed.said())
    }

    #[test]
    fn files_with_clocks_are_placed_by_them() {
        let own = facts(Some(1_000 * SECOND), &[("ProfilerStep#1", 5)]);
        let other = facts(Some(1_000 * SECOND + 250), &[("ProfilerStep#1", 9)]);
        assert_eq!(placed(&own, &other), (250, "By the clocks of both files.".to_owned()));
        assert_eq!(placed(&other, &own).0, -250);
        let corrected = Placed::of(&own, &other, -120_000);
        assert_eq!(corrected.offset_ns, 250 - 120_000);
        assert!(corrected.said().contains("-120 µs are added"), "{}", corrected.said());
    }

    #[test]
    fn a_minute_between_the_end_and_the_start_is_the_most() {
        let own = facts(Some(1_000 * SECOND), &[]);
        let at = |offset: i64| placed(&own, &facts(Some(1_000 * SECOND + offset), &[]));
        assert_eq!(at(61 * SECOND).0, 61 * SECOND, "one second after the start it ends");
        assert_eq!(at(-61 * SECOND).0, -61 * SECOND);
        let (offset_ns, said) = at(62 * SECOND);
        assert_eq!(offset_ns, 0);
        assert_eq!(
            said,
            "Assumption: the first slice begins at the same time in both files (the files were recorded 61.0 s apart)."
        );
        assert_eq!(at(-62 * SECOND).0, 0);
    }

    #[test]
    fn without_a_clock_the_first_common_step_begins_at_the_same_time() {
        let own = facts(None, &[("ProfilerStep#2", 100), ("ProfilerStep#3", 900)]);
        let other = facts(Some(SECOND), &[("ProfilerStep#3", 50), ("ProfilerStep#4", 700)]);
        assert_eq!(
            placed(&own, &other),
            (
                850,
                "Assumption: ProfilerStep#3 begins at the same time in both files (not both files record a clock).".to_owned()
            )
        );
        assert_eq!(placed(&own, &facts(None, &[])).0, 0);
    }

    #[test]
    fn clocks_at_the_ends_of_all_time_do_not_overflow() {
        let early = facts(Some(i64::MIN), &[]);
        let late = facts(Some(i64::MAX), &[]);
        assert_eq!(Placed::of(&early, &late, i64::MAX).offset_ns, 0);
        assert_eq!(Placed::of(&late, &early, i64::MIN).offset_ns, 0);
    }

    #[test]
    fn offsets_are_typed_in_us_and_exact_to_the_ns() {
        for (us, ns) in [(0.0, 0), (1.5, 1_500), (-0.001, -1), (3_512_345.678, 3_512_345_678)] {
            assert_eq!(offset_ns(us), Some(ns));
            assert_eq!(in_us(ns).parse::<f64>().ok(), Some(us), "{}", in_us(ns));
        }
        assert_eq!(offset_ns(f64::NAN), None);
        assert_eq!(offset_ns(1e300), Some(MOST_OFFSET_NS));
    }

    #[test]
    fn labels_keep_the_end_of_a_long_name() {
        assert_eq!(short("rank0.pt.trace.json.gz"), "rank0.pt.trace");
        let long = "a-very-long-name-of-a-model-on-eight-devices-TP-3-DECODE.json";
        assert_eq!(short(long), "…del-on-eight-devices-TP-3-DECODE");
        assert_eq!(short("ééé.json"), "ééé");
    }
}
