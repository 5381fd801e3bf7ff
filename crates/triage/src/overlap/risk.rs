//! Whether work depends on its neighbours: from all instances, not from the longest.

use catalog::OverlapClass;
use dialect::calls::launches_graph;
use trace::Details;

use super::edges::Edges;
use super::sweep::Lanes;
use super::waits::Waits;
use crate::site::Attribution;
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// How likely it is that moving the work would break an order that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// No sign of a dependency.
    Low,
    /// At least half of the instances look dependent.
    High,
    /// Not known for at least half of the instances.
    Unclear,
}

impl Risk {
    /// The word for it in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Unclear => "unclear",
        }
    }
}

/// The neighbours of the instances of one row; counts of instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Neighbours {
    pub(super) n: u64,
    /// A neighbour of its stream is so near that it may have waited for it.
    pub(super) tight: u64,
    /// The one before is near and looks dependent.
    pub(super) before: u64,
    /// The one after is near and looks dependent.
    pub(super) after: u64,
    /// An event wait stands between it and work of another stream that touches it.
    pub(super) waited: u64,
    /// Any of the three.
    pub(super) dependent: u64,
    /// A neighbour is near, does not look dependent, and its or their place in Python is not known.
    pub(super) unclear: u64,
    /// Neighbours that look dependent.
    pub(super) slices: Vec<u32>,
    /// Instances whose result the next slice seems to use, or another stream waits for: sorted.
    pub(super) feeding: Vec<u32>,
}

impl Neighbours {
    /// Half of the instances decide.
    pub(super) fn risk(&self) -> Risk {
        if self.n == 0 {
            return Risk::Unclear;
        }
        if 2 * self.dependent >= self.n {
            Risk::High
        } else if 2 * (self.dependent + self.unclear) >= self.n {
            Risk::Unclear
        } else {
            Risk::Low
        }
    }
}

/// Every slice's neighbours on its stream, and what the trace knows of their relation.
pub(super) struct Surroundings<'a> {
    gpu: &'a Gpu<'a>,
    lanes: Lanes,
    /// The slice before and the one after on the same stream.
    around: Vec<[Option<u32>; 2]>,
    /// The slice of another stream that ended last before it, and the one that begins first after it, where no slice of
    /// another stream runs beside it: with little time between, one stream handed over to the other.
    handed: Vec<[Option<u32>; 2]>,
    attribution: Option<&'a Attribution>,
    waits: Found,
}

/// The event waits that the file tells of.
enum Found {
    /// Which slice waited for which.
    Exact(Edges),
    /// That a stream waited; for which other one is guessed by the times.
    ByTime(Waits),
    None,
}

/// How much the file tells of event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Which slice waited for which.
    Exact,
    /// That streams waited, not for what.
    ByTime,
    /// Nothing.
    None,
}

impl<'a> Surroundings<'a> {
    #[inline(never)]
    pub(super) fn of(
        gpu: &'a Gpu<'a>,
        launches: &Launches,
        attribution: Option<&'a Attribution>,
        details: Option<&Details>,
    ) -> Self {
        let lanes = Lanes::of(gpu.trace);
        let mut last = vec![None; lanes.device_of.len()];
        let mut around = vec![[None, None]; gpu.len()];
        for at in 0..gpu.len() {
            let before = last[lanes.of_stream(gpu.slice(at).stream)].replace(at as u32);
            around[at][0] = before;
            if let Some(before) = before {
                around[before as usize][1] = Some(at as u32);
            }
        }
        let edges = details.and_then(|details| Edges::of(gpu, launches, details));
        let waits = match edges {
            Some(edges) => Found::Exact(edges),
            None => Waits::of(gpu, launches).map_or(Found::None, Found::ByTime),
        };
        let mut handed = handovers(gpu);
        if !matches!(waits, Found::None) {
            // The file tells of event waits, but for those within a graph.
            for (at, handed) in handed.iter_mut().enumerate() {
                let launch = launches.of_slice(at);
                if !launch.is_some_and(|row| launches_graph(gpu.trace.name_text(row))) {
                    *handed = [None, None];
                }
            }
        }
        Self { gpu, lanes, around, handed, attribution, waits }
    }

    /// How much the file tells of event waits.
    pub(super) fn evidence(&self) -> Evidence {
        match self.waits {
            Found::Exact(_) => Evidence::Exact,
            Found::ByTime(_) => Evidence::ByTime,
            Found::None => Evidence::None,
        }
    }

    /// The slice before (`side` 0) or after (1) on the same stream.
    pub(super) fn neighbour(&self, slice: usize, side: usize) -> Option<usize> {
        self.around[slice][side].map(|other| other as usize)
    }

    /// What stands next to `instances`.
    #[inline(never)]
    pub(super) fn next_to(&self, instances: &[u32]) -> Neighbours {
        let mut found = Neighbours { n: instances.len() as u64, ..Neighbours::default() };
        for instance in instances {
            let at = *instance as usize;
            let slice = self.gpu.slice(at);
            let near_ns = near_ns(slice.dur_ns);
            let mut tight = false;
            let mut unclear = false;
            let mut dependent = [false; 2];
            for (side, depends) in dependent.iter_mut().enumerate() {
                let gap_ns = |other: u32| {
                    let neighbour = self.gpu.slice(other as usize);
                    if side == 0 {
                        slice.start_ns.saturating_sub(neighbour.end_ns())
                    } else {
                        neighbour.start_ns.saturating_sub(slice.end_ns())
                    }
                };
                let near = |other: &u32| gap_ns(*other) <= near_ns;
                let own = self.around[at][side].filter(near);
                tight |= own.is_some();
                let Some(other) = own.or_else(|| self.handed[at][side].filter(near)) else {
                    continue;
                };
                match self.depends(at, other as usize) {
                    Some(true) => {
                        *depends = true;
                        found.slices.push(other);
                    }
                    Some(false) => {}
                    None => unclear |= own.is_some(),
                }
            }
            let (waited, awaited) = match &self.waits {
                Found::Exact(edges) => {
                    let tied = edges.near(self.gpu, at, near_ns);
                    found.slices.extend(&tied);
                    let awaited = tied
                        .iter()
                        .any(|other| self.gpu.slice(*other as usize).start_ns >= slice.end_ns());
                    (!tied.is_empty(), awaited)
                }
                Found::ByTime(waits) => {
                    let awaited = waits.after(self.gpu, &self.lanes, at, near_ns);
                    (awaited || waits.before(self.gpu, &self.lanes, at, near_ns), awaited)
                }
                Found::None => (false, false),
            };
            if awaited || dependent[1] {
                found.feeding.push(*instance);
            }
            let any = waited || dependent.contains(&true);
            found.tight += u64::from(tight);
            found.before += u64::from(dependent[0]);
            found.after += u64::from(dependent[1]);
            found.waited += u64::from(waited);
            found.dependent += u64::from(any);
            found.unclear += u64::from(unclear && !any);
        }
        trace::sort_numbers(&mut found.slices, &|a, b| a.cmp(&b));
        found.slices.dedup();
        trace::sort_numbers(&mut found.feeding, &|a, b| a.cmp(&b));
        found
    }

    /// Whether two near neighbours look dependent; `None` when it cannot be said.
    #[inline(never)]
    pub(super) fn depends(&self, at: usize, other: usize) -> Option<bool> {
        let class = |at: usize| self.gpu.works[self.gpu.slice(at).work].category.overlap_class();
        if classes_depend(class(at), class(other)) {
            return Some(true);
        }
        let attribution = self.attribution?;
        let (site, next) = (attribution.site(at), attribution.site(other));
        if site.cpu_op.is_some() && site.cpu_op == next.cpu_op {
            return Some(true);
        }
        let (place, beside) = (site.location.as_ref()?, next.location.as_ref()?);
        Some(place.path == beside.path || place.function == beside.function)
    }
}

/// By slice: the neighbours of other streams, where nothing of them runs beside it.
#[inline(never)]
fn handovers(gpu: &Gpu<'_>) -> Vec<[Option<u32>; 2]> {
    let mut found = vec![[None, None]; gpu.len()];
    // The slice that ends last so far.
    let mut last: Option<(i64, u32)> = None;
    for (at, handed) in found.iter_mut().enumerate() {
        let slice = gpu.slice(at);
        let is_other = |other: usize| gpu.slice(other).stream != slice.stream;
        let next = Some(at + 1).filter(|next| *next < gpu.len());
        let alone = last.is_none_or(|(end_ns, _)| end_ns <= slice.start_ns)
            && next.is_none_or(|next| gpu.slice(next).start_ns >= slice.end_ns());
        if alone {
            let before = last.map(|(_, at)| at as usize);
            *handed = [before, next].map(|it| it.filter(|it| is_other(*it)).map(|it| it as u32));
        }
        last = last.max(Some((slice.end_ns(), at as u32)));
    }
    found
}

/// How near a close neighbour is: 15% of the duration, from 2 µs to 20 µs.
pub(super) fn near_ns(dur_ns: i64) -> i64 {
    (dur_ns / 100 * 15 + dur_ns % 100 * 15 / 100).clamp(2_000, 20_000)
}

/// Classes of which one usually consumes what the other made.
fn classes_depend(of: OverlapClass, beside: OverlapClass) -> bool {
    use OverlapClass::{Communication, Compute, Elementwise, Memory, Other};
    match of {
        Communication => beside != Communication,
        Elementwise | Memory => beside != Other,
        Compute | Other => false,
    }
}
