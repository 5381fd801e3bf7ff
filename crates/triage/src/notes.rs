//! Remarks on the origin of a kernel's values: tokens for programs, words for people.

use std::fmt;

use serde::{Serialize, Serializer};

/// A remark on a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A graph launched it.
    GraphLaunched,
    /// A graph launched it whose names do not belong to their times.
    NamesDisplaced,
    /// So many of its launches are from before profiling started.
    LaunchedBeforeWindow(u64),
    /// Its category is that of its ops.
    CategoryByOp,
    /// Its Python line is that of this op of the forward pass.
    LineOfForwardOp(String),
    /// So many Python lines launched it.
    Locations(u64),
    /// It is the matrix product of a convolution.
    GemmOfConvolution,
    /// The launch configs of so many of its launches are those of the graph's capture.
    LaunchFromCapture(u64),
    /// Several kernels have no median.
    MedianNotDefined,
}

impl Note {
    /// The word for it in artifacts.
    fn id(&self) -> &'static str {
        match self {
            Self::GraphLaunched => "graph-launched",
            Self::NamesDisplaced => "names-displaced",
            Self::LaunchedBeforeWindow(_) => "launched-before-window",
            Self::CategoryByOp => "category-by-op",
            Self::LineOfForwardOp(_) => "line-of-forward-op",
            Self::Locations(_) => "locations",
            Self::GemmOfConvolution => "gemm-of-convolution",
            Self::LaunchFromCapture(_) => "launch-from-capture",
            Self::MedianNotDefined => "p50-not-defined",
        }
    }

    /// The words for it in tables.
    fn label(&self) -> &'static str {
        match self {
            Self::GraphLaunched => "launched by a graph",
            Self::NamesDisplaced => "name and times do not belong together",
            Self::LaunchedBeforeWindow(_) => "launched before profiling started",
            Self::CategoryByOp => "category from its op",
            Self::LineOfForwardOp(_) => "forward op",
            Self::Locations(_) => "Python functions",
            Self::GemmOfConvolution => "GEMM of a convolution",
            Self::LaunchFromCapture(_) => "launch configs from the capture",
            Self::MedianNotDefined => "no median of several kernels",
        }
    }

    /// What is counted or named, if anything is.
    fn value(&self) -> Option<String> {
        match self {
            Self::LaunchedBeforeWindow(n) | Self::Locations(n) | Self::LaunchFromCapture(n) => {
                Some(n.to_string())
            }
            Self::LineOfForwardOp(op) => Some(op.clone()),
            Self::GraphLaunched
            | Self::NamesDisplaced
            | Self::CategoryByOp
            | Self::GemmOfConvolution
            | Self::MedianNotDefined => None,
        }
    }

    /// The remark for a person: `Python functions: 3`.
    pub(crate) fn in_words(&self) -> String {
        let label = self.label();
        self.value().map_or_else(|| label.to_owned(), |value| format!("{label}: {value}"))
    }
}

/// The token of artifacts: its id, with `:` and its value if it has one.
impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.id())?;
        self.value().map_or(Ok(()), |value| write!(out, ":{value}"))
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_reads_as_words_and_keeps_its_token() {
        for (note, token, words) in [
            (Note::GraphLaunched, "graph-launched", "launched by a graph"),
            (Note::Locations(3), "locations:3", "Python functions: 3"),
            (
                Note::LineOfForwardOp("aten::mm".to_owned()),
                "line-of-forward-op:aten::mm",
                "forward op: aten::mm",
            ),
        ] {
            assert_eq!((note.to_string(), note.in_words()), (token.to_owned(), words.to_owned()));
        }
    }
}
