//! Bytes and shares, as tables and sentences show them.

use report::Cell;
use report::units::bytes;

pub(crate) fn size(value: i64) -> String {
    match u64::try_from(value) {
        Ok(value) => bytes(value),
        Err(_) => format!("-{}", bytes(value.unsigned_abs())),
    }
}

/// `part` as a share of `whole` in percent.
pub(crate) fn percent(part: i64, whole: i64) -> f64 {
    100.0 * crate::totals::ratio(part, whole)
}

pub(crate) fn amount(bytes: i64) -> Cell<'static> {
    match u64::try_from(bytes) {
        Ok(bytes) => Cell::Bytes(bytes),
        Err(_) => Cell::missing("below 0: the file is inconsistent"),
    }
}

/// A share in percent, in words.
#[inline(never)]
pub(crate) fn share(part: i64, whole: i64) -> String {
    let share = format!("{:.0}%", percent(part, whole));
    if share == "100%" && part < whole { "over 99%".to_owned() } else { share }
}
