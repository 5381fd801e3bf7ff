//! The members of one complete object.

use std::ops::Range;

use crate::Cursor;

/// Where one member of an object lies, relative to the slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSpan {
    /// The key, quotes included.
    pub key: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// The members of the object at the start of `bytes` (after white space), in file order,
/// duplicates included. Ends early where even a lenient reader finds no JSON.
pub fn members(bytes: &[u8]) -> impl Iterator<Item = MemberSpan> + '_ {
    let mut cursor = Cursor::whole(bytes);
    let mut open = cursor.peek() == Ok(b'{');
    if open {
        cursor.enter();
    }
    let mut first = true;
    std::iter::from_fn(move || {
        let member = open.then(|| member(&mut cursor, first)).flatten();
        first = false;
        open = member.is_some();
        member
    })
}

fn member(cursor: &mut Cursor<'_>, first: bool) -> Option<MemberSpan> {
    if !cursor.next(first, true).ok()? {
        return None;
    }
    let start = cursor.pos();
    cursor.string().ok()?;
    let end = cursor.pos();
    cursor.colon().ok()?;
    let value = cursor.pos();
    cursor.skip_value().ok()?;
    Some(MemberSpan { key: start..end, value: value..cursor.pos() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(&str, &str)> {
        members(text.as_bytes()).map(|member| (&text[member.key], &text[member.value])).collect()
    }

    #[test]
    fn lists_members_with_duplicates() {
        assert_eq!(
            texts(r#" {"a" : 1 , "b":{"a":[2]},"a":"x"} trailing"#),
            [("\"a\"", "1"), ("\"b\"", r#"{"a":[2]}"#), ("\"a\"", "\"x\"")]
        );
        assert_eq!(texts("{}"), []);
        assert_eq!(texts("[1]"), []);
        assert_eq!(texts(r#"{"":0,"\"":1"#), [("\"\"", "0"), (r#""\"""#, "1")]);
        assert_eq!(texts(r#"{"a":1,'b':2}"#), [("\"a\"", "1")]);
    }
}
