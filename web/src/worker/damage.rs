//! What the repair of a trace is about, slice by slice, for the program that draws lanes.

use kinetoscope::lanes::{Becomes, Damage, Damaged};
use kinetoscope::plan::{Action, LaneKind, Rule};
use kinetoscope::trace::{Phase, Row, Trace, sort, sort_by_key};
use kinetoscope::{Prediction, RepairPlan};

/// The slices that Perfetto drops, by the importer model, and those that the plan changes.
pub fn damage(trace: &Trace, plan: &RepairPlan) -> Damage {
    let mut dropped = plan.dropped.clone();
    sort(&mut dropped);
    let because = plan.changes().iter().filter(|change| change.rule == Rule::CrossingSlice);
    let mut because: Vec<(Row, Row)> =
        because.filter_map(|change| Some((change.row, change.because_of?))).collect();
    sort(&mut because);

    let mut lanes: Vec<_> =
        plan.lanes.iter().zip(0_u32..).map(|(lane, at)| (lane.tid, at)).collect();
    sort(&mut lanes);
    let lane_of = |tid| {
        let at = lanes.partition_point(|(of, _)| *of < tid);
        lanes.get(at).filter(|(of, _)| *of == tid).map(|(_, at)| *at)
    };
    let mut slices: Vec<Damaged> = Vec::new();
    for (row, edit) in plan.edits().iter().filter(|(row, _)| trace.phase(**row) == Phase::Complete)
    {
        let lane = edit.tid.and_then(&lane_of);
        let becomes = match (edit.action, lane) {
            (Action::Instant, _) => Becomes::Instant,
            (Action::SetAside, _) => Becomes::SetAside,
            (Action::Keep, Some(lane)) => Becomes::OnLane(lane),
            (Action::Keep, None) => Becomes::Kept,
        };
        let at = because.binary_search_by_key(row, |(row, _)| *row).ok();
        let because_of = at.and_then(|at| because.get(at)).map(|(_, other)| *other);
        let is_dropped = dropped.binary_search(row).is_ok();
        let slice =
            Damaged { row: *row, is_dropped, becomes, because_of, dur_ns: edit.dur_ns, place: 0 };
        if is_dropped || slice.is_changed() {
            slices.push(slice);
        }
    }
    let n_changed = slices.len();
    for row in dropped {
        if slices[..n_changed].binary_search_by_key(&row, |slice| slice.row).is_err() {
            slices.push(Damaged { row, is_dropped: true, ..Damaged::default() });
        }
    }
    sort_by_key(&mut slices, |slice| slice.row);
    number_places(plan, &mut slices);
    let name = |lane: &kinetoscope::plan::Lane| {
        let of_thread = || Some(trace.strings.get(trace.track_info(lane.parent).name?).to_owned());
        lane.name.clone().or_else(of_thread).unwrap_or_default()
    };
    let Prediction { stops, .. } = &plan.before;
    Damage { slices, lanes: plan.lanes.iter().map(name).collect(), stops: stops.clone() }
}

/// Slices that cross are one place, and so are all of a thread that gets a track of its own; any other is a place by itself.
fn number_places(plan: &RepairPlan, slices: &mut [Damaged]) {
    let mut n_places = 0;
    let mut next = || {
        n_places += 1;
        n_places
    };
    for group in &plan.crossings {
        let place = next();
        for row in group.leaving.iter().chain(&group.staying) {
            if let Ok(at) = slices.binary_search_by_key(row, |slice| slice.row) {
                slices[at].place = place;
            }
        }
    }
    let of_lane: Vec<u32> = plan.lanes.iter().map(|_| next()).collect();
    for slice in slices.iter_mut().filter(|slice| slice.place == 0) {
        let split = match slice.becomes {
            Becomes::OnLane(lane) => plan
                .lanes
                .get(lane as usize)
                .filter(|lane| lane.kind == LaneKind::Split)
                .and_then(|_| of_lane.get(lane as usize)),
            _ => None,
        };
        slice.place = split.copied().unwrap_or_else(&mut next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kinetoscope::{Decoder, PlanOptions, plan_repair};

    use super::*;

    fn damage_of(bytes: &[u8]) -> Option<(Trace, RepairPlan, Damage)> {
        let mut decoder = Decoder::new();
        decoder.push(bytes).ok()?;
        let trace = decoder.finish().ok()?.trace;
        let plan = plan_repair(&trace, &PlanOptions::default());
        let damage = damage(&trace, &plan);
        Some((trace, plan, damage))
    }

    /// The slices that are drawn as lost are those that the importer model drops, on every sample.
    #[test]
    fn slices_drawn_as_lost_are_those_that_the_model_drops() {
        let samples = testkit::nasty_samples().into_iter().chain(testkit::trace_samples());
        let (mut n_damaged, mut n_moved) = (0, 0);
        for sample in samples {
            let Some((trace, plan, damage)) = damage_of(&sample.bytes()) else { continue };
            let model: BTreeSet<Row> = plan.dropped.iter().copied().collect();
            assert_eq!(model.len() as u64, plan.before.drops_v51_v56(), "{}", sample.name);
            let told: BTreeSet<Row> = damage
                .slices
                .iter()
                .filter(|slice| slice.is_dropped)
                .map(|slice| slice.row)
                .collect();
            assert_eq!(told, model, "{}", sample.name);
            n_damaged += model.len();

            // What is drawn, before and after.
            let (mut lanes, _) = kinetoscope::lanes_of(&trace);
            let drawn = |lanes: &kinetoscope::lanes::Lanes, rows: &BTreeSet<Row>| {
                let rows: Vec<Row> = rows.iter().copied().collect();
                let found = lanes.of_events(&trace, &rows);
                found.spots().filter_map(|spot| lanes.row(spot)).collect::<BTreeSet<Row>>()
            };
            let is_deep = lanes.tracks.iter().any(|track| track.n_deep > 0);
            if !is_deep {
                assert_eq!(drawn(&lanes, &model), model, "{}", sample.name);
            }
            lanes.repaired(&trace, &damage, true);
            for slice in &damage.slices {
                let spot = lanes.spot(&trace, slice.row);
                let Becomes::OnLane(lane) = slice.becomes else { continue };
                let Some(spot) = spot else { panic!("{}: {slice:?} is on no lane", sample.name) };
                let label = &lanes.tracks[spot.track].label;
                assert!(label.ends_with(&damage.lanes[lane as usize]), "{}: {label}", sample.name);
                n_moved += 1;
            }
            // On the tracks of the repaired file nothing crosses that the model still drops.
            assert_eq!(plan.after.drops_v51_v56(), 0, "{}", sample.name);
        }
        assert!(n_damaged > 0 && n_moved > 0);
    }

    #[test]
    fn slices_that_cross_are_one_place() {
        let event = |ts: i64, dur: i64| {
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{ts},"dur":{dur}}}"#
            )
        };
        let events = [event(0, 10), event(5, 10), event(100, 10), event(105, 10), event(200, 3)];
        let file = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
        let (_, _, damage) = damage_of(file.as_bytes()).expect("it is a trace");
        let places: BTreeSet<u32> = damage.slices.iter().map(|slice| slice.place).collect();
        assert_eq!(places.len(), 2, "{damage:?}");
        assert!(damage.of(4).is_none(), "it crosses nothing");
        let said = damage.sentences(1, &|_| "other".to_owned()).join(" ");
        assert!(said.starts_with("Perfetto v51 to v56 drop this slice"), "{said}");
    }
}
