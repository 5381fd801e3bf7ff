//! Converts results of the facade to the page's messages.

use kinetoscope::lanes::{
    News, Place, RecordedBand, RecordedLevels, RecordedPart, RecordedPlaces, Told,
};
use kinetoscope::report::Section;
use kinetoscope::{
    Action, CallSite, Comparability, Decoded, Elsewhere, HostReport, Iteration, MemoryOverTime,
    Proof, RepairReport, Stage, StageRow, StageWall, TraceReport, TriageReport, WallPart, WallRow,
    WallTimes,
};

use crate::features::triage::queries::MERGED;
use crate::protocol::{
    Analyses, Bar, Chapter, Choice, Comparison, Diagnosis, Format, Lacks, Opened, Part, Plan,
    ProblemCard, Repaired, Severity, StepWindow, Triage, Verdict,
};
use crate::shared::Shared;

/// A decoded file.
pub fn opened(decoded: &Decoded, name: &str) -> Opened {
    let problems = decoded.problems.iter().map(|problem| ProblemCard {
        kind: problem.kind.id().to_owned(),
        severity: match problem.kind.severity() {
            kinetoscope::Severity::Info => Severity::Note,
            kinetoscope::Severity::Warning => Severity::Warning,
            kinetoscope::Severity::Error => Severity::Error,
        },
        title: problem.kind.title().to_owned(),
        help: problem.kind.help().to_owned(),
        count: problem.count,
        first_offset: problem.first_offset,
        excerpt: problem.excerpt.clone(),
    });
    Opened {
        problems: problems.collect(),
        problem_table: Shared::new(kinetoscope::problem_table(&decoded.problems)),
        gzip: decoded.source.gzip,
        file_bytes: decoded.source.file_bytes,
        json_bytes: decoded.source.json_bytes,
        n_events: decoded.trace.len() as u64,
        signs: Shared::new(kinetoscope::signs(&decoded.trace, name)),
    }
}

/// The analyses of a file.
pub fn analyses(report: &TraceReport, sections: Vec<Section>) -> Analyses {
    let overview = &report.overview;
    let gpu = &overview.gpu;
    let parts = report.categories.iter().map(|row| Part {
        title: kinetoscope::words::category(&row.category).show(),
        meaning: String::new(),
        category: row.category.clone(),
        total_ns: row.total_ns,
        share_pct: row.share_pct,
    });
    let platform = match (&overview.runtime, overview.platform.as_str()) {
        (Some(runtime), _) => runtime.clone(),
        (None, "cuda") => "CUDA".to_owned(),
        (None, "rocm") => "ROCm".to_owned(),
        (None, _) => String::new(),
    };
    // (That any of several devices is busy says little of each.)
    let (busy_ns, of_ns) = match report.devices[..] {
        [_, _, ..] => kinetoscope::summed(&report.devices),
        _ => (gpu.busy_ns, gpu.span_ns),
    };
    Analyses {
        platform,
        rank: overview.rank,
        verdict: overview.verdict.clone(),
        busy_pct: (of_ns > 0).then(|| 100.0 * busy_ns as f64 / of_ns as f64),
        span_ns: gpu.span_ns,
        busy_ns,
        n_gpus: report.devices.len() as u64,
        n_kernels: gpu.n_kernels,
        n_kernel_names: gpu.n_kernel_names,
        kernel_sum_ns: gpu.kernel_sum_ns,
        parts: Shared::new(parts.collect()),
        chapters: sections.into_iter().map(Chapter::from).collect(),
    }
}

/// The triage of a file. `has_stacks`: the file has slices of Python functions.
pub fn triage(report: &TriageReport, sections: Vec<Section>, has_stacks: bool) -> Triage {
    let coverage = &report.coverage;
    let has_shapes = report.kernels.iter().any(|row| row.shapes.is_some());
    // Kernels of graphs and kernels without an op have no shapes either way, so they tell nothing of the recording.
    let of_ops = coverage.op_ns > 0 && coverage.graph_slices == 0;
    let all_ns = report.stages.iter().fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
    let choice = |id: &str, title: String, is_of: &dyn Fn(&StageRow) -> bool| {
        let own = report.stages.iter().filter(|row| is_of(row));
        let ns = own.fold(0_i64, |sum, row| sum.saturating_add(row.total_ns));
        let share_pct = if all_ns > 0 { 100.0 * ns as f64 / all_ns as f64 } else { 0.0 };
        Choice { id: id.to_owned(), title, share_pct }
    };
    let has = |stage: &Stage| report.stages.iter().any(|row| row.stage == *stage);
    let stages = Stage::EVERY
        .into_iter()
        .filter(has)
        .map(|stage| choice(stage.id(), stage.title().to_owned(), &|row| row.stage == stage));
    let devices = report.devices().into_iter().map(|device| {
        let title = match device {
            "" => "device not recorded".to_owned(),
            id => format!("Device {id}"),
        };
        choice(device, title, &|row| row.device == device)
    });
    Triage {
        stages: Shared::new(stages.collect()),
        devices: Shared::new(devices.collect()),
        before_window: report.before_window,
        has_ops: coverage.op_ns > 0,
        blocked_ns: coverage.gpu_blocked_ns,
        idle_sentences: report.idle_takeaways.clone(),
        lacks: Lacks { stacks: !has_stacks, shapes: of_ops && !has_shapes },
        captures: coverage.captures.clone(),
        by_mapping: coverage.by_mapping,
        by_map: coverage.by_map,
        chapters: sections.into_iter().map(Chapter::from).collect(),
    }
}

/// The diagnosis of a file, with the tables of the CPU.
pub fn diagnosis(found: &kinetoscope::Diagnosis, of_host: &HostReport) -> Diagnosis {
    let chapters = of_host.sections().into_iter();
    let bar = |(title, rows): (String, &[WallRow])| {
        let parts = rows.iter().map(|row| Part {
            category: row.part.id().to_owned(),
            title: row.part.title().to_owned(),
            meaning: row.part.meaning().to_owned(),
            total_ns: row.total_ns,
            share_pct: row.share_pct,
        });
        let device = rows.first().map(|row| row.device.clone()).unwrap_or_default();
        Bar { title, device, stage: None, parts: parts.collect() }
    };
    let of_stage = |(title, wall): (String, &StageWall)| {
        let parts = WallPart::ALL.into_iter().filter(|part| wall.part(*part) > 0);
        let parts = parts.map(|part| Part {
            category: part.id().to_owned(),
            title: part.title().to_owned(),
            meaning: part.meaning().to_owned(),
            total_ns: wall.part(part),
            share_pct: 100.0 * wall.part(part) as f64 / wall.total_ns.max(1) as f64,
        });
        let (device, stage) = (wall.device.clone(), Some(wall.stage.id().to_owned()));
        Bar { title, device, stage, parts: parts.collect() }
    };
    let texts = |finding: &kinetoscope::DiagnosisFinding| {
        let title = finding.rule.title().to_owned();
        [title, finding.observation.clone(), finding.meaning.clone()]
    };
    let (costs, figures) = found.further();
    let modules = found.modules.as_ref().map(|modules| modules.section(true));
    let iterations = found.iterations.as_ref().map(|iterations| iterations.section());
    Diagnosis {
        triage: None,
        memory: Vec::new(),
        told: Vec::new(),
        clocks: Vec::new(),
        scaling: Shared::default(),
        without_actions: found.without_actions().to_owned(),
        headline: found.headline.clone(),
        bars: found.bars().map(bar).chain(found.stage_bars().map(of_stage)).collect(),
        actions: found.told_actions().iter().map(Action::finding).collect(),
        findings: costs.iter().map(texts).collect(),
        baseline: figures.iter().map(texts).collect(),
        steps: Vec::new(),
        chapters: chapters.chain(iterations).chain(modules).map(Chapter::drawn).collect(),
    }
}

/// What the program that draws lanes does not find out by itself.
pub fn told(report: &TriageReport, memory: &[MemoryOverTime], elsewhere: Elsewhere) -> Told {
    let place = |site: CallSite| Place {
        how: site.confidence.in_words().to_owned(),
        op: site.cpu_op,
        forward_op: site.forward_op,
        line: site.location,
        modules: site.modules,
        stack: site.stack,
    };
    let places = elsewhere.sites.into_iter().map(place).collect();
    Told {
        bands: report.wall_times.iter().map(band).collect(),
        memory: memory.iter().map(levels).collect(),
        places: RecordedPlaces::new(places, elsewhere.of),
    }
}

/// The memory of a device.
fn levels(memory: &MemoryOverTime) -> RecordedLevels {
    let device = match kinetoscope::device_name(memory).as_str() {
        "CPU" => "the CPU".to_owned(),
        number => format!("GPU {number}"),
    };
    let (mut first, mut allocated) = ((0, 0), 0_i64);
    let mut levels = Vec::with_capacity(memory.changes.len());
    for change in &memory.changes {
        allocated = allocated.saturating_add(change.bytes);
        match change.at_ns {
            Some(at_ns) => levels.push((at_ns, allocated, change.reserved)),
            None => first = (allocated, change.reserved),
        }
    }
    let has_totals = memory.changes.first().is_some_and(|change| change.at_ns.is_none());
    let since = if has_totals { "" } else { " since the first event" };
    RecordedLevels::new(format!("Memory of {device}{since}"), first, &levels)
}

/// The wall time of a device.
fn band(times: &WallTimes) -> RecordedBand {
    let parts = times
        .parts
        .iter()
        .map(|(part, own)| RecordedPart::new(part.id(), part.title(), part.is_idle(), own));
    let label =
        if times.device.is_empty() { "GPU".to_owned() } else { format!("GPU {}", times.device) };
    RecordedBand { label, parts: parts.collect() }
}

/// An iteration that the diagnosis can be narrowed to.
pub fn step_window(iteration: &Iteration) -> StepWindow {
    let (start_ns, end_ns) = iteration.window();
    StepWindow { name: iteration.name.clone(), start_ns, end_ns }
}

/// The chapter with the kernels of all stages merged by name.
pub fn merged(report: &TriageReport) -> Option<Section> {
    let table = report.merged_table()?;
    Some(Section { tables: vec![table], ..Section::new(MERGED, "Kernels") })
}

/// Two compared runs.
pub fn comparison(found: &kinetoscope::Comparison, sections: Vec<Section>) -> Comparison {
    Comparison {
        verdict: match found.guard.verdict {
            Comparability::Comparable => Verdict::Comparable,
            Comparability::Conditional => Verdict::Conditional,
            Comparability::NotComparable => Verdict::NotComparable,
        },
        chapters: sections.into_iter().map(Chapter::from).collect(),
    }
}

/// The planned repair of a file.
pub fn plan(report: RepairReport, damage: &News, clip_impossible: bool) -> Plan {
    let RepairReport {
        damaged,
        verdict,
        predictions,
        drops_before,
        drops_after,
        clean_after,
        time_base,
        rules,
        lanes,
        log,
        n_changes,
        impossible,
        impossible_note,
        places,
        in_document: _,
    } = report;
    Plan {
        damaged,
        verdict,
        predictions: Shared::new(predictions),
        drops_before,
        drops_after,
        clean_after,
        time_base,
        rules: Shared::new(rules),
        lanes: Shared::new(lanes),
        log: Shared::new(log),
        n_changes,
        impossible: Shared::new(impossible),
        impossible_note,
        places: places.into_iter().map(Shared::new).collect(),
        clip_impossible,
        damage: Shared::new(postcard::to_allocvec(damage).unwrap_or_default()),
    }
}

/// A written file.
pub fn repaired(name: &str, format: Format, bytes: u64, proof: &Proof) -> Repaired {
    Repaired {
        format,
        bytes,
        file_name: fixed_name(name, format),
        clip_impossible: false,
        proven: proof.holds,
        proof: Shared::new(kinetoscope::proof_table(proof)),
    }
}

/// `run.json.gz` becomes `run.perfetto.json.gz`, as on the command line.
fn fixed_name(name: &str, format: Format) -> String {
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    match format {
        Format::Gzip => format!("{stem}.perfetto.json.gz"),
        Format::Json => format!("{stem}.perfetto.json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repaired_file_keeps_its_name() {
        assert_eq!(
            fixed_name("run.pt.trace.json.gz", Format::Gzip),
            "run.pt.trace.perfetto.json.gz"
        );
        assert_eq!(fixed_name("run.json", Format::Gzip), "run.perfetto.json.gz");
        assert_eq!(fixed_name("run", Format::Json), "run.perfetto.json");
    }
}
