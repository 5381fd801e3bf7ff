//! `ts` and `dur`.

use trace::{Flags, ImporterNs, Phase, decimal};

use super::{
    Events, Notes,
    draft::{Draft, Field},
    number::{self, Time},
};
use crate::problem::ProblemKind;

/// Times from here on are counted from an origin, so that durations and shifts cannot overflow.
const FAR: i64 = 1 << 62;

impl Events {
    /// Start relative to the origin, and the importer's reading when it is an odd one.
    #[inline]
    pub(super) fn ts(
        &mut self,
        draft: &Draft<'_>,
        phase: Phase,
        notes: &mut Notes<'_>,
    ) -> (i64, Option<i64>) {
        match number::time(draft, Field::Ts) {
            Time::Plain(ns @ 0..FAR) if self.origin_is_zero => {
                notes.flags.set(Flags::HAS_TS);
                (ns, None)
            }
            time => self.odd_ts(time, phase, notes),
        }
    }

    #[inline(never)]
    fn odd_ts(&mut self, time: Time, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
        let (micros, text) = match time {
            Time::Plain(ns) => (
                decimal::Micros { ns: i128::from(ns), sub_ns: false, odd_importer_ns: None },
                false,
            ),
            Time::Known { micros, text } => (micros, text),
            Time::Rejected(micros) => {
                notes.flag(Flags::TS_REJECTED, ProblemKind::RejectedTime);
                (micros, false)
            }
            Time::Missing => {
                if phase != Phase::Metadata && !notes.flags.has(Flags::PHASE_UNREADABLE) {
                    notes.add(ProblemKind::MissingTs);
                }
                return (0, None);
            }
            Time::Unreadable => {
                notes.flag(Flags::TS_UNREADABLE, ProblemKind::UnreadableTs);
                return (0, None);
            }
        };
        if text {
            notes.add(ProblemKind::StringTime);
        }
        if micros.sub_ns {
            notes.flag(Flags::SUB_NS, ProblemKind::SubNs);
        }
        if phase != Phase::Metadata {
            if micros.ns < 0 {
                notes.add(ProblemKind::NegativeTs);
            }
            if !self.origin_known {
                self.origin_known = true;
                if micros.ns.unsigned_abs() > FAR as u128 {
                    self.origin_by = self.next_row().map(|row| (row, micros));
                    self.builder.trace_mut().origin_ns =
                        micros.ns.div_euclid(1_000_000) * 1_000_000;
                }
                self.origin_is_zero = self.builder.trace().origin_ns == 0;
            } else if let Some((row, first)) = self.origin_by.take()
                && micros.ns.unsigned_abs() <= FAR as u128
            {
                self.forget_origin(row, first, notes.offset);
            }
        }
        match i64::try_from(micros.ns - self.builder.trace().origin_ns) {
            Ok(ns) => {
                notes.flags.set(Flags::HAS_TS);
                (ns, micros.odd_importer_ns)
            }
            Err(_) => {
                notes.flag(Flags::TS_UNREADABLE, ProblemKind::TimeOutOfRange);
                notes.flags.set(Flags::TS_BEYOND);
                // (Out of range of the others, it may still be a plain number to the importer.)
                let plain = || i64::try_from(micros.ns).ok().map(decimal::importer_ns);
                (0, micros.odd_importer_ns.or_else(plain))
            }
        }
    }
}

impl Events {
    /// The first event's time is the odd one out: the next is an ordinary time.
    #[cold]
    #[inline(never)]
    fn forget_origin(&mut self, row: u32, first: decimal::Micros, offset: u64) {
        self.builder.trace_mut().origin_ns = 0;
        self.origin_is_zero = true;
        let ts_ns = i64::try_from(first.ns).ok();
        let read = ts_ns.map(decimal::importer_ns);
        let (dur_ns, start) =
            (self.builder.trace().dur_ns(row), self.builder.trace().span(row).start);
        let importer = ImporterNs {
            ts_ns: first.odd_importer_ns.or(read).unwrap_or_default(),
            dur_ns: self
                .builder
                .trace()
                .importer_ns(row)
                .map_or(decimal::importer_ns(dur_ns), |it| it.dur_ns),
        };
        self.builder.move_event(row, ts_ns, importer);
        if ts_ns.is_none() {
            let shown = format!("ts {}", decimal::write_micros(first.ns, 0));
            let at = start.min(offset);
            self.problems.note(ProblemKind::TimeOutOfRange, 1, at, Some(row), shown.as_bytes());
        }
    }
}

/// Duration, and the importer's reading when it is an odd one.
#[inline]
pub(super) fn dur(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
    match number::time(draft, Field::Dur) {
        Time::Plain(ns @ 0..) => {
            notes.flags.set(Flags::HAS_DUR);
            (ns, None)
        }
        Time::Missing if phase != Phase::Complete => (0, None),
        time => odd_dur(time, phase, notes),
    }
}

#[inline(never)]
fn odd_dur(time: Time, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
    let (micros, text) = match time {
        Time::Plain(ns) => {
            (decimal::Micros { ns: i128::from(ns), sub_ns: false, odd_importer_ns: None }, false)
        }
        Time::Known { micros, text } => (micros, text),
        Time::Rejected(micros) => {
            notes.flag(Flags::DUR_REJECTED, ProblemKind::RejectedTime);
            (micros, false)
        }
        Time::Missing => {
            if phase == Phase::Complete {
                notes.add(ProblemKind::MissingDur);
            }
            return (0, None);
        }
        Time::Unreadable => {
            notes.flag(Flags::DUR_UNREADABLE, ProblemKind::UnreadableDur);
            return (0, None);
        }
    };
    if text {
        notes.add(ProblemKind::StringTime);
    }
    if micros.sub_ns {
        notes.flag(Flags::SUB_NS, ProblemKind::SubNs);
    }
    if micros.ns < 0 && phase == Phase::Complete {
        notes.add(ProblemKind::NegativeDur);
    }
    match i64::try_from(micros.ns) {
        Ok(ns) => {
            notes.flags.set(Flags::HAS_DUR);
            (ns, micros.odd_importer_ns)
        }
        Err(_) => {
            notes.flag(Flags::DUR_UNREADABLE, ProblemKind::TimeOutOfRange);
            notes.flags.set(Flags::DUR_BEYOND);
            (0, micros.odd_importer_ns)
        }
    }
}
