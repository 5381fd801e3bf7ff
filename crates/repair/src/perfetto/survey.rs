//! The importer's model run over a whole trace, and kept, so that a plan's changes can be followed.
//!
//! A plan changes few events, and an event matters to its own thread alone. So after a change only the threads
//! that it touches are walked again; the rest of the survey stands. A law in the tests holds it to what a survey
//! from nothing says.

use trace::{Row, Trace};

use super::nesting::{self, Bindings, Trouble, Walk};
use super::threads::Threads;
use super::{Prediction, census, flow_ids};
use crate::pairs;
use crate::rows::RowSet;
use crate::types::RepairPlan;
use crate::view::{Lens, View};

/// What the importer makes of a trace.
pub(crate) struct Survey {
    /// Counted.
    pub prediction: Prediction,
    /// The threads, their events in order.
    pub threads: Threads,
    /// What became of the events of each thread.
    walks: Vec<Walk>,
    /// Every flow event of the file, in file order.
    pub flows: Vec<Row>,
    /// What the events that no plan changes add to the prediction.
    unedited: Prediction,
    /// What all events had in common when they were counted.
    lens: Lens,
    /// Events that are not among the `unedited`.
    edited: RowSet,
}

impl Survey {
    /// Runs the model.
    #[inline(never)]
    pub(crate) fn of(view: &View<'_>) -> Self {
        let (mut unedited, mut flows) = (Prediction::default(), Vec::new());
        let threads = Threads::of(view, &mut |row, event| {
            let Some(event) = event else { return flows.push(row) };
            if event.phase.is_flow() {
                flows.push(row);
            }
            if !view.is_edited(row) {
                census::count(view, event, &mut unedited);
            }
        });
        let mut survey = Self {
            prediction: Prediction::default(),
            threads,
            walks: Vec::new(),
            flows,
            unedited,
            lens: view.lens(),
            edited: RowSet::default(),
        };
        for (row, _) in view.edits() {
            survey.edited.insert(row);
        }
        survey.walk(view, survey.threads.all());
        survey.sum_up(view, true);
        survey
    }

    /// Whether [`Survey::update`] can follow `plan`: not when it moves all times, nor when Perfetto reads of
    /// the file only the first document, but reads all of the repaired one.
    pub(crate) fn can_follow(&self, trace: &Trace, plan: &RepairPlan) -> bool {
        let after = View::after(trace, plan).lens();
        self.lens.shows_the_same(&after) && self.unedited.misread_times == 0
    }

    /// Follows the changes that the plan made since the survey was brought up to date.
    #[inline(never)]
    pub(crate) fn update(&mut self, trace: &Trace, plan: &mut RepairPlan) {
        let changed = plan.take_touched();
        let can_follow = self.can_follow(trace, plan)
            && self.threads.are_sorted_as_in(&View::after(trace, plan));
        if !can_follow {
            return self.renew(trace, plan);
        }
        let view = View::after(trace, plan);
        if changed.is_empty() {
            self.prediction.stops = census::stops(&view);
            return;
        }
        self.count_edited(&view, &changed);
        let waited = self.any_waits();
        let dirty = self.threads.update(&view, &changed);
        self.walk(&view, dirty);
        // Where no id is started twice, only a new id, a time spelt anew (no longer before 0), or a flow event that waits
        // for its slice changes that.
        let is_new =
            |row: &Row| plan.edit(*row).is_some_and(|edit| edit.flow_id.is_some() || edit.numbers);
        let any_binds = !trace.binds().is_empty();
        let recount = self.prediction.duplicate_flow_starts > 0
            || waited
            || any_binds
            || self.any_waits()
            || changed.iter().any(is_new);
        self.sum_up(&view, recount);
    }

    /// Runs the model anew on what a plan leaves.
    #[inline(never)]
    pub(crate) fn renew(&mut self, trace: &Trace, plan: &mut RepairPlan) {
        plan.take_touched();
        self.forget();
        *self = Self::of(&View::after(trace, plan));
    }

    /// Lets go of what is large: memory never shrinks in a browser, so what comes next takes its place.
    pub(crate) fn forget(&mut self) {
        self.threads = Threads::default();
        (self.walks, self.flows) = (Vec::new(), Vec::new());
    }

    /// Threads on which something goes wrong.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = (u32, &Trouble)> {
        let troubles = self.threads.all().zip(self.walks.iter().map(|walk| &walk.trouble));
        troubles.filter(|(_, trouble)| !trouble.is_none())
    }

    /// The crossing slices, thread by thread.
    #[inline(never)]
    pub(crate) fn crossing(&self) -> Vec<Row> {
        let crossing = self.troubles().flat_map(|(_, trouble)| &trouble.crossing);
        crossing.map(|(row, _)| *row).collect()
    }

    /// What each flow event binds to: (flow event, slice), sorted.
    pub(crate) fn bindings(&self) -> Vec<(Row, Row)> {
        let mut bound = self.gathered(|flows| &flows.bound);
        pairs::sort(&mut bound);
        bound
    }

    /// Flow events without a slice to bind to, sorted.
    pub(crate) fn unbound(&self) -> Vec<Row> {
        let mut unbound = self.gathered(|flows| &flows.unbound);
        trace::sort_numbers(&mut unbound, &|a, b| a.cmp(&b));
        unbound
    }

    /// Parked flow ends that found a slice: (flow event, slice), sorted.
    pub(crate) fn unparked(&self) -> Vec<(Row, Row)> {
        let mut unparked = self.gathered(|flows| &flows.unparked);
        pairs::sort(&mut unparked);
        unparked
    }

    #[inline(never)]
    fn gathered<T: Copy>(&self, of: impl Fn(&Bindings) -> &Vec<T>) -> Vec<T> {
        // (All at once: growing would need it twice.)
        let n = self.walks.iter().map(|walk| of(&walk.flows).len()).sum();
        let mut all = Vec::with_capacity(n);
        for walk in &self.walks {
            all.extend_from_slice(of(&walk.flows));
        }
        all
    }

    /// Slices that are an end point of a flow themselves, each with the slice that the importer takes for it.
    pub(crate) fn binds(&self) -> Vec<(Row, Option<Row>)> {
        let mut binds = self.gathered(|flows| &flows.binds);
        trace::sort(&mut binds);
        binds
    }

    /// Whether any flow event waits, or has waited, for its slice.
    fn any_waits(&self) -> bool {
        self.walks
            .iter()
            .any(|walk| !walk.flows.unparked.is_empty() || !walk.flows.unbound.is_empty())
    }

    #[inline(never)]
    fn walk(&mut self, view: &View<'_>, threads: impl IntoIterator<Item = u32>) {
        self.walks.resize_with(self.threads.all().len(), Walk::default);
        for thread in threads {
            self.walks[thread as usize] =
                nesting::walk(view, self.threads.events(thread), &RowSet::default());
        }
    }

    /// Takes events that a plan changes for the first time out of the count.
    #[inline(never)]
    fn count_edited(&mut self, view: &View<'_>, changed: &[Row]) {
        let plain = View::through(view.trace, self.lens);
        let mut gone = Prediction::default();
        for row in changed {
            if self.edited.insert(*row) {
                census::count(&plain, &plain.event(*row), &mut gone);
            }
        }
        // (Every field but the largest rounding error; nothing was misread, or this survey had to begin anew.)
        let counts = &mut self.unedited;
        counts.negative_durations -= gone.negative_durations;
        counts.negative_times -= gone.negative_times;
        counts.unreadable_events -= gone.unreadable_events;
        counts.rejected_events -= gone.rejected_events;
        counts.unreadable_flow_ids -= gone.unreadable_flow_ids;
        counts.flows_without_direction -= gone.flows_without_direction;
    }

    #[inline(never)]
    fn sum_up(&mut self, view: &View<'_>, recount_duplicates: bool) {
        let duplicates = self.prediction.duplicate_flow_starts;
        let mut sum = self.unedited.clone();
        for row in self.edited.to_vec() {
            census::count(view, &view.event(row), &mut sum);
        }
        sum.stops = census::stops(view);
        for Walk { trouble, flows } in &self.walks {
            sum.crossing_slices += trouble.crossing.len() as u64;
            sum.too_deep += trouble.too_deep.len() as u64;
            sum.misplaced_ends += trouble.misplaced_ends;
            sum.flows_without_slice += flows.unbound.len() as u64;
            sum.flows_without_slice +=
                flows.binds.iter().filter(|(_, slice)| slice.is_none()).count() as u64;
        }
        sum.crossing_slices_if_exact = match sum.misread_times {
            0 => sum.crossing_slices,
            _ => crossing_slices(&view.exactly()),
        };
        sum.duplicate_flow_starts = match recount_duplicates {
            true => flow_ids::duplicate_starts(view, self).len() as u64,
            false => duplicates,
        };
        self.prediction = sum;
    }
}

fn crossing_slices(view: &View<'_>) -> u64 {
    let threads = Threads::of(view, &mut |_, _| {});
    let crossing = |thread| {
        nesting::walk(view, threads.events(thread), &RowSet::default()).trouble.crossing.len()
    };
    threads.all().map(|thread| crossing(thread) as u64).sum()
}
