//! Kernel maps: the mapping of a trace without the trace. A map gives the ops and Python lines of each kernel name,
//! by stage and overall.
//!
//! A mapping trace itself is read into such a map before its names are looked up, so a map that was exported from it
//! gives the same places, whatever the trace holds.

use std::collections::BTreeMap;

use super::site::{Attribution, Location};
use super::stages::{Stage, Stages};
use timeline::gpu::Gpu;

/// Between the lines of a stack, outermost first.
const CALLS: &str = " -> ";

/// Kernels by name, each with the places that it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelMap {
    /// By stage, in the order of stages; a stage without kernels is absent.
    pub stages: Vec<(Stage, Vec<MappedKernel>)>,
    /// Over all stages.
    pub global: Vec<MappedKernel>,
}

/// One kernel of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedKernel {
    /// The whole name.
    pub name: String,
    /// Category id.
    pub category: String,
    /// The places that it came from. The first is the one that is used: it has most of the time.
    pub sites: Vec<MappedSite>,
}

/// One place of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedSite {
    /// The line of Python, as [`Location`] is shown: `path:line function`.
    pub location: Option<String>,
    /// The op.
    pub cpu_op: Option<String>,
    /// The calls that lead there, outermost first, joined by ` -> `.
    pub stack: Option<String>,
    /// Classes of the innermost modules around it: `Qwen3DecoderLayer > RMSNorm`.
    pub modules: Option<String>,
    /// For work of the backward pass: the op of the forward pass whose line, modules and calls these are.
    pub forward_op: Option<String>,
    /// How often the kernel came from there.
    pub launches: u64,
    /// Its time from there.
    pub total_ns: i64,
}

impl MappedSite {
    /// The calls that lead there, outermost first.
    #[must_use]
    #[inline(never)]
    pub fn calls(&self) -> Vec<String> {
        let stack = self.stack.iter().filter(|stack| !stack.is_empty());
        stack.flat_map(|stack| stack.split(CALLS)).map(str::to_owned).collect()
    }

    /// The line of Python in parts; `None` if it is not known, or of another form.
    #[must_use]
    #[inline(never)]
    pub fn line(&self) -> Option<Location> {
        let text = self.location.as_deref()?;
        let places = text.match_indices(':');
        places.filter_map(|(at, _)| of_parts(&text[..at], &text[at + 1..])).next()
    }
}

/// A path, and `line function` after it.
fn of_parts(path: &str, rest: &str) -> Option<Location> {
    let (line, function) = rest.split_once(' ')?;
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    let line = if is_number { line.parse().ok()? } else { return None };
    Some(Location { path: path.to_owned(), full_path: None, line, function: function.to_owned() })
}

/// What came from one place.
#[derive(Clone, Debug, Default)]
struct Tally {
    launches: u64,
    total_ns: i64,
    /// Time by stack, modules and op of the forward pass.
    stacks: BTreeMap<(String, Option<String>, Option<String>), i64>,
}

/// By line, then op.
type Places = BTreeMap<(Option<String>, Option<String>), Tally>;

impl KernelMap {
    /// The map of the slices whose op is known.
    pub(crate) fn of(gpu: &Gpu<'_>, places: &Attribution, stages: &Stages) -> Self {
        let mut sums: BTreeMap<(Stage, usize, u32), (u64, i64)> = BTreeMap::new();
        for at in 0..gpu.len() {
            if places.site(at).cpu_op.is_none() {
                continue;
            }
            let slice = gpu.slice(at);
            let key = (stages.stage(at), slice.work, places.site_of[at]);
            let (launches, total_ns) = sums.entry(key).or_default();
            *launches += 1;
            *total_ns = total_ns.saturating_add(slice.dur_ns);
        }
        let of = |wanted: Option<Stage>| -> Vec<MappedKernel> {
            let mut kernels: BTreeMap<&str, (&'static str, Places)> = BTreeMap::new();
            for ((stage, work, site), (launches, total_ns)) in &sums {
                if wanted.is_some_and(|wanted| wanted != *stage) {
                    continue;
                }
                let work = &gpu.works[*work];
                let site = &places.sites[*site as usize];
                let place = (site.location.as_ref().map(ToString::to_string), site.cpu_op.clone());
                let (_, of_name) = kernels
                    .entry(gpu.trace.strings.get(work.name))
                    .or_insert_with(|| (work.category.id(), Places::new()));
                let tally = of_name.entry(place).or_default();
                tally.launches += launches;
                tally.total_ns = tally.total_ns.saturating_add(*total_ns);
                let around =
                    (site.stack.join(CALLS), site.modules.clone(), site.forward_op.clone());
                let stack = tally.stacks.entry(around).or_default();
                *stack = stack.saturating_add(*total_ns);
            }
            kernels.into_iter().map(|(name, (category, of))| kernel(name, category, of)).collect()
        };
        let stages = Stage::EVERY.into_iter().map(|stage| (stage, of(Some(stage))));
        Self {
            stages: stages.filter(|(_, kernels)| !kernels.is_empty()).collect(),
            global: of(None),
        }
    }
}

#[inline(never)]
fn kernel(name: &str, category: &str, places: Places) -> MappedKernel {
    let mut sites: Vec<MappedSite> = places
        .into_iter()
        .map(|((location, cpu_op), tally)| {
            let (stack, modules, forward_op) = heaviest(tally.stacks).unwrap_or_default();
            let stack = Some(stack).filter(|stack| !stack.is_empty());
            let Tally { launches, total_ns, .. } = tally;
            MappedSite { location, cpu_op, stack, modules, forward_op, launches, total_ns }
        })
        .collect();
    // Stable: equal ones stay in the order of their texts.
    trace::sort_by_key(&mut sites, |site| std::cmp::Reverse((site.total_ns, site.launches)));
    MappedKernel { name: name.to_owned(), category: category.to_owned(), sites }
}

/// Of equal ones the first by order.
fn heaviest<K: Ord>(stacks: BTreeMap<K, i64>) -> Option<K> {
    let most = stacks.values().max().copied();
    stacks.into_iter().find(|(_, ns)| Some(*ns) == most).map(|(stack, _)| stack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sources, kernel_map};
    use fixture::{Fixture, kernel, slice};

    /// Kernel `n` ran `dur_ns` from op `op` inside frame `frame`.
    fn push(fixture: &mut Fixture, n: i64, name: &str, dur_ns: i64, op: &str, frame: &str) {
        let cpu = |raw_category, name| slice(raw_category, name).on(1, 1);
        fixture.push(cpu("python_function", frame).at(n * 100, 90));
        fixture.push(cpu("cpu_op", op).at(n * 100 + 1, 50).external(n));
        fixture
            .push(cpu("cuda_runtime", "cudaLaunchKernel").at(n * 100 + 5, 2).link(n).external(n));
        fixture.push(kernel(name).at(n * 100 + 20, dur_ns).link(n));
    }

    #[test]
    fn places_of_a_kernel_are_summed_and_the_heaviest_comes_first() {
        let mut fixture = Fixture::default();
        push(&mut fixture, 1, "b", 5, "aten::mm", "model.py(3): forward");
        push(&mut fixture, 2, "b", 4, "aten::mm", "model.py(9): forward");
        push(&mut fixture, 3, "b", 4, "aten::mm", "model.py(9): forward");
        push(&mut fixture, 4, "a", 0, "aten::add", "model.py(9): forward");
        fixture.push(kernel("launched by nobody").at(900, 50).link(99));
        let map = kernel_map(&fixture.finish(), &Sources::default());
        let names: Vec<&str> = map.global.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let sites: Vec<_> = map.global[1]
            .sites
            .iter()
            .map(|site| (site.location.as_deref(), site.launches, site.total_ns))
            .collect();
        assert_eq!(sites, [(Some("model.py:9 forward"), 2, 8), (Some("model.py:3 forward"), 1, 5)]);
        assert_eq!(map.global[1].sites[0].cpu_op.as_deref(), Some("aten::mm"));
        assert_eq!(map.stages, [(Stage::All, map.global.clone())]);
    }

    #[test]
    fn a_line_is_read_as_it_is_shown() {
        let line = |text: &str| {
            let site = MappedSite { location: Some(text.to_owned()), ..MappedSite::default() };
            site.line().map(|line| (line.path, line.line, line.function))
        };
        let expected =
            |path: &str, line, function: &str| Some((path.to_owned(), line, function.to_owned()));
        assert_eq!(line("a/b.py:12 f"), expected("a/b.py", 12, "f"));
        assert_eq!(line("C:/x y.py:7 <lambda> g"), expected("C:/x y.py", 7, "<lambda> g"));
        assert_eq!(
            (line("unresolved"), line("a.py:x f"), line("a.py:3"), line("a.py:+3 f")),
            (None, None, None, None)
        );
    }

    #[test]
    fn a_stack_is_split_where_it_was_joined() {
        let calls = |stack: Option<&str>| {
            MappedSite { stack: stack.map(str::to_owned), ..MappedSite::default() }.calls()
        };
        assert_eq!(calls(Some("a.py:1 f -> b.py:2 g")), ["a.py:1 f", "b.py:2 g"]);
        assert!(calls(None).is_empty() && calls(Some("")).is_empty());
    }
}
