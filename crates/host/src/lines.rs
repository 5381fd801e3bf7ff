//! Lines of Python: of the frames around a moment, the one that says most.

use catalog::python::{FrameRank, Roots, frame, frame_parts, without_address};
use trace::{StringId, Trace};

use crate::by_name::ByName;
use crate::slices::Nested;

/// The lines of a trace's frames.
pub(crate) struct Lines<'a> {
    trace: &'a Trace,
    roots: Roots,
    /// By name: how much it says. Read once.
    ranks: ByName<Option<FrameRank>>,
}

impl<'a> Lines<'a> {
    /// The lines of a trace.
    pub(crate) fn of(trace: &'a Trace) -> Self {
        let names = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
        Self { trace, roots: Roots::of_frames(names), ranks: ByName::new(trace) }
    }

    /// The name of the frame that says most of frame `at` and those around it; of equal ones the innermost. `None` if none says
    /// anything.
    pub(crate) fn best(&mut self, frames: &Nested, at: usize) -> Option<StringId> {
        let mut best = None;
        let mut most = FrameRank::PassesOn;
        for frame in frames.chain(at) {
            let name = self.trace.name(frames.slices[frame].row);
            let rank = self.rank(name);
            if rank > most {
                (best, most) = (Some(name), rank);
            }
        }
        best
    }

    /// Whether a name says where one is.
    pub(crate) fn says(&mut self, name: StringId) -> bool {
        self.rank(name) > FrameRank::PassesOn
    }

    /// The same for what a person wrote: a compiler's code says where a kernel is launched, and no line to change.
    pub(crate) fn is_written(&mut self, name: StringId) -> bool {
        self.says(name) && self.rank(name) != FrameRank::Compiled
    }

    /// How much a name says. (A script that calls a model is around every line of it: of the two the innermost is shown.)
    fn rank(&mut self, name: StringId) -> FrameRank {
        let (roots, text) = (&self.roots, self.trace.strings.get(name));
        let of = |(path, _, function)| frame(roots, path, function).1.min(FrameRank::Model);
        let read = || frame_parts(text).map_or(FrameRank::Noise, of);
        *self.ranks.entry(name).get_or_insert_with(read)
    }

    /// `path:line function`; of a built-in its name.
    pub(crate) fn shown(&self, name: StringId) -> String {
        let text = self.trace.strings.get(name);
        frame_parts(text).map_or_else(
            || without_address(text).to_owned(),
            |(path, line, function)| {
                let (path, _) = frame(&self.roots, path, function);
                format!("{path}:{line} {function}")
            },
        )
    }
}
