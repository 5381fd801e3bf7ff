//! What `breakdown` prints.

use crate::common::{Folder, assert_golden, damaged, sound};

#[test]
fn markdown() {
    let folder = Folder::new("markdown");
    folder.write("damaged.json", damaged());
    assert_golden("damaged.md", &folder.run(&["breakdown", "damaged.json"]).done().stdout);
    folder.write("sound.json", sound());
    assert_golden("sound.md", &folder.run(&["breakdown", "sound.json"]).done().stdout);
}

#[test]
fn a_kernel_of_impossible_length_is_told_where_nothing_is_repaired() {
    // It is around the next one of its stream, which Perfetto shows.
    let kernel = |name: &str, at: u32, dur: u32| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{at},"dur":{dur},"args":{{"device":0,"stream":7}}}}"#
        )
    };
    let said = |first: u32| {
        let folder = Folder::new("endless");
        let (first, second) = (kernel("k1", 20, first), kernel("k2", 320, 100));
        folder.write("run.json", format!(r#"{{"traceEvents":[{first},{second}]}}"#));
        folder.run(&["breakdown", "run.json"]).done().stdout
    };
    assert!(said(100_000).contains("runs far past the next start"), "{}", said(100_000));
    assert!(!said(100).contains("## Repair"));
}

#[test]
fn json_has_the_figures_of_the_trace() {
    let folder = Folder::new("figures");
    folder.write("run.json", sound());
    let json = folder.run(&["breakdown", "run.json", "--json"]).done().json();
    assert_eq!(json["schema"], 1);
    let gpu = &json["gpu"];
    assert_eq!((&gpu["span_ns"], &gpu["busy_ns"]), (&31_000.into(), &15_500.into()));
    assert_eq!((&gpu["idle_ns"], &gpu["kernel_sum_ns"]), (&15_500.into(), &14_500.into()));
    assert_eq!((&gpu["n_kernels"], &gpu["n_gpu_events"]), (&2.into(), &3.into()));
    let kernel = &json["kernels"][0];
    assert_eq!(kernel["kernel_name"], "ampere_sgemm_128x64_tn");
    assert_eq!((&kernel["category"], &kernel["total_ns"]), (&"gemm".into(), &12_000.into()));
    assert_eq!(json["perfetto"]["predicted_drops_v51_v56"], 0);
    assert_eq!(json["perfetto"]["crossings_exact"], 0);
    assert_eq!(json["problems"], serde_json::json!([]));
}

#[test]
fn json_says_what_is_wrong() {
    let folder = Folder::new("wrong");
    folder.write("run.json", damaged());
    let json = folder.run(&["breakdown", "run.json", "--json"]).done().json();
    // a crosses b, endless crosses e.
    assert_eq!(json["perfetto"]["crossings_exact"], 2);
    let kinds: Vec<(&str, u64)> = json["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["kind"].as_str().unwrap(), problem["count"].as_u64().unwrap()))
        .collect();
    for kind in [("non-finite-number", 1), ("missing-ts", 1), ("missing-dur", 1)] {
        assert!(kinds.contains(&kind), "{kind:?} in {kinds:?}");
    }
}

#[test]
fn the_same_file_gives_the_same_document() {
    let folder = Folder::new("same");
    folder.write("run.json", damaged());
    folder.write("other.json.gz", crate::common::gzip(damaged().as_bytes()));
    let once = folder.run(&["breakdown", "run.json", "--json"]).done().stdout;
    assert_eq!(folder.run(&["breakdown", "other.json.gz", "--json"]).done().stdout, once);
}
