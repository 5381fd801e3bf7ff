//! Writes a kernel map.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use trace::Metadata;
use triage::{KernelMap, MappedKernel};

use super::{KERNEL_MAP_VERSION, UNRESOLVED};
use crate::privacy::Names;
use crate::{Micros, Percent, SourceFile};

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
