//! What allocations are for: a training step by hand, and sums that hold for every snapshot of the corpus.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use serde_json::{Value, json};
use snapshot::{Reader, analyze};

const MIB: i64 = 1 << 20;
const A: i64 = 1 << 40;

const MODULE: (&str, &str) = ("/py/site-packages/torch/nn/modules/module.py", "_call_impl");
const ENGINE: (&str, &str) = ("/py/site-packages/torch/autograd/graph.py", "_engine_run_backward");
const ADAM: (&str, &str) = ("/py/site-packages/torch/optim/adamw.py", "step");
const ZERO: (&str, &str) = ("/py/site-packages/torch/optim/optimizer.py", "zero_grad");
const MOVE: (&str, &str) = ("/py/site-packages/torch/nn/modules/module.py", "_apply");
/// Below the call of a module: [`frames`].
const OFFLOAD: (&str, &str) =
    ("/py/site-packages/accelerate/utils/modeling.py", "set_module_tensor_to_device");
const LOOP: (&str, &str) = ("/app/train.py", "main");
const CAST: (&str, &str) =
    ("??", "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)");
const NONE: (&str, &str) = ("", "");

fn report(document: &[u8]) -> Value {
    let mut reader = Reader::new();
    reader.push(document).unwrap();
    serde_json::to_value(analyze(&reader.finish().unwrap())).unwrap()
}

fn frames((file, name): (&str, &str)) -> Value {
    match name {
        "" => json!([]),
        "set_module_tensor_to_device" => {
            json!([{"filename": file, "name": name, "line": 5}, {"filename": MODULE.0, "name": MODULE.1, "line": 7}, {"filename": "/app/train.py", "name": "main", "line": 9}])
        }
        _ => {
            json!([{"filename": file, "name": name, "line": 5}, {"filename": "/app/train.py", "name": "main", "line": 9}])
        }
    }
}

/// A run whose blocks lie one behind the other, each in a place of its own.
#[derive(Default)]
struct Run {
    events: Vec<Value>,
    /// Slot, MiB, stack of the allocation.
    live: Vec<(i64, i64, (&'static str, &'static str))>,
}

impl Run {
    fn alloc(&mut self, slot: i64, mib: i64, by: (&'static str, &'static str)) -> &mut Self {
        let at = A + slot * 64 * MIB;
        self.events.push(json!({"action": "alloc", "addr": at, "size": mib * MIB, "stream": 0, "frames": frames(by)}));
        self.live.push((slot, mib, by));
        self
    }

    /// In use before the first event.
    fn old(&mut self, slot: i64, mib: i64) -> &mut Self {
        self.live.push((slot, mib, NONE));
        self
    }

    fn free(&mut self, slot: i64, by: (&str, &str)) -> &mut Self {
        let place = self.live.iter().position(|live| live.0 == slot).unwrap();
        let (_, mib, _) = self.live.remove(place);
        let at = A + slot * 64 * MIB;
        for action in ["free_requested", "free_completed"] {
            self.events.push(json!({"action": action, "addr": at, "size": mib * MIB, "stream": 0, "frames": frames(by)}));
        }
        self
    }

    fn document(&self) -> Vec<u8> {
        let segments: Vec<Value> = (0..16)
            .map(|slot| {
                let used = self.live.iter().find(|live| live.0 == slot);
                let (size, by) = used.map_or((0, NONE), |(_, mib, by)| (mib * MIB, *by));
                let at = A + slot * 64 * MIB;
                let mut blocks = vec![];
                if size > 0 {
                    blocks.push(json!({"address": at, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames(by)}));
                }
                blocks.push(json!({"address": at + size, "size": 64 * MIB - size, "requested_size": 0, "state": "inactive", "frames": []}));
                json!({"device": 0, "address": at, "total_size": 64 * MIB, "allocated_size": size, "active_size": size,
                    "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
                    "is_expandable": false, "frames": [], "blocks": blocks})
            })
            .collect();
        json!({"segments": segments, "device_traces": [self.events]}).to_string().into_bytes()
    }

    fn report(&self) -> Value {
        report(&self.document())
    }
}

/// All tables, those too that only the page shows.
fn on_page(run: &Run) -> String {
    let mut reader = Reader::new();
    reader.push(&run.document()).unwrap();
    let mut sections = analyze(&reader.finish().unwrap()).sections();
    let tables = sections.iter_mut().flat_map(|section| &mut section.tables);
    tables.for_each(|table| table.page_only = false);
    ::report::document("", &sections)
}

/// Class, MiB at the peak and MiB allocated, of the rules that hold for something.
fn rows(report: &Value) -> Vec<(String, i64, i64)> {
    let rows = report["classes"]["0"].as_array().unwrap().iter();
    rows.map(|row| {
        let mib = |key: &str| row[key].as_i64().unwrap() / MIB;
        (row["class"].as_str().unwrap().to_owned(), mib("peak_bytes"), mib("allocated_bytes"))
    })
    .collect()
}

fn expected(rows: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    rows.iter().map(|(class, peak, all)| ((*class).to_owned(), *peak, *all)).collect()
}

#[test]
fn a_training_step_is_told_by_who_allocates_and_who_frees() {
    let mut run = Run::default();
    run.old(0, 3).alloc(1, 10, MOVE);
    run.alloc(2, 30, MODULE).alloc(3, 2, MODULE).free(3, MODULE); // An activation, a temporary.
    run.alloc(4, 7, ENGINE).alloc(5, 11, ENGINE).free(5, ENGINE).free(2, ENGINE); // A gradient, a temporary.
    run.alloc(6, 20, ADAM).alloc(7, 4, ADAM).free(7, ADAM); // A state, a temporary.
    run.free(4, ZERO).alloc(8, 5, MODULE).free(8, LOOP); // The next step; an output.
    let report = run.report();
    assert_eq!(report["devices"]["0"]["replay"]["peak_requested"], 61 * MIB);
    assert_eq!(
        rows(&report),
        expected(&[
            ("gradient", 7, 7),
            ("activation", 30, 30),
            ("parameter", 10, 10),
            ("temporary", 11, 11),
            ("optimizer_state", 0, 20),
            ("temporary", 0, 4),
            ("temporary", 0, 2),
            ("unknown", 0, 5),
            ("unknown", 3, 0),
        ])
    );
    let findings = report["findings"].as_array().unwrap();
    let peak = findings.iter().find(|it| it["rule"] == "peak-class").unwrap();
    assert_eq!(
        peak["observation"],
        "Device 0: 30.0 MiB of the 61.0 MiB in use at the peak (49%) are activations, all from /app/train.py:9:main."
    );
    assert!(peak["action"].as_str().unwrap().starts_with("Checkpoint each layer"));
    assert_eq!(
        peak["validation"],
        "Without these blocks the recorded events peak at 44.0 MiB instead of 61.0 MiB. On top comes what a checkpoint keeps: the inputs \
         of the layers, and one layer while backward computes it again."
    );
}

#[test]
fn an_optimizer_that_makes_its_state_anew_is_a_finding() {
    let found = |run: &Run| {
        let report = run.report();
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|it| it["rule"] == "optimizer-state-replaced").cloned()
    };
    let mut run = Run::default();
    run.old(1, 20).alloc(2, 10, MODULE).free(2, ENGINE).alloc(3, 20, ADAM).free(1, ADAM);
    let own = found(run.alloc(4, 1, MODULE)).unwrap();
    assert_eq!(
        own["observation"],
        "Device 0: the optimizer allocates 20.0 MiB of state and frees 20.0 MiB of older state, in all its steps."
    );
    let action = own["action"].as_str().unwrap();
    assert!(action.contains("torch.optim with fused=True, or with foreach=False"), "{action}");
    // It makes its state in the first step, and writes to it later.
    let mut run = Run::default();
    run.alloc(2, 10, MODULE).free(2, ENGINE).alloc(3, 20, ADAM).alloc(4, 20, ADAM).free(4, ADAM);
    assert_eq!(found(run.alloc(5, 1, MODULE)), None);
}

#[test]
fn weights_that_are_moved_in_and_out_are_parameters_and_no_forward_pass() {
    let mut run = Run::default();
    run.alloc(9, 1, LOOP);
    // layer.cuda(), two calls, layer.cpu(); a hook that moves weights during the call of another module.
    run.alloc(1, 30, MOVE).alloc(2, 5, MODULE).free(2, MODULE).alloc(3, 5, MODULE).free(3, MODULE);
    run.alloc(4, 8, OFFLOAD).free(4, MODULE).free(1, MOVE);
    let report = run.report();
    assert_eq!(
        rows(&report),
        expected(&[("parameter", 38, 38), ("temporary", 0, 10), ("unknown", 1, 1)])
    );
    let text = on_page(&run);
    let (_, phases) = text.split_once("Alive at the peak by phase").unwrap();
    let (phases, _) = phases.split_once("###").unwrap();
    assert!(
        phases.contains("moving or loading modules") && !phases.contains("forward"),
        "{phases}"
    );
}

/// Where `torch.autocast` ends.
const EXIT: (&str, &str) = ("/py/site-packages/torch/amp/autocast_mode.py", "__exit__");
/// The wrapper of a function under autocast, which is around all that it allocates.
const DECORATED: (&str, &str) =
    ("/py/site-packages/torch/amp/autocast_mode.py", "decorate_autocast");

#[test]
fn copies_that_autocast_keeps_until_it_ends_are_its_own() {
    // Only Python frames: the stack that frees tells it. Then also where it has not ended.
    let mut run = Run::default();
    run.old(0, 10).alloc(1, 30, MODULE).alloc(2, 5, MODULE).alloc(3, 7, DECORATED);
    run.free(3, DECORATED).free(2, MODULE).free(1, EXIT).alloc(4, 3, CAST);
    let report = run.report();
    assert_eq!(
        rows(&report),
        expected(&[
            ("cast", 30, 30),
            ("cast", 0, 3),
            ("temporary", 5, 5),
            ("unknown", 10, 0),
            ("unknown", 7, 7)
        ])
    );
    let findings = report["findings"].as_array().unwrap();
    let peak = findings.iter().find(|it| it["rule"] == "peak-class").unwrap();
    assert!(
        peak["observation"].as_str().unwrap().contains(
            "30.0 MiB of the 52.0 MiB in use at the peak (58%) are copies by autocast, all from"
        ) && peak["action"].as_str().unwrap().contains("cache_enabled=False"),
        "{peak}"
    );
}

#[test]
fn copies_by_autocast_are_no_activations() {
    let mut run = Run::default();
    run.alloc(1, 30, CAST)
        .alloc(2, 20, MODULE)
        .alloc(3, 10, MODULE)
        .free(1, ENGINE)
        .free(2, ENGINE);
    let report = run.report();
    assert_eq!(
        rows(&report),
        expected(&[("cast", 30, 30), ("activation", 20, 20), ("unknown", 10, 10)])
    );
    let findings = report["findings"].as_array().unwrap();
    let peak = findings.iter().find(|it| it["rule"] == "peak-class").unwrap();
    assert!(
        peak["observation"]
            .as_str()
            .unwrap()
            .contains("30.0 MiB of the 60.0 MiB in use at the peak (50%) are copies by autocast"),
        "{peak}"
    );
    // A checkpoint drops both: of 70 MiB stay the 10 that nobody freed.
    let mut run = Run::default();
    run.alloc(1, 20, CAST)
        .alloc(2, 40, MODULE)
        .alloc(3, 10, MODULE)
        .free(1, ENGINE)
        .free(2, ENGINE);
    let report = run.report();
    let findings = report["findings"].as_array().unwrap();
    let peak = findings.iter().find(|it| it["rule"] == "peak-class").unwrap();
    assert!(
        peak["validation"].as_str().unwrap().starts_with(
            "Without these blocks and the 20.0 MiB of copies by autocast, which a checkpoint drops too, the recorded events peak at \
             10.0 MiB instead of 70.0 MiB."
        ),
        "{peak}"
    );
    // What forward allocated and nobody freed may be an activation, too.
    let mut run = Run::default();
    run.alloc(2, 20, MODULE).alloc(3, 10, MODULE).free(2, ENGINE);
    let report = run.report();
    assert!(
        report["findings"][0]["observation"].as_str().unwrap().contains("at least 20.0 MiB"),
        "{report:#}"
    );
}

#[test]
fn attention_that_stores_its_scores_is_found_unless_a_fused_kernel_ran() {
    let found = |by: (&'static str, &'static str)| {
        let mut run = Run::default();
        run.alloc(1, 30, by).alloc(2, 20, MODULE).free(1, ENGINE).free(2, ENGINE);
        let report = run.report();
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|it| it["rule"] == "unfused-attention").cloned()
    };
    let own = found(("/app/model.py", "attention_softmax")).unwrap();
    assert!(
        own["observation"]
            .as_str()
            .unwrap()
            .contains("30.0 MiB of the 50.0 MiB in use at the peak (60%)"),
        "{own}"
    );
    // No softmax, no name of attention, a fused kernel, the op of a dispatcher.
    for by in [
        ("/app/model.py", "attention_projection"),
        ("/app/model.py", "log_softmax"),
        ("/app/model.py", "flash_attention_softmax"),
        ("??", "at::_scaled_dot_product_attention_softmax(at::Tensor const&)"),
    ] {
        assert_eq!(found(by), None, "{by:?}");
    }
}

#[test]
fn a_backward_thread_without_python_frames_is_known_by_its_work() {
    let mut run = Run::default();
    run.alloc(1, 30, MODULE).alloc(2, 6, NONE).alloc(3, 9, NONE).free(3, NONE).free(1, NONE);
    run.alloc(6, 20, ADAM).free(2, ADAM).alloc(7, 1, MODULE).free(7, MODULE);
    assert_eq!(
        rows(&run.report()),
        expected(&[
            ("activation", 30, 30),
            ("gradient", 6, 6),
            ("optimizer_state", 0, 20),
            ("temporary", 0, 1),
            ("temporary", 9, 9),
        ])
    );
}

#[test]
fn inference_has_no_advice_about_activations() {
    let mut run = Run::default();
    run.old(0, 40).alloc(1, 50, MODULE).free(1, MODULE).alloc(2, 5, MODULE);
    let report = run.report();
    assert_eq!(
        rows(&report),
        expected(&[("temporary", 50, 50), ("unknown", 0, 5), ("unknown", 40, 0)])
    );
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|it| !it["action"].as_str().unwrap().contains("heckpoint")),
        "{findings:?}"
    );
}

#[test]
fn classes_add_up_to_the_peak_and_to_all_allocations() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let mut told = 0;
    let mut files: Vec<_> =
        std::fs::read_dir(shared).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.to_string_lossy().ends_with(".json.gz")) {
        let report = report(&std::fs::read(path).unwrap());
        for (device, rows) in report["classes"].as_object().unwrap() {
            let sum = |key: &str| {
                rows.as_array().unwrap().iter().map(|row| row[key].as_i64().unwrap()).sum::<i64>()
            };
            let figures = &report["devices"][device];
            for (key, whole) in [
                ("peak_bytes", &figures["replay"]["peak_requested"]),
                ("peak_count", &figures["replay"]["peak_live_count"]),
                ("allocated_bytes", &figures["churn"]["alloc_bytes"]),
                ("allocations", &figures["churn"]["alloc_count"]),
            ] {
                // (Equal peaks may have other numbers of blocks.)
                if key == "peak_count" && report["shown_peak"].get(device).is_some() {
                    continue;
                }
                assert_eq!(sum(key), whole.as_i64().unwrap(), "{} {device} {key}", path.display());
            }
            told += 1;
        }
    }
    assert!(told >= 15, "{told} devices");
}

#[test]
fn what_a_library_or_a_compiler_keeps_for_itself_is_of_no_line() {
    let workspace = ("??", "at::cuda::getNewWorkspace()");
    let benchmark = ("/py/site-packages/torch/_inductor/runtime/benchmarking.py", "benchmark_gpu");
    let mut run = Run::default();
    run.alloc(1, 8, workspace).alloc(2, 60, benchmark).alloc(3, 5, MODULE).free(2, LOOP);
    run.free(3, ENGINE);
    let report = run.report();
    assert_eq!(
        rows(&report),
        expected(&[("workspace", 8, 8), ("temporary", 60, 60), ("activation", 5, 5)])
    );
    let findings = report["findings"].to_string();
    assert!(!findings.contains("gradients") && !findings.contains("dominant-site"), "{findings}");
    let mut reader = Reader::new();
    reader.push(&run.document()).unwrap();
    let text = ::report::document("", &analyze(&reader.finish().unwrap()).sections());
    for cause in ["library workspace", "are benchmarks of autotuning. Record after the first calls"]
    {
        assert!(text.contains(cause), "{text}");
    }
    // (The figures of the reference program have the line.)
    assert!(report["devices"]["0"]["alloc_by_site"].to_string().contains("/app/train.py:9:main"));
}

#[test]
fn only_what_moves_or_loads_modules_is_a_move() {
    let phase = |name: &'static str| {
        let mut run = Run::default();
        run.alloc(1, 5, (MODULE.0, name)).alloc(2, 1, LOOP);
        let text = on_page(&run);
        let phases = ["moving or loading modules", "other methods of modules", "forward"];
        let (_, text) = text.split_once("Alive at the peak by phase").unwrap();
        phases.into_iter().find(|phase| text.contains(phase)).unwrap()
    };
    for name in ["_apply", "to", "cuda", "load_state_dict", "_load_from_state_dict"] {
        assert_eq!(phase(name), "moving or loading modules", "{name}");
    }
    for name in ["zero_grad", "state_dict", "register_buffer"] {
        assert_eq!(phase(name), "other methods of modules", "{name}");
    }
    assert_eq!(phase("_call_impl"), "forward");
}

#[test]
fn what_is_freed_after_memory_ran_out_is_classed_by_what_it_was_before() {
    let mut run = Run::default();
    run.alloc(1, 6, MODULE).free(1, ENGINE).alloc(2, 30, MODULE).alloc(3, 10, MODULE);
    let oom = json!({"action": "oom", "size": 60 * MIB, "device_free": 0, "stream": 7, "frames": frames(MODULE)});
    run.events.push(oom);
    run.free(2, LOOP).free(3, MODULE);
    let report = run.report();
    assert_eq!(rows(&report), expected(&[("activation", 0, 6), ("activation", 40, 40)]));
    let findings = report["findings"].to_string();
    assert!(!findings.contains("at best") && !findings.contains("instead of"), "{findings}");
    assert!(
        findings.contains("needs at least 100 MiB: what was in use and requested"),
        "{findings}"
    );
    assert!(findings.contains("Checkpoint each layer"), "{findings}");
    // What is allocated afterwards shows that the run went on.
    run.alloc(4, 1, MODULE);
    let rows = rows(&run.report());
    assert!(rows.contains(&("unknown".to_owned(), 30, 30)), "{rows:?}");
}

#[test]
fn a_call_site_that_holds_much_more_on_the_device_that_failed_is_named() {
    let device = |mib: i64, fails: bool| {
        let mut run = Run::default();
        run.alloc(1, mib, MODULE).alloc(2, 1, LOOP);
        if fails {
            let oom = json!({"action": "oom", "size": 60 * MIB, "device_free": 0, "stream": 7, "frames": []});
            run.events.push(oom);
        }
        serde_json::from_slice::<Value>(&run.document()).unwrap()
    };
    let both = |small: i64| {
        let (mut first, mut second) = (device(small, false), device(50, true));
        for segment in second["segments"].as_array_mut().unwrap() {
            segment["device"] = json!(1);
            first["segments"].as_array_mut().unwrap().push(segment.clone());
        }
        first["device_traces"] = json!([first["device_traces"][0], second["device_traces"][0]]);
        report(first.to_string().as_bytes())["findings"].clone()
    };
    let found = both(5);
    assert_eq!(found.as_array().unwrap()[0]["rule"], "out-of-memory");
    let said = found[0].to_string();
    assert!(
        said.contains(
            "/app/train.py:9:main makes larger blocks on this device: 1 block of 50.0 MiB on average at its peak, 1 block of 5.00 MiB \
             at that of device 0."
        ),
        "{said}"
    );
    assert!(said.contains("an equal part of the input"), "{said}");
    // The peak of the device that did not fail is no finding.
    let is_of_peak = |it: &&Value| it["rule"] == "dominant-site" || it["rule"] == "peak-class";
    let mut peaks = found.as_array().unwrap().iter().filter(is_of_peak);
    assert!(peaks.all(|it| it["observation"].as_str().unwrap().starts_with("Device 1")));
    assert!(!both(45)[0].to_string().contains("equal part"));
}

#[test]
fn a_function_forward_of_the_program_is_a_forward_pass_without_hooks() {
    let of = |by: (&'static str, &'static str)| {
        let mut run = Run::default();
        run.alloc(1, 30, by).alloc(2, 10, by).free(2, by).free(1, by);
        run.report()
    };
    let own = of(("/app/net.py", "forward"));
    assert_eq!(rows(&own), expected(&[("temporary", 40, 40)]));
    // The figures of the reference program know calls of modules only.
    assert_eq!(own["devices"]["0"]["replay"]["peak_by_phase"], json!({"other": 40 * MIB}));
    let package = of(("/py/site-packages/pkg/net.py", "forward"));
    assert_eq!(rows(&package), expected(&[("unknown", 40, 40)]));
}
