//! What a thread did in a range of time: ops, calls and frames of Python by the path on which they were called, by their own time and
//! by that of the GPU work that they launched; who calls a name, and what it calls.

mod drawing;

use std::collections::{BTreeMap, BTreeSet};

use catalog::python::frame_parts;
use report::{Cell, Column, Row as TableRow, Section, Table, Unit, units};
use timeline::percent;
use trace::{StringId, Trace};

use crate::arrows::Arrows;
use crate::build::{Kind, Lanes, Spot};
use drawing::drawing;

/// Slices that are added up: more make a person wait.
const MOST_SLICES: usize = 300_000;
/// Rows of a table.
const MOST_NAMES: usize = 50;

/// What a call is as wide as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Its time on the CPU.
    Cpu,
    /// The time of the GPU work that it launched.
    Gpu,
}

/// ns of both weights.
type Both = [i64; 2];

/// Something that ran, on one path of calls.
struct Node {
    name: StringId,
    /// A slice of it, for its category.
    row: trace::Row,
    /// What called it. (It has a smaller number.)
    parent: Option<usize>,
    total: Both,
    /// Of that, what nothing below it covers or launched.
    own: Both,
    below: Vec<usize>,
}

impl Node {
    fn total(&self, weight: Weight) -> i64 {
        self.total[weight as usize]
    }
}

/// The calls of a thread in a range of time.
#[derive(Default)]
struct Calls {
    nodes: Vec<Node>,
    roots: Vec<usize>,
    /// The node of each path.
    known: BTreeMap<(Option<usize>, StringId), usize>,
}

/// A slice of the lane above, with its node.
type Above = (i64, i64, usize);

impl Calls {
    /// Adds up the slices of a track between two moments. A slice lies below the nearest slice of the lanes above that holds all of
    /// it; one that crosses all of them was called by none. GPU work belongs to the innermost slice that launched it, whole, if that
    /// begins in the range.
    fn of(
        lanes: &Lanes,
        trace: &Trace,
        arrows: &Arrows,
        track: usize,
        (from, to): (i64, i64),
    ) -> Self {
        let mut found = Self::default();
        let mut above: Vec<Vec<Above>> = Vec::new();
        let all = lanes.tracks.get(track).map_or(&[][..], |track| &track.lanes);
        for lane in all {
            let slices = lane.slices(from as f64, to as f64);
            let mut own: Vec<Above> = Vec::with_capacity(slices.len());
            // (A lane has its slices in time order, so each lane above is walked once.)
            let mut places = vec![0; above.len()];
            for at in slices {
                let (start, end) = lane.times(at);
                let holding = above.iter().zip(&mut places).rev().find_map(|(lane, place)| {
                    while lane.get(*place).is_some_and(|(_, end, _)| *end <= start) {
                        *place += 1;
                    }
                    lane.get(*place).filter(|(begun, over, _)| *begun <= start && *over >= end)
                });
                let (row, parent) = (lane.row(at), holding.map(|of| of.2));
                let ns = end.min(to).saturating_sub(start.max(from)).max(0);
                let is_begun = (from..to).contains(&start);
                let launched = if is_begun { launched_ns(lanes, trace, arrows, row) } else { 0 };
                let node = found.node(parent, trace.name(row), row);
                let node_of = &mut found.nodes[node];
                node_of.total = [node_of.total[0] + ns, node_of.total[1] + launched];
                node_of.own = [node_of.own[0] + ns, node_of.own[1] + launched];
                if let Some(parent) = parent {
                    found.nodes[parent].own[0] -= ns;
                }
                own.push((start, end, node));
            }
            if !own.is_empty() {
                above.push(own);
            }
        }
        // What is below is complete before it is added to what called it.
        for at in (0..found.nodes.len()).rev() {
            if let Some(parent) = found.nodes[at].parent {
                found.nodes[parent].total[1] += found.nodes[at].total[1];
            }
        }
        found
    }

    /// The node of a path.
    fn node(&mut self, parent: Option<usize>, name: StringId, row: trace::Row) -> usize {
        if let Some(known) = self.known.get(&(parent, name)) {
            return *known;
        }
        let node = self.nodes.len();
        let below = Vec::new();
        self.nodes.push(Node { name, row, parent, total: [0; 2], own: [0; 2], below });
        match parent {
            Some(parent) => self.nodes[parent].below.push(node),
            None => self.roots.push(node),
        }
        self.known.insert((parent, name), node);
        node
    }

    /// Whether nothing around it has such a name.
    fn is_outermost(&self, at: usize, is_such: impl Fn(StringId) -> bool) -> bool {
        let above = |at: &usize| self.nodes[*at].parent;
        let mut around = std::iter::successors(above(&at), above);
        !around.any(|node| is_such(self.nodes[node].name))
    }

    /// The outermost nodes of these names.
    fn outermost<'a>(&'a self, names: &'a BTreeSet<StringId>) -> impl Iterator<Item = usize> + 'a {
        self.named(names).filter(|at| self.is_outermost(*at, |name| names.contains(&name)))
    }

    /// The nodes of these names.
    fn named<'a>(&'a self, names: &'a BTreeSet<StringId>) -> impl Iterator<Item = usize> + 'a {
        (0..self.nodes.len()).filter(|at| names.contains(&self.nodes[*at].name))
    }

    /// Time in calls of these names, with all that they call.
    fn total_of(&self, names: &BTreeSet<StringId>) -> Both {
        self.outermost(names).fold([0; 2], |sum, at| plus(sum, self.nodes[at].total))
    }

    /// The time of all calls.
    fn whole(&self) -> Both {
        self.roots.iter().fold([0; 2], |sum, at| plus(sum, self.nodes[*at].total))
    }

    /// What calls of these names call, on whatever path they were called: the names are the roots.
    fn below(&self, names: &BTreeSet<StringId>) -> Self {
        let mut found = Self::default();
        let mut left: Vec<(usize, Option<usize>)> =
            self.outermost(names).map(|at| (at, None)).collect();
        while let Some((at, parent)) = left.pop() {
            let from = &self.nodes[at];
            let node = found.node(parent, from.name, from.row);
            found.nodes[node].total = plus(found.nodes[node].total, from.total);
            found.nodes[node].own = plus(found.nodes[node].own, from.own);
            left.extend(from.below.iter().map(|below| (*below, Some(node))));
        }
        found
    }

    /// The times of names, by their own time on the CPU.
    fn by_name(&self, trace: &Trace) -> Vec<NameRow> {
        let mut sums: BTreeMap<StringId, (Both, Both)> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let sum = sums.entry(node.name).or_default();
            sum.0 = plus(sum.0, [node.own[0].max(0), node.own[1]]);
            // (A name below itself is in the time of the outer one.)
            if self.is_outermost(at, |name| name == node.name) {
                sum.1 = plus(sum.1, node.total);
            }
        }
        let all: i64 = sums.values().map(|sum| sum.0[0]).sum();
        let mut rows = Vec::new();
        for (name, (own, total)) in sums {
            if own != [0; 2] {
                rows.push(NameRow {
                    name: readable(trace.strings.get(name)),
                    self_ns: own[0],
                    share_pct: percent(own[0], all),
                    total_ns: total[0],
                    gpu_ns: own[1],
                    gpu_total_ns: total[1],
                });
            }
        }
        trace::sort_by(&mut rows, |a, b| {
            b.self_ns.cmp(&a.self_ns).then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    /// What calls these names directly, or what they call.
    fn around(&self, trace: &Trace, names: &BTreeSet<StringId>, callers: bool) -> Vec<AroundRow> {
        let mut sums: BTreeMap<Option<StringId>, Both> = BTreeMap::new();
        for at in self.named(names) {
            let node = &self.nodes[at];
            if callers {
                let caller = node.parent.map(|parent| self.nodes[parent].name);
                let sum = sums.entry(caller).or_default();
                *sum = plus(*sum, node.total);
            } else {
                for below in &node.below {
                    let sum = sums.entry(Some(self.nodes[*below].name)).or_default();
                    *sum = plus(*sum, self.nodes[*below].total);
                }
            }
        }
        let mut rows = Vec::new();
        for (name, total) in sums {
            let name =
                name.map_or_else(|| NO_CALLER.to_owned(), |name| readable(trace.strings.get(name)));
            rows.push(AroundRow { name, total_ns: total[0], gpu_ns: total[1] });
        }
        trace::sort_by(&mut rows, |a, b| {
            b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name))
        });
        rows.truncate(MOST_NAMES);
        rows
    }
}

/// What called a call that no other one holds.
const NO_CALLER: &str = "(nothing: outermost)";

fn plus(a: Both, b: Both) -> Both {
    [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]
}

/// Duration of the GPU work that a slice launched.
fn launched_ns(lanes: &Lanes, trace: &Trace, arrows: &Arrows, row: trace::Row) -> i64 {
    let times = |slice| lanes.times(lanes.spot(trace, slice)?);
    let each = arrows.launched_by(row).filter_map(times);
    each.fold(0, |sum, (start, end)| sum.saturating_add(end.saturating_sub(start).max(0)))
}

/// A frame of Python as `file:line function`, as everywhere; other names as they are.
fn readable(name: &str) -> String {
    frame_parts(name).map_or_else(
        || name.to_owned(),
        |(path, line, function)| format!("{path}:{line} {function}"),
    )
}

/// The thread whose calls are shown, and how many slices it has in the range: that of the selected slice, else the one with most. (What
/// is open for all of it may be no thread: the profiler has a track of its own.)
fn thread(
    lanes: &Lanes,
    selected: Option<usize>,
    (from, to): (f64, f64),
) -> Option<(usize, usize)> {
    let threads = lanes.tracks.iter().enumerate().filter(|(_, of)| of.kind == Kind::Thread);
    let counted = threads.map(|(track, of)| {
        let n: usize = of.lanes.iter().map(|lane| lane.slices(from, to).len()).sum();
        (n, track)
    });
    let there: Vec<(usize, usize)> = counted.filter(|(n, _)| *n > 0).collect();
    let chosen = there.iter().find(|(_, track)| Some(*track) == selected);
    let most = || there.iter().max_by_key(|(n, track)| (*n, std::cmp::Reverse(*track)));
    let (n, track) = *chosen.or_else(most)?;
    Some((track, n))
}

/// What is looked at in a range: calls whose names have a text; without one, the name of the slice that is selected.
struct Focus {
    /// What a person reads.
    label: String,
    names: BTreeSet<StringId>,
}

impl Focus {
    fn of(
        calls: &Calls,
        lanes: &Lanes,
        trace: &Trace,
        selected: Option<Spot>,
        text: &str,
    ) -> Option<Self> {
        let mut names = BTreeSet::new();
        let text = text.trim();
        if text.is_empty() {
            let name = trace.name(lanes.row(selected?)?);
            names.extend(calls.nodes.iter().any(|node| node.name == name).then_some(name));
            let label = format!("\u{201c}{}\u{201d}", readable(trace.strings.get(name)));
            return (!names.is_empty()).then_some(Self { label, names });
        }
        let wanted = text.to_lowercase();
        for node in &calls.nodes {
            let is_wanted = || trace.strings.get(node.name).to_lowercase().contains(&wanted);
            if !names.contains(&node.name) && is_wanted() {
                names.insert(node.name);
            }
        }
        let label = format!("names with \u{201c}{text}\u{201d}");
        (!names.is_empty()).then_some(Self { label, names })
    }
}

/// Adds the calls of a thread in a range: pictures, and the times of names; callers and callees of what is selected or searched for.
pub(crate) fn flame(
    section: &mut Section,
    (lanes, trace, arrows): (&Lanes, &Trace, &Arrows),
    (selected, text): (Option<Spot>, &str),
    (from, to): (i64, i64),
) {
    let of_track = selected.map(|spot| spot.track);
    let Some((track, n)) = thread(lanes, of_track, (from as f64, to as f64)) else { return };
    let label = &*lanes.tracks[track].label;
    if n > MOST_SLICES {
        section.intro.push(format!(
            "{label} has {} in the range: select a shorter one to see its calls.",
            units::plural(n as u64, "slice", "slices")
        ));
        return;
    }
    let calls = Calls::of(lanes, trace, arrows, track, (from, to));
    let focus = Focus::of(&calls, lanes, trace, selected, text);
    let marked = focus.as_ref().map(|focus| &focus.names);
    let pictures = [
        (
            "range-flame",
            Weight::Cpu,
            format!("Calls of {label} in the range, as wide as their time."),
        ),
        (
            "range-flame-gpu",
            Weight::Gpu,
            "The same calls, as wide as the GPU work that they launched.".to_owned(),
        ),
    ];
    for (id, weight, title) in pictures {
        section.drawings.extend(drawing(
            &calls,
            trace,
            (id, weight),
            (title, " The table has the time of each name."),
            marked,
        ));
    }
    if let Some(focus) = &focus {
        add_focus(section, &calls, trace, focus);
    }
    let mut rows = calls.by_name(trace);
    let n = rows.len();
    rows.truncate(MOST_NAMES);
    let mut table = Table::of("range-calls", "", &rows);
    table.title = match n > MOST_NAMES {
        true => {
            format!("Calls of {label}: the {MOST_NAMES} of {n} names with most time of their own")
        }
        false => format!("Calls of {label}, by time of their own"),
    }
    .into();
    section.tables.push(table);
}

/// Adds who calls some names, what they call, and their time.
fn add_focus(section: &mut Section, calls: &Calls, trace: &Trace, focus: &Focus) {
    let Focus { label, names } = focus;
    let (total, whole) = (calls.total_of(names), calls.whole());
    let mut text = format!(
        "Calls of {label} take {} with what they call, {} of the thread's calls in the range",
        units::time(total[0]),
        units::percent(percent(total[0], whole[0]))
    );
    if whole[1] > 0 {
        text += &format!(
            ", and launched {} of GPU work, {} of that of the thread",
            units::time(total[1]),
            units::percent(percent(total[1], whole[1]))
        );
    }
    section.intro.push(text + ".");
    let below = calls.below(names);
    for (id, weight, what) in [
        ("range-focus", Weight::Cpu, "their time"),
        ("range-focus-gpu", Weight::Gpu, "the GPU work that they launched"),
    ] {
        let title = format!("What calls of {label} call, as wide as {what}.");
        section.drawings.extend(drawing(&below, trace, (id, weight), (title, ""), None));
    }
    for (id, title, callers) in
        [("range-callers", "Callers of", true), ("range-callees", "Callees of", false)]
    {
        let mut table = Table::of(id, "", &calls.around(trace, names, callers));
        table.title = format!("{title} {label}").into();
        section.tables.push(table);
    }
}

/// A name with its times.
struct NameRow {
    name: String,
    self_ns: i64,
    share_pct: f64,
    total_ns: i64,
    gpu_ns: i64,
    gpu_total_ns: i64,
}

impl TableRow for NameRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Path,
            help: "Op, call, annotation or frame of Python.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "self_ns",
            title: "Own time",
            unit: Unit::Time,
            help: "Its time in the range without what it called.",
            cell: |row| Cell::Ns(row.self_ns),
        },
        Column {
            key: "share_pct",
            title: "Share",
            unit: Unit::Percent,
            help: "Own time as a share of the thread's time in calls.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "total_ns",
            title: "Total",
            unit: Unit::Time,
            help: "Its time in the range with what it called. A call below one of the same name is counted once.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "gpu_ns",
            title: "Launched GPU time",
            unit: Unit::Time,
            help: "Durations of the GPU work that it launched itself, in calls that begin in the range.",
            cell: |row| Cell::Ns(row.gpu_ns),
        },
        Column {
            key: "gpu_total_ns",
            title: "GPU time, total",
            unit: Unit::Time,
            help: "Durations of the GPU work that it and what it called launched.",
            cell: |row| Cell::Ns(row.gpu_total_ns),
        },
    ];
}

/// A name that calls another, or is called by it.
struct AroundRow {
    name: String,
    total_ns: i64,
    gpu_ns: i64,
}

impl TableRow for AroundRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Path,
            help: "Op, call, annotation or frame of Python.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "total_ns",
            title: "Time",
            unit: Unit::Time,
            help: "Time of the callee on this path, with what it called.",
            cell: |row| Cell::Ns(row.total_ns),
        },
        Column {
            key: "gpu_ns",
            title: "GPU time",
            unit: Unit::Time,
            help: "Durations of the GPU work that the callee launched on this path.",
            cell: |row| Cell::Ns(row.gpu_ns),
        },
    ];
}

#[cfg(test)]
mod tests;
