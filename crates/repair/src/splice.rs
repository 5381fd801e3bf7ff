//! A queue of instructions over a stream of bytes.

use std::collections::VecDeque;

use scan::strict;
use trace::Row;

/// What to do with the next bytes of the file. Offsets are absolute; `until` is exclusive.
#[derive(Debug)]
pub(crate) enum Step {
    /// Hand the bytes on.
    Copy { until: u64 },
    /// Leave the bytes out.
    Drop { until: u64 },
    /// Rewrite a value as strict JSON.
    Strict { until: u64 },
    /// Blanks and commas between events, to be judged.
    Gap { until: u64 },
    /// An event to be patched.
    Event { row: Row, until: u64 },
    /// An event to be set aside.
    Aside { row: Row, until: u64 },
    /// Bytes to be written later.
    Hold { until: u64 },
    /// New bytes.
    Insert(Vec<u8>),
    /// The members that repair adds, known only when all events have passed.
    Extras,
}

impl Step {
    fn until(&self) -> Option<u64> {
        match self {
            Self::Copy { until }
            | Self::Drop { until }
            | Self::Strict { until }
            | Self::Gap { until }
            | Self::Event { until, .. }
            | Self::Aside { until, .. }
            | Self::Hold { until } => Some(*until),
            Self::Insert(_) | Self::Extras => None,
        }
    }

    /// Whether the step needs its bytes in one piece.
    fn collects(&self) -> bool {
        matches!(self, Self::Strict { .. } | Self::Event { .. } | Self::Aside { .. })
    }
}

/// Carries out what only the owner of the steps can.
pub(crate) trait Steps {
    /// More steps, or `false` when there are none.
    fn refill(&mut self, queue: &mut VecDeque<Step>, out: &mut Vec<u8>) -> bool;
    /// A run of a gap's bytes.
    fn gap(&mut self, bytes: &[u8]);
    /// A run of held bytes.
    fn hold(&mut self, bytes: &[u8]);
    /// A whole event.
    fn event(&mut self, row: Row, text: &[u8], out: &mut Vec<u8>);
    /// A whole event that is set aside.
    fn aside(&mut self, row: Row, text: &[u8]);
    /// The members that repair adds.
    fn extras(&mut self, out: &mut Vec<u8>);
}

/// Runs steps over bytes that arrive in any pieces.
#[derive(Debug, Default)]
pub(crate) struct Runner {
    pub queue: VecDeque<Step>,
    pub pos: u64,
    carry: Vec<u8>,
}

impl Runner {
    /// Starts at an offset of the file.
    pub(crate) fn at(pos: u64, queue: VecDeque<Step>) -> Self {
        Self { queue, pos, carry: Vec::new() }
    }

    /// Handles the next bytes; `false` when no step wants them.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        steps: &mut impl Steps,
        out: &mut Vec<u8>,
    ) -> bool {
        loop {
            let Some(step) = self.queue.pop_front() else {
                if steps.refill(&mut self.queue, out) {
                    continue;
                }
                return false;
            };
            let Some(until) = step.until() else {
                self.instant(&step, steps, out);
                continue;
            };
            let missing = until.saturating_sub(self.pos);
            let take = bytes.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
            let (now, later) = bytes.split_at(take);
            bytes = later;
            self.pos += take as u64;
            let done = take as u64 == missing;
            if !step.collects() {
                match &step {
                    Step::Copy { .. } => out.extend_from_slice(now),
                    Step::Gap { .. } => steps.gap(now),
                    Step::Hold { .. } => steps.hold(now),
                    _ => {}
                }
            } else if done && self.carry.is_empty() {
                Self::collected(&step, now, steps, out);
            } else {
                self.carry.extend_from_slice(now);
                if done {
                    let whole = std::mem::take(&mut self.carry);
                    Self::collected(&step, &whole, steps, out);
                    self.carry = whole;
                    self.carry.clear();
                }
            }
            if !done {
                self.queue.push_front(step);
                return true;
            }
        }
    }

    /// The file is over: what needs no more bytes still happens.
    pub(crate) fn finish(&mut self, steps: &mut impl Steps, out: &mut Vec<u8>) {
        loop {
            while let Some(step) = self.queue.pop_front() {
                match step {
                    Step::Insert(_) | Step::Extras => self.instant(&step, steps, out),
                    // The file turned out shorter than the trace said: take what there was.
                    _ if !self.carry.is_empty() => {
                        let rest = std::mem::take(&mut self.carry);
                        Self::collected(&step, &rest, steps, out);
                    }
                    _ => {}
                }
            }
            if !steps.refill(&mut self.queue, out) {
                return;
            }
        }
    }

    fn instant(&mut self, step: &Step, steps: &mut impl Steps, out: &mut Vec<u8>) {
        match step {
            Step::Insert(bytes) => out.extend_from_slice(bytes),
            Step::Extras => steps.extras(out),
            _ => {}
        }
    }

    fn collected(step: &Step, bytes: &[u8], steps: &mut impl Steps, out: &mut Vec<u8>) {
        match step {
            Step::Strict { .. } => strict::rewrite(bytes, out),
            Step::Event { row, .. } => steps.event(*row, bytes, out),
            Step::Aside { row, .. } => steps.aside(*row, bytes),
            _ => {}
        }
    }
}
