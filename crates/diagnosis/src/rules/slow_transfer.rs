//! M10, where the sizes of collectives are recorded: what they take above the time that their bytes need over a slow link is waiting; and
//! what the link moves where no rank waits.

use report::units::{bytes, count, time};
use timeline::equal::{Equal, LARGE, Same, bytes_of, larger_side};
use timeline::intervals::{Interval, both, length, union};
use trace::{Details, StringId};

use crate::Facts;
use crate::facts::Device;

/// A slow link: 10 Gbit/s, in bytes a nanosecond.
const SLOW_RATE: f64 = 1.0;
/// What a collective takes to start on a slow link.
const LATENCY_NS: i64 = 50_000;
/// An all-reduce sends its bytes twice.
const TIMES: i64 = 2;

/// Collectives that take longer than their bytes need on a slow link.
pub(super) struct Slow {
    n: usize,
    /// What they take above that.
    ns: i64,
    /// When of it no other kernel runs, as if each waited first.
    pub(super) exposed: Vec<Interval>,
    /// The one with most of it: its bytes and its time, and whether it is the first collective of the device in the file.
    most: (i64, i64, bool),
}

impl Slow {
    pub(super) fn of(facts: &Facts<'_>, device: &Device<'_>) -> Option<Self> {
        let own = || facts.gpu.on(device.id()).filter(|one| one.is_communication);
        let first_ns = own().map(|one| one.slice.start_ns).min()?;
        let waits = own().filter_map(|one| {
            let of = facts.details.collective(one.slice.row)?;
            let bytes = larger_side(facts.details, facts.details.collectives.get(of as usize)?)?;
            let needs_ns = (bytes.saturating_mul(TIMES) as f64 / SLOW_RATE) as i64 + LATENCY_NS;
            let (start_ns, end_ns) = one.slice.interval();
            let wait = (start_ns, end_ns.saturating_sub(needs_ns));
            (wait.0 < wait.1).then_some((wait, bytes, one.slice.dur_ns()))
        });
        let waits: Vec<(Interval, i64, i64)> = waits.collect();
        let ns = |wait: &Interval| wait.1.saturating_sub(wait.0);
        let (most, bytes, taken_ns) = waits.iter().max_by_key(|(wait, ..)| ns(wait))?;
        let times = union(waits.iter().map(|(wait, ..)| *wait).collect());
        Some(Self {
            n: waits.len(),
            ns: waits.iter().fold(0, |sum, (wait, ..)| sum.saturating_add(ns(wait))),
            exposed: both(&times, &device.exposed()),
            most: (*bytes, *taken_ns, most.0 == first_ns),
        })
    }

    /// `given`: that the traces of the other ranks are, and why they tell nothing.
    pub(super) fn sentence(&self, given: Option<String>) -> String {
        let (size, taken_ns, is_first) = self.most;
        // (A profiler starts on each rank when that comes to it.)
        let first = match is_first {
            true => {
                " That is the first collective in the file, which also waits for ranks that start later: look at a later step."
            }
            false => "",
        };
        let text = format!(
            "{} collectives take longer than their bytes need on a slow link (1 GB/s and 50 µs): one moves {} in {}.{first} The excess is {} \
             in all: at least that is waiting for other ranks{}. {} of it is exposed, and the bound excludes it.",
            count(self.n as u64),
            bytes(size.unsigned_abs()),
            time(taken_ns),
            time(self.ns),
            if given.is_none() { ", whose traces show for which" } else { "" },
            time(length(&self.exposed))
        );
        format!("{text} {}", given.unwrap_or_default()).trim_end().to_owned()
    }
}

/// PCIe 4.0 of 16 lanes moves 32 GB/s in theory, in each direction, and NVLink several times as much.
const LINK_RATE: f64 = 25.0;
/// Latency is a large part of what collectives take that send fewer bytes in each of their steps (a ring has as many as ranks).
const LEAST_STEP: i64 = 1 << 20;

/// What a slow link moves: the rate of equal collectives that wait for no rank.
pub(super) struct Rate {
    n: usize,
    name: String,
    bytes: i64,
    ranks: i64,
    ns: i64,
    /// In bytes a nanosecond.
    rate: f64,
}

impl Rate {
    /// That of the equal collectives with the most time, where they have most of what all take (`all_ns`).
    pub(super) fn of(
        details: &Details,
        groups: &[Equal<(StringId, Same)>],
        all_ns: i64,
    ) -> Option<Self> {
        let most = groups.iter().max_by_key(|group| group.total_ns)?;
        let Same::Collective(at) = most.key.1 else { return None };
        let of = details.collectives.get(at as usize)?;
        let (ns, bytes) = (most.in_step_ns?, larger_side(details, of)?);
        let ranks = of.group_size.max(1);
        // (The bus bandwidth of `nccl-tests`, doc/PERFORMANCE.md: a rank sends so much of what an all-gather or a reduce-scatter moves, and
        // twice that in an all-reduce.)
        let moved = bytes_of(details, of) as f64 * (ranks - 1) as f64 / ranks as f64;
        let rate = moved / ns.max(1) as f64;
        let is_large = bytes >= LARGE && bytes / ranks >= LEAST_STEP;
        let is_told = is_large && rate > 0.0 && rate < LINK_RATE;
        let name = details.texts.get(of.name).to_owned();
        (is_told && most.total_ns.saturating_mul(2) >= all_ns).then_some(Self {
            n: most.n,
            name,
            bytes,
            ranks,
            ns,
            rate,
        })
    }

    pub(super) fn sentence(&self) -> String {
        format!(
            "Where one of the {} equal calls of {} starts right after another has ended, they take {} (median) for {}. Over {} ranks that is \
             {:.2} GB/s (bus bandwidth, as in NCCL's tests): probably the link limits them, unless a rank comes later by as much each time. \
             Fewer bytes or a faster link shorten them.",
            count(self.n as u64),
            self.name,
            time(self.ns),
            bytes(self.bytes.unsigned_abs()),
            self.ranks,
            self.rate
        )
    }
}
