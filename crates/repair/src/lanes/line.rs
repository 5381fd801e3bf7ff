//! One thread of the trace in the importer's order, with the ends of its `B`.

use std::collections::HashMap;

use dialect::Records;
use trace::{BuildIdHasher, ByRawCategory, Phase, Row};

use crate::perfetto::begins::OpenBegins;
use crate::perfetto::order::Stacked;
use crate::perfetto::threads::Threads;
use crate::view::View;

/// One thread of the trace, as the importer orders it.
pub(super) struct Line<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) threads: &'a Threads,
    pub(super) thread: u32,
    /// What each event records.
    pub(super) records: &'a ByRawCategory<Option<Records>>,
}

impl Line<'_> {
    pub(super) fn events(&self) -> &[Stacked] {
        self.threads.events(self.thread)
    }
}

/// The `E` and the end of every `B`; an unclosed `B` lasts for ever.
#[inline(never)]
pub(super) fn ends_of_begins(line: &Line<'_>) -> Ends {
    let mut ends = HashMap::default();
    let mut open = OpenBegins::default();
    for event in line.events() {
        let item = event.item(line.view);
        match item.phase {
            Phase::Begin => {
                ends.insert(item.row, (None, i64::MAX));
                open.open(line.view.trace, item.row, item.row as usize);
            }
            Phase::End => {
                if let Some(begin) = open.close(line.view.trace, item.row) {
                    ends.insert(begin as Row, (Some(item.row), item.ts));
                }
            }
            _ => {}
        }
    }
    ends
}

/// Of each `B`: the row of its `E`, if it has one, and when it ends.
pub(super) type Ends = HashMap<Row, (Option<Row>, i64), BuildIdHasher>;
