//! The importer's model run over a whole trace, and kept, so that a plan's changes can be followed.
//!
//! A plan changes few events, and an event matters to its own thread alone. So after a change only the threads
//! that it touches are walked again; the rest of the survey stands. A law in the tests holds it to what a survey
//! from nothing says.

use std::collections::BTreeMap;

use trace::{Row, Trace};

use super::nesting::{self, Trouble};
use super::threads::Threads;
use super::{Prediction, census};
use crate::flows;
use crate::plan::RepairPlan;
use crate::view::{Lens, View};

/// What the importer makes of a trace.
pub(crate) struct Survey {
    /// Counted.
    pub prediction: Prediction,
    /// The threads, their events in order.
    pub threads: Threads,
    /// What goes wrong, by thread; sound threads are absent.
    pub troubles: BTreeMap<usize, Trouble>,
    /// What each flow event binds to: (flow event, slice), sorted.
    pub bindings: Vec<(Row, Row)>,
    /// Flow events without a slice to bind to, sorted.
    pub unbound: Vec<Row>,
    /// Parked flow ends that found a slice: (flow event, slice), sorted.
    pub unparked: Vec<(Row, Row)>,
    /// Every flow event of the file, in file order.
    pub flows: Vec<Row>,
    /// What the events that no plan changes add to the prediction.
    unedited: Prediction,
    /// What all events had in common when they were counted.
    lens: Lens,
    /// Events that are not among the `unedited`, sorted.
    edited: Vec<Row>,
}

impl Survey {
    /// Runs the model.
    #[inline(never)]
    pub fn of(view: &View<'_>) -> Self {
        let (mut unedited, mut flows) = (Prediction::default(), Vec::new());
        let threads = Threads::of(view, |event| {
            if event.phase.is_flow() {
                flows.push(event.row);
            }
            if !view.is_edited(event.row) {
                census::count(view, event, &mut unedited);
            }
        });
        let mut survey = Self {
            prediction: Prediction::default(),
            threads,
            troubles: BTreeMap::new(),
            bindings: Vec::new(),
            unbound: Vec::new(),
            unparked: Vec::new(),
            flows,
            unedited,
            lens: view.lens(),
            edited: view.edits().map(|(row, _)| row).collect(),
        };
        for thread in survey.threads.all() {
            survey.walk(view, thread);
        }
        survey.sum_up(view, true);
        survey
    }

    /// Whether [`Survey::update`] can follow `plan`: not when it moves all times, nor when Perfetto reads of
    /// the file only the first document, but reads all of the repaired one.
    pub fn can_follow(&self, trace: &Trace, plan: &RepairPlan) -> bool {
        let after = View::after(trace, plan).lens();
        self.lens.shows_the_same(&after) && self.unedited.misread_times == 0
    }

    /// Follows the changes that the plan made since the survey was brought up to date.
    #[inline(never)]
    pub fn update(&mut self, trace: &Trace, plan: &mut RepairPlan) {
        let changed = plan.take_touched();
        if !self.can_follow(trace, plan) {
            // The old one goes first: memory never shrinks in a browser.
            self.threads = Threads::default();
            (self.bindings, self.flows) = (Vec::new(), Vec::new());
            *self = Self::of(&View::after(trace, plan));
            return;
        }
        let view = View::after(trace, plan);
        if changed.is_empty() {
            self.prediction.stops = census::stops(&view);
            return;
        }
        self.count_edited(&view, &changed);
        let dirty = self.threads.update(&view, &changed);
        let stays = |threads: &Threads, row: Row| {
            !dirty.contains(&(threads.thread_of(&view, row) as usize))
                && changed.binary_search(&row).is_err()
        };
        let waits = |survey: &Self| !survey.unparked.is_empty() || !survey.unbound.is_empty();
        let waited = waits(self);
        self.bindings.retain(|(flow, _)| stays(&self.threads, *flow));
        self.unbound.retain(|flow| stays(&self.threads, *flow));
        self.unparked.retain(|(flow, _)| stays(&self.threads, *flow));
        for thread in dirty {
            self.troubles.remove(&thread);
            self.walk(&view, thread);
        }
        // Where no id is started twice, only a new id or a flow event that waits for its slice changes that.
        let new_id = |row: &Row| plan.edit(*row).is_some_and(|edit| edit.flow_id.is_some());
        let recount = self.prediction.duplicate_flow_starts > 0
            || waited
            || waits(self)
            || changed.iter().any(new_id);
        self.sum_up(&view, recount);
    }

    /// The crossing slices, thread by thread.
    pub fn crossing(&self) -> Vec<Row> {
        let crossing = self.troubles.values().flat_map(|trouble| &trouble.crossing);
        crossing.map(|(row, _)| *row).collect()
    }

    #[inline(never)]
    fn walk(&mut self, view: &View<'_>, thread: usize) {
        let (trouble, mut flows) = nesting::walk(view, self.threads.rows(thread), |_| false);
        if !trouble.is_none() {
            self.troubles.insert(thread, trouble);
        }
        self.bindings.append(&mut flows.bound);
        self.unbound.append(&mut flows.unbound);
        self.unparked.append(&mut flows.unparked);
    }

    /// Takes events that a plan changes for the first time out of the count.
    #[inline(never)]
    fn count_edited(&mut self, view: &View<'_>, changed: &[Row]) {
        let plain = View::through(view.trace, self.lens);
        let mut gone = Prediction::default();
        let known = self.edited.len();
        for row in changed {
            if self.edited[..known].binary_search(row).is_err() {
                self.edited.push(*row);
                census::count(&plain, &plain.event(*row), &mut gone);
            }
        }
        self.edited.sort();
        // (Every field but the largest rounding error; nothing was misread, or this survey had to begin anew.)
        let counts = &mut self.unedited;
        counts.negative_durations -= gone.negative_durations;
        counts.negative_times -= gone.negative_times;
        counts.unreadable_events -= gone.unreadable_events;
        counts.rejected_events -= gone.rejected_events;
        counts.unreadable_flow_ids -= gone.unreadable_flow_ids;
    }

    #[inline(never)]
    fn sum_up(&mut self, view: &View<'_>, recount_duplicates: bool) {
        let duplicates = self.prediction.duplicate_flow_starts;
        let mut sum = self.unedited.clone();
        for row in &self.edited {
            census::count(view, &view.event(*row), &mut sum);
        }
        sum.stops = census::stops(view);
        for trouble in self.troubles.values() {
            sum.crossing_slices += trouble.crossing.len() as u64;
            sum.too_deep += trouble.too_deep.len() as u64;
            sum.misplaced_ends += trouble.misplaced_ends;
        }
        // Stable sorts: they find what is in order already.
        self.bindings.sort();
        self.unbound.sort();
        self.unparked.sort();
        sum.flows_without_slice = self.unbound.len() as u64;
        sum.crossing_slices_if_exact = match sum.misread_times {
            0 => sum.crossing_slices,
            _ => crossing_slices(&view.exactly()),
        };
        sum.duplicate_flow_starts = match recount_duplicates {
            true => flows::duplicate_starts(view, self).len() as u64,
            false => duplicates,
        };
        self.prediction = sum;
    }
}

fn crossing_slices(view: &View<'_>) -> u64 {
    let threads = Threads::of(view, |_| {});
    let crossing = |thread| nesting::walk(view, threads.rows(thread), |_| false).0.crossing.len();
    threads.all().map(|thread| crossing(thread) as u64).sum()
}
