//! Questions of a person who looks at a chart: what was in use at a moment, what a block is, and what changed over a range of events.

mod block;

use std::collections::BTreeMap;

use report::units::{count, plural, time};
use report::{Cell, Column, Row, Section, Table, Unit};
use serde::Serialize;

use crate::amounts::{amount, size};
use crate::births::Births;
use crate::chart::{By, Chart};
use crate::flame::flame;
use crate::model::{Action, Event, Snapshot};
use crate::site::{SiteRow, Sites, Sums};
use crate::stacking::{Layers, Stacking, restack};
use crate::stacks::StackId;
use crate::timeline::{CategoryRow, MemoryTimeline};
use crate::walk::{Held, Walk};

/// A device that is looked at. Everything is asked with the snapshot that it was made of.
#[derive(Debug)]
pub struct Explorer {
    chart: Chart,
    /// The state that was asked for last.
    at: usize,
    events: Option<Events>,
    /// What is looked at, if not events of a snapshot.
    timeline: MemoryTimeline,
}

/// What a snapshot has and a timeline of categories has not.
#[derive(Debug)]
struct Events {
    device: i64,
    walk: Walk,
    births: Births,
    sites: Sites,
    stacking: Stacking,
    /// The layer of each block; empty for call sites, whose layers follow from the stacks.
    layers: Layers,
}

/// What a range of events did at a call site.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct ChangeRow {
    site: String,
    kept: i64,
    allocated: i64,
    freed: i64,
    allocations: u64,
}

impl Row for ChangeRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "site",
            title: "Call site of the allocation",
            unit: Unit::Path,
            help: "File, line and function of the program; or a node of autograd.",
            cell: |row| row.site.as_str().into(),
        },
        Column {
            key: "kept",
            title: "Kept",
            unit: Unit::Bytes,
            help: "Requested bytes that these events allocated and that are in use after the last of them.",
            cell: |row| amount(row.kept),
        },
        Column {
            key: "allocated",
            title: "Allocated",
            unit: Unit::Bytes,
            help: "Requested bytes of the allocations.",
            cell: |row| amount(row.allocated),
        },
        Column {
            key: "freed",
            title: "Freed",
            unit: Unit::Bytes,
            help: "Requested bytes of the blocks that became free.",
            cell: |row| amount(row.freed),
        },
        Column {
            key: "allocations",
            title: "Allocations",
            unit: Unit::Count,
            help: "How many.",
            cell: |row| Cell::Count(row.allocations),
        },
    ];
}

impl Explorer {
    /// Looks at a device; `None` where it has no events, or events that contradict the segments.
    #[must_use]
    pub fn new(snapshot: &Snapshot, device: i64) -> Option<Self> {
        Some(Self::of_chart(snapshot, device, Chart::of(snapshot, device)?))
    }

    /// Looks at a device whose chart is already there.
    #[must_use]
    pub fn of_chart(snapshot: &Snapshot, device: i64, chart: Chart) -> Self {
        let events = Events {
            device,
            walk: Walk::new(snapshot, device),
            births: Births::of(snapshot.trace(device)),
            sites: Sites::of(snapshot),
            stacking: Stacking::Site,
            layers: Layers::default(),
        };
        let at = snapshot.trace(device).len();
        Self { chart, at, events: Some(events), timeline: MemoryTimeline::default() }
    }

    /// Looks at a memory timeline, which has bytes by category and no blocks.
    #[must_use]
    pub fn of_timeline(timeline: &MemoryTimeline) -> Self {
        let chart = timeline.chart();
        let at = chart.len().saturating_sub(1);
        Self { at, chart, events: None, timeline: timeline.clone() }
    }

    /// What the layers of the chart stand for; of a memory timeline they are its categories.
    #[must_use]
    pub fn stacking(&self) -> Option<Stacking> {
        Some(self.events.as_ref()?.stacking)
    }

    /// What its bytes are: those that were requested, or those of blocks, which `[memory]` events count.
    #[must_use]
    pub fn counts(&self) -> &'static str {
        if self.timeline.is_by_site() { "allocated" } else { "requested" }
    }

    /// Stacks the chart by something else.
    pub fn stack_by(&mut self, snapshot: &Snapshot, stacking: Stacking) {
        let Some(events) = &mut self.events else { return };
        if stacking == Stacking::Site {
            if let Some(chart) = Chart::of(snapshot, events.device) {
                self.chart = chart;
            }
            events.layers = Layers::default();
        } else {
            let chart = &mut self.chart;
            events.layers = restack(chart, snapshot, events.device, &events.sites, stacking);
        }
        events.stacking = stacking;
    }

    /// Memory over its events.
    #[must_use]
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Blocks and ranges of the state that was asked for last; a memory timeline has none.
    #[must_use]
    pub fn walk(&self) -> Option<&Walk> {
        Some(&self.events.as_ref()?.walk)
    }

    /// Goes to the state before an event.
    pub fn go(&mut self, snapshot: &Snapshot, at: usize) {
        self.at = at.min(self.chart.len().saturating_sub(1));
        if let Some(events) = &mut self.events {
            events.walk.go(snapshot, at);
        }
    }

    fn site(&self, stack: StackId) -> &str {
        self.events.as_ref().map_or("", |events| events.sites.name(events.sites.site(stack)))
    }

    /// The layer of the chart that a block belongs to.
    #[must_use]
    pub fn category(&self, held: &Held) -> &'static str {
        let layers = self.chart.layers();
        if let Some(events) = self.events.as_ref().filter(|it| it.stacking != Stacking::Site) {
            let layer = events.layers.of_block(held.birth, held.address);
            return layer.and_then(|at| layers.get(at)).map_or("other", |layer| layer.category);
        }
        let name = match held.birth {
            None => return layers.first().map_or("", |layer| layer.category),
            Some(_) => self.site(held.stack),
        };
        layers
            .iter()
            .skip(2)
            .find(|layer| layer.label == name)
            .map_or("other", |layer| layer.category)
    }

    /// A block in one line.
    #[must_use]
    pub fn describe(&self, held: &Held) -> String {
        let least = if held.is_exact { "" } else { "at least " };
        let birth = match held.birth {
            Some(birth) => format!("allocated by event {}", count(birth as u64)),
            None => "allocated before the first event".to_owned(),
        };
        format!(
            "{} requested, {least}{} taken, {birth} at {}",
            size(held.requested),
            size(held.size),
            self.site(held.stack)
        )
    }

    /// An event in one line.
    #[must_use]
    pub fn event(&self, snapshot: &Snapshot, at: usize) -> String {
        let Some(events) = &self.events else { return String::new() };
        let Some(event) = snapshot.trace(events.device).get(at) else {
            return "After the last event.".to_owned();
        };
        let when = self.when(at);
        let site = self.site(event.stack);
        let (name, bytes) = (snapshot.action_name(event.action), size(event.size));
        format!("Event {}{when}: {name} of {bytes} at {site}.", count(at as u64))
    }

    /// When an event is.
    fn when(&self, at: usize) -> String {
        if !self.chart.has_times() {
            return String::new();
        }
        // (The place of a state is the time of the event before it.)
        let us = self.chart.place(at + 1, By::Time) as i64;
        format!(" (+{})", time(us.saturating_mul(1000)))
    }

    /// What was in use at the state that was asked for last, by call site or category.
    #[must_use]
    pub fn moment(&self, snapshot: &Snapshot) -> Section {
        let at = self.at;
        let (requested, reserved) = self.chart.level(at);
        let Some(Events { walk, sites, .. }) = &self.events else { return self.categories() };
        let mut sums = Sums::new(sites);
        let mut stacks = BTreeMap::new();
        let (mut n, mut before) = (0_u64, 0_i64);
        for held in walk.held() {
            sums.add(held.stack, held.requested);
            *stacks.entry(held.stack).or_insert(0_i64) += held.requested;
            n += 1;
            before += if held.birth.is_none() { held.requested } else { 0 };
        }
        let mut section = Section::new("moment", "In use at the cursor");
        section.intro.push(format!(
            "Before event {}: {} requested in {}, {} reserved.",
            count(at as u64),
            size(requested),
            plural(n, "block", "blocks"),
            size(reserved)
        ));
        if before > 0 {
            section
                .intro
                .push(format!("{} of it was allocated before the first event.", size(before)));
        }
        section.intro.push(self.event(snapshot, at));
        section.drawings.extend(flame(&snapshot.stacks, &stacks));
        let rows: Vec<SiteRow> = sums.rows();
        section.tables.push(Table::of("alive", "In use by call site", &rows));
        section
    }

    /// What some events did, by call site. `from` and `to` are states: the events between them count.
    #[must_use]
    pub fn change(&self, snapshot: &Snapshot, from: usize, to: usize) -> Section {
        let Some(Events { device, births, sites, .. }) = &self.events else {
            return self.change_of_categories(from, to);
        };
        let trace = snapshot.trace(*device);
        let to = to.clamp(from, trace.len());
        let mut by_site: BTreeMap<usize, ChangeRow> = BTreeMap::new();
        let mut actions: BTreeMap<Action, u64> = BTreeMap::new();
        let none = sites.site(0);
        for (at, event) in trace.iter().enumerate().take(to).skip(from) {
            *actions.entry(event.action).or_default() += 1;
            let birth = births.of_free(at).and_then(|birth| trace.get(birth));
            let site = |of: &Event| sites.site(of.stack);
            let of = match event.action {
                Action::Alloc => site(event),
                Action::FreeCompleted => birth.map_or(none, site),
                _ => continue,
            };
            let row = by_site.entry(of).or_default();
            if event.action == Action::Alloc {
                row.allocated = row.allocated.saturating_add(event.size);
                row.kept = row.kept.saturating_add(event.size);
                row.allocations += 1;
            } else {
                row.freed = row.freed.saturating_add(event.size);
                let is_own = births.of_free(at).is_some_and(|birth| birth >= from);
                row.kept = row.kept.saturating_sub(if is_own { event.size } else { 0 });
            }
        }
        let row = |(site, row): (usize, ChangeRow)| ChangeRow {
            site: sites.name(site).to_owned(),
            ..row
        };
        let mut rows: Vec<ChangeRow> = by_site.into_iter().map(row).collect();
        rows.sort_by(|a, b| (b.kept, b.allocated, &a.site).cmp(&(a.kept, a.allocated, &b.site)));
        let (before, after) = (self.chart.level(from), self.chart.level(to));
        let highest = self.chart.highest(from..to + 1);
        let mut section = Section::new("range", "The selected events");
        section.intro.push(format!(
            "Events {} to {}: requested bytes go from {} to {}, reserved bytes from {} to {}.",
            count(from as u64),
            count(to.saturating_sub(1).max(from) as u64),
            size(before.0),
            size(after.0),
            size(before.1),
            size(after.1)
        ));
        section.intro.push(format!(
            "The most requested is {}, before event {}.",
            size(self.chart.level(highest).0),
            count(highest as u64)
        ));
        let said: Vec<String> = actions
            .into_iter()
            .map(|(action, n)| format!("{} {}", count(n), snapshot.action_name(action)))
            .collect();
        section.intro.push(format!("Events by kind: {}.", said.join(", ")));
        section.tables.push(Table::of("changes", "Events by call site", &rows));
        section
    }

    /// Bytes by category at the state that was asked for last.
    fn categories(&self) -> Section {
        let mut section = Section::new("moment", "In use at the cursor");
        let (allocated, reserved) = self.chart.level(self.at);
        let also =
            if reserved > 0 { format!(", {} reserved", size(reserved)) } else { String::new() };
        section.intro.push(format!(
            "Before {} {}{}: {}{also}.",
            self.words().2,
            count(self.at as u64),
            self.since(self.at),
            size(allocated)
        ));
        let rows: Vec<CategoryRow> = self.timeline.by_label(self.at);
        let is_by_site = self.timeline.is_by_site();
        let title = if is_by_site { "In use by call site" } else { "In use by category" };
        section.tables.push(Table::of("alive", title, &rows));
        section
    }

    /// The title of a range of a timeline, and what its changes and one of them are called.
    fn words(&self) -> (&'static str, &'static str, &'static str) {
        if self.timeline.is_by_site() {
            ("The selected events", "Events", "event")
        } else {
            ("The selected rows", "Rows", "row")
        }
    }

    /// When a state begins, where the file has times.
    fn since(&self, at: usize) -> String {
        if !self.chart.has_times() {
            return String::new();
        }
        format!(" (+{})", time((self.chart.place(at, By::Time) as i64).saturating_mul(1000)))
    }

    /// What became more and less between two states, by category.
    fn change_of_categories(&self, from: usize, to: usize) -> Section {
        let chart = &self.chart;
        let to = to.clamp(from, chart.len().saturating_sub(1));
        let highest = chart.highest(from..to + 1);
        let (title, rows, row) = self.words();
        let mut section = Section::new("range", title);
        section.intro.push(format!(
            "{rows} {} to {}: from {} to {}; the most is {}, before {row} {}.",
            count(from as u64),
            count(to.saturating_sub(1).max(from) as u64),
            size(chart.level(from).0),
            size(chart.level(to).0),
            size(chart.level(highest).0),
            count(highest as u64)
        ));
        let table = |id, title, at: usize| Table::of(id, title, &self.timeline.by_label(at));
        section.tables = vec![
            table("range-start", "Before the first of them", from),
            table("range-most", "At the most", highest),
            table("range-end", "After the last of them", to),
        ];
        section
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    /// A block from before the first event, one that stays, and one that comes and goes.
    const SNAPSHOT: &str = r#"{"segments": [{"device": 0, "address": 4096, "total_size": 8192, "allocated_size": 2048,
        "active_size": 2048, "stream": 0, "segment_type": "small", "blocks": [
        {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
        {"address": 5120, "size": 1024, "requested_size": 900, "state": "active_allocated", "frames": []},
        {"address": 6144, "size": 6144, "requested_size": 0, "state": "inactive", "frames": []}]}],
        "device_traces": [[
        {"action": "alloc", "addr": 5120, "size": 900, "stream": 0, "frames": [{"filename": "a.py", "line": 1, "name": "f"}]},
        {"action": "alloc", "addr": 8192, "size": 3000, "stream": 0, "frames": [{"filename": "b.py", "line": 2, "name": "g"}]},
        {"action": "free_requested", "addr": 8192, "size": 3000, "stream": 0, "frames": []},
        {"action": "free_completed", "addr": 8192, "size": 3000, "stream": 0, "frames": []}]]}"#;

    fn explorer() -> (Snapshot, Explorer) {
        let mut reader = Reader::new();
        reader.push(SNAPSHOT.as_bytes()).expect("a snapshot");
        let snapshot = reader.finish().expect("a snapshot");
        let explorer = Explorer::new(&snapshot, 0).expect("a chart");
        (snapshot, explorer)
    }

    fn table(section: &Section, column: &str) -> Vec<String> {
        let table = section.tables.first().expect("a table");
        let column = table.column(column).expect("a column");
        table.cells(column).map(|cell| cell.raw()).collect()
    }

    #[test]
    fn a_moment_says_what_was_in_use() {
        let (snapshot, mut explorer) = explorer();
        explorer.go(&snapshot, 2);
        let moment = explorer.moment(&snapshot);
        assert_eq!(
            moment.intro[0],
            "Before event 2: 4.79 KiB requested in 3 blocks, 8.00 KiB reserved."
        );
        assert_eq!(moment.intro[1], "1\u{2009}000 B of it was allocated before the first event.");
        assert_eq!(table(&moment, "site"), ["b.py:2:g", "<no stack>", "a.py:1:f"]);
        assert_eq!(table(&moment, "bytes"), ["3000", "1000", "900"]);
        assert_eq!(moment.drawings.len(), 1, "a flame graph");
        let held: Vec<String> =
            explorer.walk().expect("blocks").held().map(|held| explorer.describe(held)).collect();
        assert_eq!(held[1], "900 B requested, 1.00 KiB taken, allocated by event 0 at a.py:1:f");
        assert_eq!(
            held[2],
            "2.93 KiB requested, at least 3.00 KiB taken, allocated by event 1 at b.py:2:g"
        );
        explorer.go(&snapshot, 0);
        assert_eq!(explorer.walk().expect("blocks").held().count(), 1, "and back");
        assert_eq!(explorer.block(&snapshot, 5120), None, "it is not allocated yet");
        let block = explorer.block(&snapshot, 4096).expect("a block");
        assert_eq!(
            block.intro[0],
            "Block at 0x1000: 1\u{2009}000 B requested, 1.00 KiB taken, allocated before the first event at <no stack>, in use until the \
             end of the recording."
        );
        assert_eq!(block.intro[1], "No stack of its allocation is recorded.");
        for (at, state) in [
            (2, "in use until event 3"),
            (3, "freed by the program at event 2 and still in use by a stream until event 3"),
        ] {
            explorer.go(&snapshot, at);
            // (Any address within it is its own.)
            let block = explorer.block(&snapshot, 8192 + 100).expect("a block");
            assert!(
                block.intro[0].ends_with(&format!("at b.py:2:g, {state}.")),
                "{:?}",
                block.intro
            );
            assert_eq!(table(&block, "function"), ["g"]);
            assert_eq!(table(&block, "line"), ["2"]);
        }
        explorer.go(&snapshot, 4);
        assert_eq!(table(&explorer.moment(&snapshot), "bytes"), ["1000", "900"]);
    }

    #[test]
    fn a_range_says_what_stayed() {
        let (snapshot, explorer) = explorer();
        let all = explorer.change(&snapshot, 0, 4);
        assert_eq!(
            all.intro[0],
            "Events 0 to 3: requested bytes go from 1\u{2009}000 B to 1.86 KiB, reserved bytes from 8.00 KiB to 8.00 KiB."
        );
        assert_eq!(all.intro[1], "The most requested is 4.79 KiB, before event 2.");
        assert_eq!(table(&all, "site"), ["a.py:1:f", "b.py:2:g"]);
        assert_eq!(table(&all, "kept"), ["900", "0"]);
        assert_eq!(table(&all, "freed"), ["0", "3000"]);
        let end = explorer.change(&snapshot, 2, 4);
        assert_eq!(
            (table(&end, "kept"), table(&end, "freed")),
            (vec!["0".to_owned()], vec!["3000".to_owned()])
        );
    }
}
