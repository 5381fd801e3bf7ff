//! `[memory]` events of every trace that has them, against the totals that the events carry: `Total Allocated` and `Total Reserved`.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use decode::{Decoded, Decoder, DetailsReader};
use host::HostIndex;
use host::memory::by_device;
use host::memory_over_time::{MemoryOverTime, UNRECORDED, memory_over_time};
use trace::{Details, MemoryEvent, Trace};

fn read(file: &[u8]) -> Option<(Decoded, Details)> {
    let mut decoder = Decoder::new();
    for chunk in file.chunks(1 << 16) {
        decoder.push(chunk).ok()?;
    }
    let decoded = decoder.finish().ok()?;
    let has_memory = decoded.trace.rows().any(|row| decoded.trace.name_text(row) == "[memory]");
    has_memory.then(|| {
        let mut reader = DetailsReader::with_host(&decoded, host::wants_inputs);
        for chunk in file.chunks(1 << 16) {
            reader.push(chunk);
        }
        let details = reader.finish();
        (decoded, details)
    })
}

/// When the marked steps of a trace end.
fn step_ends(trace: &Trace) -> Vec<i64> {
    let is_step = |row: &_| trace.name_text(*row).starts_with("ProfilerStep");
    let mut ends: Vec<i64> = trace.rows().filter(is_step).map(|row| trace.end_ns(row)).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// What we say is allocated and reserved at a time.
fn said(of: &MemoryOverTime, at: i64) -> (i64, Option<i64>) {
    let before = of.changes.iter().take_while(|change| change.at_ns.is_none_or(|it| it <= at));
    let last = before.clone().last().map(|change| change.reserved);
    (before.map(|change| change.bytes).sum(), last)
}

/// Compares one device; returns how many events and step ends were compared.
fn compare(
    place: &str,
    of: &MemoryOverTime,
    events: &[(i64, MemoryEvent)],
    steps: &[i64],
) -> (usize, usize) {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|(at, _)| *at);
    let first = sorted.first().unwrap().1;
    let Some(before) = first.allocated_bytes.map(|total| total - first.bytes) else {
        return (0, 0);
    };
    // The running sum of the bytes is the change of the total, at every event.
    let mut sum = 0;
    let mut levels = of.changes.iter().skip(1);
    assert!(of.labels.iter().all(|label| label != UNRECORDED), "{place}: a change has no event");
    let mut level = of.changes.first().unwrap().bytes;
    assert_eq!(level, before, "{place}: before the first event");
    for (n, (at, event)) in sorted.iter().enumerate() {
        sum += event.bytes;
        assert_eq!(event.allocated_bytes, Some(before + sum), "{place}, event {n}");
        let change = levels.next().unwrap();
        level += change.bytes;
        assert_eq!((change.at_ns, Some(level)), (Some(*at), event.allocated_bytes), "{place} {n}");
        assert_eq!(Some(change.reserved), event.reserved_bytes.or(Some(0)), "{place} {n}");
    }
    assert!(levels.next().is_none(), "{place}: a change more than events");
    // At each step marker, what we say is what the last event before it has.
    let mut compared = 0;
    for end in steps {
        let Some((_, last)) = sorted.iter().rfind(|(at, _)| at <= end) else { continue };
        let of_event = (last.allocated_bytes.unwrap(), last.reserved_bytes.or(Some(0)));
        assert_eq!(said(of, *end), of_event, "{place}, step that ends at {end}");
        compared += 1;
    }
    (sorted.len(), compared)
}

/// The traces of this repository, and all of the corpus, by name.
fn all_traces() -> Vec<(String, Vec<u8>)> {
    let samples = testkit::trace_samples().into_iter().chain(testkit::nasty_samples());
    let mut found: Vec<_> = samples.map(|sample| (sample.name.clone(), sample.bytes())).collect();
    for folder in ["corpus/inputs/kineto-cpu", "corpus/training"] {
        let Some(folder) = testkit::shared(folder) else { continue };
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.ends_with(".json.gz") {
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// PyTorch's totals leave out tensors that came from another process, a worker of a loader, though it writes events of them: what the
/// totals have and no event explains is told as such.
const NOT_ADDING_UP: [&str; 1] = ["cpu_loader_workers"];

#[test]
fn totals_of_kineto_are_consistent_at_every_event_and_every_step() {
    let (mut traces, mut devices, mut events, mut steps) = (0, 0, 0, 0);
    for (name, bytes) in all_traces() {
        let Some((decoded, details)) = read(&bytes) else { continue };
        if NOT_ADDING_UP.contains(&name.trim_end_matches(".json.gz")) {
            let over_time = memory_over_time(&HostIndex::of(&decoded.trace).slices, &details);
            let has_unrecorded = |of: &MemoryOverTime| of.labels.iter().any(|it| it == UNRECORDED);
            assert!(over_time.iter().any(has_unrecorded), "{name}: its totals add up now");
            continue;
        }
        let index = HostIndex::of(&decoded.trace);
        let ends = step_ends(&decoded.trace);
        traces += 1;
        let over_time = memory_over_time(&index.slices, &details);
        for ((device_type, device_id), of_device) in by_device(&decoded.trace, &details) {
            let is_own =
                |of: &&MemoryOverTime| (of.device_type, of.device_id) == (device_type, device_id);
            let of = over_time.iter().find(is_own).unwrap();
            let place = format!("{name}, device {device_type:?} {device_id:?}");
            let (n_events, n_steps) = compare(&place, of, &of_device, &ends);
            devices += usize::from(n_events > 0);
            events += n_events;
            steps += n_steps;
        }
    }
    println!("{traces} traces, {devices} devices, {events} events, {steps} step ends");
    assert!(traces >= 1 && events > 100 && steps > 0, "{traces} {events} {steps}");
    if testkit::shared("corpus/traces").is_some() {
        assert!(traces >= 15 && events > 10_000, "{traces} traces, {events} events");
    }
}
