//! What an address has of a filter: comparisons with numbers. Words may be names of the trace, which no address has.

use super::filter::words;

/// Columns that may be named. (Another word before a number may be part of a name, as in `worker:7`.)
const COLUMNS: &[&str] =
    &["", "calls", "launches", "max", "mean", "min", "share", "stream", "total"];
/// Units that may follow a number.
const UNITS: &[&str] = &["", "ns", "us", "ms", "s", "k", "kb", "mb", "gb", "kib", "mib", "gib"];
/// Signs, the longest first, and how an address spells them: browsers escape some.
const SIGNS: &[(&str, &str)] =
    &[(">=", ".ge."), ("<=", ".le."), (">", ".gt."), ("<", ".lt."), ("=", ".eq."), (":", ".is.")];

/// The comparisons of a filter, as typed.
#[must_use]
pub fn compared(filter: &str) -> String {
    let mut terms = String::new();
    for word in words(filter) {
        if is_compared(&word) {
            if !terms.is_empty() {
                terms.push(' ');
            }
            terms.push_str(&word);
        }
    }
    terms
}

/// Comparisons as an address has them: `>100us stream:7` is `.gt.100us,stream.is.7`.
#[must_use]
pub fn written(compared: &str) -> String {
    let mut link = compared.replace(' ', ",");
    for (sign, spelled) in SIGNS {
        link = link.replace(sign, spelled);
    }
    link
}

/// The comparisons of an address; what is none is left out.
#[must_use]
pub fn read(link: &str) -> String {
    let mut filter = link.replace(',', " ");
    for (sign, spelled) in SIGNS {
        filter = filter.replace(spelled, sign);
    }
    compared(&filter)
}

fn is_compared(word: &str) -> bool {
    let parts = SIGNS.iter().find_map(|(sign, _)| word.split_once(sign));
    let Some((column, number)) = parts else { return false };
    let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number
        && digits.starts_with(|first: char| first.is_ascii_digit())
        && UNITS.contains(&&number[digits.len()..])
        && COLUMNS.contains(&column.trim_start_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_come_back() {
        for text in [">100us", "calls>=10 -total<1.5ms", "stream:7 mean=3", "share<=5", ""] {
            assert_eq!(compared(text), text);
            assert_eq!(read(&written(text)), text);
        }
        assert_eq!(written("calls>=10 -total<1.5ms"), "calls.ge.10,-total.lt.1.5ms");
    }

    #[test]
    fn no_word_that_may_be_a_name_gets_into_an_address() {
        for text in [
            "gemm",
            "cat:gemm",
            "secret:7",
            "secret>7",
            ">secret",
            "stream:secret",
            ">5secret",
            "\"a b\"",
            "=",
            ":",
        ] {
            assert_eq!(compared(text), "", "{text}");
            assert_eq!(compared(&format!("{text} >5")), ">5", "{text}");
        }
        assert_eq!(read("<b>,secret,.gt.5"), ">5");
    }
}
