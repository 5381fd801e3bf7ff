//! The report on a snapshot as sections and tables.

use report::units::{count, plural};
use report::{Cell, Column, Finding, Row, Section, Table, Unit};
use serde::Serialize;

use crate::amounts::{amount, percent, size};
use crate::findings::within_activations;
use crate::headline::headline;
use crate::intro::intro;
use crate::report::{DeviceReport, SnapshotReport, Timeline};
use crate::site::{BENCHMARK, MOST_SITES, SiteRow};
use crate::state::AllocatorState;
use crate::steps::flat;
use crate::totals::Totals;

/// Autotuning is told from this share of all allocated bytes on, in percent.
const LEAST_TUNED: f64 = 10.0;

/// Modules are printed that have this part of the peak: a twentieth.
const LEAST_OF_PEAK: i64 = 20;

/// With fewer modules to print, call sites say as much: the model, one within it, and what is outside.
const LEAST_MODULES: usize = 3;

/// Free ranges of a state are told from this share of reserved memory on, in percent.
const LEAST_FREE: f64 = 10.0;

/// Call sites at the end are those at the peak where they hold this part of all bytes, in percent.
const NEARLY_ALL: i64 = 95;

/// Rounded sizes exceed requested ones by no more than this, in percent, where they are the same blocks.
const MOST_ROUNDING: i64 = 5;

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
        let first = headline(self);
        summary.intro = intro(self, first.as_ref());
        summary.findings.clone_from(findings);
        self.leave_out_repeated(&mut summary.findings);
        let mut sections = vec![summary];
        let first = first.map(|(device, _)| device);
        for (device, figures) in devices {
            let is_bystander = self.is_bystander(figures);
            let from = sections.len();
            sections.push(totals_section(device, figures));
            if let Some(timeline) = &figures.timeline
                && timeline.replay.timeline_usable
            {
                let is_ranged = reading.left_out_of(device).is_some();
                let is_partial = reading.is_partial();
                let is_first = first == Some(device);
                let scope = Scope { is_partial, is_complete: *is_complete, is_ranged, is_first };
                sections.push(timeline_section(device, figures, timeline, scope));
                sections.extend(what_if.get(device).and_then(|it| it.section(device)));
            }
            if is_bystander {
                // (The first chapter has its line.)
                for section in sections.iter_mut().skip(from) {
                    section.intro.clear();
                    section.tables.iter_mut().for_each(|table| table.page_only = true);
                }
            }
        }
        sections
    }
}

impl SnapshotReport {
    /// Leaves out what another finding of the same device says.
    fn leave_out_repeated(&self, findings: &mut Vec<Finding>) {
        for (device, figures) in &self.devices {
            if figures.timeline.as_ref().and_then(within_activations).is_some() {
                let of = format!("Device {device}:");
                let is_other = |it: &Finding| {
                    it.rule != "unfused-attention" || !it.observation.starts_with(&of)
                };
                findings.retain(is_other);
            }
        }
    }
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
    // (The first chapter has the state of the device; types of segments say nothing more that anybody acts on.)
    let is_single = figures.by_stream.len() < 2 && figures.free.private == 0;
    section.drawings.extend(figures.segments_picture.clone());
    section.tables = vec![
        Table::of("totals", "Totals", &rows).only_on_page(is_single).printing(is_printed),
        sites(
            "live-by-site",
            "Blocks in use by call site (rounded sizes)",
            &figures.live_sites,
            figures.totals.active,
            // (The peak of a recording that ends with it is the state at the end.)
            figures.timeline.as_ref().is_some_and(|it| {
                let is_end = || it.replay.shown.index == figures.events || repeats(figures, it);
                it.is_unwound() || it.is_usable() && is_end()
            }),
        ),
    ];
    section
}

/// Whether call sites with nearly all bytes in use at the end hold as much at the peak, whose table then has them.
#[inline(never)]
fn repeats(figures: &DeviceReport, timeline: &Timeline) -> bool {
    let peak = timeline.replay.peak_sites.get(..MOST_SITES).unwrap_or(&timeline.replay.peak_sites);
    let is_there = |row: &&SiteRow| {
        let same = peak.iter().find(|other| other.site == row.site);
        // (Sizes at the end are rounded, those at the peak are not.)
        same.is_some_and(|other| {
            let change = row.bytes.saturating_sub(other.bytes).saturating_abs();
            change.saturating_mul(100) <= row.bytes.saturating_mul(MOST_ROUNDING)
        })
    };
    let same = figures.live_sites.iter().filter(is_there);
    let bytes = same.fold(0_i64, |sum, row| sum.saturating_add(row.bytes));
    bytes.saturating_mul(100) >= figures.totals.active.saturating_mul(NEARLY_ALL)
}

/// A table of call sites; documents print those that have at least a thousandth of all bytes, and no table where one site has nearly
/// all: the first sentence names it.
fn sites(
    id: &'static str,
    title: &'static str,
    rows: &[SiteRow],
    whole: i64,
    is_only_on_page: bool,
) -> Table {
    let rows = rows.get(..MOST_SITES).unwrap_or(rows);
    let is_large = |row: &SiteRow| row.bytes.saturating_mul(1000) >= whole;
    let is_one =
        rows.first().is_none_or(|row| row.bytes.saturating_mul(100) >= whole.saturating_mul(90));
    Table::of(id, title, rows)
        .only_on_page(is_only_on_page || is_one)
        .printing(rows.iter().map(is_large))
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
    /// The first sentence has the peak of the device.
    is_first: bool,
}

/// What the allocations are for; rows of less than a hundredth are counted in its title.
fn classes_table(timeline: &Timeline) -> Table {
    let title = "What the allocations are for (estimate)";
    let classes = &timeline.classes.rows;
    let (peak, all) = (timeline.replay.peak_requested, timeline.churn.alloc_bytes);
    let is_part = |part: i64, whole: i64| part > 0 && part.saturating_mul(100) >= whole;
    let is_printed: Vec<bool> = classes
        .iter()
        .map(|row| is_part(row.peak_bytes, peak) || is_part(row.allocated_bytes, all))
        .collect();
    let rest = is_printed.iter().filter(|is_printed| !**is_printed).count();
    let mut table = Table::of("classes", title, classes).printing(is_printed);
    if rest > 0 {
        let rest = plural(rest as u64, "more row has", "more rows have");
        table.title = format!("{title}; {rest} less than 1%").into();
    }
    table
}

fn timeline_section(
    device: &str,
    figures: &DeviceReport,
    timeline: &Timeline,
    Scope { is_partial, is_complete, is_ranged, is_first }: Scope,
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
    if is_partial {
        section.intro.push(
            "A part of the file is missing or damaged, so no timeline and no peak are shown."
                .to_owned(),
        );
        return section;
    }
    if !replay.trace_matches_snapshot {
        // (A finding has the reasons.)
        return section;
    }
    if !is_first {
        section.intro.push(format!(
            "Memory in use peaks at {}{}, before event {} of {}.",
            size(replay.peak_requested),
            if is_ranged { " in the chosen range" } else { "" },
            count(replay.shown.index as u64),
            count(figures.events as u64),
        ));
    }
    if replay.peak_reserved != figures.totals.reserved {
        section.intro.push(format!("Reserved memory peaks at {}.", size(replay.peak_reserved)));
    }
    let churn = timeline.churn.alloc_bytes;
    let tuned = timeline.alloc_sites.iter().find(|row| row.site == BENCHMARK);
    if let Some(tuned) = tuned.filter(|row| percent(row.bytes, churn) >= LEAST_TUNED) {
        section.intro.push(format!(
            "The recording contains compilation: {} of the {} allocated in it are benchmarks of autotuning. Record after the first calls \
             to see what a call needs.",
            size(tuned.bytes),
            size(churn)
        ));
    }
    section.drawings.extend(timeline.picture.clone());
    let phases: Vec<PhaseRow> = replay
        .shown
        .by_phase
        .iter()
        .map(|(phase, bytes)| PhaseRow { phase: phase.label().to_owned(), bytes: *bytes })
        .collect();
    let classes = &timeline.classes.rows;
    if is_complete {
        section.tables.push(classes_table(timeline));
    }
    add_steps(device, timeline, &mut section);
    if !timeline.by_module.is_empty() {
        section.tables.push(modules_table(timeline));
    }
    section.tables.extend([
        // (Purposes tell more than phases.)
        Table::of("peak-by-phase", "Alive at the peak by phase", &phases)
            .only_on_page(phases.len() < 2 || !classes.is_empty()),
        sites(
            "peak-by-site",
            "Alive at the peak by call site (requested sizes)",
            &replay.peak_sites,
            replay.peak_requested,
            false,
        ),
        // (What was allocated and freed again explains no peak.)
        sites(
            "alloc-by-site",
            "All allocations by call site (requested sizes)",
            &timeline.alloc_sites,
            timeline.churn.alloc_bytes,
            true,
        ),
    ]);
    section
}

/// Memory by module; documents print those with at least a twentieth of the peak, where there are several.
fn modules_table(timeline: &Timeline) -> Table {
    let (rows, peak) = (&timeline.by_module, timeline.replay.peak_requested);
    let is_printed: Vec<bool> =
        rows.iter().map(|row| row.peak_bytes.saturating_mul(LEAST_OF_PEAK) >= peak).collect();
    let is_one = is_printed.iter().filter(|is_printed| **is_printed).count() < LEAST_MODULES;
    Table::of("memory-by-module", "Memory by module", rows)
        .only_on_page(is_one)
        .printing(is_printed)
}

/// Memory by step, where the file has steps.
fn add_steps(device: &str, timeline: &Timeline, section: &mut Section) {
    if timeline.by_step.is_empty() {
        return;
    }
    let table = Table::of("memory-by-step", "Memory by step", &timeline.by_step);
    // (A sentence says that steps are alike.)
    let steps: Vec<_> = timeline.by_step.iter().filter(|row| row.step > 0).collect();
    // (The first sentence has the figures of a single step, but for what it still asked the driver for.)
    if let [only] = steps.as_slice()
        && only.segment_allocs > 0
    {
        section.intro.push(format!(
            "The only recorded step takes {} from the driver: the cache did not hold what it needs, as in a first step \
             or after empty_cache.",
            plural(only.segment_allocs, "segment or page", "segments or pages")
        ));
    }
    let is_told = steps.len() < 2 || flat(device, &timeline.by_step).is_some();
    section.tables.push(table.only_on_page(is_told));
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
        let free = match percent(self.cached_free, self.reserved) >= LEAST_FREE {
            true => format!(
                "at most {} of it free; the largest free range has at most {}",
                size(self.cached_free),
                size(self.largest_cached_free)
            ),
            false => format!("less than {LEAST_FREE:.0}% of it free"),
        };
        section.intro.push(format!("{} reserved, {free}.", size(self.reserved)));
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
        // (Of one stream the sentence has it.)
        let table = Table::of("free-by-stream", "Free by stream", &rows);
        section.tables.push(table.only_on_page(rows.len() < 2));
        section
    }
}
