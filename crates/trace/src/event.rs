//! One decoded event, and its flags.

use crate::{ByteSpan, StreamId, StringId, TimeNs, TrackId};

/// The Chrome trace `ph` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// `X`: a complete slice.
    Complete,
    /// `B`: start of a slice.
    Begin,
    /// `E`: end of the innermost matching `B`.
    End,
    /// `i`, `I`, `R`: an instant.
    Instant,
    /// `s`: start of a flow.
    FlowStart,
    /// `t`: step of a flow.
    FlowStep,
    /// `f`: end of a flow.
    FlowEnd,
    /// `C`: counter sample.
    Counter,
    /// `M`: metadata (names, sort indexes).
    Metadata,
    /// `b`: start of an async slice.
    AsyncBegin,
    /// `n`: async instant.
    AsyncInstant,
    /// `e`: end of an async slice.
    AsyncEnd,
    /// Any other letter; Perfetto ignores these.
    Other,
}

impl Phase {
    /// The phase of a one-letter `ph`.
    #[must_use]
    pub fn of(letter: u8) -> Self {
        match letter {
            b'X' => Self::Complete,
            b'B' => Self::Begin,
            b'E' => Self::End,
            b'i' | b'I' | b'R' => Self::Instant,
            b's' => Self::FlowStart,
            b't' => Self::FlowStep,
            b'f' => Self::FlowEnd,
            b'C' => Self::Counter,
            b'M' => Self::Metadata,
            b'b' => Self::AsyncBegin,
            b'n' => Self::AsyncInstant,
            b'e' => Self::AsyncEnd,
            _ => Self::Other,
        }
    }

    /// The phase of a discriminant, as stored in columns.
    #[inline]
    #[must_use]
    pub fn from_index(index: u32) -> Self {
        const ALL: [Phase; 13] = [
            Phase::Complete,
            Phase::Begin,
            Phase::End,
            Phase::Instant,
            Phase::FlowStart,
            Phase::FlowStep,
            Phase::FlowEnd,
            Phase::Counter,
            Phase::Metadata,
            Phase::AsyncBegin,
            Phase::AsyncInstant,
            Phase::AsyncEnd,
            Phase::Other,
        ];
        ALL.get(index as usize).copied().unwrap_or(Phase::Other)
    }

    /// Whether this is a flow event (`s`, `t`, `f`).
    #[must_use]
    pub fn is_flow(self) -> bool {
        matches!(self, Self::FlowStart | Self::FlowStep | Self::FlowEnd)
    }
}

/// Facts and defects of one event that the decoder found, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// `ts` is present and a number (or a string holding one), within range.
    pub const HAS_TS: Self = Self(1);
    /// `dur` is present and a number (or a string holding one); it may be negative.
    pub const HAS_DUR: Self = Self(1 << 1);
    /// `dur` is present but not a number (`null`, text, NaN, object).
    pub const DUR_UNREADABLE: Self = Self(1 << 2);
    /// `ts` is present but not a number.
    pub const TS_UNREADABLE: Self = Self(1 << 3);
    /// The importer's reading of `ts` or `dur` does not follow from the exact nanoseconds (digits below
    /// 1 ns, an exponent, an overflow): [`crate::Trace::importer_ns`] holds it.
    pub const ODD_NUMBER: Self = Self(1 << 4);
    /// Digits of `ts` or `dur` below 1 ns were truncated.
    pub const SUB_NS: Self = Self(1 << 5);
    /// The event's text is not strict JSON in UTF-8 as Perfetto wants it (escapes of surrogates, control
    /// characters, NaN, odd numbers, stray commas, invalid UTF-8): repair rewrites these tokens.
    pub const TEXT: Self = Self(1 << 6);
    /// A flow event with `"bp": "e"`.
    pub const BIND_ENCLOSING: Self = Self(1 << 7);
    /// An id that the phase needs (`s t f b n e P`) is missing or in a form that Perfetto rejects.
    pub const ID_UNREADABLE: Self = Self(1 << 8);
    /// A counter with an argument that is not a number, or without `args`; a metadata event whose name or sort
    /// index has the wrong type. Perfetto rejects these (`json_parser_failure`).
    pub const ARGS_UNREADABLE: Self = Self(1 << 9);
    /// An instant whose scope `s` is none of t, p, g; Perfetto takes it for t.
    pub const SCOPE_UNREADABLE: Self = Self(1 << 10);
    /// An instant with process or global scope (`"s": "p"` or `"g"`): it belongs to no thread.
    pub const SCOPE_WIDE: Self = Self(1 << 11);
    /// No `ph`, or one that is not a string or is empty (Perfetto reads its first letter).
    pub const PHASE_UNREADABLE: Self = Self(1 << 12);
    /// A GPU kernel (raw category `kernel`, any letter case).
    pub const KERNEL: Self = Self(1 << 13);
    /// A GPU copy or memset (raw category `gpu_memcpy`, `gpu_memset`, `memcpy`, `memset`, any case).
    pub const GPU_MEMORY: Self = Self(1 << 14);
    /// `tts` or `tdur` is present but not a number: Perfetto aborts the import at it.
    pub const THREAD_TIMES_UNREADABLE: Self = Self(1 << 15);
    /// An instant with global scope (`"s": "g"`): it needs no process.
    pub const SCOPE_GLOBAL: Self = Self(1 << 16);

    /// A frame of Python with a `Python id`: [`crate::Trace::link`] is that id and [`crate::Trace::external`]
    /// the `Python parent id`, both counted from the same arbitrary number. (A frame of Python has no correlation, and columns of their own would cost every
    /// event eight bytes.)
    pub const PYTHON_IDS: Self = Self(1 << 17);

    /// `ts` is text with a number in it that the importer does not take (`"+5"`, `"5."`): the event is dropped.
    pub const TS_REJECTED: Self = Self(1 << 18);
    /// The same of `dur`: the importer stops.
    pub const DUR_REJECTED: Self = Self(1 << 19);
    /// Phase `P`, a sample of V8: the importer keeps these apart from all other events.
    pub const V8_SAMPLE: Self = Self(1 << 20);
    /// Phase `T`, a thread state: unlike other phases of no slice, it needs a `dur`.
    pub const THREAD_STATE: Self = Self(1 << 21);

    /// A slice with a `bind_id` and neither `flow_in` nor `flow_out`.
    pub const BIND_UNDIRECTED: Self = Self(1 << 22);

    /// `ts` is a number out of our range ([`Flags::TS_UNREADABLE`]), which the importer reads, wrapped or cut.
    pub const TS_BEYOND: Self = Self(1 << 23);
    /// The same of `dur` ([`Flags::DUR_UNREADABLE`]).
    pub const DUR_BEYOND: Self = Self(1 << 24);

    /// Whether every bit of `other` is set.
    #[inline]
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    #[must_use]
    pub fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets the bits of `other`.
    #[inline]
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// One decoded event on its way into the columns.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The phase.
    pub phase: Phase,
    /// Facts and defects.
    pub flags: Flags,
    /// Start, relative to the trace's origin; 0 without [`Flags::HAS_TS`].
    pub ts_ns: TimeNs,
    /// Duration; 0 without [`Flags::HAS_DUR`].
    pub dur_ns: TimeNs,
    /// `name`.
    pub name: StringId,
    /// `cat`, the raw category.
    pub raw_category: StringId,
    /// The (pid, tid) pair.
    pub track: TrackId,
    /// For slices `args.correlation`, for flows the flow id; see [`crate::Trace::link`].
    pub link: Option<i64>,
    /// `args["External id"]`.
    pub external: Option<i64>,
    /// The GPU stream, for GPU events.
    pub stream: Option<StreamId>,
    /// Where the event's JSON text lies.
    pub span: ByteSpan,
}

/// A flow of the second version (`bind_id` on a slice): the event is an end point of the arrow itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The id as the importer reads it: an integer, or text in base 16.
    pub id: i64,
    /// `"flow_in": true`: an arrow ends here.
    pub flow_in: bool,
    /// `"flow_out": true`: an arrow starts here.
    pub flow_out: bool,
}

/// How Perfetto's importer reads this event's times (v51 to v58: `json_trace_parser.cc`), kept only for
/// the rare [`Flags::ODD_NUMBER`] events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImporterNs {
    /// The importer's `ts` in ns, relative to nothing (the origin is *not* subtracted).
    pub ts_ns: i64,
    /// The importer's `dur` in ns.
    pub dur_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_survives_its_index() {
        for index in 0..13 {
            assert_eq!(Phase::from_index(index) as u32, index);
        }
        assert_eq!(Phase::from_index(31), Phase::Other);
    }
}
