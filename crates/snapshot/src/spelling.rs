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

/// Whether a text has a part. (A search that is inlined at each of many places makes the page's worker large.)
#[inline(never)]
pub(crate) fn has(text: &str, part: &str) -> bool {
    text.contains(part)
}
