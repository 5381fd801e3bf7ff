//! What sets code up: compilers, builds of extensions, and the imports of Python.

use host::{HostSlice, Slices};
use timeline::intervals::{Interval, both, length, union, without};

use super::Device;

/// What works on code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// The compiler of `torch.compile`.
    TorchCompile,
    /// A graph is captured, or that is prepared.
    Captures,
    /// TorchScript.
    TorchScript,
    /// PyTorch builds an extension, or finds that it is built.
    Extensions,
    /// The interpreter imports modules.
    Imports,
}

impl Sets {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::TorchCompile, Self::Captures, Self::TorchScript, Self::Extensions, Self::Imports];

    /// What it does, with a subject.
    #[must_use]
    pub fn clause(self) -> &'static str {
        match self {
            Self::TorchCompile => "torch.compile compiles",
            Self::Captures => "graphs are prepared and captured",
            Self::TorchScript => "TorchScript compiles",
            Self::Extensions => "PyTorch builds or loads extensions",
            Self::Imports => "Python imports modules",
        }
    }

    /// The same at the begin of a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Captures => "Graphs are prepared and captured",
            // (Names of programs keep their letters.)
            other => other.clause(),
        }
    }
}

/// When each of them works, on any thread.
pub(super) struct Times([Vec<Interval>; Sets::ALL.len()]);

impl Times {
    pub(super) fn of(slices: &Slices<'_>) -> Self {
        Self(Sets::ALL.map(|sets| match sets {
            Sets::TorchCompile => slices.compiling(),
            Sets::Captures => slices.capturing(),
            Sets::TorchScript => timeline::torchscript::compiling(slices.trace),
            Sets::Extensions => frames(slices, dialect::python::builds),
            Sets::Imports => importing(slices),
        }))
    }

    /// When one of them works, sorted and disjoint.
    pub(super) fn get(&self, sets: Sets) -> &[Interval] {
        &self.0[sets as usize]
    }

    /// All their times.
    pub(super) fn all(&self) -> impl Iterator<Item = Interval> {
        self.0.iter().flatten().copied()
    }
}

/// When modules are imported. (The profiler's own imports are its time.)
fn importing(slices: &Slices<'_>) -> Vec<Interval> {
    let of = |is| frames(slices, is);
    without(&of(dialect::python::imports), &of(dialect::kineto::is_of_profiler))
}

/// When frames run of whose names that holds.
fn frames(slices: &Slices<'_>, is: fn(&str) -> bool) -> Vec<Interval> {
    let names = slices.trace.strings.marked(&is);
    let own = slices.frames.slices.iter();
    let own = own.filter(|frame| names[slices.trace.name(frame.row).0 as usize]);
    union(own.map(HostSlice::interval).collect())
}

impl Device<'_> {
    /// What works for half of these times or more, if one of them does, and whether it works for nearly all of them.
    #[must_use]
    pub(crate) fn sets_up_most_of(&self, times: &[Interval]) -> Option<(Sets, bool)> {
        let ns = length(times);
        let most = Sets::ALL
            .map(|sets| (length(&both(times, self.facts.set_up.get(sets))), sets))
            .into_iter()
            .max_by_key(|(own, _)| *own);
        let (own, sets) = most.filter(|(own, _)| ns > 0 && own.saturating_mul(2) >= ns)?;
        Some((sets, own.saturating_mul(100) >= ns.saturating_mul(99)))
    }
}
