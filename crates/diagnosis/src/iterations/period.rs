//! How often iterations come on a GPU that is always at work: work between them, such as the output layer and the sampler after a pass of an
//! engine, is part of a step and belongs to no iteration.

use host::numbers::Stats;
use report::units::{count, time};
use timeline::intervals::length_within;
use triage::WallTimes;

use super::{Iteration, Iterations};

/// From start to start at least so much longer than the iterations themselves, in percent.
const LONGER_PCT: i64 = 105;
/// The device works at least this part of the time, in percent: else late launches are in it.
const BUSY_PCT: i64 = 90;
/// Fewer distances show no rhythm.
const FEWEST: usize = 2;

/// The median time from the first work of an iteration to that of the next, both warm and of the class, in ns, and of how many; `None` where the device is not
/// full in it, or the iterations themselves are as long.
pub(super) fn period(
    list: &[Iteration],
    class: &str,
    spans: &Stats,
    times: Option<&WallTimes>,
) -> Option<(i64, usize)> {
    let is_own = |one: &Iteration| one.class == class && one.cold.is_none();
    let pairs = list.windows(2).filter(|pair| pair.iter().all(is_own));
    let apart: Vec<[i64; 3]> = pairs
        .filter_map(|pair| pair[0].on_gpu.zip(pair[1].on_gpu))
        .map(|((from, end), (to, _))| [from, end, to])
        .filter(|[from, _, to]| from < to)
        .collect();
    if apart.len() < FEWEST {
        return None;
    }
    let parts = &times?.parts;
    let works = |window: (i64, i64)| -> i64 {
        let own = parts.iter().filter(|(part, _)| !part.is_idle());
        own.map(|(_, times)| length_within(times, window)).sum()
    };
    let is_full = |windows: &dyn Fn(&[i64; 3]) -> (i64, i64)| {
        let windows = || apart.iter().map(windows).filter(|(from, to)| from < to);
        let all_ns: i64 = windows().map(|(from, to)| to - from).sum();
        let work_ns: i64 = windows().map(works).sum();
        work_ns.saturating_mul(100) >= all_ns.saturating_mul(BUSY_PCT)
    };
    // (Of the time between two iterations by itself, as it is short.)
    let is_full = is_full(&|[from, _, to]| (*from, *to)) && is_full(&|[_, end, to]| (*end, *to));
    let mut lengths: Vec<i64> = apart.iter().map(|[from, _, to]| to - from).collect();
    let period_ns = timeline::median(&mut lengths)?;
    let span_ns = spans.figures.as_ref()?.p50_ns;
    let is_longer = period_ns.saturating_mul(100) >= span_ns.saturating_mul(LONGER_PCT);
    (is_full && is_longer).then_some((period_ns, lengths.len()))
}

impl Iterations {
    /// How often iterations come where that is more than they take.
    pub(super) fn periods(&self) -> Option<String> {
        let told = self.classes.iter().filter_map(|class| {
            let (period_ns, span) = (class.period_ns?, class.gpu_span.figures.as_ref()?);
            Some(format!(
                "On the GPU an iteration of {} comes every {} (median of {}): the {} after its own work belong to no iteration, although \
                 the GPU works then, too.",
                class.name,
                time(period_ns),
                count(class.n_periods as u64),
                time(period_ns.saturating_sub(span.p50_ns)),
            ))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join(" "))
    }
}
