//! The worker's whole conversation, without a browser.

use std::collections::BTreeMap;

use super::*;
use crate::protocol::{
    ArtifactWish, Aside, Beside, CaptureFacts, Chapter, Companion, Format, KernelKey, Parts,
    Program, StepWindow,
};
use crate::shared::Shared;
use kinetoscope::report::Table;

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), String> {
        let from = offset as usize;
        let to = self.0.len().min(from + len as usize);
        into.extend_from_slice(self.0.get(from..to).ok_or("gone")?);
        Ok(())
    }
}

#[derive(Default)]
struct Heard {
    responses: Vec<Response>,
    blocks: Vec<u8>,
    delivered: Option<(Repaired, String)>,
    made: Option<Made>,
}

impl Port for Heard {
    fn send(&mut self, response: Response) {
        // As the page gets it.
        let bytes = postcard::to_allocvec(&response).unwrap();
        let response: Response = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(postcard::to_allocvec(&response).unwrap(), bytes);
        self.responses.push(response);
    }

    fn block(&mut self, bytes: &[u8]) {
        self.blocks.extend_from_slice(bytes);
    }

    fn deliver(&mut self, _: JobId, repaired: Repaired, log: &str) {
        self.delivered = Some((repaired, log.to_owned()));
    }

    fn deliver_artifacts(&mut self, _: JobId, made: Made) {
        self.made = Some(made);
    }
}

const JOB: JobId = JobId(7);

/// Two kernels of one stream that cross.
const CROSSING: &str = r#"{"traceEvents":[
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":5,"args":{"stream":7}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":12,"dur":6,"args":{"stream":7}}
]}"#;

#[derive(Default)]
struct Given(std::collections::BTreeMap<JobId, Bytes>);

impl Files for Given {
    fn source(&mut self, job: JobId) -> Option<&mut dyn Source> {
        self.0.get_mut(&job).map(|bytes| -> &mut dyn Source { bytes })
    }

    fn forget(&mut self, job: JobId) {
        self.0.remove(&job);
    }
}

fn talk(file: &str, requests: impl IntoIterator<Item = Request>) -> Heard {
    talk_beside(file, &[], requests)
}

/// The conversation of workers that are given `others`, too.
fn talk_beside(
    file: &str,
    others: &[(JobId, &str)],
    requests: impl IntoIterator<Item = Request>,
) -> Heard {
    let mut files = Given::default();
    for (job, text) in [(JOB, file)].iter().chain(others) {
        files.0.insert(*job, Bytes(text.as_bytes().to_vec()));
    }
    let mut heard = Heard::default();
    let (mut first, mut triage) = (FirstSession::default(), TriageSession::default());
    // As the page does: the second program opens the file when it is asked for something.
    let mut opened: Option<Request> = None;
    for request in requests {
        match request.program() {
            Program::First => {
                if let Request::Open { .. } = request {
                    opened = Some(request.clone());
                }
                first.handle(request, &mut files, &mut heard);
                // As the page does, too: it starts the second program for what is no trace.
                if let Some(Response::NoTrace { reader, .. }) = heard.responses.last()
                    && let Some(open) = opened.take()
                {
                    match reader {
                        Program::Snapshot => {
                            SnapshotSession::default().handle(open, &mut files, &mut heard)
                        }
                        _ => triage.handle(open, &mut files, &mut heard),
                    }
                }
            }
            Program::Snapshot | Program::Lanes => {}
            Program::Triage => {
                if let Some(open) = opened.take() {
                    triage.handle(open, &mut files, &mut heard);
                }
                triage.handle(request, &mut files, &mut heard);
            }
        }
    }
    heard
}

fn open() -> Request {
    Request::Open { job: JOB, name: "run.json".into(), events: None }
}

fn plan() -> Request {
    Request::PlanRepair { job: JOB, clip_impossible: false }
}

fn triage() -> Request {
    Request::Triage { job: JOB, count_before_window: false }
}

#[test]
fn every_stage_answers() {
    let heard = talk(CROSSING, [open(), Request::Analyze { job: JOB }, plan(), triage()]);
    let mut kinds = heard.responses.iter().map(|response| match response {
        Response::Progress { progress, .. } => {
            assert_eq!(progress.done, progress.total);
            "progress"
        }
        Response::Opened { opened, .. } => {
            assert_eq!(opened.n_events, 2);
            "opened"
        }
        Response::Report { report, .. } => {
            assert_eq!((report.n_kernels, report.busy_ns), (2, 8_000));
            "report"
        }
        Response::RepairPlanned { plan, .. } => {
            assert_eq!((plan.drops_before, plan.drops_after, plan.damaged), (1, 0, true));
            assert_eq!(plan.log.n_rows(), 1);
            "plan"
        }
        Response::Triage { triage, .. } => {
            let [stage] = &triage.stages[..] else { panic!("{:?}", triage.stages) };
            assert_eq!((&*stage.id, &*stage.title), ("all", "no stage"));
            let kernels = triage.chapter("kernel-table").unwrap().table("kernel-table").unwrap();
            assert_eq!(kernels.n_rows(), 2, "rows below the cut-off are there, too");
            "triage"
        }
        other => panic!("{other:?}"),
    });
    for kind in ["progress", "opened", "report", "plan", "progress", "progress", "triage"] {
        assert_eq!(kinds.next(), Some(kind));
    }
}

#[test]
fn the_repaired_file_is_delivered_with_its_proof_and_log() {
    let repair = Request::Repair { job: JOB, format: Format::Json };
    let heard = talk(CROSSING, [open(), plan(), repair]);
    let (repaired, log) = heard.delivered.unwrap();
    assert!(repaired.proven);
    assert_eq!(repaired.bytes, heard.blocks.len() as u64);
    assert_eq!(repaired.file_name, "run.perfetto.json");
    assert!(log.contains("crossing-slice"), "{log}");
    let text = String::from_utf8(heard.blocks).unwrap();
    assert!(text.contains("(overlap"), "{text}");
}

#[test]
fn what_is_no_trace_is_said_once() {
    let heard = talk("<!DOCTYPE html><html>", [open(), Request::Analyze { job: JOB }, plan()]);
    let failures: Vec<_> = heard
        .responses
        .iter()
        .filter(|response| !matches!(response, Response::Progress { .. }))
        .collect();
    let [Response::Failed { failure, .. }] = failures[..] else { panic!("{failures:?}") };
    assert_eq!(failure.title, "A web page");
    assert!(!failure.advice.is_empty());
}

/// A graph that runs one kernel; its op is in no event here.
const REPLAY: &str = r#"{"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"hipGraphLaunch","pid":1,"tid":1,"ts":1,"dur":2,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":5,"args":{"stream":7,"correlation":1}}
]}"#;

/// The capture of that graph.
const CAPTURE: &str = r#"{"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":2,"dur":6,"args":{"External id":5}},
{"ph":"X","cat":"cuda_runtime","name":"hipStreamBeginCapture","pid":1,"tid":1,"ts":1,"dur":0.5},
{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":1,"tid":1,"ts":3,"dur":1,"args":{"correlation":9,"External id":5,"kernel":"gemm"}},
{"ph":"X","cat":"cuda_runtime","name":"hipStreamEndCapture","pid":1,"tid":1,"ts":9,"dur":0.5}
]}"#;

const OTHER: JobId = JobId(8);

fn add(role: Companion) -> Request {
    let beside = Beside { job: OTHER, role, listed: None };
    Request::AddCompanion { job: JOB, beside, name: "capture.json".into() }
}

/// How sure the place of the only kernel is, each time that triage was asked for.
fn confidences(heard: &Heard) -> Vec<String> {
    let triages = heard.responses.iter().filter_map(|response| match response {
        Response::Triage { triage, .. } => triage.chapter("kernel-table")?.table("kernel-table"),
        _ => None,
    });
    let confidence = |table: &Shared<Table>| {
        assert_eq!(table.n_rows(), 1, "{table:?}");
        table.cell(0, table.column("mapping_confidence").unwrap()).unwrap().raw()
    };
    triages.map(confidence).collect()
}

#[test]
fn a_capture_tells_while_it_is_there() {
    let requests = [
        open(),
        triage(),
        add(Companion::Capture),
        triage(),
        // The same file in another part: it is not read again, but it tells no more.
        add(Companion::Mapping),
        triage(),
        Request::RemoveCompanion { job: JOB, companion: OTHER },
        triage(),
    ];
    let heard = talk_beside(REPLAY, &[(OTHER, CAPTURE)], requests);
    assert_eq!(confidences(&heard), ["launch", "replay", "launch", "launch"]);
    let reading = heard.responses.iter().filter(|response| match response {
        Response::Progress { progress, .. } => {
            progress.stage == Stage::ReadingCompanion(Companion::Capture)
        }
        _ => false,
    });
    // Once for its events, once for their arguments.
    assert_eq!(reading.count(), 2);
}

#[test]
fn a_companion_that_is_no_trace_leaves_the_job_alive() {
    let requests = [open(), add(Companion::Capture), triage()];
    let heard = talk_beside(REPLAY, &[(OTHER, "<!DOCTYPE html><html>")], requests);
    let failures = heard.responses.iter().filter_map(|response| match response {
        Response::Companion { companion, failure, .. } => Some((*companion, failure.clone()?)),
        Response::Failed { .. } => panic!("{response:?}"),
        _ => None,
    });
    let [(OTHER, failure)] = &failures.collect::<Vec<_>>()[..] else { panic!("one failure") };
    assert_eq!(failure.title, "A web page");
    assert_eq!(confidences(&heard), ["launch"]);
}

/// What a file that is no trace is taken for.
fn aside(file: &str) -> Result<Aside, Failure> {
    let heard = talk(file, [open(), Request::Analyze { job: JOB }, triage()]);
    let mut said = heard.responses.into_iter().filter_map(|response| match response {
        Response::Aside { aside, .. } => Some(Ok(aside)),
        Response::Failed { failure, .. } => Some(Err(failure)),
        Response::Progress { .. } | Response::NoTrace { .. } => None,
        other => panic!("{other:?}"),
    });
    let first = said.next().unwrap();
    assert!(said.next().is_none(), "one answer");
    first
}

const MAP: &str = r#"{"version": 2, "generated_from": [], "stages": {"decode": {"kernels": {}}}, "global": {"kernels": {
"gemm": {"category": "gemm", "sites": [{"location": "a.py:3 f", "top_cpu_op": "aten::mm", "launches": 1, "total_us": 2}]}}}}"#;

#[test]
fn a_kernel_map_is_no_trace_but_tells_of_one() {
    let Ok(Aside::Map { names, n_kernels, stages }) = aside(MAP) else { panic!("no map") };
    assert_eq!((names.len(), n_kernels, stages), (1, 1, vec!["decode".to_owned()]));
    let requests = [
        open(),
        triage(),
        add(Companion::Map),
        triage(),
        artifacts(ArtifactWish::default(), Parts::KernelMap),
        Request::RemoveCompanion { job: JOB, companion: OTHER },
        triage(),
    ];
    let heard = talk_beside(REPLAY, &[(OTHER, MAP)], requests);
    assert_eq!(confidences(&heard), ["launch", "mapping", "launch"]);
    let made = heard.made.unwrap();
    let [map] = &made.texts[..] else { panic!("{:?}", made.texts) };
    assert_eq!(made.artifacts.bytes_of("kernel_map.json"), Some(map.text.len() as u64));
    // What was imported goes out again, with the file that it came from.
    assert!(map.text.contains("aten::mm") && map.text.contains("capture.json"), "{}", map.text);
}

#[test]
fn what_is_wrong_with_a_map_is_said_with_its_place() {
    let failure = aside(&MAP.replace("\"launches\": 1", "\"launches\": -1")).unwrap_err();
    assert_eq!(failure.title, "This kernel map cannot be used");
    assert_eq!(failure.place.as_deref(), Some("global.kernels[\"gemm\"].sites[0].launches"));
    assert!(failure.what.contains("it is not a whole number"), "{failure:?}");
    let cut = aside(&MAP[..MAP.len() - 4]).unwrap_err();
    assert!(
        cut.what.contains("it is not JSON") && cut.advice.contains("Export the map again"),
        "{cut:?}"
    );
}

#[test]
fn a_list_of_captures_names_them_and_another_list_is_refused() {
    let list = r#"[{"file": "x/bs_32.json.gz", "batch_size": 32, "mode": "FULL"}]"#;
    let Ok(Aside::Captures(listed)) = aside(list) else { panic!("no list") };
    let words: Vec<_> = listed.iter().map(|of| (of.name.as_str(), of.in_words())).collect();
    assert_eq!(words, [("bs_32.json.gz", "FULL, batch 32".to_owned())]);
    let failure = aside(r#"[{"a": 1}]"#).unwrap_err();
    assert_eq!(failure.title, "A list of records that are not events");
    assert!(failure.what.contains("entry 0 has no file"), "{failure:?}");
}

#[test]
fn the_note_on_captures_has_their_names_and_what_a_list_says() {
    let facts = CaptureFacts {
        name: "capture.json".into(),
        batch_size: Some(8),
        mode: Some("FULL".into()),
    };
    let beside = Beside { job: OTHER, role: Companion::Capture, listed: Some(facts) };
    let listed = Request::AddCompanion { job: JOB, beside, name: "capture.json".into() };
    let heard = talk_beside(
        REPLAY,
        &[(OTHER, CAPTURE)],
        [open(), add(Companion::Capture), triage(), listed, triage()],
    );
    let notes = heard.responses.iter().filter_map(|response| match response {
        Response::Triage { triage, .. } => Some(triage.chapter("triage")?.intro.last()?.as_str()),
        _ => None,
    });
    assert_eq!(
        notes.collect::<Vec<_>>(),
        [
            "Captures used: capture.json for 1 graph launch.",
            "Captures used: capture.json (FULL, batch 8) for 1 graph launch."
        ]
    );
    let reading = heard.responses.iter().filter(|response| {
        matches!(response, Response::Progress { progress, .. } if matches!(progress.stage, Stage::ReadingCompanion(_)))
    });
    assert_eq!(reading.count(), 2, "it is not read again for that");
}

#[test]
fn a_mapping_trace_that_becomes_a_capture_tells_its_arguments() {
    let as_capture =
        talk_beside(REPLAY, &[(OTHER, CAPTURE)], [open(), add(Companion::Capture), triage()]);
    let changed = [open(), add(Companion::Mapping), add(Companion::Capture), triage()];
    let changed = talk_beside(REPLAY, &[(OTHER, CAPTURE)], changed);
    let tables = |heard: &Heard| {
        let Some(Response::Triage { triage, .. }) = heard.responses.last() else {
            panic!("no triage")
        };
        let table = triage.chapter("kernel-table").unwrap().table("kernel-table").unwrap();
        (table.columns.len(), Table::clone(table))
    };
    assert_eq!(tables(&changed), tables(&as_capture));
}

#[test]
fn work_from_before_the_window_counts_on_request() {
    // A launch is recorded, but not that of the first kernel.
    let file = r#"{"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":11,"dur":2,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"early","pid":0,"tid":7,"ts":10,"dur":5,"args":{"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"own","pid":0,"tid":7,"ts":20,"dur":6,"args":{"stream":7,"correlation":2}}
]}"#;
    let counting = Request::Triage { job: JOB, count_before_window: true };
    let heard = talk(file, [open(), triage(), counting]);
    let told = heard.responses.iter().filter_map(|response| match response {
        Response::Triage { triage, .. } => {
            let table = triage.chapter("kernel-table")?.table("kernel-table")?;
            let sum = triage.before_window;
            Some((table.n_rows(), sum.n_slices, sum.total_ns, sum.counted))
        }
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(1, 1, 5_000, false), (2, 1, 5_000, true)]);
}

#[test]
fn a_step_has_its_own_triage_and_details_of_its_kernels() {
    // Two steps with a kernel each, which runs in the step after its launch.
    let file = r#"{"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":11,"dur":2,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":111,"dur":2,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":110,"dur":5,"args":{"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":210,"dur":6,"args":{"stream":7,"correlation":2}}
]}"#;
    let step = StepWindow { name: "second".into(), start_ns: 100_000, end_ns: 200_000 };
    let count_before_window = false;
    let kernel = |step: Option<StepWindow>| {
        let key = KernelKey { kernel_name: "k".into(), ..KernelKey::default() };
        Request::Kernel { job: JOB, key, count_before_window, step }
    };
    let of_step = Some(step);
    let diagnose = Request::Diagnose {
        job: JOB,
        count_before_window,
        step: of_step.clone(),
        iteration_ns: None,
    };
    let requests = [open(), triage(), kernel(None), diagnose, kernel(of_step), kernel(None)];
    let heard = talk(file, requests);
    let launches = heard.responses.iter().filter_map(|response| match response {
        Response::Kernel { kernel, .. } => Some(kernel.n),
        _ => None,
    });
    assert_eq!(launches.collect::<Vec<_>>(), [2, 1, 2]);
    let found = heard.responses.iter().find_map(|response| match response {
        Response::Diagnosed { diagnosis, .. } => diagnosis.triage.as_ref(),
        _ => None,
    });
    let found = found.unwrap();
    assert_eq!(found.before_window.n_slices, 1, "it began in the step that did not launch it");
    for chapter in ["triage", "overlap", "fuse"] {
        let first = &found.chapter(chapter).unwrap().intro[0];
        assert!(first.starts_with("All figures are of second alone"), "{first}");
    }
    let table = found.chapter("kernel-table").unwrap().table("kernel-table").unwrap();
    let total = table.cell(0, table.column("total_ns").unwrap()).unwrap();
    assert_eq!((table.n_rows(), total.raw()), (1, "6000".to_owned()));
}

#[test]
fn a_benchmark_is_written_or_the_reason_is_said() {
    let file = r#"{"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":1,"ts":1,"dur":2,"args":{"Input Dims":[[2,3]],"Input type":["float"]}},
{"ph":"X","cat":"cpu_op","name":"aten::abs","pid":1,"tid":1,"ts":4,"dur":2}
]}"#;
    let ask = |op: &str| Request::Benchmark { job: JOB, op: op.into() };
    let heard = talk(file, [open(), ask("aten::relu"), ask("aten::abs")]);
    let scripts = heard.responses.iter().filter_map(|response| match response {
        Response::Benchmark { op, script, .. } => Some((op.as_str(), script.as_deref())),
        _ => None,
    });
    let [(_, Ok(script)), (_, Err(reason))] = scripts.collect::<Vec<_>>()[..] else { panic!() };
    assert!(
        script.starts_with("# aten::relu alone") && script.contains("tensor([2,3], None"),
        "{script}"
    );
    assert!(reason.contains("record_shapes=True"), "{reason}");
}

#[test]
fn a_file_says_what_part_it_can_play() {
    let signs = |file: &str| {
        let heard = talk(file, [open()]);
        let opened = heard.responses.into_iter().find_map(|response| match response {
            Response::Opened { opened, .. } => Some(opened),
            _ => None,
        });
        opened.unwrap().signs
    };
    assert!(signs(REPLAY).asks() && !signs(CROSSING).asks() && signs(CAPTURE).is_capture());
}

#[test]
fn two_runs_are_compared_by_what_one_wrote_down() {
    let described = talk(CROSSING, [open(), Request::Describe { job: JOB }]);
    let Some(Response::Described { run: Ok(run), .. }) = described.responses.last() else {
        panic!("{:?}", described.responses)
    };
    let compare = Request::Compare { job: JOB, with: OTHER, run: run.clone() };
    let heard = talk(REPLAY, [open(), compare]);
    let Some(Response::Compared { with: OTHER, comparison: Ok(comparison), .. }) =
        heard.responses.last()
    else {
        panic!("{:?}", heard.responses)
    };
    assert_eq!(comparison.verdict, crate::protocol::Verdict::Conditional);
    let kernels = comparison.chapter("comparison").unwrap().table("compare-kernels").unwrap();
    let at = kernels.column("presence").unwrap();
    let presence: Vec<_> = kernels.cells(at).map(|cell| cell.raw()).collect();
    assert_eq!(presence, ["only B", "only B", "only A"]);
}

fn artifacts(wish: ArtifactWish, parts: Parts) -> Request {
    Request::Artifacts { job: JOB, wish, parts }
}

#[test]
fn artifacts_are_made_with_their_sizes_and_the_archive_is_whole() {
    let facts = BTreeMap::from([("trial_id".to_owned(), "17".to_owned())]);
    let server_args = Some(r#"{"model_path": "m", "x": 1.0}"#.to_owned());
    let wish = ArtifactWish { facts, server_args, ..ArtifactWish::default() };
    let heard = talk(CROSSING, [open(), artifacts(wish.clone(), Parts::Everything)]);
    let Made { artifacts, texts, archive } = heard.made.unwrap();
    assert_eq!(artifacts.wish, wish);
    let names: Vec<&str> = artifacts.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "profile_summary.md",
            "profile_metadata.json",
            "kernel_table.json",
            "overlap_opportunities.json",
            "fuse_opportunities.json",
            "perfetto_fixed_trace.json.gz",
            "kinetoscope_artifacts.zip",
        ]
    );
    for text in &texts {
        assert_eq!(artifacts.bytes_of(&text.name), Some(text.text.len() as u64));
    }
    assert!(texts[1].text.contains("\"trial_id\": \"17\"") && texts[1].text.contains("1.0"));
    let trace_bytes = heard.blocks.len() as u64;
    assert_eq!(artifacts.bytes_of("perfetto_fixed_trace.json.gz"), Some(trace_bytes));
    let around = archive.unwrap();
    let zip_bytes = (around.before.len() + around.after.len()) as u64 + trace_bytes;
    assert_eq!(artifacts.bytes_of("kinetoscope_artifacts.zip"), Some(zip_bytes));
}

#[test]
fn the_tables_alone_need_no_repaired_trace() {
    let wish = ArtifactWish::default();
    let heard = talk(CROSSING, [open(), artifacts(wish, Parts::Tables)]);
    let made = heard.made.unwrap();
    assert!(heard.blocks.is_empty() && made.archive.is_none());
    assert_eq!(made.artifacts.files.len(), 5);
}

#[test]
fn a_wrong_wish_leaves_the_file_as_it_is() {
    for wish in [
        ArtifactWish {
            facts: BTreeMap::from([("target_arch".to_owned(), "MI300".to_owned())]),
            ..ArtifactWish::default()
        },
        ArtifactWish { stage: Some("decode".into()), ..ArtifactWish::default() },
    ] {
        let heard = talk(CROSSING, [open(), artifacts(wish, Parts::Everything), triage()]);
        let said = |response: &Response| matches!(response, Response::NoArtifacts { .. });
        assert!(heard.made.is_none() && heard.responses.iter().any(said));
        assert!(matches!(heard.responses.last(), Some(Response::Triage { .. })));
    }
}

#[test]
fn a_benchmark_configuration_has_a_digest_without_an_open_file() {
    let bytes = br#"{"b": 1.50, "a": []}"#.to_vec();
    let heard = talk(CROSSING, [Request::BenchmarkConfig { job: JOB, bytes }]);
    let [Response::BenchmarkConfig { job: JOB, digest }] = &heard.responses[..] else {
        panic!("{:?}", heard.responses)
    };
    let digits = digest.strip_prefix("sha256:").unwrap();
    assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
}

/// One block that is allocated and stays.
const SNAPSHOT: &str = r#"{"segments": [{"device": 0, "address": 4096, "total_size": 2048, "allocated_size": 1024,
    "active_size": 1024, "stream": 0, "segment_type": "small", "blocks": [
    {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
    {"address": 5120, "size": 1024, "requested_size": 0, "state": "inactive", "frames": []}]}], "device_traces": [[
    {"action": "segment_alloc", "addr": 4096, "size": 2048, "stream": 0, "frames": []},
    {"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "frames": []}]]}"#;

#[test]
fn a_snapshot_is_answered_by_its_figures_first_and_then_in_full() {
    let heard = talk(SNAPSHOT, [open()]);
    let asides: Vec<&Aside> = heard
        .responses
        .iter()
        .filter_map(|response| match response {
            Response::Aside { aside, .. } => Some(aside),
            _ => None,
        })
        .collect();
    let [
        Aside::Snapshot { chapters: first, charts, summed, run, .. },
        Aside::Snapshot {
            chapters: all, charts: later, summed: later_summed, run: later_run, ..
        },
    ] = asides[..]
    else {
        panic!("{asides:?}")
    };
    let is_waiting = |chapters: &[Chapter]| {
        chapters[0].intro.iter().any(|line| line.contains("are being computed"))
    };
    assert_eq!((is_waiting(first), is_waiting(all)), (true, false));
    assert_eq!(first[0].intro[0], all[0].intro[0]);
    // The pictures and the questions of other files need no more than the figures.
    assert_eq!((charts, summed, run), (later, later_summed, later_run));
    assert!(!charts.is_empty() && !summed.is_empty() && !run.is_empty());
}

#[test]
fn a_rank_is_diagnosed_with_those_that_other_workers_have_written_down() {
    let rank = |rank: i64, joins: i64| {
        let collective = r#""Collective name":"allreduce","dtype":"Float","In msg nelems":8,"Out msg nelems":8,"Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]""#;
        let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        let (computes, dur) = (joins - 10, 900 - joins);
        format!(
            r#"{{"baseTimeNanoseconds":1700000000000000000,"distributedInfo":{{"rank":{rank},"world_size":2}},"traceEvents":[
{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":{computes},"args":{{"device":0,"stream":7,"correlation":1}}}},
{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{joins},"dur":{dur},"args":{{"device":0,"stream":7,"correlation":2,{collective}}}}}
]}}"#
        )
    };
    let calls = |heard: &Heard| {
        heard.responses.iter().find_map(|response| match response {
            Response::RankCalls { calls, .. } => Some(Shared::new(calls.clone())),
            _ => None,
        })
    };
    let late = talk(&rank(1, 800), [open(), triage(), Request::RankCalls { job: JOB }]);
    let others = vec![calls(&late).unwrap()];
    let step = None;
    let diagnose = || Request::Diagnose {
        job: JOB,
        count_before_window: false,
        step: step.clone(),
        iteration_ns: None,
    };
    let told = |others| Request::OtherRanks { job: JOB, others };
    let requests =
        [open(), triage(), diagnose(), told(others), diagnose(), told(Vec::new()), diagnose()];
    let heard = talk(&rank(0, 100), requests);
    let said = heard.responses.iter().filter_map(|response| match response {
        Response::Diagnosed { diagnosis, .. } => {
            Some(diagnosis.chapter("ranks").map(|chapter| chapter.intro.join(" ")))
        }
        _ => None,
    });
    let late = "The other rank waits for rank 1, the last to join 1 of 1 collective: 700 µs.";
    assert_eq!(said.collect::<Vec<_>>(), [None, Some(late.to_owned()), None]);
}

#[test]
fn the_memory_of_a_snapshot_is_drawn_by_the_program_of_lanes_without_a_file() {
    let file = r#"{"segments":[],"device_traces":[[
{"action":"segment_alloc","addr":4096,"size":8192,"stream":0,"time_us":1700000000000000,"frames":[]},
{"action":"alloc","addr":4096,"size":1024,"stream":0,"time_us":1700000000000010,"frames":[]},
{"action":"free_requested","addr":4096,"size":1024,"stream":0,"time_us":1700000000000030,"frames":[]},
{"action":"free_completed","addr":4096,"size":1024,"stream":0,"time_us":1700000000000030,"frames":[]},
{"action":"segment_free","addr":4096,"size":8192,"stream":0,"time_us":1700000000000050,"frames":[]}]]}"#;
    let mut files = Given::default();
    files.0.insert(JOB, Bytes(file.as_bytes().to_vec()));
    let mut heard = Heard::default();
    let mut snapshot = SnapshotSession::default();
    snapshot.handle(open(), &mut files, &mut heard);
    snapshot.handle(Request::Levels { job: JOB }, &mut files, &mut heard);
    let Some(Response::Levels { recorded, .. }) = heard.responses.pop() else {
        panic!("{:?}", heard.responses)
    };
    let mut lanes = LanesSession::default();
    lanes.handle(Request::Told { job: JOB, recorded }, &mut Given::default(), &mut heard);
    let Some(Response::Lanes { lanes: Ok(facts), .. }) = heard.responses.pop() else {
        panic!("{:?}", heard.responses)
    };
    assert_eq!(facts.starts_ns, Some(1_700_000_000_000_000_000));
    assert_eq!(facts.span_ns, 50_000);
}

#[test]
fn a_run_is_put_next_to_those_with_batches_of_other_sizes() {
    let run = |batch: i64, ms: i64, features: i64| {
        let step = |step: i64| {
            let (at, dur) = (step * ms * 1_000, ms * 1_000);
            format!(
                r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1,"tid":1,"ts":{at},"dur":{dur}}},
{{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":{},"dur":5,"args":{{"Input Dims":[[{batch},{features}],[8,{features}]],"Input type":["float","float"]}}}}"#,
                at + 1
            )
        };
        let steps: Vec<String> = (0..4).map(step).collect();
        format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, steps.join(","))
    };
    let diagnose = || Request::Diagnose {
        job: JOB,
        count_before_window: false,
        step: None,
        iteration_ns: None,
    };
    let diagnoses = |file: &str, others: Vec<Shared<Vec<u8>>>| {
        let others = Request::OtherRanks { job: JOB, others };
        let heard = talk(file, [open(), triage(), others, diagnose()]);
        let found = heard.responses.into_iter().find_map(|response| match response {
            Response::Diagnosed { diagnosis, .. } => Some(diagnosis),
            _ => None,
        });
        found.unwrap()
    };
    let bytes = |file: &str| diagnoses(file, Vec::new()).scaling;
    let (large, other) = (bytes(&run(16, 16, 64)), bytes(&run(32, 4, 128)));
    assert!(large[..] != other[..] && !other.is_empty());
    let found = diagnoses(&run(8, 4, 64), vec![large, other.clone()]);
    let chapter = found.chapter("scaling").unwrap();
    assert_eq!(
        chapter.intro,
        [
            "From batch size 8 to 16 an iteration goes from 4.00 ms to 16.0 ms (P50), throughput by a factor of 0.50 for 2.0 times the \
          items. It is highest at batch size 8. The files do not show that the runs are of one model: only their first inputs are alike."
        ]
    );
    assert_eq!(chapter.tables[0].n_rows(), 2, "and not the run with inputs of another kind");
    let alone = diagnoses(&run(8, 4, 64), vec![other, Shared::new(vec![0xFF, 1])]);
    assert!(alone.chapter("scaling").is_none() && alone.chapter("ranks").is_none());
}
