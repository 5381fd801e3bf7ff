//! What a person would say first about a snapshot.

use report::Confidence;
use report::units::count;

use crate::amounts::{percent, share, size};
use crate::classes::Class;
use crate::findings::{LEAST_CLASS, at};
use crate::leader::{Leader, leader};
use crate::ooms::OomRow;
use crate::report::{SnapshotReport, Timeline};
use crate::site::{NO_STACK, SiteRow, of_it_in};

/// A call site is named from this share of the bytes on, in percent.
const LEAST_SHARE: f64 = 20.0;

/// A node of autograd, which has no line of the program, is named from this share of the bytes on, in percent.
const LEAST_NODE: f64 = 30.0;

/// Bytes without a stack are worth another recording from this share on, in percent.
const MOST_NAMELESS: f64 = 80.0;

/// A second call site is named from this share of the first one's bytes on, in percent.
const LEAST_EQUAL: f64 = 99.0;

/// A call site is named instead of a class of which it holds this part, in percent.
const MOST_OF_CLASS: f64 = 90.0;

/// A call site that holds more than a class that stays is named instead where the class is less than this part of it, in percent.
const NEARLY_ALL: f64 = 95.0;

/// A peak that is reached at least as often is that of alike iterations.
const LEAST_TIMES: usize = 3;

/// The device and the sentence; `None` where nothing more than its state is recorded, or where only a part of the file was read.
pub(crate) fn headline(report: &SnapshotReport) -> Option<(&str, String)> {
    if report.reading.is_partial() {
        return None;
    }
    let timelines =
        || report.devices.iter().filter_map(|(device, it)| Some((device, it.timeline.as_ref()?)));
    // The last failure of a device is the one that ended the run; the largest says most.
    let failed = timelines().filter_map(|(device, it)| Some((device, it, it.ooms.last()?)));
    if let Some((device, timeline, oom)) = failed.max_by_key(|(_, _, oom)| oom.size) {
        return Some((device, ran_out(device, timeline, oom)));
    }
    let usable = timelines().filter(|(_, it)| it.is_usable());
    if let Some((device, timeline)) = usable.max_by_key(|(_, it)| it.replay.peak_requested) {
        return Some((device, peak(device, timeline, report)));
    }
    let mut contradicted = timelines().filter(|(_, it)| it.replay.timeline_usable);
    if let Some((device, _)) = contradicted.next() {
        let text = format!(
            "The events of device {device} contradict its segments: its levels and its peak are not reliable."
        );
        return Some((device, text));
    }
    let (device, figures) = report.devices.iter().max_by_key(|(_, it)| it.totals.allocated)?;
    let whole = figures.totals.allocated;
    // (Without a holder the state of the device says as much.)
    let top = Some(holder(&figures.live_sites, whole, None)).filter(|top| !top.is_empty())?;
    let text =
        format!("Device {device} has {} in use at the time of the snapshot{top}.", size(whole));
    Some((device, text))
}

impl Timeline {
    /// Whether levels and peaks can be told.
    pub(crate) fn is_usable(&self) -> bool {
        self.replay.trace_matches_snapshot && self.replay.timeline_usable
    }
}

#[inline(never)]
fn ran_out(device: &str, timeline: &Timeline, oom: &OomRow) -> String {
    let mut text = format!(
        "Device {device} ran out of memory: an allocation of {} failed{}{}, with {} of the {} reserved in use",
        size(oom.size),
        at(oom),
        if oom.is_limited() { ", refused by a limit of the process" } else { "" },
        size(oom.live_requested),
        size(oom.reserved)
    );
    if timeline.is_usable() {
        let replay = &timeline.replay;
        let top = holder_at_peak(timeline);
        if replay.peak_requested > oom.live_requested && !top.is_empty() {
            text.push_str(&format!(". The peak was {}", size(replay.peak_requested)));
        }
        text.push_str(&top);
    }
    text.push('.');
    text
}

#[inline(never)]
fn peak(device: &str, timeline: &Timeline, report: &SnapshotReport) -> String {
    let replay = &timeline.replay;
    let n = timeline.levels.requested.len().saturating_sub(1);
    let shown = &replay.shown;
    let at = match shown.index {
        0 => format!("before the first event of {}", count(n as u64)),
        index if index == n => format!("at the end of {} events", count(n as u64)),
        index => format!("before event {} of {}", count(index as u64), count(n as u64)),
    };
    let is_ranged = report.reading.left_out_of(device).is_some();
    let at = match shown.nth {
        1 => at,
        nth => format!(
            "{at} (at the {} of {} equal peaks, because more of it has a recorded allocation than at the first, before event {})",
            ordinal(nth),
            count(shown.times as u64),
            count(replay.peak_index as u64)
        ),
    };
    let scope = match (is_ranged, shown.index == n) {
        (true, _) => " in the chosen range",
        // (An allocation is the last event.)
        (_, true) => " (memory still grew when the recording ended: the run may peak higher)",
        _ => "",
    };
    let nameless = replay.peak_sites.first().filter(|top| top.site == NO_STACK);
    let nameless = nameless.map_or(0, |top| top.bytes.min(shown.untraced_bytes));
    // (Who holds what stands all the time matters where memory is short: it is weights and state.)
    let kept = if report.is_pressed(device) { 0 } else { timeline.classes.standing() };
    let nameless = nameless.saturating_sub(kept);
    let holder = holder_at_peak(timeline);
    let subject = match timeline.cut {
        Some(_) => "Of what is recorded, memory",
        None => "Memory",
    };
    format!(
        "{subject} in use peaks at {} on device {device}, {at}{scope}{}.{}",
        size(replay.peak_requested),
        holder,
        match percent(nameless, replay.peak_requested) >= MOST_NAMELESS
            && report.is_complete
            && !is_ranged
        {
            true =>
                " Start recording before the model is loaded to see what holds the memory that has no stack.",
            false => "",
        }
    ) + &steady(timeline)
        + &standing(timeline, &holder).filter(|_| !is_ranged).unwrap_or_default()
}

/// `2nd`, `3rd`, `11th`.
fn ordinal(n: usize) -> String {
    let end = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{}{end}", count(n as u64))
}

/// That the peak recurs, to the byte, in most of the recording; `None` where that says little.
pub(crate) fn recurs(device: &str, timeline: &Timeline) -> Option<String> {
    let (times, calls) = (timeline.replay.shown.times, timeline.replay.shown.calls);
    let over = match calls == times {
        true => String::new(),
        false => format!(", in at least {} calls", count(calls as u64)),
    };
    (calls >= LEAST_TIMES && timeline.ooms.is_empty()).then(|| {
        format!(
            "Device {device}: memory in use reaches this peak {} times, to the byte{over}: nothing grows from one to the next.",
            count(times as u64)
        )
    })
}

/// What is added to blocks that a call site holds for the whole recording. `holder` is the end of the sentence before.
#[inline(never)]
fn standing(timeline: &Timeline, holder: &str) -> Option<String> {
    let falls = &timeline.classes.falls;
    let (rest, top) = (falls.sites.filter(|rest| *rest > 0)?, falls.makers.first()?);
    let from = match top.stands_from? {
        0 => "before the first event".to_owned(),
        level => format!("event {}", count(level as u64 - 1)),
    };
    let blocks = if top.blocks == 1 { "This block is" } else { "These blocks are" };
    let what = match holder.contains(&top.site) {
        true => blocks.to_owned(),
        false => format!("What {} allocated is", top.site),
    };
    Some(format!(
        " {what} in use from {from} to the end of the recording; all other memory in use peaks at {}.",
        size(rest)
    ))
}

/// What the next step needs, where the recorded peak is lower because the optimizer makes its state in the record.
#[inline(never)]
fn steady(timeline: &Timeline) -> String {
    timeline.classes.falls.steady.as_ref().map_or_else(String::new, |it| {
        format!(
            " The next step peaks near {} (an estimate): the optimizer allocates {} of state from event {} on, which stays.",
            size(it.peak()),
            size(it.state),
            count(it.event as u64)
        )
    })
}

/// What holds most of the peak: a class where it has more than each call site; else a call site.
#[inline(never)]
fn holder_at_peak(timeline: &Timeline) -> String {
    let (sites, whole) = (&timeline.replay.peak_sites, timeline.replay.peak_requested);
    // (Bytes without a stack may be of the class, too.)
    let nameless = |class| {
        let first = sites.first().filter(|top| top.site == NO_STACK).map_or(0, |top| top.bytes);
        let of_class = timeline.classes.peak_sites.iter();
        let mut own = of_class.filter(|row| row.0 == class && row.1 == NO_STACK);
        first.saturating_sub(own.next().map_or(0, |row| row.2))
    };
    let named = sites.iter().filter(|row| row.site != NO_STACK);
    let most = named.clone().next().map_or(0, |top| top.bytes);
    let of_function = leader(&mut named.map(|row| (&*row.site, row.bytes)));
    let of_function = of_function.map_or(0, |of| of.bytes);
    let class = timeline.classes.largest(true).filter(|(class, bytes, _)| {
        let is_more = *bytes > nameless(*class).max(most) && says_more(*class, *bytes, of_function);
        is_more && percent(*bytes, whole) >= LEAST_CLASS
    });
    let Some((class, bytes, of_class)) = class else {
        return holder(sites, whole, Some(timeline));
    };
    let unused = timeline.classes.unused_activations();
    let is_unused = class == Class::Activation && unused.saturating_mul(2) >= bytes;
    let what = match is_unused {
        true => "activations saved for a backward pass that did not run",
        false => class.label(),
    };
    let estimate = match timeline.classes.confidence(class) {
        Confidence::Low => ", as an estimate",
        _ => "",
    };
    let mut text = format!(
        ", {} ({}) of it {what}{estimate}{}",
        size(bytes),
        share(bytes, whole),
        from(&of_class, bytes)
    );
    let rest = nameless(class);
    if rest > 0 {
        text.push_str(&format!(
            ", and {} ({}) {}",
            size(rest),
            share(rest, whole),
            older(Some(timeline))
        ));
    }
    text
}

/// What bytes without a stack are: no fault of the recording where they are older than it.
fn older(timeline: Option<&Timeline>) -> &'static str {
    let is_older = timeline.is_some_and(|it| {
        let first = it.replay.peak_sites.first().filter(|top| top.site == NO_STACK);
        first.is_some_and(|top| top.bytes == it.replay.shown.nameless_bytes)
    });
    let is_adam = |it: &Timeline| {
        let share = percent(it.classes.standing(), it.replay.shown.nameless_bytes);
        it.classes.has_adam && share >= LEAST_EQUAL
    };
    match is_older {
        true if timeline.is_some_and(is_adam) => {
            "allocated before the first event: weights and the two moments of Adam (an estimate: their sizes are those of the gradients, \
             three times)"
        }
        true => "allocated before the first event",
        false => "without a recorded stack",
    }
}

/// The call site or the function that holds most of some rows.
#[inline(never)]
fn leader_of(sites: &[SiteRow]) -> Option<Leader> {
    leader(&mut sites.iter().map(|row| (&*row.site, row.bytes)))
}

/// Whether a class says more than the call site or function that holds most: one that holds nearly all of the class says more, but not
/// of what its lines make for the whole run.
fn says_more(class: Class, bytes: i64, most: i64) -> bool {
    let is_kept = matches!(class, Class::OptimizerState | Class::Parameter | Class::Cast);
    percent(most, bytes) < MOST_OF_CLASS || is_kept && percent(bytes, most) >= NEARLY_ALL
}

/// What most of the bytes with a stack are, where the largest class of them says more than their call sites; `rest` are these bytes.
#[inline(never)]
fn class_of_rest(timeline: &Timeline, next: &Leader, rest: i64) -> Option<String> {
    let (class, bytes, of_class) = timeline.classes.largest(false)?;
    let is_told = says_more(class, bytes, next.bytes) && percent(bytes, rest) >= LEAST_CLASS;
    is_told.then(|| {
        format!("; {} of the rest {}{}", size(bytes), class.label(), from(&of_class, bytes))
    })
}

/// Where most of the bytes of a class are from; empty where a call site has little of them, which explains nothing.
#[inline(never)]
fn from(of: &Leader, all: i64) -> String {
    if percent(of.bytes, all) < LEAST_SHARE || of.name == NO_STACK {
        return String::new();
    }
    // (The lines of a function are in brackets.)
    match of.n_lines {
        1 => format!(" ({})", of.part(all, "")),
        _ => format!(", {}", of.part(all, " of them")),
    }
}

/// The call site that holds most, where that says something.
#[inline(never)]
fn holder(sites: &[SiteRow], whole: i64, timeline: Option<&Timeline>) -> String {
    let first = sites.first().filter(|top| top.bytes > 0);
    if let Some(first) = first.filter(|first| first.site == NO_STACK && first.bytes < whole) {
        // What is known of the rest, which is what the recording is about.
        let rest = whole.saturating_sub(first.bytes);
        let next = sites.get(1..).and_then(leader_of).map(|next| {
            let class = timeline.and_then(|it| class_of_rest(it, &next, rest));
            class.unwrap_or_else(|| match percent(next.bytes, rest) >= LEAST_SHARE {
                true => {
                    let row = sites.get(1).filter(|_| next.n_lines == 1);
                    let detail = row.map_or_else(String::new, detail);
                    format!("; {} of the rest from {}{detail}", size(next.bytes), next.text())
                }
                false => String::new(),
            })
        });
        let next = next.unwrap_or_default();
        return format!(
            ", {} ({}) of it {}{next}",
            size(first.bytes),
            share(first.bytes, whole),
            older(timeline)
        );
    }
    let Some(top) = first.filter(|top| top.site != NO_STACK) else { return String::new() };
    if top.bytes == whole {
        return format!(", all of it from {}{}", top.site, detail(top));
    }
    let of_lines = |of: &Leader| of.n_lines > 1 && percent(of.bytes, whole) >= LEAST_SHARE;
    if let Some(of) = leader_of(sites).filter(of_lines) {
        return format!(
            ", {} ({}) of it from {}",
            size(of.bytes),
            share(of.bytes, whole),
            of.text()
        );
    }
    let least = if top.site.starts_with("<autograd>") { LEAST_NODE } else { LEAST_SHARE };
    if percent(top.bytes, whole) < least {
        return String::new();
    }
    let next = sites.get(1).filter(|next| next.site != NO_STACK);
    let equal = next.filter(|next| percent(next.bytes, top.bytes) >= LEAST_EQUAL);
    format!(
        ", {} ({}) of it from {}{}{}",
        size(top.bytes),
        share(top.bytes, whole),
        top.site,
        detail(top),
        equal.map_or_else(String::new, |next| {
            format!(", and {} from {}", size(next.bytes), next.site)
        })
    )
}

/// What is below and above a call site.
fn detail(of: &SiteRow) -> String {
    let mut text = of_it_in(of.inside.as_ref());
    let callers = of.callers.iter();
    let callers: Vec<String> =
        callers.map(|(caller, bytes)| format!("{caller} ({})", size(*bytes))).collect();
    if !callers.is_empty() {
        text.push_str(&format!(", called by {}", callers.join(", ")));
    }
    text
}
