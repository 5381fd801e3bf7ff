//! The kernel map as a JSON document (docs/artifacts.md): the portable form of a mapping trace.
//!
//! The format is the one that the SGLang skill writes and reads (version 2), so maps go both ways. Reading never
//! guesses: what is not of the format is refused, with its place and what to do.

mod read;
mod write;

pub use read::{NotAKernelMap, kernel_map_from_json};
pub use write::{KernelMapFacts, kernel_map_json};

/// The version of the format.
pub const KERNEL_MAP_VERSION: u64 = 2;

/// Stands in a map where no line of Python is known.
const UNRESOLVED: &str = "unresolved";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trace::Metadata;
    use triage::{KernelMap, MappedKernel, MappedSite, Stage};

    use super::*;

    fn site_of(location: Option<&str>, total_ns: i64) -> MappedSite {
        MappedSite {
            location: location.map(str::to_owned),
            cpu_op: Some("aten::mm".to_owned()),
            stack: Some("run.py:1 main -> model.py:3 forward".to_owned()),
            modules: Some("Layer > Norm".to_owned()),
            forward_op: Some("aten::layer_norm".to_owned()),
            launches: 2,
            total_ns,
        }
    }

    fn map() -> KernelMap {
        let kernel = MappedKernel {
            name: "void k<\"1\">(int)".to_owned(),
            category: "gemm".to_owned(),
            sites: vec![site_of(Some("model.py:3 forward"), 12_345), site_of(None, 1)],
        };
        let stages = vec![
            (Stage::Extend, vec![kernel.clone()]),
            (Stage::Decode, Vec::new()),
            (Stage::All, Vec::new()),
        ];
        KernelMap { stages, global: vec![kernel] }
    }

    fn written(map: &KernelMap) -> String {
        kernel_map_json(map, &Metadata::default(), &KernelMapFacts::default()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_the_clock_does_not_count() {
        let text = written(&map());
        assert_eq!(kernel_map_from_json(&text), Ok(map()));
        assert_eq!(text, written(&map()));
        // It says itself what it is, if it is taken for a trace.
        let mut decoder = decode::Decoder::new();
        let refused = decoder.push(text.as_bytes()).and_then(|()| decoder.finish().map(|_| ()));
        assert_eq!(refused.unwrap_err().kind, decode::FileKind::KernelMap);
        assert!(text.contains("\"generated_at\": null"), "{text}");
        assert!(text.find("\"extend\"") < text.find("\"decode\""), "stages in their order");
        let facts = KernelMapFacts { generated_at: Some("2026-01-02"), ..Default::default() };
        let dated = kernel_map_json(&map(), &Metadata::default(), &facts).unwrap();
        assert_eq!(kernel_map_from_json(&dated), Ok(map()));
    }

    proptest! {
        #[test]
        fn any_map_comes_back(
            names in prop::collection::btree_set(".{0,12}", 0..5),
            location in prop::option::of("[a-z/ :0-9>-]{1,20}"),
            total_ns in 0_i64..1 << 50,
            launches in 0_u64..u64::MAX,
        ) {
            let site = MappedSite { location: location.clone(), cpu_op: location, launches, total_ns, stack: None, modules: None, forward_op: None };
            let kernel = |name: String| MappedKernel { name, category: "x".to_owned(), sites: vec![site.clone()] };
            let global: Vec<MappedKernel> = names.into_iter().map(kernel).collect();
            let map = KernelMap { stages: vec![(Stage::Mixed, global.clone())], global };
            prop_assert_eq!(kernel_map_from_json(&written(&map)), Ok(map));
        }

        #[test]
        fn no_text_breaks_the_reader(text in ".{0,60}") {
            let _ = kernel_map_from_json(&text);
        }
    }

    #[test]
    fn a_map_of_another_program_is_read() {
        let text = r#"{"version": 2, "generated_at": "2026-01-02T03:04:05", "generated_from": "a.json",
            "stages": {"prefill": {"kernels": {}}}, "global": {"kernels": {"k": {"sites": [
            {"location": "hipGraphLaunch", "display_location": "a.py:3 f", "launches": 1, "total_us": 2,
             "stack": null}], "best_location": "a.py:3 f"}}}}"#;
        let map = kernel_map_from_json(text).unwrap();
        assert_eq!(map.stages, [(Stage::Extend, Vec::new())]);
        let site = &map.global[0].sites[0];
        assert_eq!((site.location.as_deref(), site.total_ns), (Some("a.py:3 f"), 2_000));
        assert_eq!((&site.cpu_op, &site.stack), (&None, &None));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let good = written(&map());
        let key = r#"global.kernels["void k<\"1\">(int)"]"#;
        let table = [
            ("", String::new(), "not JSON"),
            ("[]", String::new(), "not a JSON object"),
            ("{}", String::new(), "version is missing"),
            ("{\"version\": 2}", String::new(), "global is missing"),
            ("{\"version\": 3}", "version".to_owned(), "version 3"),
            ("{\"version\": 2, \"global\": {}}", "global.kernels".to_owned(), "missing"),
            (
                "{\"version\": 2, \"stages\": {\"lunch\": {}}, \"global\": {}}",
                "stages.lunch".to_owned(),
                "is not a stage",
            ),
        ];
        for (text, place, what) in table {
            let error = kernel_map_from_json(text).unwrap_err();
            assert_eq!(error.place, place, "{text}");
            assert!(error.what.contains(what), "{text}: {error}");
            assert!(error.to_string().contains("Export the map again"), "{error}");
        }
        for (old, new, place) in [
            ("\"launches\": 2", "\"launches\": -2", format!("{key}.sites[0].launches")),
            ("\"total_us\": 12.345", "\"total_us\": \"x\"", format!("{key}.sites[0].total_us")),
            ("\"category\": \"gemm\"", "\"category\": 1", format!("{key}.category")),
            (
                "\"top_cpu_op\": \"aten::mm\"",
                "\"top_cpu_op\": []",
                format!("{key}.sites[0].top_cpu_op"),
            ),
        ] {
            assert!(good.contains(old), "{old}");
            // Only what stands over all stages.
            let (stages, global) = good.split_once("\"global\"").unwrap();
            let text = format!("{stages}\"global\"{}", global.replacen(old, new, 1));
            assert_eq!(kernel_map_from_json(&text).unwrap_err().place, place);
        }
    }

    #[test]
    fn names_of_people_do_not_leave() {
        let mut map = map();
        map.global[0].sites[0].location = Some("/home/jo/run.py:3 main".to_owned());
        let text = written(&map);
        assert!(!text.contains("/jo/") && text.contains("/home/~/run.py:3 main"), "{text}");
    }
}
