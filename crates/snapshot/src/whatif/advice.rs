//! Advice on the settings of the allocator, from what they would have saved.

use report::units::{count, plural};
use report::{Cell, Column, Confidence, Finding, Row, Section, Table, Unit};

use super::{Run, WhatIf};
use crate::amounts::{amount, percent, size};

/// Condition: least share of reserved memory that is worth a finding, in percent.
const LEAST_GAIN: f64 = 5.0;

/// Condition: least gain in bytes; less decides about nothing on a GPU.
const LEAST_BYTES: i64 = 32 << 20;

/// Condition: sizes of large blocks that the run has at least, where rounding is advised. With fewer a cache finds its blocks again.
const LEAST_SIZES: usize = 16;

/// Reserved memory that stands before the first event, in percent of the peak, up to which the model speaks for the run.
const LITTLE_STANDING: f64 = 10.0;

/// One kind of setting.
struct Lever {
    rule: &'static str,
    setting: &'static str,
    why: &'static str,
    /// What to mind with the action.
    caution: &'static str,
}

const EXPANDABLE: &str = "expandable_segments";

const ROUNDUP: &str = "roundup_power2_divisions";

const LEVERS: &[Lever] = &[
    Lever {
        rule: "allocator-expandable-segments",
        setting: EXPANDABLE,
        why: "Free memory is in segments that requests do not fit into; an expandable segment grows in place.",
        caution: " and no max_split_size_mb",
    },
    Lever {
        rule: "allocator-max-split-size",
        setting: "max_split_size_mb",
        why: "Small requests split large free blocks, so later large requests need new segments.",
        caution: ", but not together with expandable_segments (pytorch#193400)",
    },
    Lever {
        rule: "allocator-roundup-power2",
        setting: ROUNDUP,
        why: "Sizes differ slightly from one allocation to the next, so free blocks do not fit again; rounded ones do.",
        caution: ": blocks become up to a quarter larger than requested, which the estimate contains",
    },
];

impl Lever {
    /// The best run that sets it.
    fn best<'a>(&self, what_if: &'a WhatIf) -> Option<&'a Run> {
        let is_on =
            |run: &&Run| run.setting.starts_with(self.setting) && !run.setting.ends_with("False");
        let runs = what_if.runs.iter().filter(is_on).filter(|run| run.fits);
        let runs = runs.filter(|run| self.setting != ROUNDUP || what_if.merges_sizes(run));
        runs.min_by_key(|run| (run.retries, run.peak_reserved))
    }
}

/// The advice of a device, the most bytes first. Of a run with retries the peak is the ceiling of the device, and what a setting is worth
/// is [`WhatIf::fewer_retries`].
pub(crate) fn advice(device: &str, what_if: &WhatIf) -> Vec<Finding> {
    let recorded = what_if.recorded_peak_reserved;
    if what_if.retries > 0 {
        return Vec::new();
    }
    let mut found: Vec<(i64, Finding)> = Vec::new();
    for lever in LEVERS {
        let Some(run) = lever.best(what_if).filter(|run| what_if.is_worth(run)) else { continue };
        let mut observation = format!(
            "Device {device}: under {} the recorded allocations reserve {} at most, {} less than the recorded {} ({:.1}%; an \
             estimate of a model that reproduces the recorded run).",
            run.setting,
            size(run.peak_reserved),
            size(run.saved),
            size(recorded),
            percent(run.saved, recorded)
        );
        if percent(what_if.start_reserved, recorded) >= LITTLE_STANDING {
            observation
                .push_str(" Segments that existed before the first event were kept as they are.");
        }
        if lever.setting == ROUNDUP {
            observation.push_str(&format!(
                " Its blocks above 1 MiB have {} sizes, the recorded ones {}.",
                count(run.n_sizes as u64),
                count(what_if.n_sizes as u64)
            ));
        }
        if what_if.ooms > 0 {
            observation.push_str(" It leaves out the allocations that failed.");
        }
        let finding = Finding {
            rule: lever.rule.into(),
            observation,
            hypothesis: lever.why.to_owned(),
            first: String::new(),
            action: format!("Set PYTORCH_CUDA_ALLOC_CONF={}{}.", run.setting, lever.caution),
            place: String::new(),
            gain: String::new(),
            // (The observation has the figures.)
            validation: String::new(),
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
            key: "retries",
            title: "Retries",
            unit: Unit::Count,
            help: "How often the allocator must return its cache and try again, if the driver grants no more than it did.",
            cell: |row| {
                row.retries.map_or(Cell::missing("the driver refused nothing"), Cell::Count)
            },
        },
        Column {
            key: "saved",
            title: "Change",
            unit: Unit::Text,
            help: "Against the recorded peak.",
            cell: |row| match row.fits {
                true => Cell::Text(change(row.saved).into()),
                false => "more than the driver granted".into(),
            },
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

    /// Whether what the model says of a setting holds for the run, because next to nothing was reserved before the first event.
    pub(crate) fn is_decisive(&self) -> bool {
        let standing = percent(self.start_reserved, self.recorded_peak_reserved);
        !self.runs.is_empty() && self.ooms == 0 && standing <= LITTLE_STANDING
    }

    /// What to set against retries, with the estimate of the model; `None` where no setting that it knows has fewer.
    pub(crate) fn fewer_retries(&self) -> Option<String> {
        let runs = LEVERS.iter().filter_map(|lever| Some((lever, lever.best(self)?)));
        let runs = runs.filter_map(|(lever, run)| Some((lever, run, run.retries?)));
        let (lever, run, retries) =
            runs.min_by_key(|(_, _, n)| *n).filter(|(_, _, n)| *n < self.retries)?;
        Some(format!(
            "Set PYTORCH_CUDA_ALLOC_CONF={}{}: with the {} that the driver granted, a model that reproduces the run needs {} instead of \
             {} (an estimate).",
            run.setting,
            lever.caution,
            size(self.recorded_peak_reserved),
            plural(retries, "retry", "retries"),
            count(self.retries)
        ))
    }

    /// Whether a setting makes one size of many: at most half as many are left.
    fn merges_sizes(&self, run: &Run) -> bool {
        self.n_sizes >= LEAST_SIZES && run.n_sizes.saturating_mul(2) <= self.n_sizes
    }

    /// The run with expandable segments, where they are off.
    pub(crate) fn expandable(&self) -> Option<&Run> {
        let mut runs = self.runs.iter().filter(|run| run.setting.starts_with(EXPANDABLE));
        runs.find(|run| run.fits && !run.setting.ends_with("False"))
    }

    /// The figures as a chapter; `None` where there are none. Documents print settings with fewer retries: what another one saves is a
    /// finding.
    pub(crate) fn section(&self, device: &str) -> Option<Section> {
        if self.runs.is_empty() {
            return None;
        }
        let mut section = Section::new("what-if", "");
        section.id = format!("what-if-{device}").into();
        section.title = format!("Device {device}: other allocator settings").into();
        // (With a limit the peak is that limit.)
        let is_better = |run: &Run| run.fits && run.retries.is_some_and(|n| n < self.retries);
        let is_printed: Vec<bool> = self.runs.iter().map(is_better).collect();
        let is_told = is_printed.contains(&true);
        let table = Table::of("what-if", "Settings and what they reserve", &self.runs);
        section.tables.push(table.only_on_page(!is_told).printing(is_printed));
        if !is_told {
            return Some(section);
        }
        let settings = if self.settings_recorded {
            "the recorded settings"
        } else {
            "default settings (none are recorded)"
        };
        let mut text = format!(
            "Estimates of a model of the allocator: under {settings} it places every block at its recorded address and reserves {} at \
             most, as the run did.",
            size(self.recorded_peak_reserved)
        );
        if self.start_reserved > 0 {
            text.push_str(&format!(
                " The {} that were reserved before the first event stay as they are under every setting.",
                size(self.start_reserved)
            ));
        }
        section.intro.push(text);
        if let Some(refused) = self.refused {
            section.intro.push(format!(
                "The driver granted {} bytes in all at most and refused {}. Each setting is replayed with the limit of what it granted: an \
                 allocation beyond it is a retry.",
                count(self.recorded_peak_reserved.unsigned_abs()),
                count(refused.unsigned_abs())
            ));
        }
        Some(section)
    }

    /// Whether what a setting saves decides about anything.
    fn is_worth(&self, run: &Run) -> bool {
        run.saved >= LEAST_BYTES && percent(run.saved, self.recorded_peak_reserved) >= LEAST_GAIN
    }
}
