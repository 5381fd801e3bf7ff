//! Overlapping windows as a timeline, so that the window at a time is found by one search.

use std::collections::BTreeSet;

use super::windows::StageWindow;

/// The window that counts at every point: of several the one with the higher rank, then the innermost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// From here on the window counts, or none does, until the next entry. Sorted.
    segments: Vec<(i64, Option<u32>)>,
}

/// The windows before and after a point outside all windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The window before, and how long ago it ended.
    pub(crate) before: Option<(u32, i64)>,
    /// The window after, and how long it takes until it begins.
    pub(crate) after: Option<(u32, i64)>,
}

impl Timeline {
    /// Lays the windows `of` over each other. `windows` are sorted by start, the longer first.
    pub(crate) fn new(windows: &[StageWindow], of: &[u32]) -> Self {
        let mut bounds: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * of.len());
        for index in of {
            if let Some(window) = windows.get(*index as usize)
                && window.end_ns > window.start_ns
            {
                bounds.push((window.start_ns, true, *index));
                bounds.push((window.end_ns, false, *index));
            }
        }
        trace::sort(&mut bounds);
        // Of windows with one rank the later start is the inner one, and later starts have higher indexes.
        let mut open: BTreeSet<(u8, u32)> = BTreeSet::new();
        let mut segments: Vec<(i64, Option<u32>)> = Vec::new();
        for (ns, begins, index) in bounds {
            let key = (windows.get(index as usize).map_or(0, StageWindow::rank), index);
            if begins {
                open.insert(key);
            } else {
                open.remove(&key);
            }
            let counts = open.last().map(|(_, index)| *index);
            match segments.last_mut() {
                Some((at, last)) if *at == ns => *last = counts,
                _ => segments.push((ns, counts)),
            }
        }
        segments.dedup_by_key(|(_, index)| *index);
        Self { segments }
    }

    /// The window that holds `ns`.
    pub(crate) fn at(&self, ns: i64) -> Option<u32> {
        let next = self.segments.partition_point(|(start, _)| *start <= ns);
        self.segments.get(next.checked_sub(1)?)?.1
    }

    /// The windows before and after `ns`, which is outside all windows.
    pub(crate) fn neighbours(&self, ns: i64) -> Neighbours {
        let next = self.segments.partition_point(|(start, _)| *start <= ns);
        // Between two windows the segment that holds `ns` is nobody's, and began where the last one ended.
        let before = next.checked_sub(2).and_then(|at| self.segments.get(at));
        let ended = next.checked_sub(1).and_then(|at| self.segments.get(at));
        Neighbours {
            before: before
                .zip(ended)
                .and_then(|((_, window), (end, _))| Some(((*window)?, ns.saturating_sub(*end)))),
            after: self
                .segments
                .get(next)
                .and_then(|(start, window)| Some(((*window)?, start.saturating_sub(ns)))),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::super::windows::Side;
    use super::*;

    fn timeline(spans: &[(i64, i64, Stage)]) -> Timeline {
        let windows: Vec<_> = spans
            .iter()
            .map(|(start_ns, end_ns, stage)| StageWindow {
                stage: *stage,
                side: Side::Cpu,
                start_ns: *start_ns,
                end_ns: *end_ns,
                ..StageWindow::default()
            })
            .collect();
        let all: Vec<u32> = (0..windows.len() as u32).collect();
        Timeline::new(&windows, &all)
    }

    #[test]
    fn the_innermost_window_counts() {
        let of = timeline(&[
            (0, 100, Stage::Forward),
            (10, 40, Stage::Forward),
            (20, 30, Stage::Backward),
            (50, 50, Stage::Forward),
            (100, 120, Stage::Optimizer),
        ]);
        let found = [-1, 0, 9, 10, 19, 20, 29, 30, 40, 50, 99, 100, 119, 120].map(|ns| of.at(ns));
        let (a, b, c, e) = (Some(0), Some(1), Some(2), Some(4));
        assert_eq!(found, [None, a, a, b, b, c, c, b, a, a, a, e, e, None]);
    }

    #[test]
    fn a_serving_stage_stands_above_a_training_stage_in_it() {
        let of = timeline(&[(0, 100, Stage::Decode), (10, 40, Stage::Forward)]);
        assert_eq!(of.at(20), Some(0));
    }

    #[test]
    fn neighbours_are_the_windows_on_both_sides() {
        let of = timeline(&[
            (0, 10, Stage::Forward),
            (10, 20, Stage::Forward),
            (30, 40, Stage::Backward),
        ]);
        let beside = |before, after| Neighbours { before, after };
        assert_eq!(of.neighbours(-5), beside(None, Some((0, 5))));
        assert_eq!(of.neighbours(22), beside(Some((1, 2)), Some((2, 8))));
        assert_eq!(of.neighbours(40), beside(Some((2, 0)), None));
        assert_eq!(Timeline::default().neighbours(3), beside(None, None));
    }

    proptest::proptest! {
        #[test]
        fn one_look_equals_a_look_at_every_window(
            spans in proptest::collection::vec((0_i64..60, 0_i64..30, 0_usize..8), 0..12),
            ns in -5_i64..100,
        ) {
            let mut spans: Vec<_> = spans
                .into_iter()
                .map(|(start, len, stage)| (start, start + len, Stage::EVERY[stage]))
                .collect();
            spans.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
            let holds = |ns: i64| {
                let all = spans.iter().enumerate();
                let of = all.filter(|(_, (start, end, _))| *start <= ns && ns < *end);
                of.max_by_key(|(at, (_, _, stage))| (!stage.is_training(), *at))
                    .map(|(at, _)| at as u32)
            };
            let timeline = timeline(&spans);
            proptest::prop_assert_eq!(timeline.at(ns), holds(ns));
            if holds(ns).is_none() {
                let before = (0..=120).find_map(|far| Some((holds(ns - far - 1)?, far)));
                let after = (1..=120).find_map(|far| Some((holds(ns + far)?, far)));
                proptest::prop_assert_eq!(timeline.neighbours(ns), Neighbours { before, after });
            }
        }
    }
}
