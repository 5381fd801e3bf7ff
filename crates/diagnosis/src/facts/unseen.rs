//! Work whose launches are missing in the middle of the recording.

use catalog::{Family, RawKind, classify};
use report::units::{count, time};
use trace::StringId;

use super::Facts;

/// Of the GPU time: where the launches of more are missing, figures of what the recording launched are not those of the run.
const MUCH: f64 = 0.1;

/// The GPU slices whose launches are missing in the middle of the recording, and their time.
pub(crate) fn unseen(facts: &Facts<'_>) -> (u64, i64) {
    let (links, before) = (&facts.host.links, facts.triage.before_window);
    let n = (links.orphans as u64).saturating_sub(before.n_slices);
    (n, links.orphan_ns.saturating_sub(before.total_ns))
}

/// The engine that launched most of that by itself, where the names of its kernels are such an engine's.
pub(crate) fn engine(facts: &Facts<'_>) -> Option<&'static str> {
    let trace = facts.trace;
    let own = facts.gpu.slices.iter().filter(|one| one.is_kernel && one.launch.is_none());
    let mut own: Vec<(StringId, i64)> =
        own.map(|one| (trace.name(one.slice.row), one.slice.dur_ns())).collect();
    trace::sort(&mut own);
    let (mut engine_ns, mut all_ns) = (0_i64, 0_i64);
    let platform = timeline::device::platform(trace);
    for same in own.chunk_by(|a, b| a.0 == b.0) {
        let ns: i64 = same.iter().map(|(_, ns)| ns).sum();
        let name = same.first().map_or("", |(name, _)| trace.strings.get(*name));
        let is_engine = classify(RawKind::Kernel, name, platform).family == Family::TensorRt;
        engine_ns += if is_engine { ns } else { 0 };
        all_ns += ns;
    }
    (engine_ns.saturating_mul(2) > all_ns).then(|| Family::TensorRt.title())
}

/// That figures of what iterations launched leave out work whose launches are missing, where that is much of the GPU time.
pub(crate) fn left_out(facts: &Facts<'_>) -> Option<String> {
    let (n, ns) = unseen(facts);
    let is_much = n > 0 && ns as f64 > MUCH * facts.busy_ns() as f64;
    is_much.then(|| {
        format!(
            "The launches of {} of {} GPU slices ({}) are not in the file: what an iteration launched and its GPU span exclude them.",
            count(n),
            count(facts.host.links.gpu as u64),
            time(ns)
        )
    })
}
