//! M2, behind communication: a rank whose launches come late does not stand still where a collective runs meanwhile, which waits for a
//! rank that is later still. A replay tells: without any communication the rank would be done hardly sooner.

use std::collections::BTreeMap;

use host::HostSlice;
use host::links::GpuSlice;
use report::units::{percent, time};
use timeline::intervals::{Interval, both, length, union, without};
use trace::StringId;

use super::communication::waiting_told;
use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// From this share of the window on.
const LEAST_SHARE: f64 = 0.1;
/// Of the exposed communication: where more of it would be saved, it is what limits.
const MOST_SOONER: f64 = 0.5;
/// Of the collectives of one kernel, those faster than so many percent of them wait least.
const FAST_PCT: usize = 10;
/// In fewer iterations no place has enough of them.
const LEAST_ALIKE: usize = 3;
/// Fewer collectives of a size may be as long by chance.
const LEAST_STEADY: usize = 5;
/// Launches that come so much earlier than their work hold nothing up.
const AHEAD_NS: i64 = 1_000_000;
/// The longest of them takes at most so many times the shortest.
const STEADY: f64 = 1.1;

/// What the finding says of a device; `None` where communication or something else limits it.
pub fn check(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let sooner_ns = limit(device)?;
    let (exposed_ns, span_ns) = device.exposed_told();
    let (late_ns, _) = device.late_with_start();
    let transfer = Transfer::of(facts, device);
    let (waits_ns, than) = match facts.matched.device(device.name) {
        // (Where what follows is in the queue already, the launches hold nothing up.)
        Some(waits) => (length(&without(&waits.exposed, &queued(device))), ""),
        None => {
            // (Where nothing tells which are alike, one that takes longer may only be larger.)
            let alike = Alike::of(facts, device)
                .map(|alike| (exposed_ns.saturating_sub(transfer.fast_ns), alike.words()));
            // (Where all of a size wait, the fast ones do, too, and the best rate of their group shows it.)
            waiting_told(facts, device).into_iter().chain(alike).max_by_key(|(ns, _)| *ns)?
        }
    };
    // (There the launches wait for data, and more work for each changes nothing.)
    let loading_ns = length(&both(&device.exposed(), device.held_by_loader()));
    let most_ns = exposed_ns.saturating_sub(sooner_ns).saturating_sub(loading_ns);
    let most_ns = most_ns.saturating_sub(transfer.steady_ns).max(0);
    let behind_ns = waits_ns.min(exposed_ns.saturating_sub(sooner_ns));
    let behind_ns = behind_ns.saturating_sub(loading_ns).max(0);
    let most_ns = most_ns.max(behind_ns);
    let share = behind_ns as f64 / span_ns.max(1) as f64;
    if share < LEAST_SHARE {
        return None;
    }
    // (Where the ranks are not compared, what the collectives show is the least that they wait.)
    let is_exact = facts.matched.device(device.name).is_some();
    let is_least = !is_exact;
    let bound_ns = if is_exact { behind_ns } else { most_ns }.saturating_add(late_ns);
    let observation = format!(
        "Launches limit {} even without its communication: removing all of it would save at most {}, although {} is exposed.",
        device.name_within(),
        time(sooner_ns),
        time(exposed_ns),
    );
    Some(
        Finding::fact(Rule::LaunchBound, "launch_bound_behind_communication", observation)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .bound(bound_ns)
            .means(format!(
                "For {}{} ({} of its window) collectives run longer than needed while the CPU has yet to launch what follows: {}. {} {}",
                if is_least { "at least " } else { "" },
                time(behind_ns),
                percent(100.0 * share),
                why(facts, device, (waits_ns, than)),
                match is_exact {
                    true => format!("The bound, an estimate, adds {} of idle time before late launches.", time(late_ns)),
                    false => rests_on(&transfer, behind_ns, most_ns, late_ns),
                },
                device.where_it_waits(),
            ).trim_end())
            .with(
                "wall",
                "exposed communication, and idle time until late launches have started",
                time(exposed_ns.saturating_add(late_ns)),
            )
            .with("wall", "sooner without communication", time(sooner_ns)),
    )
}

/// When other work than communication has been in the queue for [`AHEAD_NS`]. (A thread that is behind is ahead by a kernel or two
/// while a collective waits.)
fn queued(device: &Device<'_>) -> Vec<Interval> {
    let others = device.slices().filter(|one| !one.is_communication);
    let since = |call: HostSlice| call.end_ns.saturating_add(AHEAD_NS);
    let times = others.filter_map(|one| Some((since(one.launch?), one.slice.start_ns)));
    union(times.filter(|(from, to)| from < to).collect())
}

/// What the bound rests on where the ranks are not compared.
fn rests_on(transfer: &Transfer, behind_ns: i64, most_ns: i64, late_ns: i64) -> String {
    let late = time(late_ns);
    let steady = match transfer.steady_ns {
        0 => String::new(),
        ns => format!(
            ", without {} of collectives that take as long as all others of their size",
            time(ns)
        ),
    };
    let most = format!(
        "all {} of communication exposed while launches are late{steady}, because the file does not show how much of it is waiting.",
        time(most_ns)
    );
    match late_ns {
        0 => format!("The bound, an estimate, is {most}"),
        _ => format!(
            "With {late} of idle time before late launches that is about {} or more. The bound, an estimate, is {late} plus {most}",
            time(behind_ns.saturating_add(late_ns)),
        ),
    }
}

/// What shows that they wait, and for whom.
fn why(facts: &Facts<'_>, device: &Device<'_>, (waits_ns, than): (i64, &str)) -> String {
    let who = facts.matched.who();
    let Some(waits) = facts.matched.device(device.name) else {
        return format!(
            "they take {} more than {than}, and probably wait for other ranks",
            time(waits_ns),
        );
    };
    match waits.most() {
        // (One that most of the waiting is for launches later than this one.)
        Some(wait) if wait.ns.saturating_mul(2) >= waits.exposed_ns => {
            format!(
                "{} of all waiting ({}) is for {who} {}",
                time(wait.ns),
                time(waits.exposed_ns),
                wait.last
            )
        }
        _ => format!("they wait for {who}s that launch just as late, for one and then another"),
    }
}

/// How much sooner a device would be done without its communication, where its own launches limit that.
fn limit(device: &Device<'_>) -> Option<i64> {
    let (exposed_ns, span_ns) = device.exposed_told();
    if !device.is_told()
        || device.cold().is_some()
        || (exposed_ns as f64) < LEAST_SHARE * span_ns.max(1) as f64
    {
        return None;
    }
    let sooner_ns = device.sooner_without_communication_ns();
    (sooner_ns as f64 <= MOST_SOONER * exposed_ns as f64).then_some(sooner_ns)
}

/// What collectives that are compared have in common, next to their kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alike {
    /// The sizes.
    Sizes,
    /// Without recorded sizes the place in iterations of one class: the third bucket of gradients is as large in each.
    Places,
    /// The sizes of some, the places of the others (those in graphs).
    SizesAndPlaces,
}

impl Alike {
    /// `None` where nothing is known.
    fn of(facts: &Facts<'_>, device: &Device<'_>) -> Option<Self> {
        let own = || device.slices().filter(|one| one.is_communication);
        let is_sized = |one: &GpuSlice| facts.details.collective(one.slice.row).is_some();
        let n_sized = own().filter(|one| is_sized(one)).count();
        if n_sized == own().count() {
            return Some(Self::Sizes);
        }
        let n = facts.iterations.as_ref().map_or(0, |iterations| iterations.list.len());
        match n_sized {
            _ if n < LEAST_ALIKE => None,
            0 => Some(Self::Places),
            _ => Some(Self::SizesAndPlaces),
        }
    }

    /// The kernels with which each is compared.
    fn words(self) -> &'static str {
        match self {
            Self::Sizes => "fast ones of the same kernels and sizes",
            Self::Places => "fast ones of the same kernels at the same place in the iterations",
            Self::SizesAndPlaces => {
                "fast ones of the same kernels and sizes, or, without a recorded size, at the same place in the iterations"
            }
        }
    }
}

/// What of the collectives of one kernel a collective is compared with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Which<'a> {
    /// Those of its size.
    Size(u32),
    /// Those at its place in iterations of its class: a decode step reduces less than a prefill.
    Place(&'a str, u32),
}

/// How much of the communication of a device is no waiting.
#[derive(Default)]
struct Transfer {
    /// What it would take if each kernel were as fast as the fast ones that are alike.
    fast_ns: i64,
    /// The exposed time of those of a size that all take as long: a rank that waits hardly ever waits as long each time.
    steady_ns: i64,
}

impl Transfer {
    fn of(facts: &Facts<'_>, device: &Device<'_>) -> Self {
        let list = facts.iterations.iter().flat_map(|iterations| &iterations.list);
        let mut list: Vec<(Interval, &str)> = list.map(|one| (one.window(), &*one.class)).collect();
        trace::sort(&mut list);
        let iteration = |at_ns: i64| list.partition_point(|((from, _), _)| *from <= at_ns);
        let mut own: Vec<_> = device.slices().filter(|one| one.is_communication).collect();
        let begun =
            |one: &GpuSlice| one.launch.map_or(one.slice.start_ns, |launch| launch.start_ns);
        trace::sort_by_key(&mut own, |one| (begun(one), one.slice.row));
        // By iteration and kernel: how many came before.
        let mut places: BTreeMap<(usize, StringId), u32> = BTreeMap::new();
        let mut times: BTreeMap<(StringId, Which<'_>), Vec<Interval>> = BTreeMap::new();
        for one in own {
            let name = facts.trace.name(one.slice.row);
            let which = match facts.details.collective(one.slice.row) {
                Some(size) => Which::Size(size),
                None => {
                    let at = iteration(begun(one));
                    let place = places.entry((at, name)).or_default();
                    *place += 1;
                    let own = at.checked_sub(1).and_then(|at| list.get(at));
                    Which::Place(own.map_or("", |(_, class)| *class), *place)
                }
            };
            times.entry((name, which)).or_default().push(one.slice.interval());
        }
        let mut found = Self::default();
        let mut steady: Vec<Interval> = Vec::new();
        for ((_, which), slices) in times {
            let dur_ns = |(from, to): &Interval| to.saturating_sub(*from);
            let mut own: Vec<i64> = slices.iter().map(dur_ns).collect();
            trace::sort(&mut own);
            let fast_ns = own.get(own.len() * FAST_PCT / 100).copied().unwrap_or_default();
            let least = own.iter().map(|ns| fast_ns.min(*ns));
            found.fast_ns = least.fold(found.fast_ns, i64::saturating_add);
            if matches!(which, Which::Size(_)) && is_steady(&own) {
                steady.extend(slices);
            }
        }
        found.steady_ns = length(&both(&union(steady), &device.exposed()));
        found
    }
}

/// Whether collectives, the shortest first, are enough and all take as long.
fn is_steady(sorted_ns: &[i64]) -> bool {
    let ends = sorted_ns.first().zip(sorted_ns.last());
    sorted_ns.len() >= LEAST_STEADY
        && ends.is_some_and(|(least, most)| *most as f64 <= STEADY * *least as f64)
}
