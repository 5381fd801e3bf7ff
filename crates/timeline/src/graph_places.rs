//! Collectives that graphs launch. Their sizes are not recorded; but in launches of one graph, the collective at one place moves the same
//! bytes each time.
//!
//! Graphs count as equal if they launch the same kernels with the same launch configs: grids of another batch size differ.

use std::collections::BTreeMap;

use dialect::calls::launches_graph;
use trace::{Details, Row, StringId, Trace};

/// A GPU slice and its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launched {
    /// The launching call.
    pub launch: Row,
    /// When the slice starts.
    pub start_ns: i64,
    /// The slice.
    pub row: Row,
    /// Whether it is a collective.
    pub is_communication: bool,
}

/// The place of a collective: its graph, numbered, its name, and how many of its name the graph launches before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    graph: u32,
    /// The name of its kernel.
    pub name: StringId,
    before: u32,
    /// The number of its kernel and launch config in the graph.
    kernel: u32,
}

impl Place {
    /// Equal for collectives of one kernel and launch config at any place of equal graphs: a layer reduces what the layer before it does.
    #[must_use]
    pub fn like(&self) -> i64 {
        i64::from(self.graph) << 32 | i64::from(self.kernel)
    }
}

/// The places of the collectives that graphs launch, by row.
#[must_use]
#[inline(never)]
pub fn graph_places(
    trace: &Trace,
    details: &Details,
    mut slices: Vec<Launched>,
) -> Vec<(Row, Place)> {
    let by_graph = trace.strings.marked(&launches_graph);
    let is_of_graph = |one: &Launched| by_graph[trace.name(one.launch).0 as usize];
    slices.retain(is_of_graph);
    trace::sort(&mut slices);
    let mut graphs: BTreeMap<Vec<(StringId, Option<u32>)>, u32> = BTreeMap::new();
    let mut places = Vec::new();
    for launched in slices.chunk_by(|a, b| a.launch == b.launch) {
        if !launched.iter().any(|one| one.is_communication) {
            continue;
        }
        // (Without launch configs, as of graphs on ROCm, graphs of other batch sizes look equal.)
        if launched.iter().all(|one| details.launch_index(one.row).is_none()) {
            continue;
        }
        // (On several streams the order changes from launch to launch.)
        let kernel = |one: &Launched| (trace.name(one.row), details.launch_index(one.row));
        let mut kernels: Vec<_> = launched.iter().map(kernel).collect();
        trace::sort(&mut kernels);
        let next = graphs.len() as u32;
        let known = graphs.get(&kernels).copied();
        let graph = known.unwrap_or(next);
        let mut seen: BTreeMap<StringId, u32> = BTreeMap::new();
        for one in launched.iter().filter(|one| one.is_communication) {
            let name = trace.name(one.row);
            let n = seen.entry(name).or_default();
            let own = kernel(one);
            let kernel = kernels.partition_point(|other| *other < own) as u32;
            places.push((one.row, Place { graph, name, before: *n, kernel }));
            *n += 1;
        }
        if known.is_none() {
            graphs.insert(kernels, next);
        }
    }
    trace::sort_by_key(&mut places, |(row, _)| *row);
    places
}

/// The place of a row among those of [`graph_places`].
#[must_use]
pub fn place_of(places: &[(Row, Place)], row: Row) -> Option<Place> {
    let at = places.binary_search_by_key(&row, |(row, _)| *row).ok()?;
    places.get(at).map(|(_, place)| *place)
}
