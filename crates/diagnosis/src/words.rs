//! Sentences inside others.

/// With a small first letter.
pub(crate) fn lower(title: &str) -> String {
    let mut text = title.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}
