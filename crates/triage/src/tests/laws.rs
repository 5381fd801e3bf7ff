//! Laws that hold for every trace, and triage of simulated traces whose figures are known from how they were made. These
//! samples are in this repository, so that nothing here needs the corpus; where it is, its traces are tried, too.

use std::collections::BTreeMap;

use catalog::OverlapClass;
use trace::{Details, Row, Trace};

use crate::{Confidence, RoleGuess, Signs, Sources, Stage, TriageOptions, TriageReport};
use crate::{guess_roles, triage};
use timeline::before_window::{BeforeWindowSlices, duration_ns, each_launch, is_gpu_slice};
use timeline::gpu::Gpu;
use timeline::narrow::narrow;

fn read(file: &[u8]) -> (Trace, Details) {
    let mut decoder = decode::Decoder::new();
    decoder.push(file).map_err(|reason| reason.to_string()).unwrap();
    let decoded = decoder.finish().map_err(|reason| reason.to_string()).unwrap();
    let mut reader = decode::DetailsReader::new(&decoded);
    reader.push(file);
    let details = reader.finish();
    (decoded.trace, details)
}

fn scene(name: &str) -> (Trace, Details) {
    read(&testkit::scene_gz(name))
}

/// Number and time of the GPU slices that tables count.
fn counted(trace: &Trace) -> (u64, i64) {
    let platform = timeline::device::platform(trace);
    let before = BeforeWindowSlices::of(trace);
    let gpu = Gpu::new(trace, platform, &before, &TriageOptions::default().slices);
    (gpu.len() as u64, (0..gpu.len()).map(|at| gpu.slice(at).dur_ns).sum())
}

fn sums(rows: impl Iterator<Item = (u64, i64)>) -> (u64, i64) {
    rows.fold((0, 0), |(n, ns), (more, more_ns)| (n + more, ns + more_ns))
}

/// GPU time by kernel name, without names that have none.
fn by_name<'a>(slices: impl Iterator<Item = (&'a str, i64)>) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for (name, ns) in slices.filter(|(_, ns)| *ns > 0) {
        *sums.entry(name.to_owned()).or_default() += ns;
    }
    sums
}

#[test]
fn the_kernels_of_a_step_are_a_plain_sum_of_the_events_that_it_launched() {
    let mut n_tried = 0;
    for sample in testkit::trace_samples() {
        let (name, (trace, details)) = (sample.stem(), read(&sample.bytes()));
        let sources = Sources { details: Some(&details), ..Sources::default() };
        let table = |trace: &Trace| {
            let kernels = triage(trace, &TriageOptions::default(), &sources).kernels;
            by_name(kernels.iter().map(|row| (row.kernel_name.as_str(), row.total_ns)))
        };
        let mut calls: Vec<(i64, i64)> = Vec::new();
        each_launch(&trace, |row, correlation| calls.push((correlation, trace.ts_ns(row))));
        calls.sort_unstable();
        let launched = |row: &Row| {
            let wanted = trace.link(*row)?;
            let at = calls.partition_point(|(correlation, _)| *correlation < wanted);
            calls.get(at).filter(|(correlation, _)| *correlation == wanted).map(|call| call.1)
        };
        let gpu: Vec<Row> = trace.rows().filter(|row| is_gpu_slice(&trace, *row)).collect();
        let edge = |ns: Option<i64>| ns.unwrap_or_default();
        let (first, last) = (
            edge(trace.rows().map(|row| trace.ts_ns(row)).min()),
            edge(trace.rows().map(|row| trace.end_ns(row)).max()),
        );
        let third = last.saturating_sub(first) / 3;
        let bounds = [first, first + third, first + 2 * third, last.saturating_add(1)];
        for window in bounds.windows(2).filter(|_| !gpu.is_empty()) {
            let is_in = |at: i64| (window[0]..window[1]).contains(&at);
            // Without a recorded launch, a slice belongs to where it begins, unless others show that its launch was earlier.
            let counts = |row: &&Row| match launched(row) {
                Some(at) => is_in(at),
                None => {
                    (trace.link(**row).is_none() || calls.is_empty()) && is_in(trace.ts_ns(**row))
                }
            };
            let slice = |row: &Row| (trace.name_text(*row), duration_ns(&trace, *row));
            let expected = by_name(gpu.iter().filter(counts).map(slice));
            let step = narrow(&trace, (window[0], window[1]), "step");
            assert_eq!(table(&step), expected, "{name} {window:?}");
            n_tried += usize::from(!expected.is_empty());
        }
    }
    assert!(n_tried > 10, "{n_tried}");
}

#[test]
fn each_slice_is_in_one_row_of_each_table() {
    let mut n_with_gpu = 0;
    for sample in testkit::trace_samples() {
        let (name, (trace, details)) = (sample.stem(), read(&sample.bytes()));
        let sources = Sources { details: Some(&details), ..Sources::default() };
        let TriageReport { stages, kernels, merged, coverage, .. } =
            triage(&trace, &TriageOptions::default(), &sources);
        let all = counted(&trace);
        n_with_gpu += u64::from(all.0 > 0);
        assert_eq!(sums(stages.iter().map(|row| (row.n_slices, row.total_ns))), all, "{name}");
        let mut by_stage: BTreeMap<(&str, Option<Stage>), (u64, i64)> = BTreeMap::new();
        for row in &kernels {
            let sum = by_stage.entry((&row.device, row.stage)).or_default();
            *sum = (sum.0 + row.launches, sum.1 + row.total_ns);
        }
        let expected: BTreeMap<(&str, Option<Stage>), (u64, i64)> = stages
            .iter()
            .filter(|row| row.n_slices > 0)
            .map(|row| ((row.device.as_str(), Some(row.stage)), (row.n_slices, row.total_ns)))
            .collect();
        assert_eq!(by_stage, expected, "{name}: kernels of a stage");
        assert_eq!(sums(merged.iter().map(|row| (row.launches, row.total_ns))), all, "{name}");
        assert_eq!(coverage.total_ns, all.1, "{name}");
        assert!((0..=coverage.total_ns).contains(&coverage.op_ns), "{name}: {coverage:?}");
        assert!((0..=coverage.total_ns).contains(&coverage.python_ns), "{name}: {coverage:?}");
        assert!((0..=coverage.python_ns).contains(&coverage.forward_ns), "{name}: {coverage:?}");
        assert!((0..=coverage.window_ns).contains(&coverage.busy_ns), "{name}: {coverage:?}");
    }
    assert!(n_with_gpu >= 8, "{n_with_gpu} samples with GPU slices");
}

#[test]
fn exposed_and_hidden_time_are_all_of_a_row() {
    let mut n = 0;
    for sample in testkit::trace_samples() {
        let (name, (trace, details)) = (sample.stem(), read(&sample.bytes()));
        let sources = Sources { details: Some(&details), ..Sources::default() };
        let report = triage(&trace, &TriageOptions::default(), &sources);
        for row in &report.overlap {
            n += 1;
            assert_eq!(row.total_ns, row.exclusive_ns + row.hidden_ns, "{name}: {row:?}");
            assert!((0..=row.hidden_ns).contains(&row.hidden_by_compute_ns), "{name}: {row:?}");
            assert_eq!(row.is_advice(), row.recommendation.is_some(), "{name}: {row:?}");
            assert_eq!(trace.name_text(row.representative), row.kernel_name, "{name}");
            assert!(row.share_pct >= 1.0, "{name}: {row:?}");
            let computes = row.overlap_class == OverlapClass::Compute;
            assert!(!computes || row.recommendation.is_none(), "{name}: {row:?}");
            assert!(!computes || row.savings_bound_ns.is_none(), "{name}: {row:?}");
        }
        for row in &report.kernels {
            assert!((0..=row.total_ns).contains(&row.exposed_ns), "{name}: {row:?}");
        }
        let mut keys: Vec<_> = report
            .overlap
            .iter()
            .map(|row| (&row.device, row.stage.id(), &row.kernel_name))
            .collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), report.overlap.len(), "{name}: each kernel once in a stage");
    }
    assert!(n > 0, "no sample has a row");
}

/// Figures of a script that joins the GPU slices of the file to launches by correlation, and these to annotations by time.
#[test]
fn the_example_has_two_prefills_and_eleven_decodes() {
    let (trace, details) = read(&testkit::example::json_gz());
    let sources = Sources { details: Some(&details), ..Sources::default() };
    let report = triage(&trace, &TriageOptions::default(), &sources);
    let stages: Vec<_> = report
        .stages
        .iter()
        .map(|row| (row.stage, row.n_windows, row.n_slices, row.total_ns))
        .collect();
    let expected = [(Stage::Extend, 2, 828, 37_667_773), (Stage::Decode, 11, 5_126, 36_172_882)];
    assert_eq!(stages, expected);
    assert!(report.stages[0].recognised_by.contains("step[EXTEND bs=4 toks=2048]"));
}

#[test]
fn a_simulated_capture_tells_what_its_replay_runs() {
    let ((formal, details), (capture, of_capture)) =
        (scene("graph_replay"), scene("graph_capture"));
    let signs = [Signs::of(&formal), Signs::of(&capture)];
    let roles = guess_roles(&signs.iter().collect::<Vec<_>>());
    assert_eq!(roles, [RoleGuess::Own, RoleGuess::Capture(0)]);

    let alone = triage(&formal, &TriageOptions::default(), &Sources::default()).coverage;
    assert!(alone.graph_slices > 0 && alone.graph_mapped == 0, "{alone:?}");
    let (captures, capture_details) = ([&capture], [Some(&of_capture)]);
    let sources = Sources {
        captures: &captures,
        details: Some(&details),
        capture_details: &capture_details,
        ..Sources::default()
    };
    let report = triage(&formal, &TriageOptions::default(), &sources);
    let coverage = &report.coverage;
    assert_eq!(coverage.graph_mapped, alone.graph_slices);
    assert_eq!((coverage.replays, coverage.identical_replays), (4, 4));
    let mut replayed =
        report.kernels.iter().filter(|row| row.mapping_confidence == Confidence::Replay).peekable();
    assert!(replayed.peek().is_some());
    for row in replayed {
        assert!(!row.cpu_op.is_empty() && !row.cpu_op.contains("Graph"), "{row:?}");
        assert!(!row.modules.is_empty(), "the capture records modules: {row:?}");
    }
}
