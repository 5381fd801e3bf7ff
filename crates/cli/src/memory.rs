//! `kinetoscope memory`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinetoscope::memory::{Comparison, compare};
use kinetoscope::{
    AllocatorState, FileKind, NotASnapshot, Snapshot, SnapshotReader, SnapshotReport,
    TimelineReader, analyze_snapshot, state_before,
};
use serde_json::{Value, json};

use crate::failure::Usage;
use crate::input;

#[derive(clap::Args)]
pub struct Arguments {
    /// A memory snapshot as JSON (.json or .json.gz), or a memory timeline (export_memory_timeline). A pickle is refused.
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
    #[arg(long, value_name = "EARLIER")]
    against: Option<PathBuf>,
}

/// Prints the figures of a snapshot.
///
/// # Errors
/// When the file cannot be read or is no snapshot, no device has the event, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let snapshot = match read(&arguments.snapshot) {
        Err(error) if is_timeline(&error) => return timeline(arguments),
        read => read?,
    };
    let report = analyze_snapshot(&snapshot);
    let states = states(arguments, &snapshot, &report)?;
    let changes =
        arguments.against.as_deref().map(|earlier| changes(earlier, &report)).transpose()?;
    let text = if arguments.json {
        let mut document = serde_json::to_value(&report)?;
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
        sections.extend(report.sections());
        sections.extend(states.iter().map(|(device, state)| state.section(device)));
        kinetoscope::report::document(&name, &sections)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// What changed since an earlier snapshot.
fn changes(earlier: &Path, later: &SnapshotReport) -> Result<Comparison> {
    let earlier = analyze_snapshot(&read(earlier)?).summary();
    Ok(compare(&earlier, &later.summary()))
}

/// Whether the file is a memory timeline.
fn is_timeline(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<NotASnapshot>()
        .is_some_and(|other| other.kind == Some(FileKind::MemoryTimeline))
}

/// Prints the figures of a memory timeline.
fn timeline(arguments: &Arguments) -> Result<()> {
    if arguments.at_peak || arguments.at_event.is_some() || arguments.against.is_some() {
        let what =
            "--at-event, --at-peak and --against: a memory timeline has no blocks and no segments";
        return Err(Usage(what.to_owned()).into());
    }
    let path = &arguments.snapshot;
    let mut reader = TimelineReader::new();
    input::pieces(path, "reading", |piece| {
        reader.push(piece);
        true
    })?;
    let report = reader.finish().with_context(|| path.display().to_string())?.report();
    let text = if arguments.json {
        format!("{}\n", serde_json::to_string_pretty(&json!({ "timeline": report }))?)
    } else {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        kinetoscope::report::document(&name, &report.sections())
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// A snapshot from its file.
///
/// # Errors
/// When the file cannot be read or is no snapshot.
pub fn read(path: &Path) -> Result<Snapshot> {
    let mut reader = SnapshotReader::new();
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
        None if arguments.at_peak && states.is_empty() => {
            Err(Usage("--at-peak: no device has a consistent timeline".to_owned()).into())
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
