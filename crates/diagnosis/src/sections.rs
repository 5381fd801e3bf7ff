//! The diagnosis as tables, for the page and for Markdown.

use catalog::Platform;
use report::{Cell, Column, Row, Section, Table, Unit};
use triage::{WallPart, WallRow};

use crate::{Action, Diagnosis, Finding, Iterations, Rule};

impl Row for Finding {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "rule",
            title: "Rule",
            unit: Unit::Text,
            help: "Id of the rule.",
            cell: |row| row.rule.id().into(),
        },
        Column {
            key: "title",
            title: "About",
            unit: Unit::Text,
            help: "What the rule is about.",
            cell: |row| row.rule.title().into(),
        },
        Column {
            key: "observation",
            title: "The file shows",
            unit: Unit::Text,
            help: "What the file shows.",
            cell: |row| row.observation.as_str().into(),
        },
        Column {
            key: "meaning",
            title: "That means",
            unit: Unit::Text,
            help: "What follows, or what would settle it.",
            cell: |row| row.meaning.as_str().into(),
        },
        Column {
            key: "bound_ns",
            title: "At most",
            unit: Unit::Time,
            help: "Upper bound on the wall time saved.",
            cell: |row| bound(row.bound_ns),
        },
        Column {
            key: "confidence",
            title: "Confidence",
            unit: Unit::Text,
            help: "High: all of it is measured. Medium: a part is inferred. Low: a hypothesis, and the sentence names what would settle it.",
            cell: |row| row.confidence.id().into(),
        },
    ];
}

impl Row for Action {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "bound_ns",
            title: "Saves at most",
            unit: Unit::Time,
            help: "Upper bound on the wall time saved: an estimate. Bounds of several actions overlap.",
            cell: |row| Cell::Ns(row.bound_ns),
        },
        Column {
            key: "action",
            title: "What to do",
            unit: Unit::Text,
            help: "What to do.",
            cell: |row| Cell::Text(row.steps().into()),
        },
        Column {
            key: "observation",
            title: "Because",
            unit: Unit::Text,
            help: "What the file shows, and what the bound rests on.",
            cell: |row| Cell::Text(row.reason().into()),
        },
        Column {
            key: "place",
            title: "Where",
            unit: Unit::Path,
            help: "The line of Python, op or kernel.",
            cell: |row| row.place.as_str().into(),
        },
        Column {
            key: "check",
            title: "How to check",
            unit: Unit::Text,
            help: "What to read again after the change.",
            cell: |row| Cell::Text(row.how_to_check().into()),
        },
    ];
}

fn bound(ns: Option<i64>) -> Cell<'static> {
    ns.map_or(Cell::Missing { reason: "nothing would be saved".into() }, Cell::Ns)
}

/// Of the wall time: a GPU that works for less is idle for most of it.
const IDLE_PCT: f64 = 25.0;

/// Where bounds add up to more than the run.
const OVERLAP: &str =
    "Some of these save the same time: together they save less than the sum of their bounds.";

/// What is said where the device computes all the time, with what to measure next: a trace has no hardware counters.
fn only_faster(platform: Platform) -> &'static str {
    match platform {
        Platform::Cuda => {
            "Hardware counters show whether the longest kernels could be faster: profile them with Nsight Compute (ncu --set full)."
        }
        Platform::Rocm => {
            "Hardware counters show whether the longest kernels could be faster: profile them with ROCm Compute Profiler \
             (rocprof-compute profile)."
        }
        Platform::Unknown => {
            "No remedy whose gain can be computed from this file would save 1% of the wall time."
        }
    }
}

/// What is said where most idle time is pauses between queued kernels.
fn fewer_pauses(platform: Platform) -> &'static str {
    match platform {
        Platform::Cuda => {
            "No action has a gain that can be computed from this file. Most idle time is pauses between queued kernels: fewer kernels \
             (fusion) or programmatic dependent launch shorten it."
        }
        Platform::Rocm | Platform::Unknown => {
            "No action has a gain that can be computed from this file. Most idle time is pauses between queued kernels: fewer kernels \
             (fusion) shorten it."
        }
    }
}

impl Diagnosis {
    /// What to say where there is no action.
    #[must_use]
    pub fn without_actions(&self) -> &'static str {
        let (findings, _) = self.further();
        if self.wall.is_empty() {
            "No action: the file does not show where wall time on a GPU goes."
        } else if self.findings.iter().any(|finding| finding.rule == Rule::ColdStart) {
            "First record again, after a few warm-up iterations: what a first run waits for does not show how to shorten later ones."
        } else if findings.iter().any(|finding| finding.bound_ns.is_some()) {
            "No action has a gain that can be computed from this file."
        } else if self.pauses() {
            fewer_pauses(self.platform)
        } else if self.loses_time() {
            match findings.is_empty() {
                true => {
                    "No known remedy has a gain of 1% or more that can be computed from this file."
                }
                false => {
                    "No known remedy has a gain of 1% or more that can be computed from this file. What the findings below say has no bound."
                }
            }
        } else {
            only_faster(self.platform)
        }
    }

    /// Whether findings or the wall time tell of more than 1% in which the GPU does not compute.
    fn loses_time(&self) -> bool {
        let lost = |rows: &[WallRow]| {
            let lost = rows.iter().filter(|row| row.part != WallPart::Compute);
            lost.map(|row| row.share_pct).sum::<f64>() > 1.0
        };
        self.findings.iter().any(|finding| finding.bound_ns.is_some_and(|ns| ns > 0))
            || self.bars().any(|(_, rows)| lost(rows))
    }

    /// Whether pauses between queued kernels are most of the idle time, and worth a word.
    fn pauses(&self) -> bool {
        let sum = |rows: &[WallRow], only: bool| {
            let rows = rows.iter().filter(|row| row.part.is_idle());
            let rows = rows.filter(|row| !only || row.part == WallPart::Between);
            rows.map(|row| row.share_pct).sum::<f64>()
        };
        let mut bars = self.bars().peekable();
        bars.peek().is_some()
            && bars.all(|(_, rows)| {
                let between = sum(rows, true);
                between >= crate::LEAST_PCT && between * 2.0 >= sum(rows, false)
            })
    }

    /// Whether the GPUs are idle for most of the time: what they do in the rest matters little.
    fn is_idle(&self) -> bool {
        let busy = |rows: &[WallRow]| {
            let rows = rows.iter().filter(|row| !row.part.is_idle());
            rows.map(|row| row.share_pct).sum::<f64>()
        };
        self.bars().all(|(_, rows)| busy(rows) < IDLE_PCT)
    }

    /// What to do first, then what was found.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        let mut wall = Section::new("wall", "Wall time");
        wall.intro.extend(self.headline.clone());
        let devices = self
            .wall
            .iter()
            .any(|row| Some(&row.device) != self.wall.first().map(|row| &row.device));
        let table =
            Table::of("wall", "Wall time", &self.wall).when_empty("The file has no GPU work.");
        let table = table.without_missing(&["share_rest_pct"]);
        // (Where there is a first sentence, it has said what is missing.)
        if !self.wall.is_empty() || self.headline.is_none() {
            wall.tables.push(if devices { table } else { table.without("device") });
        }
        wall.tables.extend(triage::stage_wall_table(&self.wall_stages));
        let mut actions = Section::new("actions", "What to do first");
        let told = self.told_actions();
        let table = Table::of("actions", "Actions", &told).when_empty(self.without_actions());
        actions.tables.push(table.preview(10));
        let (found, facts) = self.further();
        let sum_pct: f64 = told.iter().map(|action| action.bound_pct).sum();
        if sum_pct > 100.0 && told.len() > 1 {
            actions.intro.push(OVERLAP.to_owned());
        }
        let mut findings = Section::new("diagnosis", "Findings");
        if !found.is_empty() {
            let bounded = found.iter().any(|finding| finding.bound_ns.is_some());
            let table = Table::of("findings", "Findings", &found);
            findings.tables.push(if bounded { table } else { table.without("bound_ns") });
        }
        if !facts.is_empty() {
            let table = Table::of("baseline", "Also note", &facts);
            findings.tables.push(table.without("bound_ns").without("confidence"));
        }
        // (Of one step the wall time says all.)
        let is_told = |found: &&Iterations| found.list.len() > 1 || self.wall.is_empty();
        let iterations = self.iterations.as_ref().filter(is_told).map(Iterations::section);
        let says_share = self.wall.is_empty() || !self.is_idle();
        let modules = self.modules.as_ref().filter(|tree| tree.is_told());
        let modules = modules.map(|tree| tree.section(says_share));
        let findings = Some(findings).filter(|section| !section.tables.is_empty());
        // (Of a run on the CPU nothing is advised.)
        let is_asked = !told.is_empty() || !self.wall.is_empty();
        let actions = Some(actions).filter(|_| is_asked);
        [wall].into_iter().chain(actions).chain(findings).chain(iterations).chain(modules).collect()
    }
}
