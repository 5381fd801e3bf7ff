//! Files that drive a search of the repair to its worst: they cost about twice as much as an ordinary file of that size.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{decode, named};
use kinetoscope::{Output, PlanOptions, Repairer, plan_repair};

/// What a file is full of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Slices one after the other, a flow event for every eighth, and times since 1970: each is written anew.
    Ordinary,
    /// `B` events without an end, each of another name, and an `E` at times that closes the first.
    UnclosedBegins,
    /// Slices without a length at one ns, and flow events at that ns.
    OneNanosecond,
    /// Slices of which each crosses all others.
    Crossing,
    /// Slices in each other that end together, and flow events after their end.
    EndedTogether,
}

const HOSTILE: [Kind; 4] =
    [Kind::UnclosedBegins, Kind::OneNanosecond, Kind::Crossing, Kind::EndedTogether];

/// A file of `n` events.
fn file(kind: Kind, n: usize) -> String {
    let time = |ts: usize| match kind {
        Kind::Ordinary => format!("{}.001", 1_712_195_495_406_752 + ts),
        _ => ts.to_string(),
    };
    let slice = |at: usize, ts: usize, dur: usize| {
        let ts = time(ts);
        format!(
            r#"{{"ph":"X","name":"k{at}","cat":"kernel","pid":5,"tid":7,"ts":{ts},"dur":{dur},"args":{{"correlation":{at}}}}}"#
        )
    };
    let flow = |at: usize, ph: &str, ts: usize| {
        let ts = time(ts);
        format!(
            r#"{{"ph":"{ph}","bp":"e","name":"ac2g","cat":"ac2g","pid":5,"tid":7,"ts":{ts},"id":{at},"more":{{"n":{at}}}}}"#
        )
    };
    let event = |at: usize| match kind {
        Kind::Ordinary if at % 8 == 7 => flow(at / 16, ["s", "f"][at / 8 % 2], at * 10 - 10),
        Kind::Ordinary => slice(at, at * 10, 7),
        Kind::UnclosedBegins if at % 8 == 7 => {
            format!(r#"{{"ph":"E","name":"b{}","pid":5,"tid":7,"ts":{at},"args":{{}}}}"#, at / 8)
        }
        Kind::UnclosedBegins => {
            format!(
                r#"{{"ph":"B","name":"b{at}","cat":"q","pid":5,"tid":7,"ts":{at},"args":{{"n":{at}}}}}"#
            )
        }
        Kind::OneNanosecond if at % 2 == 1 => flow(at / 4, ["s", "f"][at / 2 % 2], 7),
        Kind::OneNanosecond => slice(at, 7, 0),
        Kind::Crossing => slice(at, at, n),
        Kind::EndedTogether if at < n / 2 => slice(at, at, n / 2 - at),
        Kind::EndedTogether => flow(at / 2, ["s", "f"][at % 2], at + 2),
    };
    let events: Vec<String> = (0..n).map(event).collect();
    format!("{{\"traceEvents\":[{}]}}", events.join(",\n"))
}

/// CPU time of this thread so far, in ns, where the system says it; else the time of day.
fn cpu_ns() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = schedstat.and_then(|text| text.split(' ').next()?.parse().ok());
    let since_1970 = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    ran.unwrap_or_else(since_1970)
}

/// The CPU seconds that the repair of a file takes: decoding, the plan, the output.
fn seconds(file: &str) -> f64 {
    let start = cpu_ns();
    let decoded = decode(file.as_bytes());
    let plan = plan_repair(&decoded.trace, &PlanOptions::default());
    let mut repairer = Repairer::new(&decoded, &plan, Output::Json);
    let mut out = Vec::new();
    for piece in file.as_bytes().chunks(1 << 20) {
        repairer.push(piece, &mut out);
        out.clear();
    }
    let proof = repairer.finish(&mut out);
    let seconds = (cpu_ns() - start) as f64 / 1e9;
    assert!(proof.holds, "{proof:?}");
    seconds
}

/// The times of all hostile kinds, with their ratios to that of an ordinary file of as many events.
fn ratios(n: usize) -> Vec<(Kind, f64, f64)> {
    let ordinary = seconds(&file(Kind::Ordinary, n));
    let measured = HOSTILE.iter().map(|kind| {
        let seconds = seconds(&file(*kind, n));
        (*kind, seconds, seconds / ordinary)
    });
    measured.collect()
}

#[test]
fn a_hostile_file_costs_a_few_times_as_much_as_an_ordinary_one() {
    // (A quadratic search over as many events takes more than a hundred times as long.)
    for (kind, seconds, ratio) in ratios(40_000) {
        assert!(ratio < 12.0, "{kind:?}: {seconds} s, {ratio} times an ordinary file");
    }
}

/// The figures of docs/fuzzing.md: `cargo xtask bench --hostile`.
#[test]
#[ignore = "takes a minute, and means something in an optimised build only: cargo xtask bench --hostile"]
fn a_million_hostile_events_cost_about_twice_an_ordinary_file() {
    for n in [250_000, 1_000_000] {
        for (kind, seconds, ratio) in ratios(n) {
            println!("{n} events, {kind:?}: {seconds:.2} s, {ratio:.2} times an ordinary file");
            assert!(ratio < 4.0, "{kind:?}: {ratio} times an ordinary file");
        }
    }
}

#[test]
fn of_many_slices_without_a_length_at_one_ns_a_flow_belongs_to_the_one_before_it() {
    let event = |at: usize| {
        format!(r#"{{"ph":"X","name":"k{at}","cat":"c","pid":5,"tid":7,"ts":7,"dur":0}}"#)
    };
    let flow = |ph: &str, id: usize| {
        format!(r#"{{"ph":"{ph}","bp":"e","name":"f","cat":"f","pid":5,"tid":7,"ts":7,"id":{id}}}"#)
    };
    let events = [
        flow("s", 1),
        event(1),
        event(2),
        flow("s", 2),
        flow("f", 1),
        event(5),
        flow("f", 2),
        event(7),
    ];
    let file = format!("{{\"traceEvents\":[{}]}}", events.join(","));
    let decoded = decode(file.as_bytes());
    let plan = plan_repair(&decoded.trace, &PlanOptions::default());
    assert_eq!(plan.flow_targets, [(0, 1), (3, 2), (4, 2), (6, 5)]);
    assert_eq!(named(&file, "k5")["ts"], 7);
}
