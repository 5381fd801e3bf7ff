//! Reads a kernel map, and rejects invalid ones.

use std::fmt;

use serde_json::{Map, Value};
use triage::{KernelMap, MappedKernel, MappedSite, Stage};

use super::{KERNEL_MAP_VERSION, UNRESOLVED};
use crate::Micros;

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
        "Export the map again, or use the mapping trace itself."
    }
}

impl fmt::Display for NotAKernelMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not a kernel map: {}", self.what)?;
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
        Err(error) => return wrong("", format!("it is not JSON: {error}")),
    };
    let members = object(&document, "")?;
    match members.get("version") {
        Some(version) if version.as_u64() == Some(KERNEL_MAP_VERSION) => {}
        Some(version) => {
            let read = KERNEL_MAP_VERSION;
            return wrong(
                "version",
                format!("version {version} is not supported; supported: {read}"),
            );
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
                return wrong(&place, format!("{id} is not a stage (stages: {ids})"));
            };
            if map.stages.iter().any(|(other, _)| *other == stage) {
                return wrong(&place, "the stage occurs twice");
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
            return wrong(&format!("{place}.sites"), "it is not an array");
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
        return wrong(&format!("{place}.launches"), "it is not a whole number");
    };
    let Ok(Micros(total_ns)) = serde_json::from_value(number("total_us")?.clone()) else {
        return wrong(&format!("{place}.total_us"), "it is not a number");
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
        None => wrong(place, "it is not a JSON object"),
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
        Some(_) => wrong(&format!("{place}.{key}"), "it is not text"),
    }
}
