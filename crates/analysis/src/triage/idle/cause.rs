//! Why the GPU was idle: each moment of idle time is dealt to one cause, and the largest becomes a sentence.

use catalog::remedies::{RunFacts, applicable};
use report::units;
use trace::{Row, Trace, TrackId};

use super::intervals::{Interval, both, length, without};
use super::{Cover, Host, Idle, outermost_at};
use crate::percent;

/// Idle time below this share of its window gets no sentence, in percent.
pub(crate) const LEAST_PCT: f64 = 10.0;

/// A cause of idle time. The order decides: a moment belongs to the first that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The next work was launched already.
    Queued,
    /// The CPU was in a data loader.
    DataLoader,
    /// The CPU loaded GPU code.
    Loading,
    /// The CPU allocated or freed memory.
    Allocation,
    /// The profiler or lazy loading worked.
    Overhead,
    /// The CPU waited in a call.
    Sync,
    /// The CPU ran ops.
    Op,
    /// The CPU ran Python outside any op.
    Python,
    /// The CPU was in another call of the runtime.
    Runtime,
    /// Nothing is recorded.
    Unknown,
}

/// The kinds of slices that show a cause, in order.
const COVERS: &[(Cause, &[Cover])] = &[
    (Cause::DataLoader, &[Cover::DataLoader]),
    (Cause::Loading, &[Cover::ModuleLoad, Cover::LongLaunch]),
    (Cause::Allocation, &[Cover::Allocation]),
    (Cause::Overhead, &[Cover::Overhead]),
    (Cause::Sync, &[Cover::Sync, Cover::BlockingCopy, Cover::HostCopy]),
    (Cause::Op, &[Cover::Op]),
    (Cause::Python, &[Cover::Python]),
    (Cause::Runtime, &[Cover::Runtime]),
];

/// The largest cause of a device's idle time.
#[derive(Clone, Debug)]
pub(crate) struct Explained {
    pub(crate) cause: Cause,
    /// The idle time that belongs to it.
    pub(crate) times: Vec<Interval>,
    /// All idle time, and its window.
    pub(crate) idle_ns: i64,
    pub(crate) window_ns: i64,
    pub(crate) of_steps: bool,
}

impl Explained {
    /// The idle time of the cause.
    pub(crate) fn ns(&self) -> i64 {
        length(&self.times)
    }
}

/// Deals the idle time out; `queued` is when work that had been launched waited. `None` where the GPU was busy for most of
/// the window.
#[inline(never)]
pub(crate) fn explain(idle: &Idle, host: &Host, queued: &[Interval]) -> Option<Explained> {
    let (idle_ns, window_ns) = (idle.ns(), idle.window_ns);
    if percent(idle_ns, window_ns) < LEAST_PCT {
        return None;
    }
    let mut left = idle.idle.clone();
    let mut found: Vec<(Cause, Vec<Interval>)> = Vec::new();
    let mut take = |cause: Cause, times: &[Interval]| {
        let own = both(&left, times);
        left = without(&left, &own);
        match found.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, known)) => known.extend(own),
            None => found.push((cause, own)),
        }
    };
    take(Cause::Queued, queued);
    for (cause, covers) in COVERS {
        covers.iter().for_each(|cover| take(*cause, host.cover(*cover)));
    }
    found.push((Cause::Unknown, left));
    let mut most: Option<(i64, Cause, Vec<Interval>)> = None;
    for (cause, times) in found {
        let ns = length(&times);
        if most.as_ref().is_none_or(|(best, ..)| ns > *best) {
            most = Some((ns, cause, times));
        }
    }
    let (_, cause, times) = most?;
    Some(Explained { cause, times, idle_ns, window_ns, of_steps: idle.of_steps })
}

/// Where the CPU was in the longest pause of a cause.
struct Place {
    /// The longest pause.
    ns: i64,
    /// Its middle.
    middle_ns: i64,
    /// The slice that the CPU was in.
    row: Option<Row>,
}

fn place(trace: &Trace, explained: &Explained) -> Option<Place> {
    let (start, end) =
        explained.times.iter().copied().max_by_key(|(start, end)| end.saturating_sub(*start))?;
    let middle = start.midpoint(end);
    let covers: &[Cover] = match explained.cause {
        Cause::Queued => &[Cover::Runtime],
        cause => COVERS.iter().find(|(of, _)| *of == cause).map_or(&[], |(_, covers)| covers),
    };
    let row = covers.iter().find_map(|cover| *outermost_at(trace, *cover, &[middle]).first()?);
    Some(Place { ns: end.saturating_sub(start), middle_ns: middle, row })
}

/// The sentence about idle time. `gpu` is how the GPU is called; `line` finds the Python line of a thread at a moment.
#[inline(never)]
pub(crate) fn sentence(
    trace: &Trace,
    explained: &Explained,
    gpu: &str,
    facts: &RunFacts,
    mut line: impl FnMut(TrackId, i64) -> Option<String>,
) -> String {
    let Explained { cause, idle_ns, window_ns, of_steps, .. } = explained;
    let ns = explained.ns();
    let window = if *of_steps { "the profiler steps" } else { "the GPU span" };
    let share = |ns: i64| units::percent(percent(ns, *window_ns));
    let place = place(trace, explained);
    let row = place.as_ref().and_then(|place| place.row);
    let name = row.map(|row| trace.name_text(row)).unwrap_or_default();
    let middle_ns = place.as_ref().map_or(0, |place| place.middle_ns);
    let at = row.and_then(|row| line(trace.track(row), middle_ns));
    let at = at.map(|line| format!(" at {line}")).unwrap_or_default();
    let longest = place.as_ref().map_or(0, |place| place.ns);
    if *cause == Cause::Queued {
        let call = row.map(|row| {
            let call_ns = trace.end_ns(row).saturating_sub(trace.ts_ns(row));
            format!(
                " During the longest pause the CPU is in {name} for {}{at}.",
                units::time(call_ns)
            )
        });
        return format!(
            "{gpu} is idle for {} ({} of {window}) with work queued: it is blocked on an event, or the kernel was not \
             recorded.{} The busy share is not meaningful here.",
            units::time(ns),
            share(ns),
            call.unwrap_or_default(),
        );
    }
    let begin =
        format!("{gpu} is idle for {} ({} of {window})", units::time(*idle_ns), share(*idle_ns));
    if *cause == Cause::Unknown {
        let of =
            if ns == *idle_ns { "it".to_owned() } else { format!("{} of it", units::time(ns)) };
        return format!("{begin}; no CPU activity is recorded for {of}.");
    }
    let what = match cause {
        Cause::DataLoader => "is in the data loader",
        Cause::Loading => "loads GPU code (module loads, and launch calls of 1 ms or more)",
        Cause::Allocation => "allocates or frees memory",
        Cause::Overhead => "does work that the profiler records as overhead",
        Cause::Sync => "is in a synchronising call or a blocking copy",
        Cause::Op => "runs PyTorch ops",
        Cause::Python => "runs Python code outside any op",
        Cause::Runtime => "is in other runtime calls",
        Cause::Queued | Cause::Unknown => "",
    };
    let inside = match (cause, name) {
        (Cause::Python, _) | (_, "") => at,
        (_, name) => format!(" in {name}{at}"),
    };
    let mut text = format!(
        "{begin}; for {} of it the CPU {what}. The longest such pause is {}{inside}.",
        units::time(ns),
        units::time(longest)
    );
    let single = name.contains("_SingleProcessDataLoaderIter");
    let facts = RunFacts { single_process_loader: Some(single), ..*facts };
    if *cause == Cause::DataLoader
        && let Some(remedy) = applicable(&["loader-workers"], &facts).first()
    {
        text.push_str(&format!(" {}", remedy.action));
    }
    text
}
