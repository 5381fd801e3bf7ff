//! Values that a [`Cursor`](crate::Cursor) returns.

/// Why a [`Cursor`](crate::Cursor) stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// As wide as a pointer for the reason that `Spelling` is.
#[repr(usize)]
pub enum Stop {
    /// The slice ended inside the value; more bytes may complete it.
    Incomplete,
    /// Even a lenient reader finds no JSON, whatever follows. The place is [`Cursor::pos`](crate::Cursor::pos).
    Malformed,
}

/// The body of a string: the raw bytes between the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes between the quotes as the file spells them.
    pub raw: &'a [u8],
    /// Whether a backslash occurs.
    pub spelling: Spelling,
}

/// How a string body is spelled.
///
/// As wide as a pointer, so that [`Text`], and [`Value`] in its niche, are three words without padding:
/// copies of padding bytes stall the processor, and cost a third of the decoding time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Spelling {
    /// The raw bytes are the string's value, if they are UTF-8.
    Plain,
    /// A backslash occurs: see [`crate::string::unescape`].
    Escaped,
}

impl Text<'_> {
    /// Whether a backslash occurs.
    #[inline]
    #[must_use]
    pub fn is_escaped(self) -> bool {
        self.spelling == Spelling::Escaped
    }
}

/// One value, scalars with their text, containers skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string.
    String(Text<'a>),
    /// A number, as spelled.
    Number(&'a [u8]),
    /// `NaN`, `Infinity`, `-inf`...: not JSON, but Python and C++ writers emit it.
    NonFinite(&'a [u8]),
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`.
    Null,
    /// An object, braces included.
    Object(&'a [u8]),
    /// An array, brackets included.
    Array(&'a [u8]),
}
