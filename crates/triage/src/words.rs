//! Labels and meanings of the fixed words in the tables of triage: what the page and Markdown show for an id of the artifacts.

use report::{Cell, Word};

use crate::{Confidence, FuseStatus, Note, Risk, Stage, Verdict};

/// The status of a fuse pattern by its id.
#[must_use]
pub fn fuse_status(id: &str) -> Cell<'_> {
    let known = FuseStatus::EVERY.into_iter().find(|status| status.id() == id);
    known.map_or_else(|| id.into(), |status| of_fuse_status(status).into())
}

/// The status of a fuse pattern.
pub(crate) fn of_fuse_status(status: FuseStatus) -> Word {
    let (label, meaning) = match status {
        FuseStatus::AlreadyFused => ("already fused", "the fused kernel runs"),
        FuseStatus::Opportunity => ("not fused", "its parts run next to each other"),
        FuseStatus::Partial => (
            "partly fused",
            "the fused kernel runs, and in other places its parts run next to each other",
        ),
    };
    Word { id: status.id(), label, meaning }
}

/// A verdict of the overlap table.
pub(crate) fn overlap_verdict(verdict: Verdict) -> Word {
    let (label, meaning) = match verdict {
        Verdict::Headroom => ("exposed", "most of it is exposed"),
        Verdict::LowRoiHidden => ("low return: already hidden", "other work hides most of it"),
        Verdict::Observe => ("observe", "among the largest of the other kernels"),
    };
    Word { id: verdict.id(), label, meaning }
}

/// A dependency risk of the overlap table.
pub(crate) fn dependency_risk(risk: Risk) -> Word {
    let meaning = match risk {
        Risk::High => {
            "at least half of the instances have a close neighbour that looks dependent, or an event wait"
        }
        Risk::Unclear => "not determined for at least half of the instances",
        Risk::Low => "no sign of a dependency",
    };
    Word { id: risk.id(), label: risk.id(), meaning }
}

/// A stage by its id.
#[must_use]
pub fn stage(id: &str) -> Cell<'_> {
    let known = Stage::EVERY.into_iter().find(|stage| stage.id() == id);
    known.map_or_else(|| id.into(), |stage| of_stage(Some(stage)))
}

/// A stage; empty where a row sums all of them.
pub(crate) fn of_stage(stage: Option<Stage>) -> Cell<'static> {
    stage.map_or_else(
        || "".into(),
        |stage| Word { id: stage.id(), label: stage.title(), meaning: "" }.into(),
    )
}

/// The confidence of a place.
pub(crate) fn confidence(confidence: Confidence) -> Cell<'static> {
    let (id, label) = (confidence.id(), confidence.label());
    Word { id, label, meaning: confidence.in_words() }.into()
}

/// Remarks in words; their tokens stay in raw copies.
pub(crate) fn notes(notes: &[Note]) -> Cell<'static> {
    let join = |text: fn(&Note) -> String| notes.iter().map(text).collect::<Vec<_>>().join("; ");
    Cell::Word {
        id: join(Note::to_string).into(),
        label: join(Note::in_words).into(),
        meaning: "".into(),
    }
}

/// A text with its first letter in upper case.
pub(crate) fn sentence_case(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_of_an_artifact_has_a_label() {
        assert_eq!(stage("all").show(), "no stage");
        assert_eq!(stage("extend").show(), "extend/prefill");
        assert_eq!(stage("extend").raw(), "extend");
        for one in Confidence::EVERY {
            assert!(confidence(one).meaning().is_some(), "{}", one.id());
        }
        assert_eq!(fuse_status("already_fused").show(), "already fused");
        assert_eq!(fuse_status("partial").raw(), "partial");
        assert_eq!(fuse_status("unheard_of"), "unheard_of".into());
    }

    fn unknown_shown<R: report::Row>() -> Vec<&'static str> {
        let is_column = |key: &&&str| R::COLUMNS.iter().any(|column| column.key == **key);
        R::SHOWN.iter().filter(|key| !is_column(key)).copied().collect()
    }

    #[test]
    fn the_columns_that_the_page_shows_first_are_columns() {
        use crate::{FuseRow, KernelLine, OverlapRow, StageRow};
        for unknown in [
            unknown_shown::<KernelLine>(),
            unknown_shown::<StageRow>(),
            unknown_shown::<OverlapRow>(),
            unknown_shown::<FuseRow>(),
        ] {
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }

    #[test]
    fn remarks_read_as_words_and_keep_their_ids() {
        let cell = notes(&[Note::GraphLaunched, Note::Locations(3)]);
        assert_eq!(cell.show(), "launched by a graph; Python functions: 3");
        assert_eq!(cell.raw(), "graph-launched; locations:3");
    }
}
