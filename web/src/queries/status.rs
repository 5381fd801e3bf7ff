//! The line at the foot of the page.

use kinetoscope::report::units;

use crate::features::aside::queries as aside;
use crate::protocol::{Progress, Stage};
use crate::state::{FileEntry, Phase};

/// How much of a file is read, in percent of its bytes on the disk.
#[must_use]
pub fn percent_read(progress: &Progress) -> f64 {
    if progress.total == 0 {
        return 0.0;
    }
    (progress.done as f64 / progress.total as f64 * 100.0).min(100.0)
}

/// "Reading 38%, 1.5 of 4.0 MB, 91 234 events".
#[must_use]
pub fn progress_text(progress: &Progress) -> String {
    let label = progress.stage.label();
    match progress.stage {
        stage if is_counted(progress, stage) => {
            let mut text = format!(
                "{label} {}%, {} of {}",
                percent_read(progress) as u8,
                units::file_bytes(progress.done),
                units::file_bytes(progress.total)
            );
            if progress.n_events > 0 {
                text.push_str(&format!(
                    ", {}",
                    units::plural(progress.n_events, "event", "events")
                ));
            }
            text
        }
        _ => format!("{label}…"),
    }
}

/// Whether a stage reads the file, so that its bytes say how far it is.
fn is_counted(progress: &Progress, stage: Stage) -> bool {
    match stage {
        Stage::Reading | Stage::Repairing | Stage::Digesting | Stage::ReadingCompanion(_) => true,
        Stage::Triaging => progress.total > 0 && progress.done < progress.total,
        Stage::Starting | Stage::Analyzing | Stage::Planning | Stage::Packing => false,
    }
}

/// What the card of a file says under its name.
#[must_use]
pub fn card_text(file: &FileEntry) -> String {
    if let Some(progress) = file.progress() {
        return progress_text(&progress);
    }
    match &file.phase {
        Phase::Cancelled => "Stopped".to_owned(),
        Phase::Asking => "Waits for you: how much of it is read?".to_owned(),
        Phase::Failed(failure) => failure.title.clone(),
        Phase::Working(_) | Phase::Ready => {
            if let Some(aside) = &file.aside {
                let (title, what) = aside::title(aside);
                return [title, &what, &units::file_bytes(file.size)].join(" · ");
            }
            let report = file.report.as_ref();
            let platform =
                report.map(|report| report.platform.clone()).filter(|text| !text.is_empty());
            let rank = report.and_then(|report| report.rank).map(|rank| format!("rank {rank}"));
            let size = Some(units::file_bytes(file.size));
            [platform, rank, size].into_iter().flatten().collect::<Vec<_>>().join(" · ")
        }
    }
}

/// What the status bar says about the selected file; spoken by screen readers, so it changes at the ends of
/// stages and in steps of ten percent only.
#[must_use]
pub fn spoken_text(file: &FileEntry) -> String {
    let name = &file.name;
    if let Some(repaired) = file.repair.ready()
        && !file.is_busy()
    {
        return format!("{}: written, {}", repaired.file_name, units::file_bytes(repaired.bytes));
    }
    match (file.progress(), &file.phase) {
        (Some(progress), _) if is_counted(&progress, progress.stage) => {
            let tens = percent_read(&progress) as u8 / 10 * 10;
            format!("{name}: {} {tens}%", progress.stage.label())
        }
        (Some(progress), _) => format!("{name}: {}…", progress.stage.label()),
        (None, Phase::Failed(failure)) => format!("{name}: {}", failure.title),
        (None, Phase::Cancelled) => format!("{name}: stopped"),
        (None, Phase::Asking) => format!("{name}: a large snapshot; how much of it is read?"),
        (None, Phase::Working(_) | Phase::Ready) => {
            if let Some(aside) = &file.aside {
                let (title, what) = aside::title(aside);
                return format!("{name}: {title}, {what}");
            }
            let opened = file.opened.as_ref();
            let n_events = opened.map_or(0, |opened| opened.n_events);
            let n_problems = opened.map_or(0, |opened| opened.problems.len() as u64);
            let mut text = format!("{name}: ready, {}", units::plural(n_events, "event", "events"));
            if n_problems > 0 {
                text.push_str(&format!(
                    ", {}",
                    units::plural(n_problems, "kind of problem", "kinds of problems")
                ));
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::JobId;

    #[test]
    fn progress_counts_bytes_of_the_file() {
        let mut file = FileEntry::new(JobId(1), "a.json.gz".into(), 4_000_000);
        assert_eq!(card_text(&file), "Starting…");
        let progress =
            Progress { stage: Stage::Reading, done: 1_520_000, total: 4_000_000, n_events: 91_234 };
        file.phase = Phase::Working(progress);
        assert_eq!(card_text(&file), "Reading 38%, 1.52 MB of 4.00 MB, 91\u{2009}234 events");
        assert_eq!(spoken_text(&file), "a.json.gz: Reading 30%");
    }

    #[test]
    fn an_empty_file_is_at_nought_percent() {
        assert!(percent_read(&Progress::default()).abs() < f64::EPSILON);
    }
}
