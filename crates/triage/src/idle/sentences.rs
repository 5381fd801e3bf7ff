//! The sentences about idle time: its cause, and where the CPU is meanwhile. What to do a diagnosis says.

use catalog::Platform;
use report::units;
use trace::{Row, Trace, TrackId};

use super::Wait;
use super::cause::{Cause, Explained, WAITING_PCT, shorter};
use super::gaps::{Gap, Gaps};
use super::ops;
use super::place::{Place, places};
use super::words::{cpu_in, in_words, origin};
use crate::attribution::Linker;
use timeline::intervals::{Interval, both, length};
use timeline::percent;
use timeline::uncached::uncached;

/// So many calls that give memory back are no single release.
const FREES: u64 = 3;
/// A gap is with work queued where that holds for this share of it, in percent.
const ALL_PCT: f64 = 90.0;
/// A data loader that is not the largest cause is named from this share of the idle time on, in percent.
const SECOND_PCT: f64 = 10.0;
/// A single gap is named from this share of the idle time on, in percent.
const LONGEST_PCT: f64 = 10.0;
/// Where idle time lies is told from this share of the window on, in percent.
const TOLD_PCT: f64 = 5.0;
/// More gaps than these of a similar length are no longest ones.
const MOST_ALIKE: usize = 100;

/// What the CPU limits by its launches.
#[derive(Clone, Copy)]
pub(crate) struct Limited<'a> {
    /// `the run`, `stage forward and stage backward`.
    pub(crate) parts: &'a str,
    /// The gaps before the launches of these stages; `None` if it is the whole run.
    pub(crate) stages_ns: Option<i64>,
    /// What recording does to them, with a space before it.
    pub(crate) caution: &'a str,
}

/// What the sentences of a device are made of.
pub(crate) struct Device<'a, 'l> {
    pub(crate) trace: &'a Trace,
    pub(crate) linker: &'a mut Linker<'l>,
    pub(crate) explained: &'a Explained,
    pub(crate) gaps: &'a Gaps,
    /// How the GPU is called.
    pub(crate) gpu: &'a str,
    /// Start of the first event.
    pub(crate) zero_ns: i64,
    /// When the first warm iteration begins, where cold ones come before it: on the GPU where the CPU is ahead, else on the CPU.
    pub(crate) warm_from_ns: Option<i64>,
    pub(crate) platform: Platform,
}

impl Device<'_, '_> {
    fn window(&self) -> &'static str {
        if self.explained.of_steps { "the profiler steps" } else { "the GPU span" }
    }

    fn share_of_window(&self, ns: i64) -> String {
        units::percent(percent(ns, self.explained.window_ns))
    }

    fn share(&self, ns: i64) -> String {
        format!("{} of {}", self.share_of_window(ns), self.window())
    }

    /// The sentences about idle time. `limits` are the parts of the run that the CPU limits.
    #[inline(never)]
    pub(crate) fn sentences(&mut self, limits: Option<Limited<'_>>) -> String {
        let Explained { cause, idle_ns, loader_ns, .. } = *self.explained;
        let mut text = self.idle_sentence(limits);
        if cause != Cause::DataLoader && percent(loader_ns, idle_ns) >= SECOND_PCT {
            let ns = units::time(loader_ns);
            text.push_str(&format!(" For {ns} of the idle time the CPU is in the data loader."));
        }
        // (A CPU that is ahead waits for the GPU, and costs nothing: it is said where launches are late nevertheless.)
        if matches!(cause, Cause::Sync | Cause::Paced | Cause::Start) {
            text.push_str(&self.waiting());
        }
        let gaps = self.pauses();
        if gaps.is_empty() {
            text.push_str(&self.confined());
        }
        text + &gaps
    }

    /// That most of the idle time lies in a small part of the window, where no gap is told by itself.
    fn confined(&self) -> String {
        let is_much = percent(self.explained.idle_ns, self.explained.window_ns) >= TOLD_PCT;
        let Some((ns, (from_ns, to_ns))) = self.gaps.confined().filter(|_| is_much) else {
            return String::new();
        };
        format!(
            " {} of the idle time lies within {}, starting at {}.",
            units::time(ns),
            units::time(to_ns.saturating_sub(from_ns)),
            units::time(from_ns.saturating_sub(self.zero_ns))
        )
    }

    /// How long the GPU is idle, and the cause.
    fn idle_sentence(&self, limits: Option<Limited<'_>>) -> String {
        let Explained { cause, idle_ns, .. } = *self.explained;
        let idle = format!(" is idle for {} ({})", units::time(idle_ns), self.share(idle_ns));
        match limits {
            Some(limited) if cause == Cause::Paced => self.limited(limited, &idle),
            _ => format!("{}{idle}{}", self.gpu, self.cause_clause()),
        }
    }

    /// The clause about the cause, with the mark before it and the end of the sentence.
    fn cause_clause(&self) -> String {
        let Explained { cause, idle_ns, n_frees, warm, .. } = *self.explained;
        let ns = self.explained.ns();
        let part =
            if ns == idle_ns { "it".to_owned() } else { format!("{} of it", units::time(ns)) };
        match cause {
            Cause::Queued => self.queued(&part),
            Cause::Between => self.between(&part),
            Cause::DataLoader => format!("; for {part} the CPU is in the data loader."),
            Cause::SetUp if warm => {
                format!(
                    "; in {part} the CPU {}loads kernels or sets up libraries.",
                    self.compiles()
                )
            }
            Cause::SetUp => format!(
                "; in {part} the CPU {}loads kernels or sets up libraries and memory, as in a first run. Profile after a few \
                 warm-up iterations: later ones do not wait for this.",
                self.compiles()
            ),
            Cause::Allocation if uncached(self.trace).is_some() => format!(
                "; for {part} the CPU allocates or frees GPU memory: PyTorch's caching allocator is off (PYTORCH_NO_CUDA_MEMORY_CACHING, \
                 on ROCm also PYTORCH_NO_HIP_MEMORY_CACHING)."
            ),
            Cause::Allocation if n_frees >= FREES => format!(
                "; for {part} the CPU allocates or frees GPU memory, with {} calls that return memory to the driver: PyTorch's allocator \
                 does so when an allocation fails, or where torch.cuda.empty_cache() is called. Reduce peak memory (a smaller batch, \
                 activation checkpointing).",
                units::count(n_frees)
            ),
            Cause::Allocation => format!("; for {part} the CPU allocates or frees GPU memory."),
            Cause::Overhead => format!(
                "; for {part} the CPU is in profiler overhead, which a run without the profiler does not have."
            ),
            Cause::Sync => format!(
                "; {part} falls in or after calls in which the CPU waits for the GPU, so no work is queued."
            ),
            Cause::Paced => self.in_launches().unwrap_or_else(|| {
                let gaps = self.paced_gaps();
                format!(
                    "; {part}, apart from waits for the GPU, passes before the end of a late launch, in {gaps} shorter than 1 ms."
                )
            }),
            Cause::Start => {
                format!("; {part} is between the end of a late launch and the start of its work.")
            }
            Cause::Op => format!(
                "; for {part} the CPU runs PyTorch ops{}.",
                ops::told(self.trace, self.explained)
            ),
            Cause::Python => format!("; for {part} the CPU runs Python code outside any op."),
            Cause::Compiled => format!(
                "; for {part} the CPU is in compiled code, between its recorded ops and runtime calls."
            ),
            Cause::Runtime => format!("; for {part} the CPU is in runtime calls."),
            Cause::Unknown => format!("; no op, call or frame is recorded on the CPU for {part}."),
        }
    }

    /// What else the CPU does in the set-up: that a compiler works in a part of it, that graphs are captured, that modules are imported for
    /// most of it.
    fn compiles(&self) -> String {
        let Explained { compiles, captures, imports, .. } = *self.explained;
        let also = [
            (compiles, "compiles, "),
            (captures, "captures graphs, "),
            (imports, "imports Python modules, "),
        ];
        also.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what).collect()
    }

    /// That launch calls which make most of a gap of a millisecond or more are a larger part than the short gaps; `None` where they are not.
    fn in_launches(&self) -> Option<String> {
        let calls = self.gaps.all.iter().filter_map(|gap| Some((gap, gap.in_launch()?)));
        let ns_of = |times: Interval| times.1.saturating_sub(times.0);
        let calls: Vec<(&Gap, i64)> = calls.map(|(gap, times)| (gap, ns_of(times))).collect();
        let ns = calls.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        let (gap, _) =
            calls.iter().max_by_key(|(_, ns)| *ns).filter(|_| ns > self.explained.ns())?;
        let name = self.trace.name_text(gap.launch?);
        let calls = match calls.len() {
            1 => format!("one call of {name}"),
            n => format!("{n} launch calls, the longest in {name}"),
        };
        Some(format!("; for {} of it the CPU is in {calls}.", units::time(ns)))
    }

    fn paced_gaps(&self) -> String {
        let n = self.gaps.all.iter().filter(|gap| gap.is_paced()).count() as u64;
        units::plural(n, "gap", "gaps")
    }

    /// The sentence where the CPU limits the run by its launches.
    fn limited(&self, limited: Limited<'_>, idle: &str) -> String {
        let Limited { parts, stages_ns, caution } = limited;
        let several = self.gpu != "The GPU";
        let gpu = if several { self.gpu } else { "the GPU" };
        match stages_ns {
            None => format!(
                "The CPU limits {parts}: {gpu}{idle}, {} of it until the end of a late launch, in {} shorter than 1 ms.{caution}",
                units::time(self.explained.ns()),
                self.paced_gaps(),
            ),
            // (The idle time is that of all stages.)
            Some(ns) => format!(
                "The CPU limits {parts}: {gpu} waits for {} late launches for {}, in gaps under 1 ms. In all it{idle}.{caution}",
                if parts.contains(" and ") { "their" } else { "its" },
                units::time(ns),
            ),
        }
    }

    /// Idle time with work queued: what ends it.
    fn queued(&self, part: &str) -> String {
        let times = &self.explained.times;
        let ends = |gap: &&Gap| times.iter().any(|(_, end)| *end == gap.times.1);
        let mut by_graph_ns = 0_i64;
        for gap in self.gaps.all.iter().filter(ends) {
            let ns = length(&both(&[gap.times], times));
            if gap.graph {
                by_graph_ns = by_graph_ns.saturating_add(ns);
            }
        }
        let ns = self.explained.ns();
        let graph = match by_graph_ns {
            0 => String::new(),
            all if all == ns => {
                " All of it ends with the first kernel of a graph launch.".to_owned()
            }
            some => format!(
                " {} of that ends with the first kernel of a graph launch.",
                units::time(some)
            ),
        };
        format!(
            "; for {part} the next work is already queued.{graph} What the GPU waits for is not recorded: work of another process or \
             device, or a kernel that the profiler missed. The busy share is not meaningful here."
        )
    }

    /// Idle time between two pieces of queued work.
    fn between(&self, part: &str) -> String {
        let (mut n, mut within_ns) = (0_u64, 0_i64);
        for gap in self.gaps.all.iter().filter(|gap| gap.between().is_some()) {
            n += 1;
            within_ns = within_ns.saturating_add(if gap.within { gap.ns() } else { 0 });
        }
        let graphs = match within_ns {
            0 => String::new(),
            ns => format!(", {} of that between the nodes of one graph", units::time(ns)),
        };
        if let Some(rounded_ns) = self.gaps.rounded_ns() {
            return format!(
                "; {part} is in {} between kernels or copies that were queued long before{graphs}. The file has whole microseconds: {} of \
                 it is in pauses of 1 µs, which rounding can produce.",
                units::plural(n, "pause", "pauses"),
                units::time(rounded_ns),
            );
        }
        format!(
            "; {part} is in {} between kernels or copies that were queued long before{graphs}. The CPU does not cause them: only \
             fewer kernels (fusion){} shorten them.",
            units::plural(n, "pause", "pauses"),
            shorter(self.platform, within_ns > 0)
        )
    }

    /// How long the CPU waits for the GPU, and where most.
    fn waiting(&mut self) -> String {
        let is_cause = self.explained.cause == Cause::Sync;
        let waits: Vec<&Wait> = match is_cause {
            true => self.gaps.waits.iter().collect(),
            false => self.gaps.costly_waits().collect(),
        };
        let ns_of = |wait: &Wait| wait.end_ns.saturating_sub(wait.start_ns);
        let total_ns = waits.iter().fold(0_i64, |sum, wait| sum.saturating_add(ns_of(wait)));
        let waiting_ns = self.gaps.waiting_in_ns(&waits);
        if !is_cause && percent(waiting_ns, self.gaps.paced_window_ns()) < WAITING_PCT {
            return String::new();
        }
        let whole = self.gaps.waits.len();
        let leaves_idle = match waits.len() < whole {
            true => format!(", which leave it idle (of {})", units::count(whole as u64)),
            false => String::new(),
        };
        let mut by_place: Vec<(String, i64, u64)> = Vec::new();
        for wait in &waits {
            let ns = ns_of(wait);
            let place = origin(self.trace, self.linker, wait.row);
            match by_place.iter_mut().find(|(known, ..)| *known == place) {
                Some((_, sum, n)) => (*sum, *n) = (sum.saturating_add(ns), *n + 1),
                None => by_place.push((place, ns, 1)),
            }
        }
        trace::sort_by(&mut by_place, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let Some((place, ns, n)) = by_place.first() else { return String::new() };
        let all = units::plural(waits.len() as u64, "call", "calls");
        let end = if self.gaps.n_at_end > 0 { ", without the wait at the end" } else { "" };
        if *ns == total_ns {
            return format!(
                " The CPU waits for the GPU in {all} of {place} for {} in total{end}{leaves_idle}.",
                units::time(total_ns)
            );
        }
        format!(
            " The CPU waits for the GPU in {all} for {} in total{end}{leaves_idle}; {} of that in {} of {place}.",
            units::time(total_ns),
            units::time(*ns),
            units::plural(*n, "call", "calls"),
        )
    }

    /// The pauses, and else the longest gap with those of its length in the same place, if they are much of the idle time and
    /// the place is known. Of many short gaps no single one says anything.
    fn pauses(&mut self) -> String {
        let mut listed: Vec<Gap> = self.gaps.pauses().copied().collect();
        let none = listed.is_empty();
        if none {
            listed = self.longest();
        }
        let mut by_place = self.by_place(&listed);
        // (Of a gap that is all of the idle time the sentence has said everything but its place.)
        let all_of_it = |gaps: &[Gap]| gaps.iter().any(|gap| gap.ns() == self.explained.idle_ns);
        by_place.retain(|at| !at.place.is_empty() || !(none || all_of_it(&at.gaps)));
        if none {
            // Only the place with most of the time, if that is much.
            let most = by_place.into_iter().max_by_key(|at| sum_ns(&at.gaps));
            let is_much =
                |gaps: &[Gap]| percent(sum_ns(gaps), self.explained.idle_ns) >= LONGEST_PCT;
            by_place = most.filter(|at| is_much(&at.gaps)).into_iter().collect();
        }
        let told: Vec<String> = by_place.iter().map(|at| self.gaps_at(at)).collect();
        match told.as_slice() {
            [] => String::new(),
            [one] if none && listed.len() > 1 => {
                if by_place.iter().any(|at| at.gaps.len() == listed.len()) {
                    format!(" The longest gaps: {one}.")
                } else {
                    let ns = sum_ns(&listed);
                    format!(
                        " {} gaps that are at least half as long as the longest total {} ({}). Among them: {one}.",
                        listed.len(),
                        units::time(ns),
                        self.share_of_window(ns)
                    )
                }
            }
            [one] if none => format!(" The longest gap is {one}."),
            // (Of the loader and of a start it is the same time again.)
            _ if matches!(self.explained.cause, Cause::DataLoader | Cause::SetUp) => String::new(),
            all => format!(" Gaps above 10% of {}: {}.", self.window(), all.join("; ")),
        }
    }

    /// The longest gap and those of its length; none where they are many, or where only the pace of the launches explains them.
    fn longest(&self) -> Vec<Gap> {
        if self.explained.cause == Cause::Paced {
            return Vec::new();
        }
        // (A gap that comes in each step is longest by chance: its like stand with it.)
        let longest_ns = self.gaps.all.iter().map(Gap::ns).max().unwrap_or_default();
        let alike = |gap: &&Gap| gap.ns() > 0 && gap.ns() >= longest_ns / 2;
        let gaps: Vec<Gap> = self.gaps.all.iter().filter(alike).copied().collect();
        if gaps.len() > MOST_ALIKE { Vec::new() } else { gaps }
    }

    /// Gaps of one place together, in the order of their first gaps; each place in words.
    fn by_place(&mut self, listed: &[Gap]) -> Vec<AtPlace> {
        let trace = self.trace;
        let pieces: Vec<(Interval, Option<TrackId>)> = listed
            .iter()
            .map(|gap| (explaining(gap), gap.launch.map(|row| trace.track(row))))
            .collect();
        let found = places(trace, &pieces, self.explained.window_ns);
        let mut by_place: Vec<AtPlace> = Vec::new();
        for (gap, at) in listed.iter().zip(&found) {
            let place = self.place_of(gap, at);
            let there_ns = covered_ns(trace, gap, at);
            match by_place.iter_mut().find(|known| known.place == place) {
                Some(known) => {
                    known.gaps.push(*gap);
                    known.there_ns = known.there_ns.saturating_add(there_ns);
                }
                None => by_place.push(AtPlace { place, gaps: vec![*gap], there_ns }),
            }
        }
        by_place
    }

    /// Where the CPU is in a gap, in words, and whether work is queued.
    fn place_of(&mut self, gap: &Gap, place: &Place) -> String {
        let (trace, times) = (self.trace, explaining(gap));
        if is_queued(gap) {
            let call = Place { call: place.call, ..Place::default() };
            let cpu = cpu_in(trace, self.linker, times, &call);
            return cpu.map_or(", with work queued".to_owned(), |cpu| {
                format!(", with work queued and {cpu}")
            });
        }
        let place = in_words(trace, self.linker, times, place);
        if percent(queued_ns(gap), gap.ns()) < LONGEST_PCT {
            return place;
        }
        let last = units::time(queued_ns(gap));
        format!("{place}; for the last {last} of it work is queued")
    }

    /// The gaps of one place, with their time.
    fn gaps_at(&self, at: &AtPlace) -> String {
        let AtPlace { place, gaps, there_ns } = at;
        let ns = sum_ns(gaps);
        let (time, share) = (units::time(ns), self.share_of_window(ns));
        // (What the CPU does in the rest is something else, or not recorded.)
        let there = match place.is_empty() || percent(*there_ns, ns) >= ALL_PCT {
            true => String::new(),
            false => format!(" for {} of that", units::time(*there_ns)),
        };
        let is_before = |warm_ns: i64| gaps.iter().all(|gap| gap.times.1 <= warm_ns);
        let cold = match self.warm_from_ns.is_some_and(is_before) {
            true => ", before the first warm iteration",
            false => "",
        };
        match &gaps[..] {
            [gap] => {
                let begun_ns = gap.times.0.saturating_sub(self.zero_ns);
                format!(
                    "{time} ({share}) starting at {}{cold}{place}{there}",
                    units::time(begun_ns)
                )
            }
            several => {
                format!("{} adding up to {time} ({share}){cold}{place}{there}", several.len())
            }
        }
    }
}

/// The gaps of one place.
struct AtPlace {
    /// Where the CPU is in them, in words, with a comma before it; empty where that is not known.
    place: String,
    gaps: Vec<Gap>,
    /// For how long it is there, in ns: all of a gap that ends with work queued, which the words say.
    there_ns: i64,
}

/// How long the CPU is at a place in a gap.
fn covered_ns(trace: &Trace, gap: &Gap, place: &Place) -> i64 {
    let (from, to) = explaining(gap);
    if percent(queued_ns(gap), gap.ns()) >= LONGEST_PCT {
        return gap.ns();
    }
    let within = |row: Row| trace.end_ns(row).min(to).saturating_sub(trace.ts_ns(row).max(from));
    let rows = match place.profiler {
        Some(row) => [Some(row), None, None],
        None => [place.call, place.range, place.frame],
    };
    let rows = rows.into_iter().flatten();
    rows.map(within).max().unwrap_or_default()
}

fn sum_ns(gaps: &[Gap]) -> i64 {
    gaps.iter().fold(0, |sum, gap| sum.saturating_add(gap.ns()))
}

/// A gap until the work that ends it was queued.
fn until_queued(gap: &Gap) -> Interval {
    (gap.times.0, gap.queued().map_or(gap.times.1, |queued| queued.0))
}

/// How long work was queued in a gap.
fn queued_ns(gap: &Gap) -> i64 {
    gap.times.1.saturating_sub(until_queued(gap).1)
}

/// Whether work was queued for nearly all of a gap.
fn is_queued(gap: &Gap) -> bool {
    percent(queued_ns(gap), gap.ns()) >= ALL_PCT
}

/// The part of a gap in which the place of the CPU explains it. (What the CPU does once the work is queued explains nothing, but
/// for a call that waits.)
fn explaining(gap: &Gap) -> Interval {
    if is_queued(gap) { gap.times } else { until_queued(gap) }
}
