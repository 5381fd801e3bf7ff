//! Slices that overlap others of their stream.

use std::collections::BTreeMap;

use timeline::gpu::Gpu;

/// Less than this part of the GPU time changes no figure that is looked at: a hundredth.
const LEAST_PART: i64 = 100;

/// How the table of kernels counts them, if they are many; empty otherwise. (They hide nothing: see [`crate::overlap`].)
pub(crate) fn note(gpu: &Gpu<'_>) -> String {
    let mut ends: BTreeMap<_, i64> = BTreeMap::new();
    let (mut overlap_ns, mut total_ns) = (0_i64, 0_i64);
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        let end = ends.entry(gpu.trace.track(gpu.row(at))).or_insert(i64::MIN);
        let both_ns = (*end).min(slice.end_ns()).saturating_sub(slice.start_ns).max(0);
        overlap_ns = overlap_ns.saturating_add(both_ns);
        total_ns = total_ns.saturating_add(slice.dur_ns);
        *end = (*end).max(slice.end_ns());
    }
    if overlap_ns.saturating_mul(LEAST_PART) < total_ns || overlap_ns == 0 {
        return String::new();
    }
    // (Without a figure: devices of one program share the sentence.)
    "Slices overlap others of their stream, as by programmatic dependent launch: that is exposed time of both."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel};

    use crate::{Sources, TriageOptions, triage};

    #[test]
    fn overlap_on_one_stream_is_told_where_it_is_much() {
        let note = |second_ns: i64, stream: i64| {
            let mut fixture = Fixture::default();
            fixture.push(kernel("gemm").at(0, 100_000).on(0, 7));
            fixture.push(kernel("norm").at(second_ns, 50_000).on(0, stream));
            triage(&fixture.finish(), &TriageOptions::default(), &Sources::default()).launch_note
        };
        assert!(note(80_000, 7).contains("as by"), "{}", note(80_000, 7));
        assert!(note(20_000, 7).contains("as by"), "in the other one");
        assert!(!note(99_000, 7).contains("as by"), "next to nothing");
        assert!(!note(80_000, 20).contains("as by"), "of two streams");
    }
}
