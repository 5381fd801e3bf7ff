//! Texts and whole numbers as the file spells them.

use std::borrow::Cow;

use scan::Text;

pub(crate) fn text(text: Text<'_>) -> Cow<'_, str> {
    scan::string::unescape(text.raw)
}

/// A whole number as JSON spells it; also in quotes, as some writers do.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
