//! M10: communication that no other kernel of the device hides, and how far equal collectives differ.

mod excess;

use std::collections::BTreeMap;

use host::links::GpuSlice;
use ranks::{Matched, Waits};
use report::short_name;
use report::units::{count, percent, plural, time};
use timeline::intervals::{Interval, both, length, union, without};
use trace::StringId;
use triage::WallPart;

use self::excess::{Excess, excess};
use super::slow_transfer::{Rate, Slow};
use crate::facts::{Device, Held};
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the device's span on.
const LEAST_SHARE: f64 = 0.05;
/// Below that it is said from this share of the wall time on, as actions are.
const LITTLE_SHARE: f64 = 0.01;
/// A collective below this is mostly latency: NVLink moves 20 MB in that time.
const SHORT_NS: i64 = 50_000;
/// The tails of the launches of a kernel, and how far those between them differ where that is much.
const TAILS: usize = 20;
const FAR: i64 = 3;
/// Letters of a kernel's name.
const NAME: usize = 60;
/// Of the exposed time: a smaller difference between equal collectives is not worth a word.
const LEAST_EXCESS: f64 = 0.1;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let told = facts.devices().filter(Device::is_told);
    told.filter_map(|device| of_device(facts, &device)).collect()
}

fn of_device(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let (exposed, span) = device.exposed_communication();
    let share = exposed as f64 / span.max(1) as f64;
    let is_much = share >= LEAST_SHARE;
    if !is_much && !is_worth_a_word(device) {
        return None;
    }
    let text = format!(
        "{} runs only communication kernels for {} ({} of its span).",
        device.title(),
        time(exposed),
        percent(100.0 * share)
    );
    // (Communication hides at most behind the kernels that run without it; waiting for another rank hides behind none.)
    let told = Told::of(facts, device, exposed);
    let transfer = exposed.saturating_sub(length(&told.left_out)).max(0);
    // (Nor does anything come sooner than its own launches let it.)
    let sooner_ns = device.sooner_without_communication_outside_ns(&told.left_out);
    let compute_ns = device.exposed_compute();
    let bound = transfer.min(compute_ns).min(sooner_ns);
    let limited = limited(facts, bound, (sooner_ns, told.left_out.is_empty()), transfer);
    let meaning = told.meaning((facts, device), (exposed, compute_ns, bound), &limited);
    // (Of little, most has to be.)
    let is_transfer = match is_much {
        true => transfer as f64 >= LEAST_SHARE * span as f64,
        false => transfer.saturating_mul(2) >= exposed,
    };
    let short = Short::of(facts, device).filter(|_| facts.has_graphs());
    let says_more = told.says_something() || short.is_some() || !limited.is_empty();
    let is_estimate = told.is_estimate();
    let (verdict, meaning) = match short {
        _ if told.is_known() && !is_transfer => ("waiting", meaning),
        Some(short) => ("short_collectives", format!("{} {meaning}", short.sentence())),
        None => ("exposed", meaning),
    };
    Some(
        Finding::fact(Rule::Communication, verdict, text)
            .level(Level::of_share(share))
            .confidence(match is_estimate {
                true => Confidence::Medium,
                // (All of it may be waiting.)
                false if !told.is_known() => Confidence::Low,
                false => Confidence::High,
            })
            .on(device.name)
            .bound(bound)
            .means(meaning)
            .aside(is_told(facts, device, bound, says_more))
            .with(
                format!("verdicts.devices.{}.M10", device.name),
                "exposed communication",
                time(exposed),
            ),
    )
}

/// What is told of the exposed communication of a device.
struct Told<'f> {
    waits: Option<&'f Waits>,
    excess: Option<Excess>,
    slow: Option<Slow>,
    rate: Option<Rate>,
    held: Option<Held<'f>>,
    /// What waits for a rank, or for the CPU: overlap does not shorten it, and other actions do.
    left_out: Vec<Interval>,
}

impl<'f> Told<'f> {
    fn of(facts: &'f Facts<'_>, device: &'f Device<'_>, exposed: i64) -> Self {
        let is_much = |ns: i64| ns as f64 >= LEAST_EXCESS * exposed as f64;
        let waits = facts.matched.device(device.name);
        let mut excess = excess(facts, device);
        let rate = excess.as_mut().and_then(|excess| excess.rate.take());
        let excess = excess.filter(|excess| is_much(excess.ns));
        let excess_ns = excess.as_ref().map_or(0, |excess| length(&excess.exposed));
        let slow = Slow::of(facts, device).filter(|slow| {
            let ns = length(&slow.exposed);
            waits.is_none() && ns > excess_ns && is_much(ns)
        });
        let waited = match (waits, &slow) {
            (Some(waits), _) => &waits.exposed[..],
            (None, Some(slow)) => &slow.exposed,
            (None, None) => excess.as_ref().map_or(&[][..], |excess| &excess.exposed),
        };
        // (What was matched is measured, and what is slower than any link is no rate.)
        let rate = rate.filter(|_| waits.is_none() && slow.is_none());
        let held = device.held(&without(&device.exposed(), waited));
        let held = held.filter(|held| is_much(length(&held.times)));
        let held_times = held.as_ref().map_or(&[][..], |held| &held.times);
        let left_out = union(waited.iter().chain(held_times).copied().collect());
        Self { waits, excess, slow, rate, held, left_out }
    }

    fn is_known(&self) -> bool {
        self.waits.is_some() || self.slow.is_some()
    }

    fn is_estimate(&self) -> bool {
        let is_told = self.excess.is_some() || self.slow.is_some() || self.rate.is_some();
        self.waits.is_none() && is_told
    }

    fn says_something(&self) -> bool {
        self.is_known() || self.is_estimate() || self.rate.is_some() || self.held.is_some()
    }

    /// `limited` is what limits the bound.
    fn meaning(
        &self,
        (facts, device): (&Facts<'_>, &Device<'_>),
        (exposed, compute_ns, bound): (i64, i64, i64),
        limited: &str,
    ) -> String {
        let others = match (self.waits, &self.slow, &self.excess) {
            (Some(waits), ..) => {
                let held_ns = self.held.as_ref().map_or(0, |held| length(&held.times));
                let exposed = exposed.saturating_sub(held_ns);
                let text = waiting(waits, exposed, facts.matched.who(), (compute_ns, bound));
                match facts.matched.is_part {
                    true => format!("{text} Some ranks have no file. {}", Matched::OTHERS),
                    false => text,
                }
            }
            (None, Some(slow), _) => slow.sentence(given(facts)),
            (None, None, Some(excess)) => excess.sentence(),
            (None, None, None) => unmatched(facts, device),
        };
        let rate = self.rate.as_ref().map(Rate::sentence);
        let is_told = self.waits.is_some() || self.slow.is_some() || self.excess.is_some();
        let held = self.held.as_ref().map(|held| held.sentence(is_told));
        // (What was matched says it itself.)
        let limited = Some(limited.to_owned()).filter(|_| self.waits.is_none());
        let parts = [rate, Some(others), held, limited];
        let told: Vec<String> =
            parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        told.join(" ")
    }
}

/// Whether the report says it elsewhere; `says_more`: whether anything is known of what it waits for, or what limits the bound.
fn is_told(facts: &Facts<'_>, device: &Device<'_>, bound_ns: i64, says_more: bool) -> bool {
    match says_more {
        true => is_told_by_ranks(facts, device, bound_ns),
        false => is_told_first(facts, device),
    }
}

/// Whether hiding it would save too little for an action, and what of it is waiting the table of ranks or the late device says.
fn is_told_by_ranks(facts: &Facts<'_>, device: &Device<'_>, bound_ns: i64) -> bool {
    let (_, window_ns) = device.exposed_told();
    let is_little = |ns: i64| (ns as f64) < LITTLE_SHARE * window_ns as f64;
    let is_told = |waits: &Waits| {
        let matched = &facts.matched;
        matched.is_of_files() || matched.latest().is_some() || is_little(waits.exposed_ns)
    };
    is_little(bound_ns) && facts.matched.device(device.name).is_some_and(is_told)
}

/// Whether communication of which nothing is known is the largest part of the wall time that a device loses: the first sentence has the
/// figure then, and the comparison of the ranks says why it tells no more.
fn is_told_first(facts: &Facts<'_>, device: &Device<'_>) -> bool {
    let lost = facts.wall.iter().filter(|row| row.part != WallPart::Compute);
    let most = lost.max_by_key(|row| row.total_ns);
    given(facts).is_some()
        && most.is_some_and(|row| {
            row.part == WallPart::Communication
                && (row.device == device.name || facts.gpu.devices.len() == 1)
                && row.share_pct >= crate::LEAST_PCT
        })
}

/// Whether it is enough of the time that the bar of a device is of.
fn is_worth_a_word(device: &Device<'_>) -> bool {
    let (told_ns, window_ns) = device.exposed_told();
    window_ns > 0 && told_ns as f64 >= LITTLE_SHARE * window_ns as f64
}

/// That nothing is known of what the other ranks do then, and why.
fn unmatched(facts: &Facts<'_>, device: &Device<'_>) -> String {
    let waits = "Part of it may be waiting for other ranks";
    match (given(facts), spread(facts, device)) {
        (Some(given), _) => format!("{waits}. {given}"),
        (None, Some(spread)) => format!("{waits}: {spread}. Only the other traces show how much."),
        (None, None) => format!("{waits}: only their traces show it."),
    }
}

/// How far the launches of the kernel with most time in communication differ, where they differ much.
fn spread(facts: &Facts<'_>, device: &Device<'_>) -> Option<String> {
    let mut times: BTreeMap<StringId, Vec<i64>> = BTreeMap::new();
    for one in facts.gpu.on(device.id()).filter(|one| one.is_communication) {
        times.entry(facts.trace.name(one.slice.row)).or_default().push(one.slice.dur_ns());
    }
    let (name, mut times) = times.into_iter().max_by_key(|(_, times)| times.iter().sum::<i64>())?;
    trace::sort(&mut times);
    let tail = times.len() / TAILS;
    let (fast, slow) = (*times.get(tail)?, *times.get(times.len() - 1 - tail)?);
    (tail > 0 && slow >= fast.saturating_mul(FAR)).then(|| {
        format!(
            "{} launches of {}, of any size, take {} to {} (5th and 95th percentile)",
            count(times.len() as u64),
            short_name(facts.trace.strings.get(name), NAME),
            time(fast),
            time(slow)
        )
    })
}

/// That the traces of other ranks tell nothing of this one, where they are given, and why.
fn given(facts: &Facts<'_>) -> Option<String> {
    let why = facts.matched.is_of_files().then(|| facts.matched.why_none())?;
    let text =
        "Their traces are given, but no collective of this rank could be matched with theirs.";
    Some(format!("{text} {why}").trim_end().to_owned())
}

/// What limits the bound, where that is much less than the transfer; empty where nothing does.
fn limited(
    facts: &Facts<'_>,
    bound_ns: i64,
    (sooner_ns, is_all): (i64, bool),
    transfer_ns: i64,
) -> String {
    if bound_ns as f64 >= LEAST_SAVED * transfer_ns as f64 {
        String::new()
    } else if bound_ns == sooner_ns {
        format!(
            "Removing {}{} would save at most {}: what follows is launched no earlier.",
            if is_all { "all communication" } else { "the rest" },
            // (The bound counts these waits, too.)
            match ranks::waits_on_cpu(facts.slices, facts.details) {
                true => " and all waits of the CPU for other ranks",
                false => "",
            },
            time(sooner_ns),
        )
    } else {
        format!("Other kernels run alone for {}: no more of it can be hidden.", time(bound_ns))
    }
}

/// Where less of the waiting would be saved, something else limits, too.
const LEAST_SAVED: f64 = 0.8;

/// What of the exposed time is waiting for other ranks, and what is not.
fn waiting(waits: &Waits, exposed: i64, who: &str, (compute_ns, bound_ns): (i64, i64)) -> String {
    let most = waits.most();
    let n = plural(waits.n as u64, "collective", "collectives");
    match most {
        None => {
            format!(
                "In {n} that were matched with those of the other {who}s, it waits for none of them."
            )
        }
        Some(wait) => {
            let last = &wait.last;
            let whom = match wait.ns == waits.exposed_ns {
                true => format!("{who} {last}, which joins later"),
                false => format!("{who}s that join later ({} for {who} {last})", time(wait.ns)),
            };
            let is_less = |ns: &i64| (*ns as f64) < LEAST_SAVED * waits.exposed_ns as f64;
            let late = match waits.saves_ns.filter(is_less) {
                Some(ns) => format!(
                    " Without the waiting this {who} would finish at most {} sooner: its own launches come no earlier. The bound excludes the waiting.",
                    time(ns)
                ),
                None => String::new(),
            };
            let transfer_ns = exposed.saturating_sub(waits.exposed_ns).max(0);
            let (rest, of) = rest(waits.transfer_ns.min(transfer_ns), transfer_ns);
            // (The bound is not that of the waiting.)
            let hides = match bound_ns {
                ns if ns < transfer_ns && ns == compute_ns && ns > 0 => {
                    format!("{of} other work could hide {}", time(ns))
                }
                ns if ns < transfer_ns && ns < compute_ns => {
                    format!("{of} at most {} would be saved, because launches come late", time(ns))
                }
                _ => String::new(),
            };
            format!(
                "{} of it is waiting for {whom}, according to {n} matched with those of the other {who}s; {rest}{hides}.{late}",
                time(waits.exposed_ns)
            )
        }
    }
}

/// Of the rest: less of it is the rounding of kernels that lie beside each other.
const ROUNDING: f64 = 0.01;

/// What the exposed time is that is not known to be waiting: transfer, as far as collectives were matched. And how a part of all that is
/// said to be one.
fn rest(transfer_ns: i64, rest_ns: i64) -> (String, &'static str) {
    let unmatched_ns = rest_ns.saturating_sub(transfer_ns);
    let transfer = format!("{} is transfer", time(transfer_ns));
    let unmatched =
        format!("{} is transfer and waiting that cannot be told apart", time(unmatched_ns));
    match transfer_ns {
        _ if unmatched_ns as f64 <= ROUNDING * rest_ns as f64 => (transfer, ", of which"),
        0 => (unmatched, ", of which"),
        _ => (format!("{transfer}, and {unmatched}"), "; of both,"),
    }
}

/// Collectives that are too short to transfer much, where they take most of the time of all.
struct Short {
    n: usize,
    all: usize,
    ns: i64,
    all_ns: i64,
}

impl Short {
    fn of(facts: &Facts<'_>, device: &Device<'_>) -> Option<Self> {
        let own = facts.gpu.on(device.id()).filter(|one| one.is_communication);
        let times: Vec<i64> = own.map(|one| one.slice.dur_ns()).collect();
        let sum = |times: &mut dyn Iterator<Item = i64>| times.fold(0, i64::saturating_add);
        let short = || times.iter().copied().filter(|ns| *ns < SHORT_NS);
        let (ns, all_ns) = (sum(&mut short()), sum(&mut times.iter().copied()));
        let found = Self { n: short().count(), all: times.len(), ns, all_ns };
        (ns > 0 && ns.saturating_mul(2) >= all_ns).then_some(found)
    }

    fn sentence(&self) -> String {
        format!(
            "{} of {} collectives take less than {} each ({} of their time): latency and waiting, hardly transfer.",
            count(self.n as u64),
            count(self.all as u64),
            time(SHORT_NS),
            percent(100.0 * self.ns as f64 / self.all_ns.max(1) as f64)
        )
    }
}

/// Whether most of the communication of a device is by kernels of an engine's own, and not by NCCL or RCCL.
pub(crate) fn is_by_own_kernels(facts: &Facts<'_>, device: &str) -> bool {
    let Some(device) = facts.devices().find(|one| one.name == device) else { return false };
    let by_library = facts.slices.names_with("nccl");
    let is_own = |one: &GpuSlice| !by_library[facts.trace.name(one.slice.row).0 as usize];
    let (own_ns, all_ns) = time_of_collectives(&device, &is_own);
    own_ns.saturating_mul(2) > all_ns
}

/// What the collectives of a device take that `is_own` holds for, and what all take, in ns.
pub(crate) fn time_of_collectives(
    device: &Device<'_>,
    is_own: &dyn Fn(&GpuSlice) -> bool,
) -> (i64, i64) {
    let all = device.slices().filter(|one| one.is_communication);
    all.fold((0_i64, 0_i64), |(own_ns, all_ns), one| {
        let ns = one.slice.dur_ns();
        let own = if is_own(one) { ns } else { 0 };
        (own_ns.saturating_add(own), all_ns.saturating_add(ns))
    })
}

const SLOW_LINK: &str = "their bytes need on a slow link (1 GB/s and 50 µs)";

/// What equal collectives, and their sizes, show of the time of the bar in which a device waits for other ranks, at least, and no other kernel runs; and what
/// they take longer than.
pub(crate) fn waiting_told(facts: &Facts<'_>, device: &Device<'_>) -> Option<(i64, &'static str)> {
    let within = |times: &[Interval]| length(&both(times, &device.window()));
    let equal = excess(facts, device).map(|excess| (within(&excess.exposed), excess.than()));
    let slow = Slow::of(facts, device).map(|slow| (within(&slow.exposed), SLOW_LINK));
    equal.into_iter().chain(slow).max_by_key(|(ns, _)| *ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_matched_is_not_called_transfer() {
        let unmatched = "is transfer and waiting that cannot be told apart";
        let both =
            |first: &str, second: &str| format!("{first} is transfer, and {second} {unmatched}");
        assert_eq!(rest(920_000, 1_000_000), (both("920 µs", "80.0 µs"), "; of both,"));
        assert_eq!(rest(980_000, 1_000_000), (both("980 µs", "20.0 µs"), "; of both,"));
        // A rounding is not named, nor counted as transfer.
        assert_eq!(rest(995_000, 1_000_000), ("995 µs is transfer".to_owned(), ", of which"));
        assert_eq!(rest(0, 1_000_000), (format!("1.00 ms {unmatched}"), ", of which"));
        assert_eq!(rest(0, 0), (format!("{} is transfer", time(0)), ", of which"));
    }
}
