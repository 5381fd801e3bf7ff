//! Advice on the settings of the allocator, from what they would have saved.

use report::{Cell, Column, Confidence, Finding, Row, Section, Table, Unit};

use super::{Run, WhatIf};
use crate::amounts::{amount, percent, size};

/// Condition: least share of reserved memory that is worth a finding, in percent.
const LEAST_GAIN: f64 = 1.0;

/// Condition: least gain in bytes; less decides about nothing on a GPU.
const LEAST_BYTES: i64 = 32 << 20;

/// One kind of setting.
struct Lever {
    rule: &'static str,
    setting: &'static str,
    /// Whether Windows has it.
    on_windows: bool,
    why: &'static str,
    /// What to mind with the action.
    caution: &'static str,
}

const LEVERS: &[Lever] = &[
    Lever {
        rule: "allocator-expandable-segments",
        setting: "expandable_segments",
        // pytorch: the setting is ignored where CUDA's virtual memory functions are not used, as on Windows.
        on_windows: false,
        why: "Free memory is in segments that requests do not fit into; an expandable segment grows in place.",
        caution: " and no max_split_size_mb",
    },
    Lever {
        rule: "allocator-max-split-size",
        setting: "max_split_size_mb",
        on_windows: true,
        why: "Small requests split large free blocks, so later large requests need new segments.",
        caution: ", but not together with expandable_segments (pytorch#193400)",
    },
];

/// The advice of a device, the most bytes first.
pub(crate) fn advice(device: &str, what_if: &WhatIf, is_windows: bool) -> Vec<Finding> {
    let recorded = what_if.recorded_peak_reserved;
    let mut found: Vec<(i64, Finding)> = Vec::new();
    for lever in LEVERS.iter().filter(|lever| lever.on_windows || !is_windows) {
        let is_on =
            |run: &&Run| run.setting.starts_with(lever.setting) && !run.setting.ends_with("False");
        let best = what_if.runs.iter().filter(is_on).min_by_key(|run| run.peak_reserved);
        let Some(run) = best
            .filter(|run| run.saved >= LEAST_BYTES && percent(run.saved, recorded) >= LEAST_GAIN)
        else {
            continue;
        };
        let mut observation = format!(
            "Device {device}: under {} the recorded allocations reserve {} at most, {} less than the recorded {} ({:.1}%; an \
             estimate of a model that reproduces the recorded run).",
            run.setting,
            size(run.peak_reserved),
            size(run.saved),
            size(recorded),
            percent(run.saved, recorded)
        );
        if what_if.start_reserved > 0 {
            observation
                .push_str(" Segments that stood before the first event were kept as they are.");
        }
        if what_if.ooms > 0 {
            observation.push_str(" It leaves out the allocations that failed.");
        }
        let finding = Finding {
            rule: lever.rule.into(),
            observation,
            hypothesis: lever.why.to_owned(),
            action: format!("Set PYTORCH_CUDA_ALLOC_CONF={}{}.", run.setting, lever.caution),
            validation: format!(
                "Peak reserved memory falls from {} to about {}.",
                size(recorded),
                size(run.peak_reserved)
            ),
            confidence: if what_if.covers_the_run() { Confidence::Medium } else { Confidence::Low },
            evidence: vec![format!("what_if.{device}.runs")],
        };
        found.push((run.saved, finding));
    }
    found.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
    found.into_iter().map(|(_, finding)| finding).collect()
}

impl Row for Run {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "setting",
            title: "Setting",
            unit: Unit::Text,
            help: "As in PYTORCH_CUDA_ALLOC_CONF; the other settings stay as recorded.",
            cell: |row| row.setting.as_str().into(),
        },
        Column {
            key: "peak_reserved",
            title: "Peak reserved",
            unit: Unit::Bytes,
            help: "The most that the model reserves for the recorded allocations.",
            cell: |row| amount(row.peak_reserved),
        },
        Column {
            key: "saved",
            title: "Change",
            unit: Unit::Text,
            help: "Against the recorded peak.",
            cell: |row| Cell::Text(change(row.saved).into()),
        },
    ];
}

fn change(saved: i64) -> String {
    match saved {
        0 => "none".to_owned(),
        1.. => format!("{} less", size(saved)),
        _ => format!("{} more", size(saved.saturating_neg())),
    }
}

impl WhatIf {
    /// Whether every allocation of the run was replayed under the other settings.
    pub(crate) fn covers_the_run(&self) -> bool {
        self.reproduced && self.start_reserved == 0 && self.ooms == 0
    }

    /// The figures as a chapter.
    pub(crate) fn section(&self, device: &str) -> Section {
        let mut section = Section::new("what-if", "");
        section.id = format!("what-if-{device}").into();
        section.title = format!("Device {device}: other allocator settings").into();
        if let Some(why) = &self.withheld {
            section.intro.push(format!("No figures, because the model does not apply: {why}."));
            return section;
        }
        let settings = if self.settings_recorded {
            "the recorded settings"
        } else {
            "default settings (none are recorded)"
        };
        section.intro.push(format!(
            "Estimates of a model of the allocator that reproduces the run: under {settings} it places every block at its recorded \
             address and reserves {} at most. It does not know how much memory the device has.",
            size(self.recorded_peak_reserved)
        ));
        if self.start_reserved > 0 {
            section.intro.push(format!(
                "{} were reserved before the first event; these segments stand at the start under every setting.",
                size(self.start_reserved)
            ));
        }
        if self.ooms > 0 {
            section.intro.push(
                "Allocations that failed in the run are not repeated, so the peaks lack what they would have added.".to_owned(),
            );
        }
        section.tables.push(Table::of("what-if", "Peak reserved by setting", &self.runs));
        section
    }
}
