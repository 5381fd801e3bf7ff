//! What launched what.

use timeline::gpu::Gpu;
use timeline::launches::Launches;
use trace::Row;

/// Launches and the GPU slices that they launched, both ways.
#[derive(Clone, Debug, Default)]
pub struct Arrows {
    /// Launch and GPU slice, by launch.
    by_launch: Vec<(Row, Row)>,
    /// GPU slice and launch, by GPU slice.
    by_slice: Vec<(Row, Row)>,
}

impl Arrows {
    /// By the correlations of a trace.
    #[inline(never)]
    #[must_use]
    pub fn of(gpu: &Gpu<'_>) -> Self {
        let launches = Launches::of(gpu);
        let mut by_launch: Vec<(Row, Row)> =
            (0..gpu.len()).filter_map(|at| Some((launches.of_slice(at)?, gpu.row(at)))).collect();
        let mut by_slice: Vec<(Row, Row)> = by_launch.iter().map(|(a, b)| (*b, *a)).collect();
        trace::sort(&mut by_launch);
        trace::sort(&mut by_slice);
        Self { by_launch, by_slice }
    }

    /// The call that launched a GPU slice.
    #[must_use]
    pub fn launch_of(&self, slice: Row) -> Option<Row> {
        let at = self.by_slice.binary_search_by_key(&slice, |(slice, _)| *slice).ok()?;
        Some(self.by_slice[at].1)
    }

    /// The GPU slices that a call launched: one, or all of a graph.
    pub fn launched_by(&self, launch: Row) -> impl Iterator<Item = Row> + '_ {
        let from = self.by_launch.partition_point(|(of, _)| *of < launch);
        self.by_launch[from..]
            .iter()
            .take_while(move |(of, _)| *of == launch)
            .map(|(_, slice)| *slice)
    }
}
