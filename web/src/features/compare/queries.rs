//! The content of the Compare view.

use kinetoscope::report::{Cell, Table};

use crate::features::several::queries as roles;
use crate::protocol::{Comparison, JobId};
use crate::state::{Phase, Remote, Role, State};

/// A file that another can be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its job.
    pub job: JobId,
    /// Its name.
    pub name: String,
}

/// Why there is a comparison, or why not yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// No other trace is open.
    Alone,
    /// None is chosen.
    Unchosen,
    /// A or B is still being read.
    Waiting(String),
    /// B cannot be read, or was stopped.
    Gone(String),
    /// Asked for, or there.
    Asked(Remote<Comparison>),
}

/// The comparison of a file, as far as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// What it can be compared with.
    pub others: Vec<Other>,
    /// What it is compared with.
    pub with: Option<JobId>,
    /// How far that is.
    pub standing: Standing,
}

/// The comparison of the file that is shown.
#[must_use]
pub fn compare(state: &State, job: JobId) -> Compare {
    let own = |other: &JobId| !matches!(roles::role(state, *other), Role::Companion(..));
    let others: Vec<Other> = state
        .files
        .iter()
        .filter(|file| file.job != job && file.has_views() && own(&file.job))
        .map(|file| Other { job: file.job, name: file.name.clone() })
        .collect();
    let with = roles::baseline(state, job);
    let standing = match with.and_then(|with| state.file(with)) {
        None if others.is_empty() => Standing::Alone,
        None => Standing::Unchosen,
        Some(other) if matches!(other.phase, Phase::Failed(_) | Phase::Cancelled) => {
            Standing::Gone(other.name.clone())
        }
        Some(other) => match state.file(job).and_then(|file| file.comparison.clone()) {
            Some((of, found)) if of == other.job && found != Remote::Idle => Standing::Asked(found),
            _ => Standing::Waiting(other.name.clone()),
        },
    };
    Compare { others, with, standing }
}

/// A fact that is not the same in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Its label.
    pub fact: String,
    /// Whether it decides the verdict.
    pub decides: bool,
    /// A's value.
    pub a: Cell<'static>,
    /// B's value.
    pub b: Cell<'static>,
}

/// The facts that differ, those that decide first, and the labels of those that the verdict lacks.
#[must_use]
pub fn reasons(table: &Table) -> (Vec<Reason>, Vec<String>) {
    let at = |key: &str| table.column(key);
    let (Some(key), Some(result), Some(decides), Some(a), Some(b)) =
        (at("key"), at("result"), at("decides"), at("a"), at("b"))
    else {
        return Default::default();
    };
    let result_of = |row: usize| table.cell(row, result).map(|cell| cell.raw());
    let decides = |row: usize| table.cell(row, decides) == Some(Cell::Flag(true));
    let reason = |row: usize| {
        (result_of(row)? == "different").then_some(Reason {
            fact: table.cell(row, key)?.show(),
            decides: decides(row),
            a: table.cell(row, a)?.into_owned(),
            b: table.cell(row, b)?.into_owned(),
        })
    };
    let is_missed = |row: &usize| result_of(*row).as_deref() == Some("missing") && decides(*row);
    let rows = 0..table.n_rows();
    let missed = rows.clone().filter(is_missed);
    let missed = missed.filter_map(|row| Some(table.cell(row, key)?.show())).collect();
    (rows.filter_map(reason).collect(), missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinetoscope::{Guard, GuardRow, guard};

    #[test]
    fn what_differs_comes_with_its_values_and_what_is_missed_by_name() {
        let run = |arch: &str, device: &str| {
            let text = format!(r#"{{"observed_arch":"{arch}","device":{{"name":"{device}"}}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let Guard { rows, .. } = guard(&run("gfx942", "MI300X"), &run("sm_90", "H100"));
        let rows: &[GuardRow] = &rows;
        let (reasons, missed) = reasons(&Table::of("comparability", "", rows));
        let shown: Vec<(&str, bool, String)> = reasons
            .iter()
            .map(|reason| (reason.fact.as_str(), reason.decides, reason.a.raw()))
            .collect();
        let expected = [
            ("GPU architecture", true, "gfx942".to_owned()),
            ("GPU model", false, "MI300X".to_owned()),
        ];
        assert_eq!(shown, expected);
        assert!(missed.iter().any(|fact| fact == "container image"), "{missed:?}");
        assert!(!missed.iter().any(|fact| fact == "world size"), "it decides nothing");
    }
}
