//! The content of file cards: distinguishable names, the health of each file, and the cards that match a filter.

use kinetoscope::report::units;

use crate::protocol::{ProblemCard, Severity};
use crate::shared::Shared;
use crate::state::{FileEntry, Phase};
use kinetoscope::trace::sort_by_key;

/// From this many files on, the cards can be filtered.
pub const MANY_FILES: usize = 8;

/// Characters at the end of a name that stay in sight when nothing else tells names apart.
const TAIL_CHARS: usize = 18;

/// Common beginnings shorter than this fit on a card.
const SHORT_PREFIX: usize = 12;

/// A shorter beginning is left whole: a card has room for it.
const SHORTEST_HEAD: usize = 7;

/// A name in two parts. The first one is shortened where the card is too narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitName {
    /// The beginning, which other names may share.
    pub head: String,
    /// The rest, which begins at or before the first difference to any name with the same beginning.
    pub tail: String,
}

/// Splits each name so that the difference to the names like it is in its tail.
#[must_use]
pub fn split_names(names: &[&str]) -> Vec<SplitName> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    sort_by_key(&mut order, |at| names.get(*at));
    let mut shared = vec![0_usize; names.len()];
    // Of all names, a neighbour in the order has the longest common beginning.
    for pair in order.windows(2) {
        let [a, b] = pair else { continue };
        let (Some(left), Some(right)) = (names.get(*a), names.get(*b)) else { continue };
        if left == right {
            continue;
        }
        let n = common_chars(left, right);
        for at in [a, b] {
            if let Some(shared) = shared.get_mut(*at) {
                *shared = n.max(*shared);
            }
        }
    }
    names.iter().zip(shared).map(|(name, shared)| split(name, shared)).collect()
}

fn common_chars(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// `shared`: characters that another name begins with, too.
fn split(name: &str, shared: usize) -> SplitName {
    let chars: Vec<char> = name.chars().collect();
    let end = chars.len().saturating_sub(TAIL_CHARS);
    let mut at = if shared >= SHORT_PREFIX { shared.min(end) } else { end };
    // Whole words: back to the last separator, if it is near.
    let near = chars.get(at.saturating_sub(SHORT_PREFIX)..at).unwrap_or_default();
    if let Some(back) = near.iter().rev().position(|char| "-_. /".contains(*char)) {
        at -= back;
    }
    if at < SHORTEST_HEAD {
        at = 0;
    }
    let (head, tail) = chars.split_at(at.min(chars.len()));
    SplitName { head: head.iter().collect(), tail: tail.iter().collect() }
}

/// Whether a file before this one has the same name and size: probably the same file.
#[must_use]
pub fn is_repeated(files: &[Shared<FileEntry>], at: usize) -> bool {
    let Some(file) = files.get(at) else { return false };
    let before = files.iter().take(at);
    before.into_iter().any(|other| (&other.name, other.size) == (&file.name, file.size))
}

/// The health of a file, in one badge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing to repair.
    Good,
    /// Something to know, or to repair.
    Warning,
    /// Data is missing.
    Bad,
}

/// The text of a file's badge; `None` before the file is checked.
#[must_use]
pub fn health(file: &FileEntry) -> Option<(String, Mood)> {
    let opened = file.opened.as_ref()?;
    let plan = file.plan.as_ref()?;
    let is_cut = |problem: &ProblemCard| {
        matches!(
            &*problem.kind,
            "gzip-truncated" | "truncated" | "unclosed-array" | "unclosed-object"
        )
    };
    if opened.problems.iter().any(is_cut) {
        return Some(("Truncated".to_owned(), Mood::Bad));
    }
    if plan.drops_before > 0 {
        let text = match plan.drops_before {
            1 => "1 crossing slice".to_owned(),
            n => format!("{} crossing slices", units::count(n)),
        };
        return Some((text, Mood::Warning));
    }
    let worse = opened.problems.iter().filter(|problem| problem.severity > Severity::Note);
    let n = worse.count() as u64;
    if n > 0 {
        let text = units::plural(n, "kind of problem", "kinds of problems");
        return Some((text, Mood::Warning));
    }
    if plan.damaged {
        return Some(("Repair available".to_owned(), Mood::Warning));
    }
    Some(("No problems".to_owned(), Mood::Good))
}

/// Which cards are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardState {
    /// All of them.
    #[default]
    All,
    /// Those that could not be read or were stopped.
    Failed,
    /// Those that are being read.
    Reading,
    /// Those that are read.
    Ready,
}

impl CardState {
    /// All, in the order of the buttons.
    pub const EVERY: [Self; 4] = [Self::All, Self::Failed, Self::Reading, Self::Ready];

    /// Name in tests.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Failed => "failed",
            Self::Reading => "reading",
            Self::Ready => "ready",
        }
    }

    /// What a person reads.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Failed => "Failed",
            Self::Reading => "Reading",
            Self::Ready => "Ready",
        }
    }

    /// Whether the filter keeps a file.
    #[must_use]
    pub fn keeps(self, file: &FileEntry) -> bool {
        let stopped = matches!(file.phase, Phase::Failed(_) | Phase::Cancelled);
        match self {
            Self::All => true,
            Self::Failed => stopped,
            Self::Reading => matches!(file.phase, Phase::Working(_)),
            Self::Ready => matches!(file.phase, Phase::Ready),
        }
    }
}

/// Whether a card stays under a filter of its name and state.
#[must_use]
pub fn keeps(file: &FileEntry, state: CardState, text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    state.keeps(file) && (text.is_empty() || file.name.to_ascii_lowercase().contains(&text))
}

/// Whether the selected file has GPU slices. Before it is analysed that is not known, and assumed.
#[must_use]
pub fn has_gpu(file: &FileEntry) -> bool {
    file.report.as_ref().is_none_or(|report| report.busy_pct.is_some())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::protocol::{Failure, JobId, Opened, Plan};

    fn tails(names: &[&str]) -> Vec<String> {
        split_names(names).into_iter().map(|name| name.tail).collect()
    }

    #[test]
    fn a_name_keeps_its_end_in_sight() {
        assert_eq!(tails(&["short.json"]), ["short.json"]);
        assert_eq!(
            tails(&["01_pdl_overlap.json"]),
            ["01_pdl_overlap.json"],
            "no gap after one letter"
        );
        let name = "mi300_resnet_training_run_of_today_rank0.pt.trace.json.gz";
        let [split] = &split_names(&[name])[..] else { panic!("one name") };
        assert_eq!(format!("{}{}", split.head, split.tail), name);
        assert!(split.tail.ends_with(".trace.json.gz") && !split.head.is_empty());
    }

    #[test]
    fn names_with_a_common_beginning_show_where_they_differ() {
        let names = [
            "2026-01-07_host-a_tp8_llama_rank0_decode_step_of_the_long_benchmark.json.gz",
            "2026-01-07_host-a_tp8_llama_rank1_decode_step_of_the_long_benchmark.json.gz",
        ];
        assert_eq!(
            tails(&names),
            [
                "rank0_decode_step_of_the_long_benchmark.json.gz",
                "rank1_decode_step_of_the_long_benchmark.json.gz"
            ]
        );
    }

    #[test]
    fn every_name_survives_the_split_whatever_its_letters() {
        for names in [&["Ärger-Ärger-Ärger-1.json", "Ärger-Ärger-Ärger-2.json"][..], &["", "", "a"]]
        {
            for (name, split) in names.iter().zip(split_names(names)) {
                assert_eq!(format!("{}{}", split.head, split.tail), *name);
            }
        }
    }

    fn file(name: &str, size: u64) -> FileEntry {
        FileEntry::new(JobId(1), name.to_owned(), size)
    }

    #[test]
    fn the_second_of_two_equal_files_is_the_repeated_one() {
        let files: Vec<Shared<FileEntry>> =
            [file("a", 1), file("a", 2), file("a", 1)].into_iter().map(Shared::new).collect();
        let repeated: Vec<bool> = (0..4).map(|at| is_repeated(&files, at)).collect();
        assert_eq!(repeated, [false, false, true, false]);
    }

    #[test]
    fn the_badge_names_the_worst() {
        let problem = |kind: &str, severity| ProblemCard {
            kind: kind.to_owned(),
            severity,
            ..ProblemCard::default()
        };
        let of = |problems: Vec<ProblemCard>, drops_before, damaged| {
            let mut file = file("a", 1);
            assert_eq!(health(&file), None, "nothing is checked yet");
            file.opened = Some(Shared::new(Opened { problems, ..Opened::default() }));
            file.plan = Some(Shared::new(Plan { drops_before, damaged, ..Plan::default() }));
            health(&file).map(|(text, _)| text).unwrap()
        };
        assert_eq!(of(vec![], 0, false), "No problems");
        assert_eq!(of(vec![problem("sub-ns-digits", Severity::Note)], 0, false), "No problems");
        assert_eq!(of(vec![], 0, true), "Repair available");
        assert_eq!(of(vec![], 42, true), "42 crossing slices");
        assert_eq!(of(vec![problem("truncated", Severity::Error)], 42, true), "Truncated");
        let junk = problem("junk-between-events", Severity::Error);
        assert_eq!(of(vec![junk], 0, true), "1 kind of problem");
    }

    #[test]
    fn a_filter_keeps_by_name_and_state() {
        let mut failed = file("Rank0.json", 1);
        failed.phase = Phase::Failed(Rc::new(Failure::default()));
        assert!(keeps(&failed, CardState::Failed, " rank"));
        assert!(keeps(&failed, CardState::All, ""));
        assert!(!keeps(&failed, CardState::Ready, ""));
        assert!(!keeps(&failed, CardState::Failed, "rank1"));
    }
}
