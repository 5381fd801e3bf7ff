//! The fields of one event, borrowed from its text.

use scan::{Cursor, Stop, Value, string::unescape};

/// A key of an event that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Field {
    Ph,
    Name,
    Cat,
    Ts,
    Dur,
    Pid,
    Tid,
    Id,
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

    /// Whether `key` is one that events have; a hint when reading starts again after damage.
    pub(super) fn is_known(key: &[u8]) -> bool {
        Self::of(key).is_some() || key == b"sf"
    }

    #[inline]
    fn of(key: &[u8]) -> Option<Self> {
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
}

/// A key of `args` that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Arg {
    Correlation,
    ExternalId,
    Device,
    DeviceId,
    Stream,
    StreamTitled,
}

impl Arg {
    const COUNT: usize = Self::StreamTitled as usize + 1;

    #[inline]
    fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"device" => Self::Device,
            b"stream" => Self::Stream,
            b"Stream" => Self::StreamTitled,
            b"Device Id" => Self::DeviceId,
            b"External id" => Self::ExternalId,
            b"correlation" => Self::Correlation,
            _ => return None,
        })
    }
}

/// What one event says; the last of equal keys wins.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    fields: [Option<Value<'a>>; Field::COUNT],
    args: [Option<Value<'a>>; Arg::COUNT],
    /// A key occurs twice.
    pub(super) duplicate: bool,
    /// There is any key.
    pub(super) any: bool,
}

impl<'a> Draft<'a> {
    /// Reads the object at the cursor. (Into `self`, as a draft is half a kilobyte, and returning it would
    /// copy that.)
    #[inline]
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Stop> {
        cursor.enter();
        while let Some(key) = cursor.next_key(!self.any)? {
            self.any = true;
            let field = if key.is_escaped() {
                Field::of(unescape(key.raw).as_bytes())
            } else {
                Field::of(key.raw)
            };
            let Some(field) = field else {
                cursor.skip_value()?;
                continue;
            };
            let value = if field == Field::Args && cursor.peek()? == b'{' {
                self.read_args(cursor)?
            } else {
                cursor.value()?
            };
            let slot = &mut self.fields[field as usize];
            self.duplicate |= slot.is_some();
            *slot = Some(value);
        }
        Ok(())
    }

    #[inline]
    fn read_args(&mut self, cursor: &mut Cursor<'a>) -> Result<Value<'a>, Stop> {
        self.args = Default::default();
        let start = cursor.pos();
        cursor.enter();
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            let arg = if key.is_escaped() {
                Arg::of(unescape(key.raw).as_bytes())
            } else {
                Arg::of(key.raw)
            };
            let Some(arg) = arg else {
                cursor.skip_value()?;
                continue;
            };
            let value = cursor.value()?;
            let slot = &mut self.args[arg as usize];
            self.duplicate |= slot.is_some();
            *slot = Some(value);
        }
        Ok(Value::Object(&cursor.bytes()[start..cursor.pos()]))
    }

    /// The value of a key, `null` taken for itself.
    #[inline]
    pub(super) fn get(&self, field: Field) -> Option<Value<'a>> {
        self.fields[field as usize]
    }

    /// The value of a key, `null` taken for nothing.
    #[inline]
    pub(super) fn some(&self, field: Field) -> Option<Value<'a>> {
        self.get(field).filter(|value| *value != Value::Null)
    }

    /// The value of a key of `args`.
    #[inline]
    pub(super) fn arg(&self, arg: Arg) -> Option<Value<'a>> {
        self.args[arg as usize]
    }

    /// The text of `args`, when that is an object.
    pub(super) fn args_text(&self) -> Option<&'a [u8]> {
        match self.get(Field::Args) {
            Some(Value::Object(text)) => Some(text),
            _ => None,
        }
    }
}
