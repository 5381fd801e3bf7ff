//! What Perfetto makes of defects in a file's text, as opposed to its times and nesting.
//!
//! The importer's model sees decoded events; whether the importer ever gets to see them is decided here,
//! by the problems that the decoder met. Measured with trace processor v55.3.

use decode::{Decoded, ProblemKind};

/// What the text of a file does to its import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextFaults {
    /// Why Perfetto does not read the file, or not to its end. Certain.
    pub refused: Option<&'static str>,
    /// What depends on where in the file the defect is.
    pub risks: Vec<&'static str>,
}

impl TextFaults {
    pub fn of(decoded: &Decoded) -> Self {
        let has = |kind| decoded.problems.iter().any(|problem| problem.kind == kind);
        let refused: &[(ProblemKind, &str)] = &[
            (ProblemKind::GzipTruncated, "its gzip data is cut short (\"GZIP stream incomplete\")"),
            (ProblemKind::GzipCorrupt, "its gzip data is damaged"),
            (ProblemKind::ExtraComma, "two commas in a row: the whole file is rejected"),
            (
                ProblemKind::Junk,
                "something between the events is no event: the whole file is rejected",
            ),
            (ProblemKind::Malformed, "an event is no readable JSON"),
            (ProblemKind::OddNumber, "a number is no JSON number: the whole file is rejected"),
        ];
        let risks: &[(ProblemKind, &str)] = &[
            (
                ProblemKind::SurrogateEscape,
                "a surrogate escape: in a name the whole file is rejected, in arguments these and all later \
                 ones of the event are lost without a word",
            ),
            (
                ProblemKind::NonFinite,
                "NaN or Infinity: as a time the whole file is rejected, in arguments these and all later \
                 ones of the event are lost without a word",
            ),
            (
                ProblemKind::ControlCharacter,
                "a raw control character: in a top-level value the whole file is rejected",
            ),
            (ProblemKind::WrongBracket, "a wrong bracket: the arguments it stands in are lost"),
            (ProblemKind::Concatenated, "several documents: only the first is shown"),
            (ProblemKind::GzipCrc, "a wrong gzip checksum"),
            (ProblemKind::GzipLength, "a wrong gzip length"),
            (ProblemKind::FrameJunk, "text beside the events that is no key and value"),
        ];
        Self {
            refused: refused.iter().find(|(kind, _)| has(*kind)).map(|(_, what)| *what),
            risks: risks.iter().filter(|(kind, _)| has(*kind)).map(|(_, what)| *what).collect(),
        }
    }

    /// Whether the text alone does no harm.
    pub fn is_none(&self) -> bool {
        self.refused.is_none() && self.risks.is_empty()
    }
}
