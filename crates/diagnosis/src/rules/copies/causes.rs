//! What makes most copies of a purpose: that decides what helps.

use host::copies::{CopyPlace, Purpose};
use report::units::count;

use crate::Facts;

/// Casts of other ops, which are the model's own, below this share of those of autocast: then gradients are of the latter.
const FEW: f64 = 0.1;
pub(super) const AUTOCAST: &str = "Autocast makes them: it casts 32-bit weights for the ops that it runs in 16 bits, and their gradients back. bf16 parameters avoid them; the optimizer must then keep a 32-bit copy of the weights.";

/// Whether autocast makes nearly all of these casts.
pub(super) fn is_by_autocast(places: &[CopyPlace]) -> bool {
    let sum = |each: fn(&CopyPlace) -> u64| places.iter().map(each).sum::<u64>();
    let (all, own) = (sum(|place| place.count), sum(|place| place.n_autocast));
    let others = all.saturating_sub(own).saturating_sub(sum(|place| place.n_gradients));
    own > 0 && others as f64 <= FEW * own as f64
}

pub(super) const FUSED: &str = "Most of that is in lines whose ops a fused kernel can replace (the table of fusions), which also removes these casts.";

/// Whether most of these casts are made in lines of Python whose ops are advised to be fused: a norm computes in 32 bits.
pub(super) fn is_in_fused(facts: &Facts<'_>, places: &[CopyPlace]) -> bool {
    let advised = || facts.triage.fuse.iter().filter(|row| !row.action.is_empty());
    are_most(places, &|place| {
        advised().any(|row| row.current_location.split("; ").any(|line| line == place.place))
    })
}

/// Ops that convert what they add up to the type of their result.
const REDUCTIONS: [&str; 2] = ["aten::sum", "aten::mean"];
const REDUCED: &str = "Most of that is in sums or means, which convert their input to the dtype of the result: torch.compile converts inside the sum.";

/// Ops that write values out as often as they repeat them.
const REPEATS: [&str; 3] = ["aten::repeat_interleave", "aten::repeat", "aten::tile"];
const REPEATED: &str = "Most of that writes repeated values out (repeat_interleave, repeat, copies of views of expand): do it once where they do not change, or let the next op broadcast a view of expand().";

/// What helps copies of which one kind of ops makes most.
pub(super) fn by_ops(purpose: Purpose, places: &[CopyPlace]) -> Option<&'static str> {
    match purpose {
        Purpose::Cast if are_most(places, &|at| REDUCTIONS.contains(&&*at.place)) => Some(REDUCED),
        Purpose::Layout => is_most(places, &repeated_ns).then_some(REPEATED),
        _ => None,
    }
}

/// The time of copies that write repeated values out.
fn repeated_ns(place: &CopyPlace) -> i64 {
    if REPEATS.contains(&&*place.place) { place.device_ns } else { place.repeats_ns }
}

/// Whether such places make most of these copies, by their time.
fn are_most(places: &[CopyPlace], is_own: &dyn Fn(&CopyPlace) -> bool) -> bool {
    is_most(places, &|place| if is_own(place) { place.device_ns } else { 0 })
}

/// Whether this part of each place is most of these copies, by their time.
fn is_most(places: &[CopyPlace], own_ns: &dyn Fn(&CopyPlace) -> i64) -> bool {
    let sum = |of: &dyn Fn(&CopyPlace) -> i64| places.iter().map(of).sum::<i64>();
    sum(own_ns).saturating_mul(2) > sum(&|place| place.device_ns)
}

/// Where DistributedDataParallel copies, and what helps (its documentation).
const DDP: [(&str, &str, &str); 2] = [
    (
        "torch.distributed.ddp.reducer",
        "of the reducer",
        "DistributedDataParallel(gradient_as_bucket_view=True) keeps gradients in its buckets, so that they need no copy.",
    ),
    (
        "DistributedDataParallel.forward",
        "in DistributedDataParallel.forward",
        "it sends rank 0's buffers (BatchNorm's running statistics) to all ranks before each forward pass. If each rank may keep its own, broadcast_buffers=False avoids that.",
    ),
];

/// The exposed time of the copies that DistributedDataParallel makes, and what helps, where it makes most of them.
pub(super) fn of_ddp(
    facts: &Facts<'_>,
    purpose: Purpose,
    places: &[CopyPlace],
) -> Option<(i64, String)> {
    if purpose != Purpose::OnDevice {
        return None;
    }
    // (Its annotation is around the whole forward pass: without a broadcast the copies are the model's.)
    let recorded = &facts.details.collectives;
    let broadcasts = facts.slices.names_with("roadcast").contains(&true)
        || recorded.iter().any(|of| facts.details.texts.get(of.name).contains("broadcast"));
    let rows = DDP.into_iter().take(if broadcasts { DDP.len() } else { 1 });
    let own = rows.filter_map(|(prefix, whose, cure)| {
        let own = places.iter().filter(|place| place.place.starts_with(prefix));
        let (n, ns) = own.fold((0, 0_i64), |(n, ns), place| {
            (n + place.count, ns.saturating_add(place.exposed_ns))
        });
        (n > 0).then_some((n, ns, whose, cure))
    });
    let own: Vec<(u64, i64, &str, &str)> = own.collect();
    let all: u64 = places.iter().map(|place| place.count).sum();
    let n: u64 = own.iter().map(|(n, ..)| n).sum();
    if n.saturating_mul(2) < all.max(1) {
        return None;
    }
    let exposed = own.iter().fold(0_i64, |sum, (_, ns, ..)| sum.saturating_add(*ns));
    let each = own.iter().map(|(n, _, whose, cure)| format!("The {} {whose}: {cure}", count(*n)));
    Some((exposed, each.collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_that_make_most_of_the_time_have_advice_of_their_own() {
        let place = |place: &str, device_ns: i64| CopyPlace {
            place: place.to_owned(),
            count: 1,
            n_autocast: 0,
            n_gradients: 0,
            n_sums: 0,
            repeats_ns: 0,
            device_ns,
            exposed_ns: device_ns,
        };
        let of = |purpose, most: &str| by_ops(purpose, &[place("aten::to", 40), place(most, 60)]);
        assert_eq!(of(Purpose::Layout, "aten::repeat_interleave"), Some(REPEATED));
        assert_eq!(of(Purpose::Layout, "aten::sum"), None);
        // A copy of a view that repeats values, whichever op makes it.
        let view = CopyPlace { repeats_ns: 60, ..place("predict", 60) };
        assert_eq!(by_ops(Purpose::Layout, &[place("aten::to", 40), view]), Some(REPEATED));
        assert_eq!(of(Purpose::Cast, "aten::sum"), Some(REDUCED));
        let few = [place("aten::to", 60), place("aten::sum", 40)];
        assert_eq!(by_ops(Purpose::Cast, &few), None);
    }
}
