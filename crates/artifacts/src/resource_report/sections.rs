//! The chapters of the report.

use analysis::analyze;
use diagnosis::{Action, Diagnosis, WallRow};
use report::units::{count, plural};
use report::{Cell, Column, Drawing, Row, Section, Table, Unit};
use timeline::Options;

use super::figures::{FamilyRow, TopOp, TopThread};
use super::{OfTrace, ReportedMemory};

/// Rows of the tables of bottlenecks.
const TOP: u32 = 10;

/// One figure of the summary.
pub(super) struct Figure {
    what: &'static str,
    value: Cell<'static>,
    note: String,
}

impl Figure {
    pub(super) fn new(what: &'static str, value: Cell<'static>, note: impl Into<String>) -> Self {
        Self { what, value, note: note.into() }
    }
}

const fn column<R>(
    key: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    cell: fn(&R) -> Cell<'_>,
) -> Column<R> {
    Column { key, title, unit, help, cell }
}

impl Row for Figure {
    const COLUMNS: &'static [Column<Self>] = &[
        column("figure", "Figure", Unit::Text, "What it is.", |row| row.what.into()),
        column("value", "Value", Unit::Text, "Its value.", |row| row.value.clone()),
        column("note", "Note", Unit::Text, "What it is of, or why it is missing.", |row| {
            row.note.as_str().into()
        }),
    ];
}

/// What the files do not hold.
pub(super) struct Missing {
    pub(super) what: &'static str,
    pub(super) reason: &'static str,
    pub(super) how: &'static str,
}

impl Row for Missing {
    const COLUMNS: &'static [Column<Self>] = &[
        column("what", "Not available", Unit::Text, "What is missing.", |row| row.what.into()),
        column("reason", "Because", Unit::Text, "Why it is missing.", |row| row.reason.into()),
        column("how", "To get it", Unit::Text, "What would record it.", |row| row.how.into()),
    ];
}

impl Row for TopOp {
    const COLUMNS: &'static [Column<Self>] = &[
        column("name", "Op", Unit::Name, "Name of the op.", |row| row.name.as_str().into()),
        column("family", "Family", Unit::Text, "Kind of op, by its name.", |row| row.family.into()),
        column("count", "Calls", Unit::Count, "Calls.", |row| Cell::Count(row.count)),
        column("self_ns", "CPU, self", Unit::Time, "CPU time in no op inside it.", |row| {
            Cell::Ns(row.self_ns)
        }),
        column("total_ns", "CPU, total", Unit::Time, "Sum of the durations on the CPU.", |row| {
            Cell::Ns(row.total_ns)
        }),
    ];
}

impl Row for TopThread {
    const COLUMNS: &'static [Column<Self>] = &[
        column("name", "Thread", Unit::Name, "Name of the thread.", |row| row.name.as_str().into()),
        column("pid", "Process", Unit::Text, "Process id.", |row| row.pid.as_str().into()),
        column("tid", "Thread id", Unit::Text, "Thread id.", |row| row.tid.as_str().into()),
        column("self_ns", "Ops, self", Unit::Time, "Sum of the self times of its ops.", |row| {
            Cell::Ns(row.self_ns)
        }),
        column("busy_ns", "Busy with ops", Unit::Time, "Time covered by ops.", |row| {
            Cell::Ns(row.busy_ns)
        }),
        column(
            "busy_pct",
            "Share of ops' window",
            Unit::Percent,
            "Time covered by ops, in percent of the time from the first op of the file to the end of the last.",
            |row| Cell::Percent(row.busy_pct),
        ),
    ];
}

impl Row for FamilyRow {
    const COLUMNS: &'static [Column<Self>] = &[
        column("family", "Family", Unit::Text, "Kind of op, by its name.", |row| row.family.into()),
        column("count", "Calls", Unit::Count, "Calls.", |row| Cell::Count(row.count)),
        column("self_ns", "CPU, self", Unit::Time, "CPU time in no op inside.", |row| {
            Cell::Ns(row.self_ns)
        }),
        column(
            "total_ns",
            "CPU, total",
            Unit::Time,
            "Sum of the durations; an op in an op of its family counts twice.",
            |row| Cell::Ns(row.total_ns),
        ),
    ];
}

/// The chapters, in order.
pub(super) fn sections(
    known: Option<&OfTrace<'_>>,
    memory: Option<&ReportedMemory<'_>>,
) -> Vec<Section> {
    let mut sections = vec![
        summary(known, memory),
        bottlenecks(known, memory),
        findings(known, memory),
        actions(known, memory),
    ];
    sections.extend(known.and_then(|known| Some(known.ranks.as_ref()?.section())));
    sections.extend(memory.map(super::memory::section));
    let found = known.and_then(|known| Some((known.name, known.same_run.as_ref()?)));
    sections.extend(found.map(|(name, found)| found.section(name)));
    let iterations = known.and_then(|known| known.diagnosis.iterations.as_ref());
    sections.extend(iterations.map(|iterations| iterations.section()));
    let modules = known.and_then(|known| known.diagnosis.modules.as_ref());
    sections.extend(modules.map(|modules| modules.section(true)));
    let of_host = known.map_or_else(Vec::new, |known| known.host.sections());
    let has_rates = known.is_some_and(|known| !known.host.rates.rows.is_empty());
    sections.extend(of_host.into_iter().filter(|section| has_rates && section.id == "flops"));
    sections.push(gaps(known, memory));
    sections
}

const NO_TRACE: &str = "Not available: no trace was given.";

fn summary(known: Option<&OfTrace<'_>>, memory: Option<&ReportedMemory<'_>>) -> Section {
    let mut section = Section::new("summary", "Resource summary");
    let mut rows = Vec::new();
    match known {
        Some(known) => {
            section.intro.extend(known.diagnosis.headline.clone());
            section.drawings.extend(bars(&known.diagnosis));
            rows.extend(figures(known, memory.is_some()));
        }
        None => {
            section.intro.push("CPU and GPU time are not available: no trace was given.".to_owned())
        }
    }
    let found = known.and_then(|known| Some((known.name, known.same_run.as_ref()?)));
    section.intro.extend(found.map(|(name, found)| found.sentence(name)));
    rows.extend(memory.iter().flat_map(|memory| super::memory::figures(memory)));
    section.tables.push(Table::of("figures", "Figures", &rows));
    section
}

fn figures(known: &OfTrace<'_>, has_snapshot: bool) -> Vec<Figure> {
    let overview = analyze(known.trace, &Options::default()).overview;
    let gpu = &overview.gpu;
    let host = &known.host;
    let mut rows = vec![
        Figure::new("Events", Cell::Count(overview.n_events), "of any kind"),
        Figure::new(
            "Recording",
            Cell::Ns(overview.window_ns),
            "first start to last end of a slice",
        ),
        Figure::new("Ops on the CPU", Cell::Count(known.figures.n_ops as u64), {
            plural(host.cpu_ops.n_names as u64, "name", "names")
        }),
        match host.cpu_ops.window_ns {
            Some(ns) => {
                Figure::new("Window of the ops", Cell::Ns(ns), "first start to last end of an op")
            }
            None => Figure::new(
                "Window of the ops",
                Cell::missing("no op is recorded"),
                "not available: no op is recorded",
            ),
        },
    ];
    let steps = &host.steps.cpu_dur;
    rows.push(match &steps.figures {
        Some(figures) => Figure::new(
            "Steps, mean on the CPU",
            Cell::Ns(figures.mean_ns as i64),
            plural(steps.n as u64, "step", "steps"),
        ),
        None => Figure::new(
            "Steps",
            Cell::missing("none"),
            "not available: the file has no ProfilerStep",
        ),
    });
    if gpu.n_gpu_events == 0 {
        rows.push(Figure::new(
            "GPU",
            Cell::missing("none"),
            "not available: the file has no GPU work",
        ));
    } else {
        let share = Cell::Percent(timeline::percent(gpu.busy_ns, gpu.span_ns));
        rows.push(Figure::new(
            "GPU span",
            Cell::Ns(gpu.span_ns),
            "first start to last end of GPU work",
        ));
        rows.push(Figure::new("GPU busy", Cell::Ns(gpu.busy_ns), "time in which any GPU works"));
        rows.push(Figure::new("GPU busy share", share, "of the GPU span"));
        rows.push(Figure::new("Kernels", Cell::Count(gpu.n_kernels), {
            plural(gpu.n_kernel_names, "name", "names")
        }));
        rows.push(Figure::new("Kernel time", Cell::Ns(gpu.kernel_sum_ns), "sum of the durations"));
    }
    rows.extend(memory_figures(known, has_snapshot));
    rows
}

/// What the trace's own records of memory say.
fn memory_figures(known: &OfTrace<'_>, has_snapshot: bool) -> Vec<Figure> {
    let mut rows = Vec::new();
    for row in &known.host.memory {
        let Some(peak) = row.peak_total_allocated.filter(|peak| *peak >= 0) else { continue };
        let device = match (row.device_type, row.device_id) {
            (Some(0), _) => "CPU".to_owned(),
            (_, Some(device)) => format!("device {device}"),
            _ => "unknown device".to_owned(),
        };
        let note = format!(
            "{device}; {} allocations, {} frees",
            count(row.n_alloc as u64),
            count(row.n_free as u64)
        );
        rows.push(Figure::new("Memory allocated at most", Cell::Bytes(peak as u64), note));
        if let Some(reserved) = row.peak_total_reserved.filter(|reserved| *reserved > 0) {
            rows.push(Figure::new("Memory reserved at most", Cell::Bytes(reserved as u64), device));
        }
    }
    if rows.is_empty() && !has_snapshot {
        let note = "not available: the trace has no changes of memory, and no snapshot was given";
        rows.push(Figure::new("Memory", Cell::missing("not recorded"), note));
    }
    rows
}

/// The wall time of each device as a bar.
fn bars(diagnosis: &Diagnosis) -> impl Iterator<Item = Drawing> {
    diagnosis.bars().map(|(title, rows)| {
        let part = |row: &WallRow| {
            (row.part.id(), row.part.title(), row.share_pct, report::units::time(row.total_ns))
        };
        Drawing::stacked("wall", format!("Wall time. {title}"), rows.iter().map(part))
    })
}

fn bottlenecks(known: Option<&OfTrace<'_>>, memory: Option<&ReportedMemory<'_>>) -> Section {
    let mut section = Section::new("bottlenecks", "Top bottlenecks");
    if memory.is_some() {
        let text = "Of memory: the chapter on the snapshot has the largest segments, the sites and the allocator's actions.";
        section.intro.push(text.to_owned());
    }
    let Some(known) = known else {
        section.intro.push(NO_TRACE.to_owned());
        return section;
    };
    let gpu = analyze(known.trace, &Options::default());
    let wall = Table::of("wall", "Wall time by part", &known.diagnosis.wall)
        .when_empty("Not available: the file has no GPU work whose waits can be explained.");
    let several = known.diagnosis.wall.chunk_by(|a, b| a.device == b.device).count() > 1;
    let figures = &known.figures;
    section.tables = vec![
        if several { wall } else { wall.without("device") },
        Table::of("categories", "GPU time by category", &gpu.categories)
            .preview(TOP)
            .when_empty("Not available: the file has no GPU work."),
        Table::of("kernels", "Kernels", &gpu.kernels)
            .only(&["kernel_name", "category", "total_ns", "share_pct", "launches", "mean_ns"])
            .preview(TOP)
            .when_empty("Not available: the file has no kernel."),
        Table::of("ops", "Ops by CPU time of their own", &figures.top_ops)
            .when_empty("Not available: the file has no op."),
        Table::of("families", "Families of ops by CPU time of their own", &figures.families)
            .when_empty("Not available: the file has no op."),
        Table::of("threads", "Threads by CPU time of their ops", &figures.top_threads)
            .when_empty("Not available: the file has no op."),
    ];
    section
}

fn findings(known: Option<&OfTrace<'_>>, memory: Option<&ReportedMemory<'_>>) -> Section {
    let mut section = Section::new("diagnosis", "Diagnosis");
    match known {
        Some(known) => {
            let table = Table::of("findings", "What the rules found", &known.diagnosis.findings)
                .without("rule")
                .when_empty("No rule found anything.");
            section.tables.push(table);
        }
        None => section.intro.push(NO_TRACE.to_owned()),
    }
    if let Some(memory) = memory {
        let n = memory.report.findings.len() as u64;
        section.intro.push(match n {
            0 => "The memory snapshot shows nothing to fix.".to_owned(),
            n => format!(
                "{} of the memory snapshot: see the actions.",
                plural(n, "finding", "findings")
            ),
        });
    }
    section
}

fn actions(known: Option<&OfTrace<'_>>, memory: Option<&ReportedMemory<'_>>) -> Section {
    let mut section = Section::new("actions", "Prioritised actions");
    if let Some(known) = known {
        let actions = known.diagnosis.told_actions();
        section.findings = actions.iter().map(Action::finding).collect();
        section.intro.push(match actions.len() {
            0 => known.diagnosis.without_actions().to_owned(),
            _ => "The most wall time first. Bounds are estimates and overlap: they do not add up."
                .to_owned(),
        });
    } else if memory.is_none() {
        section.intro.push(NO_TRACE.to_owned());
    }
    let of_memory = memory.map_or(&[][..], |memory| &memory.report.findings);
    if !of_memory.is_empty() {
        section.intro.push(
            "Actions on memory follow those on time; failed allocations come first.".to_owned(),
        );
    }
    section.findings.extend(of_memory.iter().cloned());
    if section.intro.is_empty() {
        section.intro.push("No action is advised.".to_owned());
    }
    section
}

/// What the files do not hold.
pub(super) fn missing(known: Option<&OfTrace<'_>>, has_snapshot: bool) -> Vec<Missing> {
    let mut rows = Vec::new();
    let mut row = |is_missing: bool, what, reason, how| {
        if is_missing {
            rows.push(Missing { what, reason, how });
        }
    };
    match known {
        None => row(
            true,
            "CPU and GPU time",
            "no trace was given",
            "torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True, with_stack=True), then export_chrome_trace",
        ),
        Some(known) => {
            let (host, coverage) = (&known.host, &known.triage.coverage);
            let no_gpu = host.links.gpu == 0;
            row(
                no_gpu,
                "GPU time",
                "the trace has no GPU work",
                "ProfilerActivity.CUDA in activities, on a machine with a GPU",
            );
            row(
                !coverage.has_frames,
                "Lines of Python",
                "no Python stacks are recorded",
                "with_stack=True",
            );
            row(
                !coverage.has_inputs,
                "Input sizes, floating point operations",
                "no input sizes are recorded",
                "record_shapes=True",
            );
            row(
                host.steps.cpu.is_empty(),
                "Steps",
                "the file has no ProfilerStep",
                "prof.step() after each step, with schedule(wait=1, warmup=2, active=3)",
            );
            row(
                host.memory.is_empty(),
                "Memory by time",
                "the file has no changes of memory",
                "profile_memory=True",
            );
        }
    }
    row(
        !has_snapshot,
        "Memory snapshot: segments, fragmentation, allocation retries",
        "no snapshot was given",
        "torch.cuda.memory._record_memory_history(); then json.dump(torch.cuda.memory._snapshot(), file)",
    );
    rows
}

fn gaps(known: Option<&OfTrace<'_>>, memory: Option<&ReportedMemory<'_>>) -> Section {
    let mut section = Section::new("missing", "Not available");
    section.tables.push(
        Table::of("missing", "What the files do not hold", &missing(known, memory.is_some()))
            .when_empty("Nothing is missing."),
    );
    section
}
