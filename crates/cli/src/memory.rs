//! `kinetoscope memory`.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::memory::{Comparison, compare, run_facts};
use kinetoscope::report::Section;
use kinetoscope::{
    AllocatorState, FileKind, HostIndex, NotASnapshot, SameRun, Snapshot, SnapshotReader,
    SnapshotReport, TimelineReader, analyze_snapshot, device_name, memory_over_time, same_run,
    state_before, timeline_of_events,
};
use serde_json::{Value, json};

use crate::failure::Usage;
use crate::input;

#[derive(clap::Args)]
pub struct Arguments {
    /// A memory snapshot as JSON (.json or .json.gz), a memory timeline (export_memory_timeline), or a trace with memory events
    /// (profile_memory=True). A pickle is refused.
    snapshot: PathBuf,
    /// Print one JSON object instead of Markdown.
    #[arg(long)]
    json: bool,
    /// Also print the state of each device before this event of its trace (0 is the first).
    #[arg(long, value_name = "N", conflicts_with = "at_peak")]
    at_event: Option<usize>,
    /// Also print the state of each device at the peak of its requested memory.
    #[arg(long)]
    at_peak: bool,
    /// Also print what changed since this earlier snapshot, by device and by call site.
    #[arg(long, value_name = "EARLIER", conflicts_with = "events")]
    against: Option<PathBuf>,
    /// Also say which ops of this trace of the same run allocated what the snapshot holds, and whether it is of the same run.
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
    /// Keep only these events of each device, as FROM..TO, FROM.. or ..TO (0 is the first, TO is excluded): a large snapshot then takes less memory.
    #[arg(long, value_name = "FROM..TO", value_parser = events)]
    events: Option<Range<usize>>,
}

/// Reads `FROM..TO`, of which either may be missing.
fn events(text: &str) -> Result<Range<usize>, String> {
    let number = |text: &str, missing: usize| match text {
        "" => Ok(missing),
        text => text.parse().map_err(|_| format!("{text:?} is not an event number")),
    };
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO, as 1000..2000")?;
    let range = number(from, 0)?..number(to, usize::MAX)?;
    if range.is_empty() { Err("the range has no event".to_owned()) } else { Ok(range) }
}

/// Prints the figures of a snapshot.
///
/// # Errors
/// When the file cannot be read or is no snapshot, no device has the event, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let snapshot = match read_events(&arguments.snapshot, arguments.events.clone()) {
        Err(error) if is_timeline(&error) => return timeline(arguments),
        Err(error) if is_other_json(&error) => return of_trace(arguments, error),
        read => read?,
    };
    if arguments.events.is_some() && snapshot.traces.iter().all(Vec::is_empty) {
        return Err(Usage("--events: no device has as many events".to_owned()).into());
    }
    let report = analyze_snapshot(&snapshot);
    let states = states(arguments, &snapshot, &report)?;
    let changes =
        arguments.against.as_deref().map(|earlier| changes(earlier, &report)).transpose()?;
    let in_trace =
        arguments.trace.as_deref().map(|path| of_same_run(path, &snapshot, &report)).transpose()?;
    let text = if arguments.json {
        let mut document = serde_json::to_value(&report)?;
        if let (Some(document), Some((found, _))) = (document.as_object_mut(), &in_trace) {
            document.insert("same_run".to_owned(), serde_json::to_value(found)?);
        }
        if let (Some(document), Some(changes)) = (document.as_object_mut(), &changes) {
            document.insert("comparison".to_owned(), serde_json::to_value(changes)?);
        }
        if let (Some(document), true) =
            (document.as_object_mut(), arguments.at_peak || arguments.at_event.is_some())
        {
            document.insert("states".to_owned(), states_json(&report, &states)?);
        }
        format!("{}\n", serde_json::to_string_pretty(&document)?)
    } else {
        let name = arguments.snapshot.file_name().unwrap_or_default().to_string_lossy();
        // What changed is what was asked for.
        let mut sections = changes.iter().flat_map(Comparison::sections).collect::<Vec<_>>();
        sections.extend(in_trace.map(|(_, section)| section));
        sections.extend(report.sections());
        sections.extend(states.iter().map(|(device, state)| state.section(device)));
        if arguments.at_peak && states.is_empty() {
            let mut section = Section::new("state", "State at the peak");
            section.intro.push(without_peak(&snapshot).to_owned());
            sections.push(section);
        }
        // (Some chapters have only tables for the page.)
        sections.retain(|section| {
            !section.intro.is_empty()
                || !section.findings.is_empty()
                || section.printed_tables().next().is_some()
        });
        kinetoscope::report::document(&name, &sections)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Why no device has a state at its peak.
fn without_peak(snapshot: &Snapshot) -> &'static str {
    if snapshot.traces.iter().all(|events| events.len() < 2) {
        "The file has no timeline, so it shows no peak and no state at one."
    } else {
        "The events contradict the segments or are incomplete, so no state at a peak is shown."
    }
}

/// What changed since an earlier snapshot.
fn changes(earlier: &Path, later: &SnapshotReport) -> Result<Comparison> {
    let earlier = analyze_snapshot(&read(earlier)?).summary();
    Ok(compare(&earlier, &later.summary()))
}

/// What a trace says of what the snapshot holds.
fn of_same_run(
    path: &Path,
    snapshot: &Snapshot,
    report: &SnapshotReport,
) -> Result<(SameRun, Section)> {
    let version = input::Version::of(path)?;
    let decoded = input::decode(path)?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let index = HostIndex::of(&decoded.trace);
    let found = same_run(&index.slices, &details, &run_facts(snapshot, report));
    let section = found.section(&path.file_name().unwrap_or_default().to_string_lossy());
    Ok((found, section))
}

/// Whether the file is a memory timeline.
fn is_timeline(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<NotASnapshot>()
        .is_some_and(|other| other.kind == Some(FileKind::MemoryTimeline))
}

/// Whether the file is JSON that is no snapshot: a trace, maybe.
fn is_other_json(error: &anyhow::Error) -> bool {
    error.downcast_ref::<NotASnapshot>().is_some_and(|other| other.kind.is_none())
}

/// Prints the memory of a trace, from its `[memory]` events.
fn of_trace(arguments: &Arguments, error: anyhow::Error) -> Result<()> {
    let path = &arguments.snapshot;
    let version = input::Version::of(path)?;
    let Ok(decoded) = input::decode(path) else { return Err(error) };
    only_of_snapshots(arguments, "the [memory] events of a trace")?;
    let details = input::details_of_host(path, &decoded, &version)?;
    let devices = memory_over_time(&HostIndex::of(&decoded.trace).slices, &details);
    if devices.is_empty() {
        let what = "a trace without [memory] events. Record it with profile_memory=True, or write a memory snapshot";
        return Err(anyhow::anyhow!(what).context(path.display().to_string()));
    }
    let (mut rows, mut sections) = (Vec::new(), Vec::new());
    for of in devices {
        let (device_type, device_id) = (of.device_type, of.device_id);
        let name = match device_name(&of).as_str() {
            "CPU" => "Memory of the CPU".to_owned(),
            device => format!("Memory of device {device}"),
        };
        let report = timeline_of_events(of).report();
        rows.push(json!({ "device_type": device_type, "device_id": device_id, "memory": report }));
        for mut section in report.sections() {
            section.title = name.clone().into();
            sections.push(section);
        }
    }
    print(arguments, &json!({ "memory_events": rows }), &sections)
}

/// Refuses options that need blocks and segments.
fn only_of_snapshots(arguments: &Arguments, what: &str) -> Result<()> {
    let has_moment = arguments.at_peak || arguments.at_event.is_some();
    let has_file = arguments.against.is_some() || arguments.trace.is_some();
    if has_moment || has_file || arguments.events.is_some() {
        let what = format!(
            "--at-event, --at-peak, --against, --trace and --events: {what} have no blocks and no segments"
        );
        return Err(Usage(what).into());
    }
    Ok(())
}

fn print(arguments: &Arguments, document: &Value, sections: &[Section]) -> Result<()> {
    let text = if arguments.json {
        format!("{}\n", serde_json::to_string_pretty(document)?)
    } else {
        let name = arguments.snapshot.file_name().unwrap_or_default().to_string_lossy();
        kinetoscope::report::document(&name, sections)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Prints the figures of a memory timeline.
fn timeline(arguments: &Arguments) -> Result<()> {
    only_of_snapshots(arguments, "rows of a memory timeline")?;
    let path = &arguments.snapshot;
    let mut reader = TimelineReader::new();
    input::pieces(path, "reading", |piece| {
        reader.push(piece);
        true
    })?;
    let report = reader.finish().with_context(|| path.display().to_string())?.report();
    print(arguments, &json!({ "timeline": report }), &report.sections())
}

/// A snapshot from its file.
///
/// # Errors
/// When the file cannot be read or is no snapshot.
pub fn read(path: &Path) -> Result<Snapshot> {
    read_events(path, None)
}

/// A snapshot from its file, with all or some of its events.
fn read_events(path: &Path, events: Option<Range<usize>>) -> Result<Snapshot> {
    let mut reader = events.map_or_else(SnapshotReader::new, SnapshotReader::of_events);
    let mut failed = None;
    input::pieces(path, "reading", |piece| {
        failed = reader.push(piece).err();
        failed.is_none()
    })?;
    let snapshot = match failed {
        Some(error) => Err(error),
        None => reader.finish(),
    };
    snapshot.with_context(|| path.display().to_string())
}

/// The wanted state of each device that has it.
fn states(
    arguments: &Arguments,
    snapshot: &Snapshot,
    report: &SnapshotReport,
) -> Result<Vec<(String, AllocatorState)>> {
    let mut states = Vec::new();
    for device in report.devices.keys() {
        let index = match arguments.at_event {
            Some(index) => Some(index).filter(|index| *index <= report.n_events(device)),
            None if arguments.at_peak => report.peak_index(device),
            None => None,
        };
        if let (Some(index), Ok(number)) = (index, device.parse()) {
            states.push((device.clone(), state_before(snapshot, number, index)));
        }
    }
    match arguments.at_event {
        Some(index) if states.is_empty() => {
            Err(Usage(format!("--at-event {index}: no device has as many events")).into())
        }
        _ => Ok(states),
    }
}

fn states_json(report: &SnapshotReport, states: &[(String, AllocatorState)]) -> Result<Value> {
    let mut object = serde_json::Map::new();
    for (device, state) in states {
        let mut value = serde_json::to_value(state)?;
        if let Some(value) = value.as_object_mut() {
            let live = report.live_requested(device, state.index);
            value.insert("live_requested".to_owned(), json!(live));
        }
        object.insert(device.clone(), value);
    }
    Ok(Value::Object(object))
}
