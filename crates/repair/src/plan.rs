//! Makes a plan: the rules, in the order in which one builds on another.

use trace::Trace;

use crate::perfetto::Survey;
use crate::perfetto::threads::Threads;
use crate::rows::RowSet;
use crate::types::{Action, BaseReason, PlanOptions, RepairPlan, Rule};
use crate::view::View;
use crate::{aside, base, flows, frame, impossible, labels, lanes, split};

/// How often a plan is made anew because the events that it sets aside decide on the time base.
const MAX_PLANS: usize = 4;

/// Plans the repair of a trace. Pure: the same trace and options give the same plan.
#[must_use]
pub fn plan(trace: &Trace, options: &PlanOptions) -> RepairPlan {
    let mut aside = RowSet::default();
    let mut n_plans = 1;
    loop {
        let (plan, reason) = plan_with(trace, options, &aside);
        let mut is_new = false;
        if reason.is_some() {
            for (row, _) in plan.edits().iter().filter(|(_, edit)| edit.action == Action::SetAside)
            {
                is_new |= aside.insert(*row);
            }
        }
        let chosen = reason.filter(|_| is_new).map(|reason| base::choose(trace, reason, &aside));
        if chosen.is_none_or(|base| base == plan.base) || n_plans == MAX_PLANS {
            return plan;
        }
        n_plans += 1;
    }
}

/// Plans the repair with a time base that suits all events but those that are set aside.
fn plan_with(
    trace: &Trace,
    options: &PlanOptions,
    aside: &RowSet,
) -> (RepairPlan, Option<BaseReason>) {
    let mut survey = Survey::of(&View::of(trace));
    let mut plan = RepairPlan::new(*options);
    plan.impossible = impossible::find(trace);
    plan.before = survey.prediction.clone();
    plan.dropped = survey.crossing();
    let bindings_before = survey.bindings();
    let reason = match trace.layout.importer_rows {
        None => base::reason(trace, &plan.before),
        Some(_) => base::reason(trace, &Survey::of(&View::of_all(trace)).prediction),
    };
    plan.base = reason.and_then(|reason| base::choose(trace, reason, aside));
    aside::plan(trace, &mut plan);
    for row in aside.to_vec() {
        plan.change(row, Rule::SetAside, None, |edit| edit.action = Action::SetAside);
    }
    if let Some(base) = plan.base {
        plan.count(Rule::TimeBase, base::n_shifted(trace));
        for row in base::outliers(trace, &base) {
            if plan.edit(row).is_none_or(|edit| edit.action != Action::SetAside) {
                plan.note_unchanged(row, Rule::Outlier);
                plan.kept_back_ns += base::kept_back(trace, &base, row);
            }
        }
    }
    if options.clip_impossible {
        impossible::clip(trace, &mut plan);
    }
    if options.fold_process_labels {
        labels::plan(trace, &mut plan);
    }
    frame::count(trace, &mut plan);

    // Threads, lanes and flows are judged on the trace as the rules so far leave it.
    survey.update(trace, &mut plan);
    let mut tids = split::FreeTids::of(trace);
    let is_split = split::plan(trace, &mut plan, &survey.threads, &mut tids);
    survey.update(trace, &mut plan);
    plan.flow_targets = flows::resolve(&View::after(trace, &plan), &survey.threads);
    if is_split && split::has_strays(trace, &plan, &survey) {
        rejoin(trace, &mut plan, &mut survey);
    }
    plan.flows_bound_before = flows::count_bound(&bindings_before, &plan.flow_targets);
    lanes::plan(trace, &mut plan, &survey, &mut tids);
    flows::plan(trace, &mut plan, &survey, &bindings_before);
    if plan.is_identity() {
        flows::forget_lone_ends(trace, &mut plan, &bindings_before);
        plan.after = plan.before.clone();
        plan.flows_bound_after = plan.flows_bound_before;
    } else {
        flows::settle(trace, &mut plan, &bindings_before, &mut survey);
    }
    plan.finish(trace);
    (plan, reason)
}

/// Has flow events that are alone on a thread that was split follow their slices.
#[inline(never)]
fn rejoin(trace: &Trace, plan: &mut RepairPlan, survey: &mut Survey) {
    survey.forget();
    let folded = {
        let view = View::after(trace, plan).as_folded();
        flows::resolve(&view, &Threads::of(&view, &mut |_, _| {}))
    };
    let any = split::rejoin(plan, &folded);
    survey.renew(trace, plan);
    if any {
        plan.flow_targets = flows::resolve(&View::after(trace, plan), &survey.threads);
    }
}
