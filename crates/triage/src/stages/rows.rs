//! The table of stages.

use std::collections::BTreeMap;

use catalog::Category;
use report::{Cell, Column, Row, Unit, units};
use serde::Serialize;
use trace::{StringTable, Trace, TrackId};

use super::find::Evidence;
use super::grammar::Load;
use super::pace::Waits;
use super::windows::{Side, StageWindow};
use super::{Stage, Stages};
use crate::idle::busy;
use crate::words;
use analysis::columns;
use timeline::dependent::Dependent;
use timeline::gpu::{Extent, Gpu};
use timeline::intervals::{Interval, both, length, union, without};
use timeline::launches::Launches;
use timeline::percent;

/// All GPU slices of one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// The stage.
    pub stage: Stage,
    /// The device's id.
    pub device: String,
    /// GPU slices.
    pub n_slices: u64,
    /// Kernels among them.
    pub n_kernels: u64,
    /// Summed duration.
    pub total_ns: i64,
    /// Total as a percentage of the total of all GPU slices of the device.
    pub share_pct: f64,
    /// Whether the CPU launches too slowly for the GPU: `late_pct` is 50 or more, or 20 and the CPU rarely waits for
    /// the GPU.
    /// `None` if launches are not recorded, communication is most of the busy time, or the row is what no other stage holds.
    pub launch_bound: Option<bool>,
    /// `late_ns` in percent of Busy and all the gaps before its slices but pauses.
    pub late_pct: f64,
    /// Of gaps of less than 1 ms that end with a launch of the stage that came too late, the time before the end of the launch
    /// call, without time in a data loader and without allocations.
    pub late_ns: i64,
    /// Whether a graph launched any of its kernels.
    #[serde(skip)]
    pub graphs: bool,
    /// Time during which at least one of them ran.
    pub busy_ns: i64,
    /// From the first start to the last end of its slices, anew after 1 ms or more of other stages; over several steps
    /// the sum over the steps that launched them, each moment counted once.
    pub span_ns: i64,
    /// Busy in percent of the span.
    pub busy_pct: f64,
    /// Time during which the device ran anything, of any stage, in percent of the span.
    pub gpu_busy_pct: f64,
    /// Communication with no other stream of the device running, in percent of busy.
    pub exposed_comm_pct: f64,
    /// Median time from the end of the launch call to the start of the kernel, negative if kernels start before their
    /// calls return; `None` if the calls of most kernels are not recorded, or launch graphs. Without communication.
    pub wait_p50_ns: Option<i64>,
    /// Median duration of these kernels.
    pub kernel_p50_ns: Option<i64>,
    /// Passes of it: its outermost windows.
    pub n_windows: u64,
    /// Batch sizes and tokens of the passes: `bs 32`; `15 requests, 15360 tokens`.
    pub batch: Option<String>,
    /// The evidence for the stage.
    pub recognised_by: String,
}

impl Stages {
    /// One row per stage that has GPU slices.
    #[inline(never)]
    pub(crate) fn rows(
        &self,
        gpu: &Gpu<'_>,
        launches: &Launches,
        waits: Waits<'_>,
    ) -> Vec<StageRow> {
        let mut sums = [(Extent::default(), 0_u64); Stage::EVERY.len()];
        // (No kernel but communication runs, on any stream: as the bar of the wall time has it.)
        let mut communication: [Vec<Interval>; Stage::EVERY.len()] = Default::default();
        let mut others: Vec<Interval> = Vec::new();
        let mut dependent = Dependent::of(gpu.trace);
        let mut at = 0;
        gpu.each_slice(|slice| {
            let (extent, n_kernels) = &mut sums[self.stage(at) as usize];
            extent.add(&slice);
            *n_kernels += u64::from(gpu.is_kernel(&slice));
            let times = dependent.own_of(gpu, &slice);
            if gpu.works[slice.work].category == Category::Communication {
                communication[self.stage(at) as usize].push(times);
            } else if gpu.is_kernel(&slice) {
                others.push(times);
            }
            at += 1;
        });
        let others = union(others);
        let all_ns =
            sums.iter().fold(0_i64, |all, (extent, ..)| all.saturating_add(extent.total_ns));
        let spans = self.spans(gpu, launches);
        let busy = busy(gpu);
        let n_stages = sums.iter().filter(|(extent, ..)| extent.n > 0).count();
        Stage::EVERY
            .iter()
            .zip(&sums)
            .zip(&spans)
            .zip(communication)
            .filter(|(((_, (extent, ..)), _), _)| extent.n > 0)
            .map(|(((stage, (extent, n_kernels)), spans), communication)| {
                let span_ns = length(spans);
                let passes = self.passes(gpu.trace, *stage);
                let pace = self.pace(gpu, launches, *stage, extent, waits);
                let exposed_ns = length(&without(&union(communication), &others));
                let exposed_comm_pct = percent(exposed_ns, extent.busy_ns);
                // What no stage holds is not a part of the run that somebody could speed up.
                let is_rest = *stage == Stage::All && n_stages > 1;
                // (What is captured does not run.)
                let is_judged = !is_rest && *stage != Stage::Capture;
                StageRow {
                    stage: *stage,
                    device: gpu.device().to_owned(),
                    n_slices: extent.n,
                    n_kernels: *n_kernels,
                    total_ns: extent.total_ns,
                    share_pct: percent(extent.total_ns, all_ns),
                    launch_bound: pace
                        .is_launch_bound(exposed_comm_pct)
                        .filter(|_| is_judged && !waits.is_blocked),
                    late_pct: pace.late_pct,
                    late_ns: pace.late_ns,
                    graphs: pace.graphs,
                    busy_ns: extent.busy_ns,
                    span_ns,
                    busy_pct: percent(extent.busy_ns, span_ns),
                    gpu_busy_pct: percent(length(&both(&busy, spans)), span_ns),
                    exposed_comm_pct,
                    wait_p50_ns: pace.wait_p50_ns,
                    kernel_p50_ns: pace.kernel_p50_ns,
                    n_windows: passes.len() as u64,
                    batch: batch(*stage, &passes),
                    recognised_by: self.recognised_by(*stage, &gpu.trace.strings),
                }
            })
            .collect()
    }

    /// What each pass of a stage had to do: annotations of the CPU, else runs of the autograd engine, else ops with names
    /// like annotations, else annotations of one stream. Several names of one pass are one pass; so are runs of the engine on
    /// several threads of a process at the same time, one per device.
    pub(super) fn passes(&self, trace: &Trace, stage: Stage) -> Vec<Load> {
        let process = |track: TrackId| trace.track_info(track).process.0;
        let on_engine =
            |window: &StageWindow| self.is_engine.get(window.track.0 as usize) == Some(&true);
        let script = |it: &StageWindow| it.side == Side::Cpu && !on_engine(it);
        let kinds: [&dyn Fn(&StageWindow) -> bool; 3] =
            [&|it| script(it) && !it.is_op, &|it| it.side == Side::Engine, &|it| {
                script(it) && it.is_op
            }];
        for is_of_kind in kinds {
            let lane = |it: &StageWindow| match it.side {
                Side::Engine => process(it.track),
                Side::Cpu | Side::Gpu => it.track.0,
            };
            let passes = self.outermost(lane, |it| it.stage == stage && is_of_kind(it));
            if !passes.is_empty() {
                return passes.into_iter().map(|(_, load)| load).collect();
            }
        }
        let streams =
            self.outermost(|it| it.track.0, |it| it.stage == stage && it.side == Side::Gpu);
        let on =
            |track: u32| streams.iter().filter(move |(on, _)| *on == track).map(|(_, load)| *load);
        let mut tracks: Vec<u32> = streams.iter().map(|(track, _)| *track).collect();
        trace::sort(&mut tracks);
        tracks.dedup();
        let most =
            tracks.into_iter().max_by_key(|track| (on(*track).count(), std::cmp::Reverse(*track)));
        most.map(|track| on(track).collect()).unwrap_or_default()
    }

    /// Windows that do not overlap an earlier one of the same lane, with what the later ones say, too. All wanted windows are
    /// of one side; `lane` is the track, or for runs of the engine the process.
    fn outermost(
        &self,
        lane: impl Fn(&StageWindow) -> u32,
        wanted: impl Fn(&StageWindow) -> bool,
    ) -> Vec<(u32, Load)> {
        let mut found: Vec<(u32, Load)> = Vec::new();
        // By lane: the end of its last outermost window, and its index in `found`.
        let mut open: BTreeMap<u32, (i64, usize)> = BTreeMap::new();
        for window in self.windows.iter().filter(|it| it.is_pass && wanted(it)) {
            let lane = lane(window);
            match open.get_mut(&lane) {
                Some((end_ns, at)) if window.start_ns < *end_ns => {
                    if window.side == Side::Engine {
                        *end_ns = window.end_ns.max(*end_ns);
                    }
                    if let Some((_, load)) = found.get_mut(*at) {
                        *load = load.or(window.load);
                    }
                }
                _ => {
                    open.insert(lane, (window.end_ns, found.len()));
                    found.push((lane, window.load));
                }
            }
        }
        found
    }

    fn recognised_by(&self, stage: Stage, strings: &StringTable) -> String {
        let tally = &self.tally[stage as usize];
        let mut told: Vec<(u64, Evidence)> = tally
            .iter()
            .zip(Evidence::EVERY)
            .filter(|(n, _)| **n > 0)
            .map(|(n, evidence)| (*n, evidence))
            .collect();
        trace::sort_by_key(&mut told, |(n, _)| std::cmp::Reverse(*n));
        let several = told.len() > 1;
        let parts: Vec<String> = told
            .into_iter()
            .map(|(n, evidence)| {
                let what = match evidence {
                    Evidence::Annotation => self.named(stage, "annotation", strings),
                    Evidence::Op => self.named(stage, "op", strings),
                    Evidence::Engine => "the autograd engine's ops".to_owned(),
                    Evidence::BeforeBackward => "launched before a backward pass".to_owned(),
                    Evidence::BeforeOptimizer => {
                        "launched between backward and optimizer".to_owned()
                    }
                    Evidence::KernelName => "names of kernels".to_owned(),
                    Evidence::Near => "the nearest annotation within 20 ms".to_owned(),
                    Evidence::FileName => "the file's name".to_owned(),
                    Evidence::LaunchedBefore => "launched before profiling started".to_owned(),
                    Evidence::Nothing => self.nothing(n, strings),
                };
                if several { format!("{what} ({})", units::count(n)) } else { what }
            })
            .collect();
        parts.join("; ")
    }

    /// Why a stage is not known, of `n` slices.
    fn nothing(&self, n: u64, strings: &StringTable) -> String {
        let Some((name, n_in_it)) = self.around.first() else {
            return "no evidence of a stage".to_owned();
        };
        let more = match self.around.len() {
            1 => String::new(),
            n => format!(" and {}", units::plural(n as u64 - 1, "other", "others")),
        };
        let part = match *n_in_it {
            own if own == n || self.around.len() > 1 => String::new(),
            own => format!("{} of {}: ", units::count(own), units::count(n)),
        };
        format!("no annotation of a stage; {part}launched in {}{more}", strings.get(*name))
    }

    /// The annotation or op that names most slices of a stage, and how many others do.
    fn named(&self, stage: Stage, what: &str, strings: &StringTable) -> String {
        let mut names: Vec<(trace::StringId, u64)> = self
            .windows
            .iter()
            .filter(|it| it.stage == stage && it.side != Side::Engine && it.n_slices > 0)
            .filter(|it| it.is_op == (what == "op"))
            .map(|window| (window.name, window.n_slices))
            .collect();
        trace::sort_by_key(&mut names, |(name, _)| *name);
        names.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 += if same { next.1 } else { 0 };
            same
        });
        let most = names.iter().max_by_key(|(name, n)| (*n, std::cmp::Reverse(*name)));
        let name = most.map_or("", |(name, _)| strings.get(*name));
        match names.len() {
            0 | 1 => format!("{what} {name}"),
            2 => format!("{what} {name} and another"),
            n => format!("{what} {name} and {} others", units::count(n as u64 - 1)),
        }
    }
}

/// Batch sizes and tokens in words; `None` if no annotation has them.
fn batch(stage: Stage, passes: &[Load]) -> Option<String> {
    let requests = range(passes, |load| load.requests);
    let tokens = range(passes, |load| load.tokens);
    let mut parts = Vec::new();
    match stage {
        Stage::Decode | Stage::Capture => parts.extend(requests.map(|it| format!("bs {it}"))),
        Stage::Mixed => {
            let context = range(passes, |load| load.sides.map(|(context, _)| context));
            let generation = range(passes, |load| load.sides.map(|(_, generation)| generation));
            parts.push(match (context, generation) {
                (Some(context), Some(generation)) => {
                    format!("{context} context and {generation} generation requests")
                }
                _ => plural(&requests?, "request"),
            });
        }
        _ => parts.extend(requests.map(|it| plural(&it, "request"))),
    }
    // A decode step that does not speculate has a token per request, which says nothing more.
    if stage != Stage::Decode || passes.iter().any(|load| load.tokens != load.requests) {
        parts.extend(tokens.map(|it| plural(&it, "token")));
    }
    if stage == Stage::Decode {
        let context = range(passes, |load| load.context_tokens);
        parts.extend(context.map(|it| format!("{} of context", plural(&it, "token"))));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `32`, or `1 to 32`, of the passes that have it.
fn range(passes: &[Load], of: impl Fn(&Load) -> Option<u64>) -> Option<String> {
    let least = passes.iter().filter_map(&of).min()?;
    let most = passes.iter().filter_map(&of).max()?;
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

fn plural(number: &str, word: &str) -> String {
    if number == "1" { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// Why a stage has no median wait.
const NO_CALLS: &str =
    "not recorded: launch calls of most of its kernels are missing, or a graph launched them";
/// Why a stage with a median wait is not judged.
const NOT_JUDGED: &str = "not judged: communication is most of the busy time, these are the kernels outside all other stages, or a graph is captured";

impl Row for StageRow {
    const SHOWN: &'static [&'static str] = &[
        "stage",
        "device",
        "total_ns",
        "share_pct",
        "gpu_busy_pct",
        "launch_bound",
        "wait_p50_ns",
        "exposed_comm_pct",
        "batch",
        "n_kernels",
        "recognised_by",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "stage",
            title: "Stage",
            unit: Unit::Text,
            help: "The part of serving or training that launched the work.",
            cell: |row| words::stage(row.stage.id()),
        },
        columns::device("Device that ran it.", |row| row.device.as_str().into()),
        columns::n_slices(|row| Cell::Count(row.n_slices)),
        columns::n_kernels(|row| Cell::Count(row.n_kernels)),
        columns::total_ns("Summed duration.", |row| Cell::Ns(row.total_ns)),
        columns::share_pct(
            columns::OF_GPU_TIME,
            "Total as a percentage of the summed duration of all GPU slices of the device.",
            |row| Cell::Percent(row.share_pct),
        ),
        Column {
            key: "launch_bound",
            title: "Limited by launches",
            unit: Unit::Text,
            help: "Yes if Short gaps before late launches are 50% of the stage's time with gaps or more, or 20% and the CPU waits for the GPU for less than 20% of the run. Not judged where communication is half of the busy time or more.",
            cell: |row| {
                let word = row.launch_bound.map(|bound| if bound { "yes" } else { "no" });
                let reason = if row.wait_p50_ns.is_none() { NO_CALLS } else { NOT_JUDGED };
                Cell::or_missing(word.map(str::to_owned), Cell::from, reason)
            },
        },
        Column {
            key: "late_pct",
            title: "Short gaps before late launches, share of stage time with gaps",
            unit: Unit::Percent,
            help: "100 * Short gaps before late launches / (Busy + all idle time of the device that ends with a slice of the stage). Set-up, time in a data loader and pauses are in neither part. A pause is idle time of 1 ms or more at once, and of 10% of the GPU span (or of the profiler's steps) or more.",
            cell: |row| {
                let known = row.wait_p50_ns.map(|_| row.late_pct);
                Cell::or_missing(known, Cell::Percent, NO_CALLS)
            },
        },
        Column {
            key: "late_ns",
            title: "Short gaps before late launches",
            unit: Unit::Time,
            help: "Time in which the GPU waits for the next launch, in gaps of less than 1 ms: from the start of the gap to the end of the launch call. Without time in a data loader, without time in which the CPU allocates or frees memory, loads code or sets up libraries, and without what a wait for the GPU explains.",
            cell: |row| Cell::or_missing(row.wait_p50_ns.map(|_| row.late_ns), Cell::Ns, NO_CALLS),
        },
        columns::busy_ns("Time during which at least one slice of the stage ran.", |row| {
            Cell::Ns(row.busy_ns)
        }),
        Column {
            key: "span_ns",
            title: "Span",
            unit: Unit::Time,
            help: "From the first start to the last end, of each training step that launched work of the stage, summed; it begins anew after other stages ran for 1 ms or more.",
            cell: |row| Cell::Ns(row.span_ns),
        },
        Column {
            key: "busy_pct",
            title: "Stage busy, share of span",
            unit: Unit::Percent,
            help: "Busy in percent of Span.",
            cell: |row| Cell::Percent(row.busy_pct),
        },
        Column {
            key: "gpu_busy_pct",
            title: "Device busy, share of span",
            unit: Unit::Percent,
            help: "Time during which the device ran anything, of any stage, in percent of Span.",
            cell: |row| Cell::Percent(row.gpu_busy_pct),
        },
        Column {
            key: "exposed_comm_pct",
            title: "Exposed communication, share of busy",
            unit: Unit::Percent,
            help: "Communication with no other stream of the device running, in percent of Busy.",
            cell: |row| Cell::Percent(row.exposed_comm_pct),
        },
        Column {
            key: "wait_p50_ns",
            title: "Median launch end to start",
            unit: Unit::Time,
            help: "Median time from the end of the launch call to the start of the kernel; negative if kernels start before their calls return. Without communication and kernels of graphs.",
            cell: |row| Cell::or_missing(row.wait_p50_ns, Cell::Ns, NO_CALLS),
        },
        Column {
            key: "kernel_p50_ns",
            title: "Median kernel",
            unit: Unit::Time,
            help: "Median duration of the same kernels.",
            cell: |row| Cell::or_missing(row.kernel_p50_ns, Cell::Ns, NO_CALLS),
        },
        Column {
            key: "n_windows",
            title: "Passes",
            unit: Unit::Count,
            help: "Outermost annotations of the stage, or runs of the autograd engine: runs on several threads at the same time are one pass.",
            cell: |row| match row.n_windows {
                0 => Cell::missing("not recorded: no annotation marks the passes"),
                n => Cell::Count(n),
            },
        },
        Column {
            key: "batch",
            title: "Batch",
            unit: Unit::Text,
            help: "Batch sizes and tokens of the passes, from the annotations.",
            cell: |row| {
                Cell::or_missing(
                    row.batch.clone(),
                    Cell::from,
                    "not recorded: no annotation has a batch size",
                )
            },
        },
        Column {
            key: "recognised_by",
            title: "Recognised by",
            unit: Unit::Text,
            help: "Evidence for the stage, with the number of slices if there are several kinds.",
            cell: |row| row.recognised_by.as_str().into(),
        },
    ];
}
