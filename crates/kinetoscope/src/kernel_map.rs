//! The kernel map as a JSON document (docs/artifacts.md): the portable form of a mapping trace.
//!
//! The format is the one that the SGLang skill writes and reads (version 2), so maps go both ways. Reading never
//! guesses: what is not of the format is refused, with its place and what to do.

use std::collections::BTreeMap;
use std::fmt;

use analysis::{KernelMap, MappedKernel, MappedSite, Stage};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use trace::Metadata;

use crate::artifacts::privacy::Names;
use crate::artifacts::{Micros, Percent, SourceFile};

/// The version of the format.
pub const KERNEL_MAP_VERSION: u64 = 2;

/// Stands in a map where no line of Python is known.
const UNRESOLVED: &str = "unresolved";

/// What a kernel map says beside its kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelMapFacts<'a> {
    /// The files that it was made of.
    pub sources: &'a [SourceFile],
    /// The launch flags of the server, where they are known.
    pub server_flags: Option<&'a Map<String, Value>>,
    /// When it was made. Without it, the same trace gives the same bytes on every day.
    pub generated_at: Option<&'a str>,
    /// Leaves names of hosts and users where they are.
    pub keep_names: bool,
}

/// The document of a kernel map; `metadata` is that of its trace, which may name hosts and users.
///
/// # Errors
/// Never for these types; serde's signature asks.
pub fn kernel_map_json(
    map: &KernelMap,
    metadata: &Metadata,
    facts: &KernelMapFacts<'_>,
) -> Result<String, serde_json::Error> {
    let names = Names::of(metadata, facts.keep_names);
    let document = Document {
        version: KERNEL_MAP_VERSION,
        generated_at: facts.generated_at,
        generated_from: facts.sources.iter().map(|file| names.strip(&file.name)).collect(),
        notes: vec![format!("Kinetoscope {}", crate::VERSION)],
        server_args: facts.server_flags.map(|flags| names.strip_flags(flags)),
        stages: Stages(
            map.stages.iter().map(|(stage, of)| (stage.id(), Kernels::of(of, &names))).collect(),
        ),
        global: Kernels::of(&map.global, &names),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

#[derive(serde::Serialize)]
struct Document<'a> {
    version: u64,
    generated_at: Option<&'a str>,
    generated_from: Vec<String>,
    notes: Vec<String>,
    server_args: Option<Map<String, Value>>,
    stages: Stages<'a>,
    global: Kernels<'a>,
}

/// In the order of stages, not of their names.
struct Stages<'a>(Vec<(&'static str, Kernels<'a>)>);

impl Serialize for Stages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (stage, kernels) in &self.0 {
            map.serialize_entry(stage, kernels)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Kernels<'a> {
    kernels: BTreeMap<&'a str, Kernel<'a>>,
}

#[derive(serde::Serialize)]
struct Kernel<'a> {
    category: &'a str,
    sites: Vec<Site>,
    best_location: String,
}

#[derive(serde::Serialize)]
struct Site {
    location: String,
    display_location: String,
    launches: u64,
    total_us: Micros,
    share_pct_within_kernel: Percent,
    top_cpu_op: Option<String>,
    stack: Option<String>,
    modules: Option<String>,
    forward_op: Option<String>,
}

impl<'a> Kernels<'a> {
    fn of(kernels: &'a [MappedKernel], names: &Names) -> Self {
        let kernels = kernels.iter().map(|kernel| {
            let sum_ns =
                kernel.sites.iter().fold(0, |sum: i64, of| sum.saturating_add(of.total_ns));
            let sites = kernel.sites.iter().map(|site| {
                let location = site.location.as_deref().map(|location| names.strip(location));
                let location = location.unwrap_or_else(|| UNRESOLVED.to_owned());
                let share_pct =
                    if sum_ns == 0 { 0.0 } else { 100.0 * site.total_ns as f64 / sum_ns as f64 };
                Site {
                    display_location: location.clone(),
                    location,
                    launches: site.launches,
                    total_us: Micros(site.total_ns),
                    share_pct_within_kernel: Percent(share_pct),
                    top_cpu_op: site.cpu_op.clone(),
                    stack: site.stack.as_deref().map(|stack| names.strip(stack)),
                    modules: site.modules.clone(),
                    forward_op: site.forward_op.clone(),
                }
            });
            let sites: Vec<Site> = sites.collect();
            let best =
                sites.first().map_or_else(|| UNRESOLVED.to_owned(), |of| of.location.clone());
            let kernel_of = Kernel { category: &kernel.category, sites, best_location: best };
            (kernel.name.as_str(), kernel_of)
        });
        Self { kernels: kernels.collect() }
    }
}

/// A text that is no kernel map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAKernelMap {
    /// Where in the document: `global.kernels["k"].sites[0].launches`; empty for the document itself.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

impl NotAKernelMap {
    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        "Export it again (kinetoscope triage MAPPING --export-map FILE, or Downloads on the page), or give the mapping \
         trace itself."
    }
}

impl fmt::Display for NotAKernelMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "no kernel map: {}", self.what)?;
        if !self.place.is_empty() {
            write!(out, " (at {})", self.place)?;
        }
        write!(out, ". {}", self.advice())
    }
}

impl std::error::Error for NotAKernelMap {}

fn wrong<T>(place: &str, what: impl Into<String>) -> Result<T, NotAKernelMap> {
    Err(NotAKernelMap { place: place.to_owned(), what: what.into() })
}

/// Reads a kernel map.
///
/// # Errors
/// When the text is of another form, with the place and what to do.
pub fn kernel_map_from_json(text: &str) -> Result<KernelMap, NotAKernelMap> {
    let document: Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(document) => document,
        Err(error) => return wrong("", format!("it is no JSON: {error}")),
    };
    let members = object(&document, "")?;
    match members.get("version") {
        Some(version) if version.as_u64() == Some(KERNEL_MAP_VERSION) => {}
        Some(version) => {
            let read = KERNEL_MAP_VERSION;
            return wrong("version", format!("version {version} is not read here, but {read}"));
        }
        None => return wrong("", "the key version is missing"),
    }
    let mut map = KernelMap::default();
    if let Some(stages) = members.get("stages") {
        for (id, of_stage) in object(stages, "stages")? {
            let place = format!("stages.{id}");
            let known = if id == "prefill" { "extend" } else { id };
            let Some(stage) = Stage::EVERY.into_iter().find(|stage| stage.id() == known) else {
                let ids = Stage::EVERY.map(Stage::id).join(", ");
                return wrong(&place, format!("{id} is no stage (stages: {ids})"));
            };
            if map.stages.iter().any(|(other, _)| *other == stage) {
                return wrong(&place, "the stage stands there twice");
            }
            map.stages.push((stage, kernels(of_stage, &place)?));
        }
    }
    trace::sort_by_key(&mut map.stages, |(stage, _)| *stage);
    match members.get("global") {
        Some(global) => map.global = kernels(global, "global")?,
        None => return wrong("", "the key global is missing"),
    }
    Ok(map)
}

fn kernels(of: &Value, place: &str) -> Result<Vec<MappedKernel>, NotAKernelMap> {
    let members = object(of, place)?;
    let place = format!("{place}.kernels");
    let Some(kernels) = members.get("kernels") else { return wrong(&place, "it is missing") };
    let kernel = |(name, value): (&String, &Value)| {
        let place = format!("{place}[{}]", Value::from(name.as_str()));
        let members = object(value, &place)?;
        let category = text(members, "category", &place)?.unwrap_or_default();
        let Some(sites) = members.get("sites").and_then(Value::as_array) else {
            return wrong(&format!("{place}.sites"), "it is no array");
        };
        let sites = sites.iter().enumerate();
        let sites = sites.map(|(at, value)| site(value, &format!("{place}.sites[{at}]")));
        Ok(MappedKernel {
            name: name.clone(),
            category,
            sites: sites.collect::<Result<_, NotAKernelMap>>()?,
        })
    };
    object(kernels, &place)?.iter().map(kernel).collect()
}

fn site(value: &Value, place: &str) -> Result<MappedSite, NotAKernelMap> {
    let members = object(value, place)?;
    let number = |key: &str| match members.get(key) {
        Some(value) => Ok(value),
        None => wrong(&format!("{place}.{key}"), "it is missing"),
    };
    let Some(launches) = number("launches")?.as_u64() else {
        return wrong(&format!("{place}.launches"), "it is no whole number");
    };
    let Ok(Micros(total_ns)) = serde_json::from_value(number("total_us")?.clone()) else {
        return wrong(&format!("{place}.total_us"), "it is no number");
    };
    // What is shown says most; a map of another program may have found it higher up in the stack.
    let shown = text(members, "display_location", place)?;
    let location = shown.or(text(members, "location", place)?);
    Ok(MappedSite {
        location: location.filter(|location| location != UNRESOLVED),
        cpu_op: text(members, "top_cpu_op", place)?,
        stack: text(members, "stack", place)?,
        modules: text(members, "modules", place)?,
        forward_op: text(members, "forward_op", place)?,
        launches,
        total_ns,
    })
}

fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, NotAKernelMap> {
    match value.as_object() {
        Some(members) => Ok(members),
        None => wrong(place, "it is no JSON object"),
    }
}

/// A text that may be absent or null.
fn text(
    members: &Map<String, Value>,
    key: &str,
    place: &str,
) -> Result<Option<String>, NotAKernelMap> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => wrong(&format!("{place}.{key}"), "it is no text"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            ("", String::new(), "no JSON"),
            ("[]", String::new(), "no JSON object"),
            ("{}", String::new(), "version is missing"),
            ("{\"version\": 2}", String::new(), "global is missing"),
            ("{\"version\": 3}", "version".to_owned(), "version 3"),
            ("{\"version\": 2, \"global\": {}}", "global.kernels".to_owned(), "missing"),
            (
                "{\"version\": 2, \"stages\": {\"lunch\": {}}, \"global\": {}}",
                "stages.lunch".to_owned(),
                "no stage",
            ),
        ];
        for (text, place, what) in table {
            let error = kernel_map_from_json(text).unwrap_err();
            assert_eq!(error.place, place, "{text}");
            assert!(error.what.contains(what), "{text}: {error}");
            assert!(error.to_string().contains("--export-map"), "{error}");
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
