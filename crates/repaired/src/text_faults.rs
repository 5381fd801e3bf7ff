//! What Perfetto makes of defects in a file's text, as opposed to its times and nesting.
//!
//! Whether the importer reads the JSON to its end is in the prediction. Here is what the prediction does not cover: the
//! gzip frame, and text that is lost without an error. Measured with trace processor v55.3.

use decode::{Decoded, ProblemKind};

/// What the text of a file does to its import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextFaults {
    /// Why Perfetto does not read the compressed file to its end.
    pub refused: Option<&'static str>,
    /// What Perfetto loses without an error.
    pub risks: Vec<&'static str>,
    /// The file has events of phases that Perfetto does not show, also after the repair.
    pub ignored_phases: bool,
    /// Places that are not readable, of one event or several: the repaired file has none of them.
    pub unreadable: u64,
}

impl TextFaults {
    pub(crate) fn of(decoded: &Decoded) -> Self {
        let has = |kind| decoded.problems.iter().any(|problem| problem.kind == kind);
        let refused: &[(ProblemKind, &str)] = &[
            (ProblemKind::GzipTruncated, "its gzip data is truncated (\"GZIP stream incomplete\")"),
            (ProblemKind::GzipCorrupt, "its gzip data is damaged"),
        ];
        let risks: &[(ProblemKind, &str)] = &[
            (
                ProblemKind::SurrogateEscape,
                "a surrogate escape; if it is in an argument, this and all later arguments of the event are lost",
            ),
            (
                ProblemKind::NonFinite,
                "NaN or Infinity; if it is in an argument, this and all later arguments of the event are lost",
            ),
            (
                ProblemKind::OddNumber,
                "a number that is not valid JSON; the arguments of its event are lost",
            ),
            (ProblemKind::BadEscape, "a backslash that does not start an escape; it is lost"),
            (ProblemKind::WrongBracket, "a wrong bracket; the arguments of its event are lost"),
            (ProblemKind::Concatenated, "several documents; only the first is shown"),
            (ProblemKind::GzipCrc, "a wrong gzip checksum"),
            (ProblemKind::GzipLength, "a wrong gzip length"),
            (ProblemKind::FrameJunk, "text outside the events that is not a key and value"),
            (ProblemKind::IgnoredPhase, "events of phases that Perfetto does not show"),
        ];
        let of_kind = |kind| decoded.problems.iter().filter(move |problem| problem.kind == kind);
        Self {
            unreadable: of_kind(ProblemKind::Malformed).map(|problem| problem.count).sum(),
            refused: refused.iter().find(|(kind, _)| has(*kind)).map(|(_, what)| *what),
            ignored_phases: has(ProblemKind::IgnoredPhase),
            risks: risks.iter().filter(|(kind, _)| has(*kind)).map(|(_, what)| *what).collect(),
        }
    }

    /// Whether the text alone does no harm.
    pub(crate) fn is_none(&self) -> bool {
        self.refused.is_none() && self.risks.is_empty()
    }
}
