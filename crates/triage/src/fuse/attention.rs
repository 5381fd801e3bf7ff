//! How long a fused attention takes at least: what the single kernels of [K04](catalog::fuse_patterns::CHAINS) do, at the
//! device's peak rates.

use catalog::RawKind;
use catalog::architectures::Peak;
use catalog::fuse_patterns::kind_named;

use super::find::{Candidate, Sought};
use super::lanes::Lanes;
use crate::arguments::Arguments;
use crate::shapes::Gemm;

/// Places that take less than this share of the longest one are left out, in percent: no fused kernel helps with a
/// handful of tokens.
const LEAST_PCT: i64 = 1;

/// Leaves out places that are too small for a fused kernel to matter.
pub(super) fn without_tiny(
    lanes: &Lanes<'_>,
    arguments: Option<&Arguments>,
    candidate: &mut Candidate,
) {
    let Candidate { sought: Sought::Chain(chain), split, slices, .. } = candidate else { return };
    if chain.id != "K04" {
        return;
    }
    let ns = |from: u32, to: u32| {
        let parts = slices.get(from as usize..to as usize).unwrap_or_default();
        let dur_ns = |at: &u32| lanes.gpu.slice(*at as usize).dur_ns;
        parts.iter().map(dur_ns).fold(0_i64, i64::saturating_add)
    };
    split.retain(|find| {
        let parts = slices.get(find.from as usize..find.to as usize).unwrap_or_default();
        !is_narrow(lanes, arguments, parts)
    });
    let longest = split.iter().map(|find| ns(find.from, find.to)).max().unwrap_or_default();
    split.retain(|find| {
        i128::from(ns(find.from, find.to)) * 100 >= i128::from(longest) * i128::from(LEAST_PCT)
    });
}

/// So many kernels before the last product of a bias begins that of the scores at most: a bias of relative positions is made of two
/// products, their tables and copies (Segment Anything).
const FAR: usize = 24;

/// Has each place begin with the product whose result the softmax takes, where sizes tell it: a bias may be made by products, too, and
/// added to the scores. Those stay, and one of the additions, which adds up the bias.
pub(super) fn from_scores(
    lanes: &Lanes<'_>,
    arguments: Option<&Arguments>,
    candidate: &mut Candidate,
) {
    let Candidate { sought: Sought::Chain(chain), split, slices, .. } = candidate else { return };
    let Some(arguments) = arguments.filter(|_| chain.id == "K04") else { return };
    let (gemm, softmax) = (kind_named("gemm"), kind_named("softmax"));
    let meets = |at: u32, kind| lanes.code_of_slice(at).kinds.meets(kind);
    let sizes = |at: u32| arguments.gemm(at as usize);
    for find in split {
        let parts = slices.get_mut(find.from as usize..find.to as usize).unwrap_or_default();
        let [first, rest @ .., last] = parts else { continue };
        let (Some(of_first), Some(values)) = (sizes(*first), sizes(*last)) else { continue };
        let n_out = |of: Gemm| of.batch.saturating_mul(of.m).saturating_mul(of.n);
        let n_scores = |rows: i64| values.batch.saturating_mul(rows).saturating_mul(values.k);
        // (The probabilities are the left operand of the second product; in a VAE the right one.)
        if [values.m, values.n].iter().any(|rows| n_out(of_first) == n_scores(*rows)) {
            continue;
        }
        // (Beyond a softmax they are those of another attention.)
        let mut own = lanes.before(*first).take(FAR).take_while(|at| !meets(*at, softmax));
        let makes_scores = |of: Gemm| n_out(of) == n_scores(values.m);
        let scores = own.find(|at| meets(*at, gemm) && sizes(*at).is_some_and(makes_scores));
        let Some(scores) = scores else { continue };
        *first = scores;
        if rest.iter().take_while(|at| !meets(**at, softmax)).count() > 1 {
            rest[0] = scores;
            find.from += 1;
        }
    }
}

/// So many kernels before the first product its queries are scaled at most, and so many after the last one the mean over the heads comes.
const BEFORE: usize = 4;
const AFTER: usize = 12;

/// Adds what goes away with an attention, too, where sizes tell it: before the product of the scores the copy of a mask that it adds to (`baddbmm`),
/// and the scaling of the queries; after it the mean of the probabilities over the heads, which `need_weights=False` leaves out.
pub(super) fn with_surroundings(
    lanes: &Lanes<'_>,
    arguments: Option<&Arguments>,
    candidate: &mut Candidate,
) {
    let Candidate { sought: Sought::Chain(chain), split, slices, .. } = candidate else { return };
    let Some(arguments) = arguments.filter(|_| chain.id == "K04") else { return };
    let [copy, scale, mean] = ["copy", "mul_number", "mean"].map(kind_named);
    let gpu = lanes.gpu;
    let has = |at: u32, kind, n: i64| {
        lanes.code_of_slice(at).kinds.meets(kind)
            && arguments.elements(at as usize).is_some_and(|own| i64::try_from(own) == Ok(n))
    };
    for find in split {
        let parts = slices.get(find.from as usize..find.to as usize).unwrap_or_default().to_vec();
        let (Some(first), Some(last)) = (parts.first().copied(), parts.last().copied()) else {
            continue;
        };
        let Some(Gemm { batch, m, n, k }) = arguments.gemm(first as usize) else { continue };
        let n_scores = batch.saturating_mul(m).saturating_mul(n);
        let n_queries = batch.saturating_mul(m).saturating_mul(k);
        let before: Vec<u32> = lanes.before(first).take(BEFORE).collect();
        // (A kernel that copies changes the format of the mask, which stays to be done.)
        let is_copied = |at: &u32| {
            gpu.work(gpu.slice(*at as usize).work).kind == RawKind::Memcpy
                && has(*at, copy, n_scores)
        };
        let copied = before.first().copied().filter(is_copied);
        let scaled = before.iter().copied().find(|at| has(*at, scale, n_queries));
        let averaged = lanes.after(last).take(AFTER).find(|at| has(*at, mean, n_scores));
        if copied.is_none() && scaled.is_none() && averaged.is_none() {
            continue;
        }
        find.from = slices.len() as u32;
        slices.extend(scaled.into_iter().chain(copied).chain(parts).chain(averaged));
        find.to = slices.len() as u32;
    }
}

/// Heads of so few numbers in 32 bits, with so few queries or keys, ran no faster in a fused kernel in the one run that shows both:
/// Segment Anything's decoder (8 heads of 16, 7 to 9 tokens a prompt, 1,024 prompts) takes 123 ms with one and 83 ms as single kernels, on an
/// A100.
const NARROW: i64 = 16;
const FEW: i64 = 64;

/// Whether the attention is such a one: no gain is known for it.
fn is_narrow(lanes: &Lanes<'_>, arguments: Option<&Arguments>, parts: &[u32]) -> bool {
    let Some(arguments) = arguments else { return false };
    let gemm = kind_named("gemm");
    let first = parts.iter().find(|at| lanes.code_of_slice(**at).kinds.meets(gemm));
    first.is_some_and(|at| {
        let is_half = arguments.is_half(*at as usize);
        let is_it = |of: Gemm| of.k <= NARROW && of.m.min(of.n) <= FEW;
        is_half == Some(false) && arguments.gemm(*at as usize).is_some_and(is_it)
    })
}

/// The least time of a fused attention in place of `parts`: the larger of its operations at the peak rate and its inputs and
/// outputs at the memory's bandwidth. `None` where the sizes of the two products or the device's rates are not known.
pub(super) fn least_ns(
    lanes: &Lanes<'_>,
    arguments: Option<&Arguments>,
    peak: Option<&Peak>,
    parts: &[u32],
) -> Option<i64> {
    let (arguments, peak) = (arguments?, peak?);
    let gemm = kind_named("gemm");
    let mut products = parts.iter().filter(|at| lanes.code_of_slice(**at).kinds.meets(gemm));
    let (first, second) = (products.next()?, products.next_back()?);
    let sizes = |at: &u32| arguments.gemm(*at as usize);
    let (scores, values) = (sizes(first)?, sizes(second)?);
    let half = arguments.is_half(*first as usize)?;
    let flop = |Gemm { batch, m, n, k }: Gemm| 2.0 * batch as f64 * m as f64 * n as f64 * k as f64;
    // In: queries and keys, values; out: the result. The scores stay on the chip.
    let elements = scores.batch as f64
        * (scores.m as f64 * scores.k as f64 + scores.k as f64 * scores.n as f64)
        + values.batch as f64
            * (values.k as f64 * values.n as f64 + values.m as f64 * values.n as f64);
    let gpu = lanes.gpu;
    let name = gpu.trace.strings.get(gpu.works[gpu.slice(*first as usize).work].name);
    // (A fused kernel keeps the format: plain 32-bit products stay plain.)
    let plain = catalog::is_f32_without_tensor_cores(name);
    let (tflops, bytes) = match (half, plain) {
        (true, _) => (peak.half_tflops, 2.0),
        (false, true) => (peak.f32_tflops, 4.0),
        (false, false) => (peak.tf32_tflops.max(peak.f32_tflops), 4.0),
    };
    let by_flop = (flop(scores) + flop(values)) / (tflops * 1e12);
    let by_bytes = elements * bytes / (peak.gb_per_s * 1e9);
    let ns = by_flop.max(by_bytes) * 1e9;
    ns.is_finite().then_some(ns as i64)
}
