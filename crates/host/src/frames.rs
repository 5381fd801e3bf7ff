//! Frames of Python by name.

use std::collections::BTreeMap;
use std::collections::HashMap;

use serde::Serialize;
use timeline::intervals::{Collector, length};
use trace::{BuildIdHasher, Flags};

use crate::by_name::ByName;
use crate::ops::sums_by_name;
use crate::slices::Slices;

/// The table of frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frames {
    /// Frames.
    pub n: usize,
    /// Names.
    pub n_names: usize,
    /// Frames that end after the frame that they lie in.
    pub crossing_parents: u64,
    /// Frames with the `Python id` of an earlier one.
    pub duplicate_python_ids: u64,
    /// How the parent by `Python parent id` compares with the parent by time.
    pub parent_id_vs_time: BTreeMap<&'static str, u64>,
    /// Sum of self time.
    pub sum_self_ns: i64,
    /// Time that frames cover, by `pid/tid`.
    pub busy_ns_by_track: BTreeMap<String, i64>,
    /// By self time, the longest first.
    pub frames: Vec<FrameRow>,
}

/// All frames of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameRow {
    /// File, line and function, as recorded.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Sum of durations, in ns.
    pub sum_ns: i64,
    /// Sum of the durations of those that lie in no frame of the same name.
    pub total_ns: i64,
    /// Sum of the times that no frame inside covers.
    pub self_ns: i64,
    /// The same by the parents that the file names.
    pub self_by_id_ns: i64,
}

/// The table of frames.
#[must_use]
pub fn frames(slices: &Slices<'_>, ids: &Ids) -> Frames {
    let trace = slices.trace;
    let nested = &slices.frames;
    let own = nested.self_ns();
    let mut own_by_id: Vec<i64> = nested.slices.iter().map(crate::HostSlice::dur_ns).collect();
    let mut parents: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (at, slice) in nested.slices.iter().enumerate() {
        let by_time = nested.parent(at);
        let verdict = match ids.parent_of(slices, at) {
            ById::None if by_time.is_none() => "null_id_time_none",
            ById::None => "null_id_time_some",
            ById::Unknown if by_time.is_none() => "unknown_id_time_none",
            ById::Unknown => "unknown_id_time_some",
            ById::Frame(parent) => {
                let outer = nested.slices[parent];
                let both = slice.end_ns.min(outer.end_ns) - slice.start_ns.max(outer.start_ns);
                own_by_id[parent] -= both.max(0);
                if Some(parent) == by_time { "agree" } else { "differ" }
            }
        };
        *parents.entry(verdict).or_default() += 1;
    }
    let mut by_id: ByName<i64> = ByName::new(trace);
    for (slice, own) in nested.slices.iter().zip(&own_by_id) {
        *by_id.entry(trace.name(slice.row)) += own;
    }
    let mut rows: Vec<FrameRow> = sums_by_name(slices, nested, &own)
        .iter()
        .map(|(name, sum)| FrameRow {
            name: trace.strings.get(name).to_owned(),
            calls: sum.count,
            sum_ns: sum.sum_ns,
            total_ns: sum.total_ns,
            self_ns: sum.self_ns,
            self_by_id_ns: by_id.get(name).copied().unwrap_or_default(),
        })
        .collect();
    trace::sort_by(&mut rows, |a, b| b.self_ns.cmp(&a.self_ns).then_with(|| a.name.cmp(&b.name)));
    Frames {
        n: nested.slices.len(),
        n_names: rows.len(),
        crossing_parents: nested.n_crossings,
        duplicate_python_ids: ids.n_duplicates,
        parent_id_vs_time: parents,
        sum_self_ns: rows.iter().map(|row| row.self_ns).sum(),
        busy_ns_by_track: nested
            .threads()
            .iter()
            .map(|(thread, range)| {
                let thread = &slices.threads[*thread as usize];
                let mut covered = Collector::default();
                for frame in &nested.slices[range.clone()] {
                    covered.add(frame.start_ns, frame.end_ns);
                }
                (format!("{}/{}", thread.pid, thread.tid), length(&covered.union()))
            })
            .collect(),
        frames: rows,
    }
}

/// Frames by the id that the file gives them.
pub struct Ids {
    /// Number in `Slices::frames` of the last frame of the file with an id.
    by_id: HashMap<i64, usize, BuildIdHasher>,
    n_duplicates: u64,
}

/// The parent that the file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ById {
    /// It names none.
    None,
    /// It names one that is not in the file.
    Unknown,
    /// Number in `Slices::frames`.
    Frame(usize),
}

impl Ids {
    /// The frames of a trace by their ids.
    #[must_use]
    pub fn of(slices: &Slices<'_>) -> Self {
        let nested = &slices.frames;
        let mut in_file_order: Vec<usize> = (0..nested.slices.len()).collect();
        in_file_order.sort_unstable_by_key(|at| nested.slices[*at].row);
        let by_id =
            HashMap::with_capacity_and_hasher(nested.slices.len(), BuildIdHasher::default());
        let mut found = Self { by_id, n_duplicates: 0 };
        for at in in_file_order {
            let row = nested.slices[at].row;
            if slices.trace.flags(row).has(Flags::PYTHON_IDS)
                && let Some(id) = slices.trace.link(row)
            {
                found.n_duplicates += u64::from(found.by_id.insert(id, at).is_some());
            }
        }
        found
    }

    /// The parent of frame `at` that the file names.
    #[must_use]
    pub(crate) fn parent_of(&self, slices: &Slices<'_>, at: usize) -> ById {
        let row = slices.frames.slices[at].row;
        let trace = slices.trace;
        let named = trace.flags(row).has(Flags::PYTHON_IDS).then(|| trace.external(row)).flatten();
        match named {
            None => ById::None,
            Some(id) => self.by_id.get(&id).map_or(ById::Unknown, |at| ById::Frame(*at)),
        }
    }
}
