//! Broadcasts between two ranks, in which one waits for the other to send.
//!
//! Who sends is not recorded. What is small enough to be there at once fits into NCCL's buffers (4 MiB for each channel): who sends it goes
//! on, and only who receives it waits.

use report::units::time;
use timeline::intervals::{Interval, both, length, union};

use crate::calls::RankCalls;
use crate::clocks::{Clocks, by_key};
use crate::same_calls::{of_call, those_that_waited};

/// Data that take no longer are small, in ns. In 50 us a link of 400 Gbit/s carries 2.5 MB, less than one buffer of 4 MiB; NVLink at
/// 450 GB/s 22 MB, for which NCCL uses 16 channels and more, 64 MiB. The size itself is recorded for some kernels only.
const AT_ONCE_NS: i64 = 50_000;
/// So many ranks are named.
const SHOWN: usize = 8;

/// What ranks on one clock wait for senders, in a sentence; `None` where that is nothing.
pub(crate) fn for_senders(ranks: &[&RankCalls], clocks: &Clocks) -> Option<String> {
    // By rank that waits and the one that sends.
    let mut waits: Vec<((usize, usize), Interval)> = Vec::new();
    for of_key in by_key(ranks).into_iter().filter(|one| one.is_broadcast) {
        let own = of_key.of_ranks;
        let [(a, first), (b, second)] = own[..] else { continue };
        if first.group_size != Some(2)
            || first.calls.len() != second.calls.len()
            || !clocks.are_one(&[a, b])
        {
            continue;
        }
        for nth in 0..first.calls.len() {
            let found =
                those_that_waited(of_call(&own, nth), clocks.slack_ns(&[a, b])).unwrap_or_default();
            let [one, other] = found[..] else { continue };
            let (from, to) = if one.1.0 < other.1.0 { (one, other) } else { (other, one) };
            if to.1.1.saturating_sub(to.1.0) <= AT_ONCE_NS {
                waits.push(((from.0, to.0), (from.1.0, to.1.0.min(from.1.1))));
            }
        }
    }
    trace::sort(&mut waits);
    // (Where each waits for the other, both send.)
    let of_one = |own: &[((usize, usize), Interval)]| {
        let (at, sender) = own.first()?.0;
        let ns =
            length(&both(&ranks[at].exposed, &union(own.iter().map(|(_, wait)| *wait).collect())));
        let (own, sender) = (&ranks[at].name, &ranks[sender].name);
        (ns > 0).then(|| format!("rank {own} for rank {sender} ({})", time(ns)))
    };
    let told: Vec<String> = waits.chunk_by(|a, b| a.0 == b.0).filter_map(of_one).collect();
    let more = if told.len() > SHOWN { ", and others" } else { "" };
    let shown: Vec<String> = told.into_iter().take(SHOWN).collect();
    (!shown.is_empty()).then(|| {
        let shown = shown.join(", ");
        format!("In broadcasts between two ranks, as between the stages of a pipeline, one waits until the other sends: {shown}{more}.")
    })
}
