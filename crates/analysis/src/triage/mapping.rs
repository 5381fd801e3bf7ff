//! Pair mode: a mapping trace (graphs off, stacks on) tells where the kernels of a formal trace come from, by name.
//!
//! Only whole names are looked up, then heads (the name without template arguments) that mean one kernel alone in the
//! mapping trace. A name that merely contains another tells nothing: `kernel` is in most of them.

use std::collections::{BTreeMap, HashMap};

use catalog::Category;

use super::site::{Attribution, Confidence, Site};
use crate::gpu::Gpu;

/// Where each kernel name of a mapping trace came from.
#[derive(Debug, Default)]
pub(crate) struct NameMap {
    by_name: HashMap<String, Site>,
    /// By head and category; `None` where several names share them and come from different places.
    by_head: HashMap<(String, Category), Option<Site>>,
}

/// What mapping by name did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// GPU slices whose own trace did not tell their op.
    pub asked: u64,
    /// Of these, those that the mapping trace told.
    pub mapped: u64,
}

impl NameMap {
    /// The places of a mapping trace's kernels: for each name the one that most of its time came from.
    pub(crate) fn of(gpu: &Gpu<'_>, places: &Attribution) -> Self {
        let mut times: BTreeMap<(usize, u32), i64> = BTreeMap::new();
        for at in 0..gpu.len() {
            let slice = gpu.slice(at);
            if places.site(at).cpu_op.is_some() {
                let sum = times.entry((slice.work, places.site_of[at])).or_default();
                // Launches without a duration count, too.
                *sum = sum.saturating_add(slice.dur_ns.max(1));
            }
        }
        let mut map = Self::default();
        let entries: Vec<_> = times.into_iter().collect();
        for of_work in entries.chunk_by(|a, b| a.0.0 == b.0.0) {
            let Some(((work, site), _)) = of_work.iter().max_by_key(|(_, ns)| *ns) else {
                continue;
            };
            let work = &gpu.works[*work];
            let name = gpu.trace.strings.get(work.name);
            let site =
                Site { confidence: Confidence::Mapping, ..places.sites[*site as usize].clone() };
            map.by_head
                .entry((catalog::head(name), work.category))
                .and_modify(|known| {
                    if known.as_ref() != Some(&site) {
                        *known = None;
                    }
                })
                .or_insert_with(|| Some(site.clone()));
            map.by_name.insert(name.to_owned(), site);
        }
        map
    }

    fn find(&self, name: &str, category: Category) -> Option<&Site> {
        self.by_name
            .get(name)
            .or_else(|| self.by_head.get(&(catalog::head(name), category))?.as_ref())
    }
}

/// Gives the slices of a formal trace whose op it does not tell itself the places of the mapping trace.
pub(crate) fn map(gpu: &Gpu<'_>, places: &mut Attribution, names: &NameMap) -> Mapped {
    let mut mapped = Mapped::default();
    let found: Vec<Option<&Site>> = gpu
        .works
        .iter()
        .map(|work| names.find(gpu.trace.strings.get(work.name), work.category))
        .collect();
    for at in 0..gpu.len() {
        let own = places.site(at);
        if own.cpu_op.is_some() {
            continue;
        }
        mapped.asked += 1;
        if let Some(site) = found[gpu.slice(at).work] {
            let site = Site { graph: own.graph, launch: own.launch.clone(), ..site.clone() };
            places.place(at, site);
            mapped.mapped += 1;
        }
    }
    mapped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::before_window::BeforeWindowSlices;
    use crate::fixture::{Fixture, kernel, slice};
    use crate::launches::Launches;
    use crate::triage::attribution::{Linker, attribute};
    use trace::Trace;

    fn with<R>(trace: &Trace, then: impl FnOnce(&Gpu<'_>, Attribution) -> R) -> R {
        let before = BeforeWindowSlices::of(trace);
        let gpu = Gpu::new(trace, catalog::Platform::Cuda, &before, &Options::default());
        let places = attribute(&gpu, &Launches::of(&gpu), &mut Linker::of(trace));
        then(&gpu, places)
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
        let names = with(&mapping, |gpu, places| NameMap::of(gpu, &places));
        let (done, ops) = with(&formal, |gpu, mut places| {
            let done = map(gpu, &mut places, &names);
            (done, (0..4).map(|at| places.site(at).cpu_op.clone()).collect::<Vec<_>>())
        });
        let op = || Some("aten::op".to_owned());
        assert_eq!(ops, [op(), op(), None, None]);
        assert_eq!(done, Mapped { asked: 4, mapped: 2 });
    }
}
