//! Memory snapshots.

use kinetoscope::lanes::{Alone, News, RecordedLevels};
use kinetoscope::memory::{
    Chart, DeviceOverTime, OverTime, Summary, compare, complete, figures, run_facts,
};
use kinetoscope::report::units;
use kinetoscope::scene::Ink;
use kinetoscope::{
    FileKind, MemoryOverTime, MemoryTimeline, NotASnapshot, Snapshot, SnapshotReader,
    SnapshotReport, TimelineReader, device_name, timeline_of_events,
};

use super::super::memory::{Look, legend};
use super::{Files, Port, Session, Source, read_all};
use crate::protocol::{
    Aside, Chapter, Charted, EventRange, Failure, JobId, MemoryPictures, Program, Progress,
    Request, Response, Stage, Surface,
};

/// Pictures of the report that a person can look at in motion instead.
const REPLACED: [&str; 2] = ["memory-over-events", "segments"];

/// Reads a snapshot when it is opened, reports on it, and draws what a person looks at.
#[derive(Default)]
pub struct SnapshotSession(Option<Open>);

struct Open {
    job: JobId,
    /// What a comparison needs of it; `None` for what is no snapshot.
    summary: Option<Summary>,
    snapshot: Snapshot,
    look: Look,
}

impl Session for SnapshotSession {
    fn handle(&mut self, request: Request, files: &mut dyn Files, port: &mut dyn Port) {
        match request {
            Request::Open { job, events, .. } => {
                let Some(source) = files.source(job) else { return };
                match read(job, source, events.filter(|events| !events.is_all()), port) {
                    Err(Unread::Timeline) => match read_timeline(job, source, port) {
                        Ok(timeline) => {
                            port.send(Response::Aside { job, aside: aside_of(&timeline) });
                            let look = Look::of_timelines(vec![timeline]);
                            self.0 = Some(Open {
                                job,
                                summary: None,
                                snapshot: Snapshot::default(),
                                look,
                            });
                        }
                        Err(failure) => port.send(Response::Failed { job, failure }),
                    },
                    Ok(snapshot) => {
                        let report = figures(&snapshot);
                        let known = Known::of(&snapshot, &report);
                        port.send(Response::Aside { job, aside: known.aside(&report) });
                        // The rest takes longer than what a person asks first.
                        let report = complete(&snapshot, report);
                        port.send(Response::Aside { job, aside: known.aside(&report) });
                        let look = Look::new(&snapshot, known.devices, known.first);
                        let summary = Some(report.summary());
                        self.0 = Some(Open { job, summary, snapshot, look });
                    }
                    Err(Unread::Failed(failure)) => {
                        port.send(Response::Failed { job, failure: *failure });
                    }
                }
            }
            Request::Look { surface, input, .. } => {
                if let Some(Open { snapshot, look, .. }) = &mut self.0 {
                    look.take(snapshot, surface, &input);
                }
            }
            Request::Memory { job, recorded } => {
                let Ok(devices) = postcard::from_bytes::<Vec<MemoryOverTime>>(&recorded) else {
                    return;
                };
                let (pictures, timelines) = pictures(devices);
                port.send(Response::Memory { job, pictures });
                let (snapshot, look) = (Snapshot::default(), Look::of_timelines(timelines));
                self.0 = Some(Open { job, summary: None, snapshot, look });
            }
            Request::Levels { job } => {
                let over_time = self.0.as_ref().and_then(|open| OverTime::of(&open.snapshot));
                let news = News::Alone(over_time.map(alone).unwrap_or_default());
                let recorded = postcard::to_allocvec(&news).unwrap_or_default();
                port.send(Response::Levels { job, recorded });
            }
            Request::Changes { job, earlier } => {
                let own = self.0.as_ref().and_then(|open| open.summary.as_ref());
                let Some((own, earlier)) = own.zip(postcard::from_bytes::<Summary>(&earlier).ok())
                else {
                    return;
                };
                let sections = compare(&earlier, own).sections();
                let chapters = sections.into_iter().map(Chapter::drawn).collect();
                port.send(Response::Changes { job, chapters });
            }
            _ => {}
        }
    }

    fn frame(&mut self, port: &mut dyn Port) -> Vec<(Surface, Vec<Ink>)> {
        let Some(Open { job, snapshot, look, .. }) = &mut self.0 else { return Vec::new() };
        if let Some(looked) = look.news(snapshot) {
            port.send(Response::Looked { job: *job, program: Program::Snapshot, looked });
        }
        look.paint()
    }
}

/// Why there is no snapshot.
enum Unread {
    /// The file is a memory timeline.
    Timeline,
    /// It cannot be read.
    Failed(Box<Failure>),
}

fn read(
    job: JobId,
    source: &mut dyn Source,
    events: Option<EventRange>,
    port: &mut dyn Port,
) -> Result<Snapshot, Unread> {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let mut reader = match events {
        None => SnapshotReader::new(),
        Some(EventRange { from, to }) => {
            SnapshotReader::of_events(number(from)..to.map_or(usize::MAX, number))
        }
    };
    let mut other = None;
    let read = read_all(source, |bytes, done, total| {
        reader.push(bytes).map_err(|error| {
            other = error.kind;
            refused(&error)
        })?;
        let progress = Progress { stage: Stage::Reading, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    });
    let snapshot = read.and_then(|()| {
        reader.finish().map_err(|error| {
            other = error.kind;
            refused(&error)
        })
    });
    snapshot.map_err(|failure| match other {
        Some(FileKind::MemoryTimeline) => Unread::Timeline,
        _ => Unread::Failed(Box::new(failure)),
    })
}

fn read_timeline(
    job: JobId,
    source: &mut dyn Source,
    port: &mut dyn Port,
) -> Result<MemoryTimeline, Failure> {
    let mut reader = TimelineReader::new();
    read_all(source, |bytes, done, total| {
        reader.push(bytes);
        let progress = Progress { stage: Stage::Reading, done, total, n_events: 0 };
        port.send(Response::Progress { job, progress });
        Ok(())
    })?;
    reader.finish().map_err(|error| Failure {
        title: "This memory timeline cannot be read".into(),
        what: format!("It is {error}."),
        place: None,
        advice: "Write it again with export_memory_timeline, or record a memory snapshot.".into(),
        excerpt: None,
    })
}

/// The memory of the devices of a trace, and what there is to see of it.
fn pictures(devices: Vec<MemoryOverTime>) -> (MemoryPictures, Vec<MemoryTimeline>) {
    let (mut pictures, mut timelines) = (MemoryPictures::default(), Vec::new());
    for device in devices {
        let name = device_name(&device);
        let timeline = timeline_of_events(device);
        let chart = timeline.chart();
        let (legend, has_times) = (legend(&chart), chart.has_times());
        let title = if name == "CPU" { "CPU".to_owned() } else { format!("Device {name}") };
        for mut section in timeline.report().sections() {
            section.title = title.clone().into();
            pictures.chapters.push(Chapter::drawn(section));
        }
        pictures.charts.push(Charted { device: name, legend, has_times });
        timelines.push(timeline);
    }
    (pictures, timelines)
}

/// The memory of a snapshot, for the program that draws lanes.
fn alone(of: OverTime) -> Alone {
    let OverTime { starts_ns, span_ns, devices, steps } = of;
    let recorded = |of: &DeviceOverTime| {
        let label = format!("Memory of GPU {} (requested bytes)", of.device);
        RecordedLevels::new(label, of.first, &of.levels)
    };
    Alone { starts_ns, span_ns, memory: devices.iter().map(recorded).collect(), steps }
}

fn aside_of(timeline: &MemoryTimeline) -> Aside {
    let report = timeline.report();
    let chart = timeline.chart();
    Aside::Snapshot {
        is_timeline: true,
        summary: format!("peak {}", units::bytes(report.peak_bytes.max(0) as u64)),
        chapters: report.sections().into_iter().map(Chapter::drawn).collect(),
        charts: vec![charted(&chart, 0)],
        summed: Vec::new(),
        run: Vec::new(),
    }
}

fn refused(error: &NotASnapshot) -> Failure {
    Failure {
        title: "This memory snapshot cannot be read".into(),
        what: format!("{error}"),
        place: None,
        advice: "Write it again: s = torch.cuda.memory._snapshot(); json.dump(s, gzip.open(\"snapshot.json.gz\", \"wt\"))."
            .into(),
        excerpt: None,
    }
}

/// What the page hears of a snapshot with each report on it.
struct Known {
    summary: String,
    summed: Vec<u8>,
    run: Vec<u8>,
    charts: Vec<Charted>,
    /// The devices of the charts.
    devices: Vec<i64>,
    /// Which of them to look at first, and its chart.
    first: Option<(usize, Chart)>,
}

impl Known {
    fn of(snapshot: &Snapshot, report: &SnapshotReport) -> Self {
        let n = report.devices.len() as u64;
        let of_segments = snapshot.segments.iter();
        let reserved = of_segments.map(|segment| segment.total_size.max(0) as u64).sum();
        let devices = units::plural(n, "device", "devices");
        let mut known = Self {
            summary: format!("{devices}, {} reserved", units::bytes(reserved)),
            summed: postcard::to_allocvec(&report.summary()).unwrap_or_default(),
            run: postcard::to_allocvec(&run_facts(snapshot, report)).unwrap_or_default(),
            charts: Vec::new(),
            devices: Vec::new(),
            first: None,
        };
        let devices = report.devices.keys().filter_map(|device| device.parse::<i64>().ok());
        // Levels of a part of a file are those of no run.
        let devices = devices.filter(|_| !snapshot.reading.is_partial());
        let mut highest = (false, 0);
        for device in devices {
            let Some(chart) = report.chart(snapshot, device) else { continue };
            // The one that ran out of memory, else the fullest.
            let has_oom = chart.marks().iter().any(|mark| mark.is_oom);
            let most = (has_oom, chart.most_reserved(0..chart.len()));
            known.devices.push(device);
            known.charts.push(charted(&chart, device));
            if known.first.is_none() || most > highest {
                highest = most;
                known.first = Some((known.devices.len() - 1, chart));
            }
        }
        known
    }

    fn aside(&self, report: &SnapshotReport) -> Aside {
        let mut chapters: Vec<Chapter> = Vec::new();
        for mut section in report.sections() {
            if !self.charts.is_empty() {
                section.drawings.retain(|drawing| !REPLACED.contains(&&*drawing.id));
            }
            chapters.push(Chapter::drawn(section));
        }
        Aside::Snapshot {
            is_timeline: false,
            summary: self.summary.clone(),
            chapters,
            charts: self.charts.clone(),
            summed: self.summed.clone(),
            run: self.run.clone(),
        }
    }
}

fn charted(chart: &Chart, device: i64) -> Charted {
    Charted { device: device.to_string(), legend: legend(chart), has_times: chart.has_times() }
}
