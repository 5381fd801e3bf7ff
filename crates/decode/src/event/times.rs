//! `ts` and `dur`.

use trace::{Flags, ImporterNs, Phase, decimal};

use super::{
    Events, Notes,
    draft::{Draft, Field},
    number::{self, Time},
};
use crate::problem::ProblemKind;

/// A plain number is below this, so that it needs no origin.
const _: () = assert!((1 << 52) * 1000 < FAR);
/// Times from here on are counted from an origin, so that durations and shifts cannot overflow.
const FAR: i64 = 1 << 62;
/// So many times, all beyond [`FAR`], are the clock of the file; fewer may be the odd ones out.
const ENOUGH: usize = 64;

impl Events {
    /// Start relative to the origin, and the importer's reading when it is an odd one.
    #[inline]
    pub(super) fn ts(
        &mut self,
        draft: &Draft<'_>,
        phase: Phase,
        notes: &mut Notes<'_>,
    ) -> (i64, Option<i64>) {
        match draft.decimal(Field::Ts) {
            Some(us) if self.origin_is_zero => {
                notes.flags.set(Flags::HAS_TS);
                (us.times_1000(), None)
            }
            _ => self.other_ts(draft, phase, notes),
        }
    }

    #[inline(never)]
    fn other_ts(
        &mut self,
        draft: &Draft<'_>,
        phase: Phase,
        notes: &mut Notes<'_>,
    ) -> (i64, Option<i64>) {
        let (micros, text) = match number::time(draft, Field::Ts) {
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
                    self.origin_by = Some(Vec::new());
                    self.builder.trace_mut().origin_ns =
                        micros.ns.div_euclid(1_000_000) * 1_000_000;
                }
                self.origin_is_zero = self.builder.trace().origin_ns == 0;
            } else if self.is_ordinary(micros.ns)
                && let Some(far) = self.origin_by.take()
            {
                self.forget_origin(&far, notes.offset);
            }
        }
        self.note_far(micros);
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
    /// Whether a time needs no origin, or fits 64 bits without that of the events so far alone.
    fn is_ordinary(&self, ns: i128) -> bool {
        let fits = |ns: i128| i64::try_from(ns).is_ok();
        ns.unsigned_abs() <= FAR as u128 || (fits(ns) && !fits(ns - self.builder.trace().origin_ns))
    }

    /// Notes the event at hand among those that decide on the origin, until they are enough.
    fn note_far(&mut self, micros: decimal::Micros) {
        let row = self.next_row();
        let Some((far, row)) = self.origin_by.as_mut().zip(row) else { return };
        // (An event too long to be stored leaves its row to the next.)
        far.retain(|(other, _)| *other != row);
        far.push((row, micros));
        if far.len() == ENOUGH {
            self.origin_by = None;
        }
    }

    /// The times so far are the odd ones out: the next is an ordinary one, which their origin would cost.
    #[cold]
    fn forget_origin(&mut self, far: &[(u32, decimal::Micros)], offset: u64) {
        self.builder.trace_mut().origin_ns = 0;
        self.origin_is_zero = true;
        for (row, micros) in far {
            let trace = self.builder.trace();
            if trace.len() <= *row as usize || !trace.flags(*row).has(Flags::HAS_TS) {
                continue;
            }
            let ts_ns = i64::try_from(micros.ns).ok();
            let read = ts_ns.map(decimal::importer_ns);
            let dur_ns = trace.importer_ns(*row).map(|odd| odd.dur_ns);
            let importer = ImporterNs {
                ts_ns: micros.odd_importer_ns.or(read).unwrap_or_default(),
                dur_ns: dur_ns.unwrap_or_else(|| decimal::importer_ns(trace.dur_ns(*row))),
            };
            let at = trace.span(*row).start.min(offset);
            self.builder.move_event(*row, ts_ns, importer);
            if ts_ns.is_none() {
                let shown = format!("ts {}", decimal::write_micros(micros.ns, 0));
                let (kind, row) = (ProblemKind::TimeOutOfRange, Some(*row));
                self.problems.note(kind, 1, at, row, shown.as_bytes());
            }
        }
    }
}

/// Duration, and the importer's reading when it is an odd one.
#[inline]
pub(super) fn dur(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
    match draft.decimal(Field::Dur) {
        Some(us) => {
            notes.flags.set(Flags::HAS_DUR);
            (us.times_1000(), None)
        }
        None => other_dur(draft, phase, notes),
    }
}

#[inline(never)]
fn other_dur(draft: &Draft<'_>, phase: Phase, notes: &mut Notes<'_>) -> (i64, Option<i64>) {
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
