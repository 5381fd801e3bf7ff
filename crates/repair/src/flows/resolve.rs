//! Which slice each flow event belongs to, on exact times.

use std::collections::HashMap;

use trace::{BuildIdHasher, IdToken, Phase, Row, TrackId, each_of};

use crate::pairs;
use crate::perfetto::begins::OpenBegins;
use crate::perfetto::order::{self, Item, Plain, Stacked};
use crate::perfetto::threads::Threads;
use crate::pile::Pile;
use crate::view::View;

/// The slice each flow event belongs to: one that starts at that very ns on its thread, the innermost of those that come
/// before it in the importer's order, or else of those behind it; else the innermost that is open; else one that starts at
/// that very ns on the twin thread ([`twins`]). Sorted by flow event; unresolved ones are absent.
#[inline(never)]
pub(crate) fn resolve(view: &View<'_>, threads: &Threads) -> Vec<(Row, Row)> {
    let mut targets = Vec::new();
    for thread in threads.all() {
        resolve_events(view, threads.events(thread), &mut targets);
    }
    pairs::sort(&mut targets);
    let mut on_twins = Vec::new();
    for (thread, twin) in twins(view, threads) {
        on_twin(view, threads, (thread, twin), &targets, &mut on_twins);
    }
    if !on_twins.is_empty() {
        targets.extend(on_twins);
        pairs::sort(&mut targets);
    }
    targets
}

/// Threads whose tids are one number, here in quotes and there without, in one process. To the importer these are two
/// threads. Kineto of 2021 writes slices to the one and their flow events to the other.
fn twins(view: &View<'_>, threads: &Threads) -> Vec<(u32, u32)> {
    let trace = view.trace;
    let token = |track: TrackId| (trace.track_info(track).process, trace.track_info(track).tid);
    let numbered = threads.by_track().filter_map(|(track, thread)| match token(track) {
        (process, IdToken::Text(tid)) => {
            let tid = trace.strings.get(tid);
            let number = tid.parse::<i64>().ok().filter(|number| number.to_string() == tid)?;
            Some(((process.0, number), thread))
        }
        _ => None,
    });
    let in_quotes: HashMap<(u32, i64), u32, BuildIdHasher> = numbered.collect();
    if in_quotes.is_empty() {
        return Vec::new();
    }
    let mut pairs = Vec::new();
    for (track, thread) in threads.by_track() {
        if let (process, IdToken::Int(number)) = token(track)
            && let Some(twin) = in_quotes.get(&(process.0, number))
        {
            pairs.extend([(thread, *twin), (*twin, thread)]);
        }
    }
    pairs
}

/// The slices of `twin` for those flow events of `thread` that have none, where one starts at that very ns.
fn on_twin(
    view: &View<'_>,
    threads: &Threads,
    (thread, twin): (u32, u32),
    targets: &[(Row, Row)],
    found: &mut Vec<(Row, Row)>,
) {
    let is_free = |event: &&Stacked| {
        event.item(view).phase.is_flow()
            && targets.binary_search_by_key(&event.row, |(flow, _)| *flow).is_err()
    };
    let free: Vec<Stacked> = threads.events(thread).iter().filter(is_free).copied().collect();
    if free.is_empty() {
        return;
    }
    let is_other = |event: &&Stacked| !event.item(view).phase.is_flow();
    let mut events: Vec<Stacked> =
        threads.events(twin).iter().filter(is_other).chain(&free).copied().collect();
    order::sort(view, &mut events, &Plain::default());
    let mut resolved = Vec::new();
    resolve_events(view, &events, &mut resolved);
    let ts = |row: Row| order::item(view, row).ts;
    found.extend(resolved.into_iter().filter(|(flow, slice)| ts(*flow) == ts(*slice)));
}

#[derive(Clone, Copy, Debug)]
struct Open {
    row: Row,
    /// Whether the importer puts it before flow events of its ns, wherever they are in the file.
    goes_first: bool,
    ts: i64,
    end: i64,
}

/// The slices that are open on one thread, the latest start last.
type Stack = Pile<Open>;

/// Takes away what ended before a time, from the top.
#[inline(always)]
fn close(stack: &mut Stack, ts: i64) {
    while stack.last().is_some_and(|top| top.end <= ts && top.ts < ts) {
        stack.pop();
    }
}

/// The flow events of one thread being resolved.
struct Resolving<'a> {
    view: &'a View<'a>,
    stack: Stack,
    begins: OpenBegins,
    /// Those of the ns at hand.
    flows: Vec<Item>,
    /// That ns.
    flows_ts: i64,
    targets: &'a mut Vec<(Row, Row)>,
}

/// Resolves the flow events among the events of one thread, which are in the importer's order.
#[inline(never)]
fn resolve_events(view: &View<'_>, events: &[Stacked], targets: &mut Vec<(Row, Row)>) {
    let (stack, begins) = (Stack::default(), OpenBegins::default());
    let flows_ts = i64::MAX;
    let mut state = Resolving { view, stack, begins, flows: Vec::new(), flows_ts, targets };
    each_of(events, |event| {
        if let Some((ts, dur)) = event.as_slice().or_else(|| state.other(event)) {
            state.slice(event.row, ts, dur);
        }
    });
    state.bind_all();
}

impl Resolving<'_> {
    #[inline(always)]
    fn slice(&mut self, row: Row, ts: i64, dur: i64) {
        if self.flows_ts < ts {
            self.bind_all();
        }
        close(&mut self.stack, ts);
        self.stack.push(Open { row, goes_first: dur > 0, ts, end: ts.saturating_add(dur) });
    }

    /// Handles any event but a complete slice. Start and length of one that is a complete slice all the same.
    #[inline(never)]
    fn other(&mut self, event: Stacked) -> Option<(i64, i64)> {
        let item = event.item(self.view);
        let Item { row, ts, .. } = item;
        if self.flows_ts < ts {
            self.bind_all();
        }
        match item.phase {
            Phase::Complete => return Some((ts, item.dur)),
            Phase::Begin => {
                close(&mut self.stack, ts);
                // (Nothing below an open slice leaves, so its place stays the same.)
                self.begins.open(self.view.trace, row, self.stack.len());
                self.stack.push(Open { row, goes_first: false, ts, end: i64::MAX });
            }
            Phase::End => {
                let begin = self.begins.close(self.view.trace, row);
                if let Some(slice) = begin.and_then(|at| self.stack.get_mut(at)) {
                    slice.end = ts;
                }
            }
            // All slices of that ns come first, wherever they are in the file.
            phase if phase.is_flow() => {
                self.flows_ts = ts;
                self.flows.push(item);
            }
            _ => {}
        }
        None
    }

    /// Binds the flow events of one ns to the slices that are open: the innermost that starts at this ns, else the innermost.
    #[inline(never)]
    fn bind_all(&mut self) {
        let ts = std::mem::replace(&mut self.flows_ts, i64::MAX);
        if self.flows.is_empty() {
            return;
        }
        // (Now, and not at the next slice only: many flow events in a row would look at all that ended.)
        close(&mut self.stack, ts);
        let open = self.stack.items();
        let starting = Starting::at(ts, open);
        let encloses = open.iter().rev().find(|slice| slice.end > ts && slice.ts <= ts);
        let encloses = encloses.map(|slice| slice.row);
        for flow in self.flows.drain(..) {
            if let Some(slice) = starting.before(flow.row).or(starting.behind).or(encloses) {
                self.targets.push((flow.row, slice));
            }
        }
    }
}

/// How short a slice is, of those that start together: the least is the innermost.
type Length = (i64, std::cmp::Reverse<Row>);

/// The slices that start at one ns.
#[derive(Default)]
struct Starting {
    /// The shortest of those that the importer puts before everything else of this ns.
    first: Option<Length>,
    /// The others by row, each with the shortest up to it: they come in the order of the file.
    others: Vec<(Row, Length)>,
    /// The slice of a flow event that all of them are behind: the first without a length, else the shortest.
    behind: Option<Row>,
}

impl Starting {
    fn at(ts: i64, open: &[Open]) -> Self {
        let mut starting = Self::default();
        for slice in open.iter().rev().take_while(|slice| slice.ts == ts) {
            let length = (slice.end, std::cmp::Reverse(slice.row));
            if slice.goes_first {
                starting.first = Some(starting.first.map_or(length, |first| first.min(length)));
            } else {
                starting.others.push((slice.row, length));
            }
        }
        if !starting.others.is_empty() {
            starting.settle(ts);
        }
        starting
    }

    /// Puts those without precedence in order. (Few have any, so it is not compiled with the rest.)
    #[inline(never)]
    fn settle(&mut self, ts: i64) {
        if self.others.len() > 1 {
            trace::sort(&mut self.others);
        }
        let without_length = self.others.iter().find(|(_, (end, _))| *end == ts);
        let shortest = || self.others.iter().min_by_key(|(_, length)| *length);
        self.behind = without_length.or_else(shortest).map(|(row, _)| *row);
        let mut least = None;
        for (_, length) in &mut self.others {
            *length = least.map_or(*length, |least: Length| least.min(*length));
            least = Some(*length);
        }
    }

    /// The innermost slice that comes before a flow event. (Profilers write a flow event behind its slice.)
    fn before(&self, flow: Row) -> Option<Row> {
        let n_before = self.others.partition_point(|(row, _)| *row < flow);
        let other = n_before.checked_sub(1).map(|last| self.others[last].1);
        let length = match (self.first, other) {
            (Some(first), Some(other)) => first.min(other),
            (first, other) => first.or(other)?,
        };
        Some(length.1.0)
    }
}

/// How many of `targets` are among `bindings`; both sorted.
#[inline(never)]
pub(crate) fn count_bound(bindings: &[(Row, Row)], targets: &[(Row, Row)]) -> u64 {
    (targets.len() - unbound(bindings, targets).len()) as u64
}

/// Those of `targets` that are not among `bindings`; both sorted, and nearly equal.
#[inline(never)]
pub(super) fn unbound(bindings: &[(Row, Row)], targets: &[(Row, Row)]) -> Vec<(Row, Row)> {
    let mut at = 0;
    let mut unbound = Vec::new();
    each_of(targets, |target| {
        while bindings.get(at).is_some_and(|binding| *binding < target) {
            at += 1;
        }
        if bindings.get(at) != Some(&target) {
            unbound.push(target);
        }
    });
    unbound
}
