//! What comes next, for loops over small values.

use crate::{
    Cursor, Decimal, Spelling, Text,
    decimal::{n_digits_of_short, read},
    lexis::not_plain,
};

/// The bytes from a place on.
///
/// It reads what nearly all files have, and reads nothing where something else stands: the [`Cursor`] that it comes from reads
/// that. A loop that has it in a local variable keeps it in registers. The place of a cursor is in memory, since functions that
/// are not inlined move it, and each small value then waits until the one before it has stored where it ended.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// What comes next.
    #[inline(always)]
    #[must_use]
    pub fn ahead(&self) -> Ahead<'a> {
        Ahead(self.rest())
    }

    /// Moves to a place further on, which [`Cursor::ahead`] led to.
    #[inline(always)]
    pub fn go_to(&mut self, ahead: Ahead<'a>) {
        self.advance(self.rest().len() - ahead.0.len());
    }
}

impl<'a> Ahead<'a> {
    /// The bytes up to a later place.
    #[inline]
    #[must_use]
    pub fn until(self, later: Ahead<'a>) -> &'a [u8] {
        self.0.get(..self.0.len() - later.0.len()).unwrap_or_default()
    }

    /// Whether `byte` comes next.
    #[inline(always)]
    #[must_use]
    pub fn is_at(self, byte: u8) -> bool {
        self.0.first() == Some(&byte)
    }

    /// The next bytes.
    #[inline(always)]
    pub(crate) fn chunk<const N: usize>(self) -> Option<&'a [u8; N]> {
        self.0.first_chunk()
    }

    /// Moves over `len` bytes, and returns them.
    #[inline(always)]
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Moves over one bracket that [`Ahead::is_at`] saw.
    #[inline(always)]
    pub fn enter(&mut self) {
        self.take(1);
    }

    /// Moves to the next member or item, as nearly all files write it: `first` in its container at once, any other after a
    /// comma and one space. False if something else follows.
    #[inline(always)]
    pub(crate) fn next_item(&mut self, first: bool) -> bool {
        let is_item = |byte: u8| byte > b' ' && !matches!(byte, b',' | b'}' | b']');
        match self.0 {
            [item, ..] if first => is_item(*item),
            [b',', b' ', item, ..] if is_item(*item) => self.take(2).is_some(),
            _ => false,
        }
    }

    /// Reads a string of printable ASCII without escapes, if one follows. Near the end of the slice it may miss one.
    #[inline(always)]
    pub fn plain_string(&mut self) -> Option<Text<'a>> {
        let [b'"', rest @ ..] = self.0 else { return None };
        let (words, _) = rest.as_chunks::<8>();
        let mut len = 0;
        for word in words {
            let found = not_plain(*word);
            if found != 0 {
                len += found.trailing_zeros() as usize / 8;
                let (raw, behind) = rest.split_at_checked(len)?;
                let [b'"', behind @ ..] = behind else { return None };
                self.0 = behind;
                return Some(Text { raw, spelling: Spelling::Plain });
            }
            len += 8;
        }
        None
    }

    /// Reads a [`Decimal`] in plain spelling and its text, if one follows and a byte after it ends the number. Near the end of
    /// the slice it may miss one.
    #[inline(always)]
    pub fn decimal(&mut self) -> Option<(Decimal, &'a [u8])> {
        let (decimal, len) = read(self.chunk()?)?;
        Some((decimal, self.take(len)?))
    }

    /// Moves over a [`Decimal`] of less than eight digits without a point; false if none follows.
    #[inline(always)]
    pub fn skip_short_integer(&mut self) -> bool {
        let len = self.chunk().and_then(n_digits_of_short);
        len.is_some_and(|len| self.take(len).is_some())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A value as files write it, or nearly so.
    fn values() -> impl Strategy<Value = String> {
        prop_oneof![
            "\"[ -~é\n]{0,20}\"",
            "\"[a-z]{0,20}\"",
            "-?[0-9]{0,18}(\\.[0-9]{0,5})?(e[0-9])?",
            "(0|[1-9][0-9]{0,15})(\\.[0-9]{1,3})?",
        ]
    }

    proptest! {
        #[test]
        fn what_it_reads_the_cursor_reads(value in values(), end in "[,}\\] \nx\"]", more in "[ -~]{0,40}") {
            let text = format!("{value}{end}{more}");
            let whole = Cursor::new(text.as_bytes());
            // (So many bytes behind a value are enough for both.)
            let is_far = more.len() >= 32;
            let (mut cursor, mut ahead) = (Cursor::new(text.as_bytes()), whole.ahead());
            let is_plain = |read: &Text<'_>| read.raw.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\');
            let read = cursor.string().ok().filter(is_plain);
            let found = ahead.plain_string();
            if found.is_some() || is_far {
                prop_assert_eq!(found, read);
            }
            if found.is_some() {
                prop_assert_eq!(ahead.0, cursor.ahead().0);
            }
            let (mut cursor, mut ahead) = (Cursor::new(text.as_bytes()), whole.ahead());
            let (read, found) = (cursor.decimal(), ahead.decimal());
            if found.is_some() || is_far {
                prop_assert_eq!(found.map(|(decimal, _)| decimal), read);
                prop_assert_eq!(ahead.0, cursor.ahead().0);
            }
            let mut ahead = whole.ahead();
            if ahead.skip_short_integer() {
                prop_assert_eq!(ahead.0, cursor.ahead().0, "the whole number");
            }
        }
    }
}
