//! The report on a snapshot as sections and tables.

use report::units::count;
use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;

use crate::amounts::{amount, percent, size};
use crate::headline::headline;
use crate::model::{LeftOut, Reading};
use crate::report::{DeviceReport, SnapshotReport, Timeline};
use crate::site::{MOST_SITES, NO_STACK, SiteRow};
use crate::state::AllocatorState;
use crate::totals::Totals;

macro_rules! columns {
    ($($key:ident $title:literal $unit:ident $help:literal $cell:expr;)*) => {
        &[$(Column {
            key: stringify!($key),
            title: $title,
            unit: Unit::$unit,
            help: $help,
            cell: $cell,
        },)*]
    };
}

/// The totals of one group of segments.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct TotalsRow {
    group: String,
    segments: u64,
    reserved: i64,
    allocated: i64,
    requested_active: i64,
    pending_free: i64,
    inactive_whole: i64,
    inactive_split: i64,
    largest_free: i64,
}

impl Row for TotalsRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        group "Segments of" Text "What the segments have in common." |row| row.group.as_str().into();
        segments "Segments" Count "Segments; of expandable memory, mapped runs." |row| Cell::Count(row.segments);
        reserved "Reserved" Bytes "Memory from the driver." |row| amount(row.reserved);
        allocated "Allocated" Bytes "Blocks in use, rounded sizes." |row| amount(row.allocated);
        requested_active "Requested" Bytes "Requested bytes of the blocks that are not free." |row| amount(row.requested_active);
        pending_free "Pending free" Bytes "Freed blocks that a stream still uses." |row| amount(row.pending_free);
        inactive_whole "Free segments" Bytes "Segments without a block in use: empty_cache returns them." |row| amount(row.inactive_whole);
        inactive_split "Free parts" Bytes "Free blocks of segments with other blocks." |row| amount(row.inactive_split);
        largest_free "Largest free" Bytes "The largest free block." |row| amount(row.largest_free);
    };
}

impl TotalsRow {
    fn of(group: String, totals: &Totals) -> Self {
        Self {
            group,
            segments: totals.segments,
            reserved: totals.reserved,
            allocated: totals.allocated,
            requested_active: totals.requested_active,
            pending_free: totals.pending_free,
            inactive_whole: totals.inactive_whole,
            inactive_split: totals.inactive_split,
            largest_free: totals.largest_free,
        }
    }
}

impl Row for SiteRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        site "Call site" Path "File, line and function of the program; or a node of autograd." |row| row.site.as_str().into();
        bytes "Bytes" Bytes "Sum of the sizes." |row| amount(row.bytes);
        count "Blocks" Count "Blocks or allocations." |row| Cell::Count(row.count);
    };
}

/// A phase or an action with its sum.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct PhaseRow {
    phase: String,
    bytes: i64,
}

impl Row for PhaseRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        phase "Phase" Text "Phase of the allocating stack (an estimate)." |row| row.phase.as_str().into();
        bytes "Bytes" Bytes "Requested bytes." |row| amount(row.bytes);
    };
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ActionRow {
    action: String,
    count: u64,
}

impl Row for ActionRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        action "Event" Text "What the allocator recorded." |row| row.action.as_str().into();
        count "Events" Count "How many." |row| Cell::Count(row.count);
    };
}

impl SnapshotReport {
    /// The report in chapters.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let Self { devices, reading, what_if, findings, is_complete, .. } = self;
        let mut summary = Section::new("memory", "Memory");
        let mut gaps = gaps_of(reading);
        if reading.is_partial() {
            // Before any figure, because every figure is too small.
            summary.intro.append(&mut gaps);
        }
        summary.intro.extend(headline(self));
        summary.intro.extend(reading.left_out.iter().map(|(device, left_out)| {
            let kept = self.n_events(&device.to_string());
            ranged(*device, *left_out, kept as u64)
        }));
        summary.intro.extend(devices.iter().map(|(device, figures)| state(device, figures)));
        summary.intro.extend(not_recorded(self));
        if devices.is_empty() {
            summary.intro.push("The snapshot has no segment and no event.".to_owned());
        }
        summary.intro.append(&mut gaps);
        if !is_complete {
            summary
                .intro
                .push("Findings and other allocator settings are being computed.".to_owned());
        }
        summary.findings.clone_from(findings);
        let mut sections = vec![summary];
        for (device, figures) in devices {
            sections.push(totals_section(device, figures));
            if let Some(timeline) = &figures.timeline {
                let is_ranged = reading.left_out_of(device).is_some();
                let is_partial = reading.is_partial();
                let scope = Scope { is_partial, is_complete: *is_complete, is_ranged };
                sections.push(timeline_section(device, figures, timeline, scope));
            }
            let is_usable = |it: &Timeline| it.replay.timeline_usable;
            if let Some(what_if) = what_if.get(device)
                && figures.timeline.as_ref().is_some_and(is_usable)
            {
                sections.push(what_if.section(device));
            }
        }
        sections
    }
}

/// Why there is no timeline, and how to record one; `None` where a device has one, and where events were left out or lost.
fn not_recorded(report: &SnapshotReport) -> Option<String> {
    let SnapshotReport { devices, reading, .. } = report;
    let is_known = |figures: &DeviceReport| figures.events > 1;
    if devices.is_empty()
        || devices.values().any(is_known)
        || reading.is_partial()
        || !reading.left_out.is_empty()
    {
        return None;
    }
    let has_stacks =
        devices.values().any(|it| it.live_sites.iter().any(|row| row.site != NO_STACK));
    let is_single = devices.values().any(|figures| figures.events > 0);
    let what = if reading.is_segment_list {
        "The file is the list of segments that torch.cuda.memory_snapshot() returns: it has no events."
    } else if is_single && reading.has_history {
        "The file records no timeline: it has a single event, as with trace_alloc_max_entries=1, the default of PyTorch 2.0."
    } else if is_single {
        "The file records no timeline: it has a single event, as with enabled=\"state\"."
    } else if has_stacks {
        "The file has no events: recording was off when the snapshot was taken."
    } else {
        "The file has no events and no stacks: recording was off."
    };
    let missing = if has_stacks { "a peak" } else { "call sites, a peak" };
    // (Blocks have a history in PyTorch 2.0, whose function has other parameters.)
    let parameters = match reading.has_history {
        true => "True, trace_alloc_max_entries=100000, trace_alloc_record_context=True",
        false => "",
    };
    Some(format!(
        "{what} For {missing} and its causes, call torch.cuda.memory._record_memory_history({parameters}) at the start of the process, and \
         write torch.cuda.memory._snapshot() after the steps of interest."
    ))
}

/// What a chosen range leaves out, and what that means for the figures.
fn ranged(device: usize, LeftOut { before, behind }: LeftOut, kept: u64) -> String {
    let all = count(before + kept + behind);
    if kept == 0 {
        return format!("Device {device}: no event of its {all} is in the chosen range.");
    }
    format!(
        "Device {device}: only events {} to {} of {all} were kept, {} before and {} behind them left out. Peak, states, call sites and \
         findings are those of this range; its events are numbered from 0, its steps from 1. Segments and blocks are those at the time of the snapshot.",
        count(before),
        count(before + kept - 1),
        count(before),
        count(behind)
    )
}

fn state(device: &str, figures: &DeviceReport) -> String {
    let totals = &figures.totals;
    let private = match figures.free.private {
        0 => String::new(),
        bytes => {
            format!(", {} free in private pools (as of CUDA graphs, which keep them)", size(bytes))
        }
    };
    format!(
        "Device {device} at the time of the snapshot: {} reserved, {} allocated ({:.0}% of reserved), {} free and returnable, \
         {} free and not returnable{private}.",
        size(totals.reserved),
        size(totals.allocated),
        percent(totals.allocated, totals.reserved),
        size(figures.free.releasable),
        size(figures.free.hard)
    )
}

/// What was not read.
fn gaps_of(reading: &Reading) -> Vec<String> {
    let mut lines = Vec::new();
    if reading.is_cut {
        lines.push(
            "The file is cut: what stands before the cut is shown, and the totals are too small."
                .to_owned(),
        );
    }
    let list = |counts: &std::collections::BTreeMap<String, u64>| {
        counts
            .iter()
            .map(|(name, n)| format!("{name} ({})", count(*n)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (n, what) in [
        (reading.damaged_elements, "objects could be read only in part or not at all"),
        (reading.unreadable_numbers, "sizes are missing or unreadable and count as 0"),
        (reading.compression_faults, "faults in the compressed data"),
        (reading.bytes_after, "bytes after the end of the document were ignored"),
    ] {
        if n > 0 {
            lines.push(format!("{} {what}.", count(n)));
        }
    }
    if !reading.unknown_keys.is_empty() {
        lines.push(format!("Keys that were not used: {}.", list(&reading.unknown_keys)));
    }
    if !reading.unknown_states.is_empty() {
        lines.push(format!(
            "Unknown states of blocks, counted as active: {}.",
            list(&reading.unknown_states)
        ));
    }
    if !reading.unknown_actions.is_empty() {
        lines
            .push(format!("Unknown events, only counted: {}.", reading.unknown_actions.join(", ")));
    }
    lines
}

fn totals_section(device: &str, figures: &DeviceReport) -> Section {
    let mut section = Section::new("totals", "");
    section.id = format!("totals-{device}").into();
    section.title = format!("Device {device}: segments and blocks").into();
    if !figures.invariant_violations.is_empty() {
        let list: Vec<String> = figures
            .invariant_violations
            .iter()
            .map(|(name, n)| format!("{name} in {}", count(*n)))
            .collect();
        section
            .intro
            .push(format!("Segments whose sums contradict their blocks: {}.", list.join(", ")));
    }
    let mut rows = vec![TotalsRow::of("device".to_owned(), &figures.totals)];
    let mut is_printed = vec![true];
    for (what, groups) in
        [("type", &figures.by_type), ("stream", &figures.by_stream), ("pool", &figures.by_pool)]
    {
        // (A group that is the device says nothing more, unless it is a private pool.)
        let says_more = |key: &String| groups.len() > 1 || what == "pool" && key != "(0, 0)";
        is_printed.extend(groups.keys().map(says_more));
        rows.extend(groups.iter().map(|(key, totals)| {
            let private = if what == "pool" && key != "(0, 0)" { "private " } else { "" };
            TotalsRow::of(format!("{private}{what} {key}"), totals)
        }));
    }
    // (The row of the device is in the first chapter.)
    let is_single = is_printed.iter().filter(|is_printed| **is_printed).count() < 2;
    section.drawings.extend(figures.segments_picture.clone());
    section.tables = vec![
        Table::of("totals", "Totals", &rows).only_on_page(is_single).printing(is_printed),
        sites(
            "live-by-site",
            "Blocks in use by call site (rounded sizes)",
            &figures.live_sites,
            figures.totals.active,
        ),
    ];
    section
}

/// A table of call sites; documents print those that have at least a thousandth of all bytes.
fn sites(id: &'static str, title: &'static str, rows: &[SiteRow], whole: i64) -> Table {
    let rows = rows.get(..MOST_SITES).unwrap_or(rows);
    let is_large = |row: &SiteRow| row.bytes.saturating_mul(1000) >= whole;
    // (One row has the sum that the sentences have.)
    Table::of(id, title, rows).only_on_page(rows.len() < 2).printing(rows.iter().map(is_large))
}

/// Of what the figures of a device are.
#[derive(Clone, Copy, Debug)]
struct Scope {
    /// A part of the file is missing.
    is_partial: bool,
    /// All figures are there.
    is_complete: bool,
    /// Only a range of the events was kept.
    is_ranged: bool,
}

fn timeline_section(
    device: &str,
    figures: &DeviceReport,
    timeline: &Timeline,
    Scope { is_partial, is_complete, is_ranged }: Scope,
) -> Section {
    let mut section = Section::new("timeline", "");
    section.id = format!("timeline-{device}").into();
    section.title = format!("Device {device}: recorded events").into();
    let replay = &timeline.replay;
    let actions: Vec<ActionRow> = figures
        .actions
        .iter()
        .map(|(action, count)| ActionRow { action: action.clone(), count: *count })
        .collect();
    section.tables.push(Table::of("actions", "Events", &actions).only_on_page(true));
    if !replay.timeline_usable {
        return section;
    }
    if is_partial {
        section.intro.push(
            "A part of the file is missing or damaged, so no timeline and no peak are shown."
                .to_owned(),
        );
        return section;
    }
    if !replay.trace_matches_snapshot {
        section.intro.push(
            "The events contradict the segments, so no timeline and no peak are shown.".to_owned(),
        );
        return section;
    }
    let window = if is_ranged {
        "of the chosen range"
    } else if replay.free_of_untraced > 0 || replay.start_requested > 0 {
        "in the recorded window (memory was in use before its first event)"
    } else {
        "of the recording"
    };
    section.intro.push(format!(
        "The peak {window} is {} requested, before event {} of {}; reserved memory peaks at {}.{}",
        size(replay.peak_requested),
        count(replay.peak_index as u64),
        count(figures.events as u64),
        size(replay.peak_reserved),
        match replay.peak_untraced_bytes {
            0 => String::new(),
            bytes => format!(" {} of the peak were allocated before the first event.", size(bytes)),
        }
    ));
    section.drawings.extend(timeline.picture.clone());
    let phases: Vec<PhaseRow> = replay
        .peak_by_phase
        .iter()
        .map(|(phase, bytes)| PhaseRow { phase: phase.label().to_owned(), bytes: *bytes })
        .collect();
    let classes = &timeline.classes.rows;
    if is_complete {
        let title = "What the allocations are for (estimate)";
        section.tables.push(Table::of("classes", title, classes));
    }
    if !timeline.by_step.is_empty() {
        let table = Table::of("memory-by-step", "Memory by step", &timeline.by_step);
        section.tables.push(table.only_on_page(timeline.by_step.len() < 2));
    }
    section.tables.extend([
        Table::of("peak-by-phase", "Alive at the peak by phase", &phases)
            .only_on_page(phases.len() < 2),
        sites(
            "peak-by-site",
            "Alive at the peak by call site (requested sizes)",
            &replay.peak_sites,
            replay.peak_requested,
        ),
        sites(
            "alloc-by-site",
            "All allocations by call site (requested sizes)",
            &timeline.alloc_sites,
            timeline.churn.alloc_bytes,
        ),
    ]);
    section
}

/// A free range sum of a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct StreamRow {
    stream: String,
    cached_free: i64,
}

impl Row for StreamRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        stream "Stream" Text "Raw value of the stream; 0 is the default stream." |row| row.stream.as_str().into();
        cached_free "Free" Bytes "Reserved bytes without a live block (upper bound)." |row| amount(row.cached_free);
    };
}

impl AllocatorState {
    /// The state as a chapter.
    #[must_use]
    pub fn section(&self, device: &str) -> Section {
        let mut section = Section::new("state", "");
        section.id = format!("state-{device}").into();
        section.title =
            format!("Device {device}: before event {}", count(self.index as u64)).into();
        section.intro.push(format!(
            "{} reserved, at most {} of it free; the largest free range has at most {}.",
            size(self.reserved),
            size(self.cached_free),
            size(self.largest_cached_free)
        ));
        if self.faults > 0 {
            section
                .intro
                .push(format!("{} events contradict the reserved ranges.", count(self.faults)));
        }
        let rows: Vec<StreamRow> = self
            .cached_free_by_stream
            .iter()
            .map(|(stream, free)| StreamRow { stream: stream.to_string(), cached_free: *free })
            .collect();
        section.tables.push(Table::of("free-by-stream", "Free by stream", &rows));
        section
    }
}
