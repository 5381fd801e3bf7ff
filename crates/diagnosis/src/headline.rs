//! The first sentence.

mod outside;
mod work;

use std::borrow::Cow;

use report::units::{percent, time};
use timeline::before_kineto::before_kineto;
use triage::{LATE_START, WallPart, WallRow};

use crate::actions::is_held_by_reads;
use crate::facts::{Device, FULL_PCT, InRanges, Sets};
use crate::words::lower;
use crate::{Facts, Finding, LEAST_PCT, Rule};
use outside::outside;
use work::largest_work;

/// What frames of Python do to the CPU's part of the time; M23 need not say it again.
pub(crate) const STACKS: &str =
    " Recording Python stacks slows the CPU: without stacks this would be shorter.";

/// What recording may do to it.
pub(crate) const SLOWED: &str =
    " Recording slows launches: without the profiler, the GPU's own work may be the limit.";

/// The same of what Python does between launches.
pub(crate) const SLOWED_PYTHON: &str =
    " Recording slows Python: without the profiler, the GPU's own work may be the limit.";

/// Of a GPU that has work and does not run it.
pub(crate) const BLOCKED: &str =
    "is idle, with work queued behind something that may not be in the file,";

/// The same where the file shows that the CPU was ahead before.
pub(crate) const QUEUED: &str = "was queued when the recording began";

/// Beside compute a part is worth a word from this share on.
const SECOND_PCT: f64 = 3.0;

/// What a person would repeat to a colleague: the largest part of the wall time that is not compute, or what the recording cannot
/// tell; and that its clocks disagree, where they do.
pub fn headline(facts: &Facts<'_>, findings: &[Finding]) -> Option<String> {
    let text = largest(facts, findings)?;
    // (Before any figure, as a reader would take it for that of a name.)
    let text = match &facts.triage.displaced {
        Some(displaced) if displaced.is_much(None) => format!("{} {text}", displaced.text()),
        _ => text,
    };
    let text = match &facts.triage.cut {
        Some(cut) => format!("{} {text}", cut.sentence()),
        None => text,
    };
    // (The bar begins with the GPU's work.)
    let mut takeaways = facts.triage.takeaways.iter();
    let text = match takeaways.find(|said| said.starts_with(LATE_START)) {
        Some(late) if facts.has_gpu() => format!("{text} {late}"),
        _ => text,
    };
    let clocks = findings.iter().find(|one| one.rule == Rule::Clocks && !one.is_aside);
    Some(match clocks {
        Some(clocks) => format!("{text} {}", clocks.observation),
        None => text,
    })
}

/// What a finding has observed, where it is about half of the largest part of the wall time or more.
fn is_most(finding: &Finding, most: &WallRow) -> Option<String> {
    let ns = finding.bound_ns.unwrap_or_default();
    (ns.saturating_mul(2) >= most.total_ns).then(|| finding.observation.clone())
}

fn largest(facts: &Facts<'_>, findings: &[Finding]) -> Option<String> {
    let of = |rule: Rule, verdict: &str| {
        findings.iter().find(|finding| finding.rule == rule && finding.verdict == verdict)
    };
    if let Some(unknown) = of(Rule::Busy, "unknown") {
        return Some(format!("{} {}", unknown.observation, unknown.meaning));
    }
    if let Some(cold) = of(Rule::ColdStart, "cold_start") {
        return Some(format!("{} {}", cold.observation, cold.meaning));
    }
    if let Some(lost) = of(Rule::Busy, "not_recorded") {
        // (What is not analysed has no ops that say anything.)
        let is_known = before_kineto(facts.trace).is_none();
        let largest = facts.largest_op().filter(|_| is_known).unwrap_or_default();
        let all = [&*lost.observation, &*lost.meaning, &*largest];
        return Some(all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "));
    }
    if !facts.has_gpu() {
        let first = findings.iter().filter(|finding| finding.bound_ns.is_some());
        return first
            .max_by_key(|finding| finding.bound_ns)
            .map(|finding| finding.observation.clone())
            .or_else(|| Some(format!("The file has no GPU work. {}", facts.largest_op()?)))
            .or_else(|| Some(of(Rule::Busy, "no_gpu")?.observation.clone()));
    }
    let wall = &facts.wall;
    let lost = wall.iter().filter(|row| row.part != WallPart::Compute);
    // (Where nothing is lost, of the first device.)
    let most = lost.max_by(|a, b| a.share_pct.total_cmp(&b.share_pct)).or(wall.first())?;
    if let Some(again) = of(Rule::HostBound, "captures_again").and_then(|one| is_most(one, most)) {
        return Some(again);
    }
    if let Some(loader) = by_loader(facts, findings, most) {
        return Some(loader);
    }
    if let Some(launches) = by_launches(facts, findings, most) {
        return Some(launches);
    }
    if let Some(step) = of_first_step(facts, findings, most) {
        return Some(step);
    }
    let late = facts.devices().filter_map(|device| late(findings, &device));
    let late = late.max_by(|a, b| a.row.share_pct.total_cmp(&b.row.share_pct));
    let late = late.filter(|late| late.row.share_pct > most.share_pct);
    let most = late.as_ref().map_or(most, |late| &late.row);
    let gpu = gpu_of(facts, most);
    let whole = facts.whole();
    if most.share_pct < LEAST_PCT || most.part == WallPart::Compute {
        return computes(facts, findings, most);
    }
    let share = percent(most.share_pct);
    let ns = time(most.total_ns);
    let mut text = lost_time(facts, most, late.as_ref())?;
    let no_cpu = facts.host.cpu_ops.ops.is_empty() && facts.slices.annotations.is_empty();
    if most.part == WallPart::Unexplained && no_cpu {
        // (Calls alone are what a recording of the GPU has.)
        return Some(format!(
            "{gpu} is idle for {share} of {whole} ({ns}), and the file does not show why: no ops were recorded. Record with \
             activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], after a few warm-up iterations."
        ));
    }
    let is_whole = facts.left_out().is_none();
    if !is_whole {
        text.push_str(&left_out(facts));
    } else if !most.of_steps {
        text.push_str(&outside(facts, &most.device));
    }
    let of_cpu = matches!(most.part, WallPart::Launch | WallPart::HostCompute);
    // (All late launches are told without it, a part of the bar with it.)
    let (also, least) = if late.is_some() { ("another ", 10) } else { ("", 2) };
    // (That is no work of the CPU, and has no line to be made faster.)
    let others = of_row(facts, &most.device)
        .and_then(|device| device.waits_for_others().cloned())
        .filter(|place| of_cpu && place.total_ns.saturating_mul(least) >= most.total_ns);
    if is_whole && others.is_none() {
        text.push_str(&at_line(facts, most));
    }
    if let Some(place) = others {
        text.push_str(&format!(
            " For {also}{} of late launches the launching thread waits for another process or thread in {}.",
            time(place.total_ns),
            place.name
        ));
    }
    Some(without_profiler(facts, findings, most, text))
}

/// The part of the wall time that is lost, with its share.
fn lost_time(facts: &Facts<'_>, most: &WallRow, late: Option<&Late>) -> Option<String> {
    let (gpu, whole) = (gpu_of(facts, most), facts.whole());
    let (share, ns) = (percent(most.share_pct), time(most.total_ns));
    let in_graph = of_row(facts, &most.device)
        .filter(|_| is_of_cpu(most.part) && most.part != WallPart::Start)
        .and_then(|device| Some(format!(", {}", device.in_graph_launch()?.part())))
        .unwrap_or_default();
    let of_work = of_row(facts, &most.device)
        .filter(|_| late.is_some() || most.part == WallPart::HostCompute)
        .and_then(|device| Some(device.one_work()?.part()))
        .unwrap_or_default();
    Some(match late {
        Some(Late { with_start: true, .. }) => {
            format!("{gpu} waits for launches for {share} of {whole} ({ns}){in_graph}.")
        }
        Some(_) => {
            format!(
                "{gpu} is idle for {share} of {whole} ({ns}) because the CPU launches work late{in_graph}{of_work}."
            )
        }
        None => {
            let (what, waits) = (state(facts, most)?, waiting(facts, most));
            format!("{gpu} {what} for {share} of {whole} ({ns}{waits}){in_graph}{of_work}.")
        }
    })
}

/// All late launches of a device as one part.
struct Late {
    /// The sums, with the part that has most of them.
    row: WallRow,
    /// Whether their way to the device is among them.
    with_start: bool,
}

/// The late launches of a device as one part, as the action is about them all: short gaps before them and longer ones, and where launches
/// limit the device, their way to it. `None` where no finding is about them, or one part has nearly all.
fn late(findings: &[Finding], device: &Device<'_>) -> Option<Late> {
    let is_of = |one: &&Finding| one.device.as_deref() == Some(device.name);
    let of = |verdict: &str| findings.iter().filter(is_of).any(|one| one.verdict == verdict);
    let with_start = of("launch_bound");
    if !with_start && !of("host_bound") || device.first_step().is_some() {
        return None;
    }
    let parts = [WallPart::Launch, WallPart::HostCompute, WallPart::Start];
    let parts = if with_start { &parts[..] } else { &parts[..2] };
    let mut rows: Vec<&WallRow> = parts.iter().filter_map(|part| device.wall(*part)).collect();
    trace::sort_by(&mut rows, |a, b| b.total_ns.cmp(&a.total_ns));
    // (Beside the largest part a little one is no other figure.)
    let [first, second, ..] = rows[..] else { return None };
    let (total_ns, share_pct) = if with_start { device.late_with_start() } else { device.late() };
    (second.share_pct >= SECOND_PCT && total_ns > first.total_ns)
        .then(|| Late { row: WallRow { total_ns, share_pct, ..first.clone() }, with_start })
}

/// The sentence on one step that the profiler starts in, where late launches would be the largest part.
fn of_first_step(facts: &Facts<'_>, findings: &[Finding], most: &WallRow) -> Option<String> {
    let step = of_row(facts, &most.device)?.first_step()?;
    if !is_of_cpu(most.part) || most.share_pct < LEAST_PCT {
        return None;
    }
    let is_it = |row: &&WallRow| row.device == most.device && row.part == WallPart::Compute;
    let compute_pct = facts.wall.iter().find(is_it).map_or(0.0, |row| row.share_pct);
    let first = match compute_pct >= most.share_pct {
        true => computes(facts, findings, most)?,
        false => {
            let (gpu, what) = (gpu_of(facts, most), state(facts, most)?);
            let (share, ns) = (percent(most.share_pct), time(most.total_ns));
            format!("{gpu} {what} for {share} of {} ({ns}).", facts.whole())
        }
    };
    Some(format!("{first} {}", step.sentence()))
}

/// The same with what is known, or to be feared, of the run without the profiler.
fn without_profiler(
    facts: &Facts<'_>,
    findings: &[Finding],
    most: &WallRow,
    text: String,
) -> String {
    let timed = of_row(facts, &most.device).and_then(|device| device.timed_as_recorded());
    match timed.filter(|_| is_of_cpu(most.part)) {
        Some(timed) if timed.is_work() => format!("{} {}", timed.headline(), lower(&text)),
        Some(timed) => format!("{text}{}", timed.sentence()),
        None => format!("{text}{}", recorded(facts, findings, most)),
    }
}

/// Whether the CPU has a part of the wall time: recording makes it longer.
pub(crate) fn is_of_cpu(part: WallPart) -> bool {
    matches!(part, WallPart::Launch | WallPart::Start | WallPart::HostCompute)
}

/// What recording did to a part that the CPU has; empty where that is not known.
fn recorded(facts: &Facts<'_>, findings: &[Finding], most: &WallRow) -> String {
    let device = of_row(facts, &most.device);
    let is_one_work = device.as_ref().is_some_and(|device| device.one_work().is_some());
    match device.map_or(0, |device| device.queued_before_ns()) {
        ns if ns > 0 && is_of_cpu(most.part) && !is_one_work => {
            format!(
                " {} of GPU work {QUEUED}: the CPU was ahead then, and may stay ahead without the profiler.",
                time(ns)
            )
        }
        _ => slowed(facts, findings, most).to_owned(),
    }
}

/// The same where nothing shows that the CPU was ahead before.
fn slowed(facts: &Facts<'_>, findings: &[Finding], most: &WallRow) -> &'static str {
    let of_launches = [WallPart::Launch, WallPart::Start].contains(&most.part);
    if !is_of_cpu(most.part) {
        return "";
    }
    let device = of_row(facts, &most.device);
    let has_stacks = || {
        let is_it = |found: &Finding| found.rule == Rule::Profiler && found.verdict == "inflated";
        most.part != WallPart::Start && findings.iter().any(is_it)
    };
    // (One long call is as long without stacks.)
    if device.as_ref().is_some_and(|device| device.one_work().is_some()) {
        return "";
    }
    let slowed = device.and_then(|device| device.slowed_by_recording());
    let slowed = slowed.is_some_and(|slowed| slowed.leaves_gpu()) && !is_held_by_reads(facts);
    match (slowed, of_launches) {
        (true, true) => SLOWED,
        (true, false) => SLOWED_PYTHON,
        (false, _) if has_stacks() => STACKS,
        (false, _) => "",
    }
}

/// How the device of a row is called.
fn gpu_of(facts: &Facts<'_>, row: &WallRow) -> String {
    if facts.has_one_device() {
        return "The GPU".to_owned();
    }
    let name = of_row(facts, &row.device).map(|device| device.name);
    format!("GPU {}", name.unwrap_or(&row.device))
}

/// What the data loader holds up, where that is more than the largest part: with the communication that runs meanwhile.
fn by_loader(facts: &Facts<'_>, findings: &[Finding], most: &WallRow) -> Option<String> {
    let device = of_row(facts, &most.device).filter(|_| most.part != WallPart::Compute)?;
    let is_it = |found: &&Finding| {
        found.rule == Rule::DataLoader
            && found.device.as_deref() == Some(device.name)
            && found.bound_ns > Some(most.total_ns)
    };
    let loader = findings.iter().find(is_it)?;
    Some(format!("{}{}", loader.observation, left_out(facts)))
}

/// That a device computes for most of the time; `most` is the largest part that it does not compute in, if it has any.
fn computes(facts: &Facts<'_>, findings: &[Finding], most: &WallRow) -> Option<String> {
    let is_it = |row: &&WallRow| row.device == most.device && row.part == WallPart::Compute;
    let computes = facts.wall.iter().find(is_it)?;
    let differ = |one: &&Finding| {
        one.rule == Rule::EqualKernels
            && one.verdict == "differ"
            && of_row(facts, &most.device).is_some_and(|of| one.device.as_deref() == Some(of.name))
    };
    let rest = if let Some(differ) = findings.iter().find(differ) {
        let range = differ.evidence.first().map_or("", |evidence| &evidence.value);
        format!("; equal launches of one kernel take {range}, and the file does not show why.")
    } else if computes.share_pct >= FULL_PCT {
        ": only less or faster GPU work would shorten it.".to_owned()
    } else if most.share_pct < SECOND_PCT || most.part == WallPart::Compute {
        ": less or faster GPU work would shorten it most.".to_owned()
    } else {
        format!("; next is {} ({}).", lower(most.part.title()), percent(most.share_pct))
    };
    Some(format!(
        "{} computes for {} of {}{rest}{}{}",
        gpu_of(facts, most),
        percent(computes.share_pct),
        facts.whole(),
        largest_work(facts, &most.device),
        left_out(facts)
    ))
}

/// That launches limit a device whose largest part is communication: without that it would be done hardly sooner, while late
/// launches cost more. (Where collectives tell for which rank it waits, that is said instead.)
fn by_launches(facts: &Facts<'_>, findings: &[Finding], most: &WallRow) -> Option<String> {
    if most.part != WallPart::Communication || !waiting(facts, most).is_empty() {
        return None;
    }
    let device = of_row(facts, &most.device)?;
    let sooner_ns = device.sooner_without_communication_ns();
    let is_it = |found: &&Finding| {
        found.verdict == "launch_bound_behind_communication"
            && found.device.as_deref() == Some(device.name)
            && found.bound_ns > Some(sooner_ns)
    };
    findings.iter().find(is_it)?;
    let gpu = match facts.has_one_device() {
        true => "the GPU".to_owned(),
        false => gpu_of(facts, most),
    };
    Some(format!(
        "Launches limit {gpu}: it runs only communication kernels for {} of {} ({}), but removing all communication would save at most \
         {}.{}",
        percent(most.share_pct),
        facts.whole(),
        time(most.total_ns),
        time(sooner_ns),
        left_out(facts)
    ))
}

/// What a device does in a part of the wall time; `None` where that is its work.
fn state(facts: &Facts<'_>, most: &WallRow) -> Option<Cow<'static, str>> {
    let text = match most.part {
        WallPart::Compute => return None,
        WallPart::Communication => "runs only communication kernels",
        WallPart::Copies => "runs only copies and fills",
        WallPart::DataLoading => "waits for the data loader",
        WallPart::HostCompute => "is idle during CPU work",
        WallPart::Launch => "is idle in the gaps between launches",
        WallPart::Start => "is idle between the launch of a kernel and its start",
        WallPart::HostWaits => {
            "is idle during and right after calls in which the CPU waits for it,"
        }
        WallPart::Allocation => "is idle while the CPU allocates or frees memory,",
        WallPart::Loading => match sets_up(facts, most) {
            Some(sets) => {
                let sets = sets.clause();
                let text =
                    format!("is idle while {sets}, code is loaded and libraries are set up,");
                return Some(text.into());
            }
            None => "is idle while the CPU loads code and sets up libraries,",
        },
        WallPart::Profiler => "waits for the profiler",
        WallPart::Between => "is idle in pauses between queued kernels",
        WallPart::Queued => BLOCKED,
        WallPart::Unexplained => match in_ranges(facts, most) {
            Some(ranges) => {
                let named = ranges.named();
                let text = format!("is idle in {named}, in which no op or call is recorded,");
                return Some(text.into());
            }
            None => "is idle, with no op, call or frame recorded on the CPU to explain it,",
        },
    };
    Some(text.into())
}

/// That most of the exposed communication is waiting for a rank, where the collectives tell: ", 35.6 ms of it because rank 1 joins later".
fn waiting(facts: &Facts<'_>, most: &WallRow) -> String {
    let waits = facts.matched.device(&most.device).filter(|_| most.part == WallPart::Communication);
    match waits.and_then(|waits| waits.most()) {
        Some(wait) if wait.ns.saturating_mul(2) >= most.total_ns => {
            let (who, last) = (facts.matched.who(), &wait.last);
            let late = match wait.saves_ns.filter(|ns| ns.saturating_mul(2) < wait.ns) {
                Some(ns) => {
                    // (Those of this rank, or of the next to last one.)
                    format!(", which costs at most {}: other launches come no earlier", time(ns))
                }
                None => String::new(),
            };
            format!(", {} of it because {who} {last} joins later{late}", time(wait.ns))
        }
        _ => String::new(),
    }
}

/// The device of a row of the bar. (The only one may have no name there.)
fn of_row<'f>(facts: &'f Facts<'_>, name: &str) -> Option<Device<'f>> {
    let one = facts.gpu.devices.len() == 1;
    facts.devices().find(|device| one || device.name == name)
}

/// The program's annotations that are open for most of the idle time of which nothing else is recorded.
fn in_ranges<'f>(facts: &'f Facts<'_>, part: &WallRow) -> Option<&'f InRanges> {
    let ranges = of_row(facts, &part.device)?.in_ranges()?;
    (ranges.ns.saturating_mul(2) >= part.total_ns).then_some(ranges)
}

/// What works on code for most of a part.
fn sets_up(facts: &Facts<'_>, part: &triage::WallRow) -> Option<Sets> {
    let device = of_row(facts, &part.device)?;
    device.sets_up_most_of(&device.times(part.part)).map(|(sets, _)| sets)
}

/// Where the launching thread is for most of the largest part, where that is one place.
fn at_line(facts: &Facts<'_>, most: &triage::WallRow) -> String {
    let of_cpu = [WallPart::HostCompute, WallPart::DataLoading].contains(&most.part);
    match of_row(facts, &most.device).as_ref().and_then(Device::waits_at) {
        // (What is open for longer is around everything.)
        Some(place)
            if of_cpu
                && place.total_ns.saturating_mul(2) >= most.total_ns
                && place.total_ns <= most.total_ns =>
        {
            format!(
                " While it waits for the CPU, the launching thread is in {} for {}.",
                place.name,
                time(place.total_ns)
            )
        }
        _ => String::new(),
    }
}

/// That cold iterations are left out; empty where none are, or where that changes nothing: then the chapter of iterations says it.
fn left_out(facts: &Facts<'_>) -> String {
    let Some(iterations) = facts.iterations.as_ref().filter(|of| of.is_cold_told) else {
        return String::new();
    };
    let place = iterations.cold_place();
    match facts.left_out() {
        None => String::new(),
        Some((1, all)) => format!(" 1 of {all} iterations{place} is cold and left out."),
        Some((cold, all)) => format!(" {cold} of {all} iterations{place} are cold and left out."),
    }
}
