//! Which long launches load code.

use timeline::first::First;
use timeline::intervals::Interval;
use trace::{Flags, Phase, Row, Trace, each_row};

/// A launch call of [`super::LONG_NS`] or more.
pub(super) struct LongLaunch {
    /// Its correlation.
    pub(super) link: Option<i64>,
    /// When it is.
    pub(super) times: Interval,
}

/// When long launches load code. One of a kernel that ran on the device before loads none: its thread was interrupted, or it waited
/// for room in the queue.
pub(super) fn loading(trace: &Trace, long: &[LongLaunch]) -> Vec<Interval> {
    if long.is_empty() {
        return Vec::new();
    }
    let mut links: Vec<i64> = long.iter().filter_map(|one| one.link).collect();
    links.sort_unstable();
    let names: Vec<String> =
        trace.streams.iter().map(|stream| stream.device.display(&trace.strings)).collect();
    let mut known: Vec<&String> = names.iter().collect();
    trace::sort(&mut known);
    known.dedup();
    let devices: Vec<Option<usize>> =
        names.iter().map(|name| known.binary_search(&name).ok()).collect();
    let work = |row: Row| {
        let stream = trace.stream(row).and_then(|stream| devices.get(usize::from(stream.0)));
        (trace.name(row).0, stream.copied().flatten().map_or(u32::MAX, |at| at as u32))
    };
    let mut launched: Vec<(i64, (u32, u32))> = Vec::new();
    let mut times: Vec<((u32, u32), i64)> = Vec::new();
    each_row(trace, |row| {
        if !trace.flags(row).has(Flags::KERNEL) || trace.phase(row) != Phase::Complete {
            return;
        }
        times.push((work(row), trace.ts_ns(row)));
        if let Some(link) = trace.link(row).filter(|link| links.binary_search(link).is_ok()) {
            launched.push((link, work(row)));
        }
    });
    trace::sort(&mut launched);
    let first = First::of(times);
    let ran_before = |one: &&LongLaunch| {
        let at = launched.binary_search_by_key(&one.link, |(link, _)| Some(*link));
        let own = at.ok().and_then(|at| first.of_key(&launched.get(at)?.1));
        own.is_some_and(|first| first < one.times.0)
    };
    long.iter().filter(|one| !ran_before(one)).map(|one| one.times).collect()
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel};

    use super::*;

    #[test]
    fn only_a_kernel_that_did_not_run_before_is_loaded() {
        let mut fixture = Fixture::default();
        for (name, device, at, link) in
            [("a", 0, 10, 1), ("a", 0, 50, 2), ("a", 1, 60, 3), ("b", 0, 70, 4)]
        {
            fixture.push(kernel(name).on(device, 7).at(at, 5).link(link));
        }
        let trace = fixture.finish();
        let long = |link, at| LongLaunch { link, times: (at, at + 1) };
        let all = [
            long(Some(1), 5),
            long(Some(2), 40),
            long(Some(3), 41),
            long(Some(4), 42),
            long(Some(9), 43),
            long(None, 44),
        ];
        let starts: Vec<i64> = loading(&trace, &all).into_iter().map(|(start, _)| start).collect();
        assert_eq!(
            starts,
            [5, 41, 42, 43, 44],
            "a second device loads its own; unknown work may be new"
        );
    }
}
