//! Every kind of file is named for what it is, with what to do; a trace without GPU work says what is in it.

use testkit::{Kineto, event};

use crate::common::{Folder, sound};

/// What the command line must say of each format of the samples, and how it ends.
const SAMPLES: &[(&str, i32, &str)] = &[
    ("jax chrome trace", 0, "This is a trace of the XLA profiler (JAX, TensorFlow)."),
    ("jax xplane", 3, "An XSpace protobuf of the XLA profiler (xplane.pb)"),
    ("json schema", 3, "A JSON schema"),
    ("memory-timeline", 3, "A memory timeline of torch.profiler"),
    ("nsys sqlite", 3, "A SQLite export of Nsight Systems"),
    ("onnx model", 3, "An ONNX model"),
    ("onnxruntime profile", 0, "This is a profile of ONNX Runtime."),
    ("pytorch execution trace (Chakra schema 1.1.1)", 3, "A PyTorch execution trace"),
    ("reference table", 3, "A CSV table"),
    ("rocprof-compute csv", 3, "A CSV table of rocprof-compute (Omniperf)"),
    ("rocprofv3 csv", 3, "of rocprofv3"),
    ("rocprofv3 json", 3, "A JSON file of rocprofv3 (rocprofiler-sdk)"),
    ("tensorrt TREx metadata", 3, "Metadata of TensorRT Engine Explorer (TREx)"),
    ("tensorrt exportProfile", 3, "A layer profile of TensorRT (trtexec --exportProfile)"),
    ("tensorrt exportTimes", 3, "Query times of TensorRT (trtexec --exportTimes)"),
    ("tensorrt layerInfo", 3, "Layer information of TensorRT (trtexec --exportLayerInfo)"),
];

#[test]
fn every_sample_is_named() {
    let Some(corpus) = testkit::shared("corpus/inputs") else { return };
    let folder = Folder::new("kinds");
    let index = std::fs::read_to_string(corpus.join("index.tsv")).unwrap();
    let mut n = 0;
    for line in index.lines().skip(1) {
        let mut fields = line.split('\t');
        let (file, format) = (fields.next().unwrap(), fields.next().unwrap());
        if format == "truth" || file.ends_with(".truth.json") {
            continue;
        }
        n += 1;
        let run = folder.run(&["breakdown", &corpus.join(file).to_string_lossy()]);
        let said = format!("{}{}", run.stdout, run.stderr);
        if format == "kineto" {
            assert_eq!(run.code, 0, "{file}: {}", run.stderr);
            assert!(!said.contains("does not analyse"), "{file}: {said}");
            let empty = said.contains("This trace contains no GPU slices.");
            assert!(!empty || said.contains("ProfilerActivity.CUDA"), "{file}: {said}");
            continue;
        }
        let known = SAMPLES.iter().find(|(known, ..)| *known == format);
        let (_, code, words) = known.unwrap_or_else(|| panic!("{file}: a new format, {format}"));
        assert_eq!(run.code, *code, "{file}: {}", run.stderr);
        assert!(said.contains(words), "{file}: {said}");
        assert!(!said.contains("An event is an empty object"), "{file}: no damage");
    }
    assert!(n > 60, "{n} samples");
}

#[test]
fn a_profile_of_another_runtime_is_no_empty_trace() {
    let folder = Folder::new("kinds-own");
    folder.write(
        "ort.json",
        "[\n{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :7,\"dur\" :5,\"ts\" :1,\"ph\" : \"X\",\"name\" :\"model_run\",\
         \"args\" : {}},\n{\"cat\" : \"Node\",\"pid\" :7,\"tid\" :7,\"dur\" :2,\"ts\" :2,\"ph\" : \"X\",\
         \"name\" :\"Conv_0_kernel_time\",\"args\" : {}}\n]",
    );
    folder.write(
        "jax.json",
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\
         \"args\":{\"name\":\"/device:GPU:0\"}},{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":1,\"name\":\"k\"},{}]}",
    );
    for (file, words) in [
        ("ort.json", "This is a profile of ONNX Runtime."),
        ("jax.json", "This is a trace of the XLA profiler (JAX, TensorFlow)."),
    ] {
        for command in ["breakdown", "triage"] {
            let run = folder.run(&[command, file]).done();
            assert!(run.stdout.contains(words), "{command} {file}: {}", run.stdout);
        }
        // The repair is of use all the same.
        let run = folder.run(&["perfetto-fix", file, "-o", "out.json"]).done();
        assert!(run.stderr.contains(words), "{}", run.stderr);
        assert!(!run.stderr.contains("An event is an empty object"), "{}", run.stderr);
    }
}

#[test]
fn a_file_that_belongs_to_a_trace_is_named_with_its_flag() {
    let folder = Folder::new("kinds-flags");
    let flags = r#"{"model_path": "m/x", "tokenizer_path": "m/x", "tp_size": 8}"#;
    folder.write("flags.json", flags);
    folder.write("flags.json.gz", testkit::gzip(flags.as_bytes()));
    folder.write("run.json", sound());
    for file in ["flags.json", "flags.json.gz"] {
        let run = folder.run(&["breakdown", file]);
        assert_eq!(run.code, 3, "{}", run.stderr);
        assert!(run.stderr.contains("Launch flags of an SGLang server, not a trace."));
        assert!(run.stderr.contains("load it with triage --server-args"), "{}", run.stderr);
        folder.run(&["triage", "run.json", "--server-args", file, "--out", "out"]).done();
        let metadata = folder.text("out/profile_metadata.json");
        assert!(metadata.contains("\"tp_size\": 8"), "{metadata}");
        std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

#[test]
fn work_of_another_accelerator_is_counted_and_no_kernel_is_no_kernel() {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    trace.push(event("X", "cpu_op", "aten::mm").on(1, 1).at_ns(1_000).lasting_ns(9_000));
    trace.push(event("X", "mtia_runtime", "launch").on(1, 1).at_ns(2_000).lasting_ns(100));
    for at in 0..1_234 {
        let work = event("X", "mtia_ccp_events", "ccp").on(0, 7);
        trace.push(work.at_ns(3_000 + 10 * at).lasting_ns(5));
    }
    let folder = Folder::new("kinds-mtia");
    folder.write("mtia.json", trace.text());
    let said = "1 234 MTIA events are in this trace; Kinetoscope does not analyse them.";
    // (The groups of a number stand apart by a narrow blank.)
    let plain = |text: &str| text.replace(|c: char| c.is_whitespace() && c != '\n', " ");
    for command in ["breakdown", "triage"] {
        let run = folder.run(&[command, "mtia.json"]).done();
        let out = plain(&run.stdout);
        assert!(out.contains(said), "{command}: {out}");
        assert!(!out.contains("Every kernel"), "{command}: {out}");
        assert!(out.contains("1 PyTorch op and 1 MTIA runtime call"), "{command}: {out}");
        assert!(!out.contains("record_shapes was off"), "{command}: {out}");
    }
    // A trace of a GPU says nothing of the kind.
    folder.write("run.json", sound());
    let run = folder.run(&["triage", "run.json"]).done();
    assert!(!run.stdout.contains("does not analyse"), "{}", run.stdout);
}
