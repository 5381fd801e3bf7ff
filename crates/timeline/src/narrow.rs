//! A trace narrowed to one step: every analysis then reports that step alone.
//!
//! Rows keep their numbers, so that arguments that were read of the whole trace hold. What is left out becomes an event without a
//! phase, which every analysis passes over.

use trace::{Flags, Phase, Row, Trace, TracePart, each_row};

use crate::before_window::{each_launch, is_gpu_slice};
use crate::intervals::Interval;

/// The trace within `window`, on the clock of the trace:
///
/// * of the CPU the slices that overlap it, cut at its edges, and other events in it;
/// * of the GPU what calls in it launched, whenever that runs, and what began in it; of what an earlier step launched, the time up to
///   the end of the step's own work, so that the GPU is not idle then: a step that the CPU leaves early waits for the one before it;
/// * all metadata.
///
/// A call that begins before `window` keeps the time that it has in it, but launches nothing there: what it launched belongs to the
/// step in which it begins. So each GPU slice with a launch call belongs to one of the steps that do not overlap. `name` is that of
/// the step.
#[must_use]
pub fn narrow(trace: &Trace, window: Interval, name: &str) -> Trace {
    let (start, end) = window;
    let begins_in = |row: Row| (start..end).contains(&trace.ts_ns(row));
    let (mut launched, mut earlier): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut has_launches = false;
    each_launch(trace, |row, correlation| {
        has_launches = true;
        if !trace.flags(row).has(Flags::HAS_TS) {
            return;
        }
        if begins_in(row) {
            launched.push(correlation);
        } else if trace.ts_ns(row) < start {
            earlier.push(correlation);
        }
    });
    launched.sort_unstable();
    earlier.sort_unstable();
    let is_of =
        |ids: &[i64], row: Row| trace.link(row).is_some_and(|id| ids.binary_search(&id).is_ok());
    let mut last_ns = end;
    each_row(trace, |row| {
        if is_gpu_slice(trace, row) && is_of(&launched, row) {
            last_ns = last_ns.max(trace.end_ns(row));
        }
    });
    let mut narrowed = trace.clone();
    let mut file_start_ns = None;
    each_row(trace, |row| {
        if trace.phase(row) == Phase::Metadata || !trace.flags(row).has(Flags::HAS_TS) {
            return;
        }
        let ts_ns = trace.ts_ns(row);
        file_start_ns = Some(file_start_ns.map_or(ts_ns, |first: i64| first.min(ts_ns)));
        if is_gpu_slice(trace, row) {
            if is_of(&launched, row) || begins_in(row) {
                return;
            }
            if ts_ns >= end && is_of(&earlier, row) && ts_ns < last_ns {
                narrowed.set_time(row, ts_ns, trace.end_ns(row).min(last_ns) - ts_ns);
                return;
            }
            // (Without the launch call of an earlier step it would count as work of this one.)
            let is_earlier = has_launches && trace.link(row).is_some() && ts_ns < start;
            if is_earlier && trace.end_ns(row) > start {
                let until_ns = if is_of(&earlier, row) { last_ns } else { end };
                narrowed.set_time(row, start, trace.end_ns(row).min(until_ns) - start);
            } else {
                narrowed.hide(row);
            }
        } else if trace.phase(row) == Phase::Complete {
            let (from, to) = (trace.ts_ns(row).max(start), trace.end_ns(row).min(end));
            if begins_in(row) && trace.end_ns(row) <= end {
                return;
            }
            if to > from {
                narrowed.set_time(row, from, to - from);
                if !begins_in(row) {
                    narrowed.unlink(row);
                }
            } else {
                narrowed.hide(row);
            }
        } else if !begins_in(row) {
            narrowed.hide(row);
        }
    });
    let file_start_ns = file_start_ns.unwrap_or_default();
    narrowed.part = Some(TracePart { step: Some(name.to_owned()), file_start_ns, has_launches });
    narrowed
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel, slice};

    use super::*;

    /// Name, start and duration of what is left.
    fn left(trace: &Trace) -> Vec<(&str, i64, i64)> {
        let rows = trace.rows().filter(|row| trace.phase(*row) == Phase::Complete);
        rows.map(|row| (trace.name_text(row), trace.ts_ns(row), trace.dur_ns(row))).collect()
    }

    #[test]
    fn a_step_has_its_slices_cut_at_its_edges_and_the_work_that_it_launched() {
        let mut fixture = Fixture::default();
        let call = |at: i64, id: i64| {
            slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(at, 5).link(id)
        };
        fixture.push(slice("python_function", "train.py(1): main").on(1, 1).at(0, 1_000));
        fixture.push(slice("cpu_op", "aten::before").on(1, 1).at(80, 15));
        fixture.push(call(70, 0));
        fixture.push(call(85, 1));
        fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(110, 50));
        fixture.push(call(120, 2));
        fixture.push(slice("cpu_op", "aten::across").on(1, 1).at(190, 30));
        fixture.push(call(215, 3));
        fixture.push(kernel("still").at(90, 15).link(1));
        fixture.push(kernel("earlier").at(105, 40).link(1));
        fixture.push(kernel("long").on(0, 8).at(95, 400).link(0));
        fixture.push(kernel("queued before").at(205, 90).link(0));
        fixture.push(kernel("own").at(300, 10).link(2));
        fixture.push(kernel("later").at(310, 10).link(3));
        let trace = fixture.finish();
        let found = narrow(&trace, (100, 200), "step 1");
        assert_eq!(
            left(&found),
            [
                ("train.py(1): main", 100, 100),
                ("aten::mm", 110, 50),
                ("cudaLaunchKernel", 120, 5),
                ("aten::across", 190, 10),
                ("still", 100, 5),
                ("earlier", 105, 40),
                ("long", 100, 210),
                ("queued before", 205, 90),
                ("own", 300, 10),
            ]
        );
        assert_eq!(found.len(), trace.len(), "rows keep their numbers");
        let part = found.part.unwrap();
        assert_eq!(
            (part.step.as_deref(), part.file_start_ns, part.has_launches),
            (Some("step 1"), 0, true)
        );
    }

    #[test]
    fn a_call_across_the_edge_launches_only_in_the_step_in_which_it_begins() {
        let mut fixture = Fixture::default();
        let call = slice("cuda_runtime", "cudaGraphLaunch").on(1, 1);
        fixture.push(call.at(90, 40).link(1));
        fixture.push(kernel("k").at(110, 40).link(1));
        let trace = fixture.finish();
        let early = |window: Interval| {
            let part = narrow(&trace, window, "");
            let summary = crate::before_window::BeforeWindowSlices::of(&part).summary;
            (left(&part).len(), summary.n_kernels)
        };
        assert_eq!(early((0, 100)), (2, 0));
        // (No other call is in this step, and still the kernel is known to be of an earlier one.)
        assert_eq!(early((100, 200)), (2, 1));
    }

    #[test]
    fn a_window_around_everything_changes_nothing() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(5, 50));
        fixture.push(kernel("k").at(60, 10).link(9));
        let trace = fixture.finish();
        assert_eq!(left(&narrow(&trace, (i64::MIN, i64::MAX), "")), left(&trace));
    }
}
