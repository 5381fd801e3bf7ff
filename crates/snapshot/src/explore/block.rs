//! The block at an address: what it is, how long it is in use, and the stack that allocated it.

use report::units::count;
use report::{Cell, Column, Row, Section, Table, Unit};

use super::Explorer;
use crate::model::{Action, Event, Snapshot};
use crate::stacks::{Frame, Stacks};
use crate::walk::Held;

/// A frame of the stack of a block.
struct FrameRow {
    function: String,
    file: String,
    line: i64,
}

impl Row for FrameRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "function",
            title: "Function",
            unit: Unit::Text,
            help: "Innermost first.",
            cell: |row| row.function.as_str().into(),
        },
        Column {
            key: "file",
            title: "File",
            unit: Unit::Path,
            help: "As recorded; ?? where it is not known.",
            cell: |row| row.file.as_str().into(),
        },
        Column {
            key: "line",
            title: "Line",
            unit: Unit::Count,
            help: "0 where it is not known.",
            cell: |row| Cell::Count(row.line.max(0).unsigned_abs()),
        },
    ];
}

impl Explorer {
    /// What holds an address at the state that was asked for last; `None` where nothing is in use there.
    #[must_use]
    pub fn block(&self, snapshot: &Snapshot, address: u64) -> Option<Section> {
        let held = self.walk()?.held_at(address)?;
        let mut section = Section::new("block", "The selected block");
        section.intro.push(format!(
            "Block at {:#x}: {}, {}.",
            held.address,
            self.describe(held),
            self.lifetime(snapshot, held)
        ));
        let rows = frames(&snapshot.stacks, held);
        if rows.is_empty() {
            section.intro.push("No stack of its allocation is recorded.".to_owned());
        } else {
            section.tables.push(Table::of("block-stack", "Stack of its allocation", &rows));
        }
        Some(section)
    }

    /// The state of a block, and until when it is in use.
    fn lifetime(&self, snapshot: &Snapshot, held: &Held) -> String {
        let device = self.events.as_ref().map_or(0, |events| events.device);
        let trace = snapshot.trace(device);
        let is_own = |action: Action| {
            let address = held.address;
            move |event: &Event| event.action == action && event.address == address
        };
        // (An address is used again: only what is behind the allocation is of this block.)
        let from = held.birth.map_or(0, |birth| birth + 1);
        let before = trace.get(from..self.at.max(from)).unwrap_or_default();
        let state = match before.iter().rposition(is_own(Action::FreeRequested)) {
            Some(at) => format!(
                "freed by the program at event {} and still in use by a stream",
                count((from + at) as u64)
            ),
            None => "in use".to_owned(),
        };
        let after = trace.get(self.at..).unwrap_or_default();
        match after.iter().position(is_own(Action::FreeCompleted)) {
            Some(at) => format!("{state} until event {}", count((self.at + at) as u64)),
            None => format!("{state} until the end of the recording"),
        }
    }
}

fn frames(stacks: &Stacks, held: &Held) -> Vec<FrameRow> {
    let row = |frame: &Frame| FrameRow {
        function: stacks.text(frame.name).to_owned(),
        file: stacks.text(frame.filename).to_owned(),
        line: frame.line,
    };
    stacks.frames(held.stack).iter().map(row).collect()
}
