//! The arguments of one event that details are made of, and the keys by which they are found.

use dialect::Arg;
use scan::string::unescape;
use scan::{Cursor, Keys, Stop, Text, Value};

use crate::event::number;

/// A key of `args` that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Field {
    Grid,
    Block,
    Registers,
    SharedMemory,
    Occupancy,
    BlocksPerSm,
    WarpsPerSm,
    InputDims,
    InputType,
    SequenceNumber,
    ForwardThread,
    Device,
    Stream,
    WaitOnStream,
    WaitOnRecord,
    CollectiveName,
    InElements,
    OutElements,
    GroupSize,
    Dtype,
    GroupName,
    GroupRanks,
    InSplit,
    OutSplit,
    InputStrides,
    ConcreteInputs,
    CallFrom,
    CallStack,
    CopiedBytes,
    MemoryBytes,
    Address,
    DeviceType,
    DeviceId,
    TotalAllocated,
    TotalReserved,
    Name,
}

impl Field {
    const COUNT: usize = Self::Name as usize + 1;

    fn of_args(key: Text<'_>) -> Option<Self> {
        Some(match Arg::of(unescape(key.raw).as_bytes())? {
            Arg::Grid => Self::Grid,
            Arg::Block => Self::Block,
            Arg::Registers => Self::Registers,
            Arg::SharedMemory => Self::SharedMemory,
            Arg::Occupancy => Self::Occupancy,
            Arg::BlocksPerSm => Self::BlocksPerSm,
            Arg::WarpsPerSm => Self::WarpsPerSm,
            Arg::InputDims | Arg::InputDimsLower => Self::InputDims,
            Arg::InputType => Self::InputType,
            Arg::SequenceNumber => Self::SequenceNumber,
            Arg::ForwardThread => Self::ForwardThread,
            Arg::Device => Self::Device,
            Arg::Stream => Self::Stream,
            Arg::WaitOnStream => Self::WaitOnStream,
            Arg::WaitOnRecord => Self::WaitOnRecord,
            Arg::CollectiveName => Self::CollectiveName,
            Arg::InElements => Self::InElements,
            Arg::OutElements => Self::OutElements,
            Arg::GroupSize => Self::GroupSize,
            Arg::Dtype => Self::Dtype,
            Arg::GroupName => Self::GroupName,
            Arg::GroupRanks => Self::GroupRanks,
            Arg::InSplit => Self::InSplit,
            Arg::OutSplit => Self::OutSplit,
            Arg::InputStrides => Self::InputStrides,
            Arg::ConcreteInputs => Self::ConcreteInputs,
            Arg::CallFrom => Self::CallFrom,
            Arg::CallStack => Self::CallStack,
            Arg::CopiedBytes => Self::CopiedBytes,
            Arg::MemoryBytes => Self::MemoryBytes,
            Arg::Address => Self::Address,
            Arg::DeviceType => Self::DeviceType,
            Arg::DeviceId => Self::DeviceId,
            Arg::TotalAllocated => Self::TotalAllocated,
            Arg::TotalReserved => Self::TotalReserved,
            Arg::Name => Self::Name,
            // Decoding keeps these in columns.
            Arg::StreamTitled
            | Arg::ExternalId
            | Arg::ExternalIdLower
            | Arg::Correlation
            | Arg::PythonId
            | Arg::PythonParent
            | Arg::Kernel => return None,
        })
    }
}

/// The keys of events and of their `args`, in the orders in which they come.
#[derive(Debug, Default)]
pub(super) struct KnownKeys {
    /// Whether the key is `args`.
    event: Keys<bool>,
    args: Keys<Option<Field>>,
}

/// What one event says; the last of equal keys wins, as everywhere.
pub(super) struct Args<'a>(pub(super) [Option<Value<'a>>; Field::COUNT]);

impl Default for Args<'_> {
    fn default() -> Self {
        Self([None; Field::COUNT])
    }
}

impl<'a> Args<'a> {
    #[inline(never)]
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'a>,
        known: &mut KnownKeys,
    ) -> Result<(), Stop> {
        cursor.enter();
        let mut first = true;
        let is_args = |key: Text<'_>| &*unescape(key.raw) == "args";
        while let Some(args) = known.event.next(cursor, first, is_args)? {
            first = false;
            if args && cursor.peek()? == b'{' {
                self.0.fill(None);
                self.read_args(cursor, &mut known.args)?;
            } else {
                cursor.skip_value()?;
            }
        }
        Ok(())
    }

    fn read_args(
        &mut self,
        cursor: &mut Cursor<'a>,
        known: &mut Keys<Option<Field>>,
    ) -> Result<(), Stop> {
        cursor.enter();
        let mut first = true;
        while let Some(field) = known.next(cursor, first, Field::of_args)? {
            first = false;
            match field {
                None => cursor.skip_value()?,
                Some(field) => self.0[field as usize] = Some(cursor.value()?),
            }
        }
        Ok(())
    }

    pub(super) fn integer(&self, field: Field) -> Option<i64> {
        number::link_of(self.0[field as usize]?)
    }

    pub(super) fn small(&self, field: Field) -> Option<u32> {
        u32::try_from(self.integer(field)?).ok()
    }

    /// A number of the profiler's own reckoning, in thousandths, rounded.
    pub(super) fn milli(&self, field: Field) -> Option<u32> {
        let Some(Value::Number(text)) = self.0[field as usize] else { return None };
        let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        let milli = (number * 1000.0).round();
        (0.0..=f64::from(u32::MAX)).contains(&milli).then_some(milli as u32)
    }

    /// A text as it is spelled in the file, without its quotes.
    pub(super) fn text(&self, field: Field) -> Option<&'a [u8]> {
        match self.0[field as usize] {
            Some(Value::String(text)) => Some(text.raw),
            _ => None,
        }
    }

    pub(super) fn array(&self, field: Field) -> Option<&'a [u8]> {
        match self.0[field as usize] {
            Some(Value::Array(text)) => Some(text),
            _ => None,
        }
    }

    /// `[64, 1, 1]`.
    #[inline(never)]
    pub(super) fn three(&self, field: Field) -> Option<[u32; 3]> {
        let text = std::str::from_utf8(self.array(field)?).ok()?;
        let text = text.strip_prefix('[')?.strip_suffix(']')?;
        let mut numbers = text.split(',').map(|number| number.trim().parse().ok());
        let three = [numbers.next()??, numbers.next()??, numbers.next()??];
        numbers.next().is_none().then_some(three)
    }
}
