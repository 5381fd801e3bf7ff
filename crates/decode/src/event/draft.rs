//! The fields of one event, borrowed from its text.

use dialect::Arg;
use scan::{Ahead, Cursor, Decimal, Keys, Stop, Text, Value, string::unescape};

/// A key of an event, or of its `args`, that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Field {
    // Numbers, as a rule; the last of them are keys of `args`.
    Ts,
    Dur,
    Pid,
    Tid,
    Id,
    Correlation,
    ExternalId,
    Device,
    DeviceId,
    Stream,
    StreamTitled,
    PythonId,
    PythonParent,
    // Not numbers from here on; the first is a key of `args`.
    Kernel,
    Ph,
    Name,
    Cat,
    Id2,
    Bp,
    Scope,
    Args,
    Tts,
    Tdur,
    BindId,
    FlowIn,
    FlowOut,
}

impl Field {
    const COUNT: usize = Self::FlowOut as usize + 1;
    const NUMBERS: usize = Self::PythonParent as usize + 1;
    const OF_ARGS: std::ops::Range<usize> = Self::Correlation as usize..Self::Kernel as usize + 1;
    const NUMBERS_OF_ARGS: std::ops::Range<usize> = Self::Correlation as usize..Self::NUMBERS;

    /// Whether `key` is one that events have; a hint when reading starts again after damage.
    pub(super) fn is_known(key: &[u8]) -> bool {
        Self::of_event(key).is_some() || key == b"sf"
    }

    fn of_event(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"ph" => Self::Ph,
            b"ts" => Self::Ts,
            b"id" => Self::Id,
            b"bp" => Self::Bp,
            b"s" => Self::Scope,
            b"cat" => Self::Cat,
            b"dur" => Self::Dur,
            b"pid" => Self::Pid,
            b"tid" => Self::Tid,
            b"id2" => Self::Id2,
            b"tts" => Self::Tts,
            b"name" => Self::Name,
            b"args" => Self::Args,
            b"tdur" => Self::Tdur,
            b"bind_id" => Self::BindId,
            b"flow_in" => Self::FlowIn,
            b"flow_out" => Self::FlowOut,
            _ => return None,
        })
    }

    fn of_args(key: &[u8]) -> Option<Self> {
        Some(match Arg::of(key)? {
            Arg::Device => Self::Device,
            Arg::Stream => Self::Stream,
            Arg::StreamTitled => Self::StreamTitled,
            Arg::DeviceId => Self::DeviceId,
            Arg::ExternalId | Arg::ExternalIdLower => Self::ExternalId,
            Arg::Correlation => Self::Correlation,
            Arg::PythonId => Self::PythonId,
            Arg::PythonParent => Self::PythonParent,
            Arg::Kernel => Self::Kernel,
            // The second reading takes these (`details.rs`).
            Arg::Grid
            | Arg::Block
            | Arg::Registers
            | Arg::SharedMemory
            | Arg::Occupancy
            | Arg::BlocksPerSm
            | Arg::WarpsPerSm
            | Arg::WaitOnStream
            | Arg::WaitOnRecord
            | Arg::InputDims
            | Arg::InputDimsLower
            | Arg::InputType
            | Arg::SequenceNumber
            | Arg::ForwardThread
            | Arg::CollectiveName
            | Arg::InElements
            | Arg::OutElements
            | Arg::GroupSize
            | Arg::Dtype
            | Arg::GroupName
            | Arg::GroupRanks
            | Arg::InSplit
            | Arg::OutSplit
            | Arg::InputStrides
            | Arg::ConcreteInputs
            | Arg::CallFrom
            | Arg::CallStack
            | Arg::CopiedBytes
            | Arg::MemoryBytes
            | Arg::Address
            | Arg::DeviceType
            | Arg::TotalAllocated
            | Arg::TotalReserved
            | Arg::Name => return None,
        })
    }
}

/// Whether the importer reads over a value where the same key had one before: what is no id, no time and no
/// flag does not take the place of one (`json_trace_tokenizer.cc`).
#[cold]
fn keeps_former(field: Field, value: Value<'_>) -> bool {
    match field {
        Field::Ts => !super::number::is_time(value),
        Field::Pid | Field::Tid => !matches!(value, Value::Number(_) | Value::String(_)),
        Field::Id | Field::BindId => match value {
            Value::Number(text) => super::number::integer(text).is_none(),
            value => !matches!(value, Value::String(_)),
        },
        Field::FlowIn | Field::FlowOut => !matches!(value, Value::True | Value::False),
        Field::Scope => {
            matches!(value, Value::String(text) if !matches!(text.raw, b"t" | b"p" | b"g"))
        }
        Field::Args => !matches!(value, Value::Object(_)),
        // (A bad one stops it; its event keeps the good one.)
        Field::Dur | Field::Tts | Field::Tdur => !super::number::is_time(value),
        _ => false,
    }
}

/// Whether the importer stops at a value that another of the same key precedes or follows.
#[cold]
fn stops(field: Field, value: Value<'_>) -> bool {
    matches!(field, Field::Dur | Field::Tts | Field::Tdur) && !super::number::is_time(value)
}

/// What a key of an event means, escapes resolved.
fn of_event(key: Text<'_>) -> Option<Field> {
    meaning(key, Field::of_event)
}

/// The same for a key of `args`.
fn of_args(key: Text<'_>) -> Option<Field> {
    meaning(key, Field::of_args)
}

fn meaning(key: Text<'_>, of: fn(&[u8]) -> Option<Field>) -> Option<Field> {
    if key.is_escaped() { of(unescape(key.raw).as_bytes()) } else { of(key.raw) }
}

/// The keys of events and of their `args`, in the orders in which they come.
#[derive(Debug, Default)]
pub(super) struct KnownKeys {
    event: Keys<Option<Field>>,
    args: Keys<Option<Field>>,
}

/// Skips a value that has no meaning here.
#[inline(never)]
fn skip(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    cursor.skip_value()
}

/// A number that was read already. (`None` of an `Option` would be all zero, and clearing the numbers of an event then is a call
/// out of wasm.)
#[derive(Clone, Copy, Debug, Default)]
#[repr(u32)]
enum Read {
    Plain(Decimal) = 1,
    #[default]
    No = 2,
}

/// What one event says; the last of equal keys wins.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    values: [Option<Value<'a>>; Field::COUNT],
    /// The values that are plain numbers, read already.
    decimals: [Read; Field::NUMBERS],
    /// A key occurs twice.
    pub(super) duplicate: bool,
    /// A key occurs twice, and the importer stops at one of its values.
    pub(super) stops: Option<Field>,
    /// There is any key.
    pub(super) any: bool,
}

impl<'a> Draft<'a> {
    /// Reads the object at the cursor. (Into `self`, as a draft is half a kilobyte, and returning it would
    /// copy that.)
    // One loop for the event and its arguments: all that is inlined into it, V8 compiles once.
    #[inline(never)]
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'a>,
        known: &mut KnownKeys,
    ) -> Result<(), Stop> {
        cursor.enter();
        let KnownKeys { event, args } = known;
        let mut keys = &mut *event;
        let mut first = true;
        let mut start_of_args = None;
        let mut ahead = cursor.ahead();
        loop {
            let key = match keys.foreseen(&mut ahead, first) {
                Some(key) => key,
                None => {
                    let meaning = if start_of_args.is_none() { of_event } else { of_args };
                    cursor.go_to(ahead);
                    let key = keys.unforeseen(cursor, first, meaning)?;
                    ahead = cursor.ahead();
                    key
                }
            };
            let Some(field) = key else {
                // The end of the arguments, or of the event.
                let Some(start) = start_of_args.take() else {
                    cursor.go_to(ahead);
                    return Ok(());
                };
                self.set(Field::Args, Value::Object(Ahead::until(start, ahead)));
                keys = &mut *event;
                first = false;
                continue;
            };
            first = false;
            self.any = true;
            match field {
                Some(Field::Args) if self.enters_args(cursor, &mut ahead)? => {
                    start_of_args = Some(ahead);
                    ahead.enter();
                    keys = &mut *args;
                    first = true;
                }
                Some(field) if self.reads_plain(field, &mut ahead) => {}
                None if ahead.skip_short_integer() => {}
                Some(field) => {
                    cursor.go_to(ahead);
                    self.read_other(field, cursor)?;
                    ahead = cursor.ahead();
                }
                None => {
                    cursor.go_to(ahead);
                    skip(cursor)?;
                    ahead = cursor.ahead();
                }
            }
        }
    }

    /// Whether the arguments are an object, as they should be; moves over white space before it.
    #[inline(always)]
    fn enters_args(
        &mut self,
        cursor: &mut Cursor<'a>,
        ahead: &mut Ahead<'a>,
    ) -> Result<bool, Stop> {
        if !ahead.is_at(b'{') {
            cursor.go_to(*ahead);
            cursor.peek()?;
            *ahead = cursor.ahead();
        }
        if self.values[Field::Args as usize].is_some() && ahead.is_at(b'{') {
            self.forget_args();
        }
        Ok(ahead.is_at(b'{'))
    }

    /// The arguments so far are those of a former `args`.
    #[inline(never)]
    fn forget_args(&mut self) {
        self.values[Field::OF_ARGS].fill(None);
        self.decimals[Field::NUMBERS_OF_ARGS].fill(Read::No);
    }

    /// Reads a value as nearly all are; false if something else follows. (Each kind is stored at once: a value handed on as a
    /// result goes through memory piece by piece, which stalls the processor.)
    #[inline(always)]
    fn reads_plain(&mut self, field: Field, ahead: &mut Ahead<'a>) -> bool {
        if let Some(text) = ahead.plain_string() {
            self.set(field, Value::String(text));
            return true;
        }
        let Some((decimal, text)) = ahead.decimal() else { return false };
        self.set(field, Value::Number(text));
        // (A plain number is what every one of these fields takes.)
        if let Some(slot) = self.decimals.get_mut(field as usize) {
            *slot = Read::Plain(decimal);
        }
        true
    }

    /// The values that few fields have: arrays, words, text with escapes, numbers in odd spelling.
    #[inline(never)]
    fn read_other(&mut self, field: Field, cursor: &mut Cursor<'a>) -> Result<(), Stop> {
        let value = cursor.value()?;
        self.set(field, value);
        Ok(())
    }

    #[inline(always)]
    fn set(&mut self, field: Field, value: Value<'a>) {
        let slot = &mut self.values[field as usize];
        if slot.is_some() {
            return self.set_again(field, value);
        }
        *slot = Some(value);
    }

    /// The value of a key that occurs twice.
    #[cold]
    #[inline(never)]
    fn set_again(&mut self, field: Field, value: Value<'a>) {
        let slot = &mut self.values[field as usize];
        self.duplicate = true;
        if slot.is_some_and(|former| stops(field, former)) || stops(field, value) {
            self.stops = Some(field);
        }
        if keeps_former(field, value) {
            return;
        }
        if let Some(decimal) = self.decimals.get_mut(field as usize) {
            *decimal = Read::No;
        }
        *slot = Some(value);
    }

    /// The value of a key, `null` taken for itself.
    #[inline]
    pub(super) fn get(&self, field: Field) -> Option<Value<'a>> {
        self.values[field as usize]
    }

    /// The value of a key, `null` taken for nothing.
    #[inline]
    pub(super) fn some(&self, field: Field) -> Option<Value<'a>> {
        self.get(field).filter(|value| !matches!(value, Value::Null))
    }

    /// The value of a key, when it is a number as nearly all are. `None` means that [`Draft::get`] must be
    /// asked.
    #[inline]
    pub(super) fn decimal(&self, field: Field) -> Option<Decimal> {
        match self.decimals.get(field as usize) {
            Some(Read::Plain(decimal)) => Some(*decimal),
            _ => None,
        }
    }

    /// The text of `args`, when that is an object.
    pub(super) fn args_text(&self) -> Option<&'a [u8]> {
        match self.get(Field::Args) {
            Some(Value::Object(text)) => Some(text),
            _ => None,
        }
    }
}
