//! Maps the kernels of a measured trace to ops and Python lines through a mapping trace (graphs off, stacks on), by
//! kernel name.
//!
//! Only whole names are looked up, then heads (the name without template arguments) that mean one kernel alone in the
//! mapping trace. A name that merely contains another is no match: `kernel` is in most of them.

use std::collections::HashMap;

use catalog::Category;
use serde::{Deserialize, Serialize};

use super::kernel_map::{KernelMap, MappedKernel, MappedSite};
use super::site::{Attribution, Confidence, Site};
use super::stages::{Stage, Stages};
use timeline::gpu::Gpu;

/// Where each kernel name of a mapping trace came from: in each of its stages, and over all.
#[derive(Debug, Default)]
pub(crate) struct NameMap {
    stages: HashMap<Stage, Names>,
    global: Names,
}

/// Kernel names with their places.
#[derive(Debug, Default)]
struct Names {
    by_name: HashMap<String, Site>,
    /// By category id, then head; `None` where several names share them and come from different places.
    by_head: HashMap<(String, String), Option<Site>>,
    /// By name and op: the place with a line that most of the time came from.
    by_op: HashMap<(String, String), Site>,
}

/// What mapping by name did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedByName {
    /// GPU slices whose own trace has no op or no Python line of them.
    pub asked: u64,
    /// Of these, those that the mapping trace or the map has.
    pub mapped: u64,
}

impl MappedByName {
    /// The sum over several devices.
    pub(crate) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.mapped += other.mapped;
    }
}

impl Names {
    #[inline(never)]
    fn of(kernels: &[MappedKernel]) -> Self {
        let mut names = Self::default();
        for kernel in kernels {
            let sites: Vec<Site> = kernel.sites.iter().map(site).collect();
            for site in sites.iter().filter(|site| site.location.is_some()) {
                let op = site.cpu_op.clone().unwrap_or_default();
                names.by_op.entry((kernel.name.clone(), op)).or_insert_with(|| site.clone());
            }
            // The one that most of its time came from.
            let Some(site) = sites.into_iter().next() else { continue };
            names
                .by_head
                .entry((kernel.category.clone(), catalog::head(&kernel.name)))
                .and_modify(|known| {
                    if known.as_ref() != Some(&site) {
                        *known = None;
                    }
                })
                .or_insert_with(|| Some(site.clone()));
            names.by_name.insert(kernel.name.clone(), site);
        }
        names
    }
}

#[inline(never)]
fn site(of: &MappedSite) -> Site {
    Site {
        cpu_op: of.cpu_op.clone(),
        launch: None,
        location: of.line(),
        modules: of.modules.clone(),
        stack: of.calls(),
        forward_op: of.forward_op.clone(),
        confidence: Confidence::Mapping,
        graph: false,
    }
}

impl NameMap {
    /// The places of a kernel map.
    #[inline(never)]
    pub(crate) fn of(map: &KernelMap) -> Self {
        let stages = map.stages.iter().map(|(stage, kernels)| (*stage, Names::of(kernels)));
        Self { stages: stages.collect(), global: Names::of(&map.global) }
    }

    /// The whole name, in its stage before over all; then its head, the same way.
    fn find(&self, name: &str, category: Category, stage: Stage) -> Option<&Site> {
        let whole = self.names(stage).find_map(|names| names.by_name.get(name));
        whole.or_else(|| {
            let head = (category.id().to_owned(), catalog::head(name));
            self.names(stage).find_map(|names| names.by_head.get(&head)?.as_ref())
        })
    }

    /// What the mapping trace adds to a place: the op, or the line of an op that is known.
    #[inline(never)]
    fn told(&self, name: &str, category: Category, stage: Stage, own: &Site) -> Option<Site> {
        let keep =
            |site: &Site| Site { graph: own.graph, launch: own.launch.clone(), ..site.clone() };
        let Some(op) = &own.cpu_op else { return self.find(name, category, stage).map(keep) };
        let key = (name.to_owned(), op.clone());
        let same_op = self.names(stage).find_map(|names| names.by_op.get(&key));
        let of_head = || {
            let site = self.find(name, category, stage)?;
            (site.location.is_some() && site.cpu_op.as_ref() == Some(op)).then_some(site)
        };
        same_op.or_else(of_head).map(keep)
    }

    /// Those of the stage, then all.
    fn names(&self, stage: Stage) -> impl Iterator<Item = &Names> {
        self.stages.get(&stage).into_iter().chain([&self.global])
    }
}

/// Fills in op and line from the mapping trace, for slices of the measured trace without them.
#[inline(never)]
pub(crate) fn map(
    gpu: &Gpu<'_>,
    places: &mut Attribution,
    stages: &Stages,
    names: &NameMap,
) -> MappedByName {
    let mut mapped = MappedByName::default();
    let mut known: HashMap<(usize, Stage, u32), Option<u32>> = HashMap::new();
    for at in 0..gpu.len() {
        let (own, work) = (places.site_of[at], gpu.slice(at).work);
        if places.site(at).cpu_op.is_some() && places.site(at).location.is_some() {
            continue;
        }
        mapped.asked += 1;
        let stage = stages.stage(at);
        let told = known.entry((work, stage, own)).or_insert_with(|| {
            let work = &gpu.works[work];
            let name = gpu.trace.strings.get(work.name);
            let site = names.told(name, work.category, stage, &places.sites[own as usize])?;
            Some(places.index_of(site))
        });
        if let Some(site) = *told {
            places.site_of[at] = site;
            mapped.mapped += 1;
        }
    }
    mapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{Linker, attribute};
    use fixture::{Fixture, kernel, slice};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;
    use timeline::launches::Launches;
    use trace::Trace;

    fn with<R>(trace: &Trace, then: impl FnOnce(&Gpu<'_>, Attribution, &Stages) -> R) -> R {
        let before = BeforeWindowSlices::of(trace);
        let gpu = Gpu::new(trace, catalog::Platform::Cuda, &before, &Options::default());
        let launches = Launches::of(&gpu);
        let places = attribute(&gpu, &launches, &mut Linker::of(trace, None));
        then(&gpu, places, &Stages::of(&gpu, &launches, None))
    }

    #[test]
    fn whole_names_then_heads_never_parts() {
        let mut mapping = Fixture::default();
        let names = ["void gemm<1>(int)", "void norm<1>(int)", "void norm<2>(int)", "kernel"];
        for (n, name) in (1..).zip(names) {
            let op = if n == 3 { "aten::other" } else { "aten::op" };
            mapping.push(slice("cpu_op", op).at(n * 100, 50).on(1, 1).external(n));
            let launch = slice("cuda_runtime", "cudaLaunchKernel").at(n * 100 + 5, 2).on(1, 1);
            mapping.push(launch.link(n).external(n));
            mapping.push(kernel(name).at(n * 100 + 20, 10).link(n));
        }
        let mapping = mapping.finish();
        let mut formal = Fixture::default();
        formal.push(slice("cuda_runtime", "cudaGraphLaunch").at(0, 2).on(1, 1).link(7));
        let wanted = [names[0], "void gemm<7>(int)", "void norm<7>(int)", "my_kernel_2"];
        for (n, name) in (0..).zip(wanted) {
            formal.push(kernel(name).at(10 + n * 10, 5).link(7));
        }
        let formal = formal.finish();
        let names =
            with(&mapping, |gpu, places, stages| NameMap::of(&KernelMap::of(gpu, &places, stages)));
        let (done, ops) = with(&formal, |gpu, mut places, stages| {
            let done = map(gpu, &mut places, stages, &names);
            (done, (0..4).map(|at| places.site(at).cpu_op.clone()).collect::<Vec<_>>())
        });
        let op = || Some("aten::op".to_owned());
        assert_eq!(ops, [op(), op(), None, None]);
        assert_eq!(done, MappedByName { asked: 4, mapped: 2 });
    }

    #[test]
    fn an_op_that_is_known_gets_its_line() {
        let eager = |ops: &[&str], stacks: bool| {
            let mut fixture = Fixture::default();
            for (n, op) in (1_i64..).zip(ops) {
                let at = n * 100;
                if stacks {
                    let frame = if *op == "aten::mm" { "m.py(1): mm" } else { "m.py(2): other" };
                    fixture.push(slice("python_function", frame).at(at, 60).on(1, 1));
                }
                fixture.push(slice("cpu_op", op).at(at + 1, 50).on(1, 1).external(n));
                let launch = slice("cuda_runtime", "cudaLaunchKernel").at(at + 5, 2).on(1, 1);
                fixture.push(launch.link(n).external(n));
                fixture.push(kernel("gemm").at(at + 20, 10).link(n));
            }
            fixture.finish()
        };
        let names =
            with(&eager(&["aten::mm", "aten::bmm", "aten::bmm"], true), |gpu, places, stages| {
                NameMap::of(&KernelMap::of(gpu, &places, stages))
            });
        let formal = eager(&["aten::mm", "aten::bmm", "aten::einsum"], false);
        let (done, lines) = with(&formal, |gpu, mut places, stages| {
            let done = map(gpu, &mut places, stages, &names);
            let line = |at: usize| {
                let site = places.site(at);
                (site.location.as_ref().map(ToString::to_string), site.confidence)
            };
            (done, (0..3).map(line).collect::<Vec<_>>())
        });
        assert_eq!(done, MappedByName { asked: 3, mapped: 2 });
        let told = |text: &str| (Some(text.to_owned()), Confidence::Mapping);
        assert_eq!(lines, [told("m.py:1 mm"), told("m.py:2 other"), (None, Confidence::Exact)]);
    }
}
