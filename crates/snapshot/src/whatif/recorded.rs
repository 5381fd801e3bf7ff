//! The settings that a run was recorded under (`allocator_settings` of a snapshot).

use scan::{Cursor, Stop, Value};

use super::{Divisions, Refusal, Settings};
use crate::spelling::integer;

/// The settings that the model knows. `is_recorded` tells whether the file holds any; else they are the defaults.
///
/// # Errors
/// A setting that changes what the allocator does, and that the model does not have.
pub(super) fn settings(text: Option<&str>, is_recorded: &mut bool) -> Result<Settings, Refusal> {
    let mut of_file = OfFile::default();
    if let Some(text) = text {
        // What stands before a fault is used; without `max_split_size` nothing counts as recorded.
        let _ = of_file.read(&mut Cursor::whole(text.as_bytes()));
    }
    *is_recorded = of_file.max_split_size.is_some();
    if of_file.collects {
        let why = "garbage_collection_threshold is set, which the model does not have";
        return Err((why.to_owned(), None));
    }
    Ok(Settings {
        is_expandable: of_file.is_expandable,
        max_split_size: of_file.max_split_size.filter(|size| *size > 0).unwrap_or(i64::MAX),
        roundup_power2_divisions: of_file.divisions,
    })
}

#[derive(Default)]
struct OfFile {
    max_split_size: Option<i64>,
    is_expandable: bool,
    /// Whether `garbage_collection_threshold` is above 0. (It acts only where a fraction of the device's memory was set, which is not
    /// recorded: `malloc` in `c10/cuda/CUDACachingAllocator.cpp`.)
    collects: bool,
    divisions: Divisions,
}

impl OfFile {
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        if cursor.peek()? != b'{' {
            return Ok(());
        }
        cursor.enter();
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            match (key.raw, cursor.value()?) {
                (b"max_split_size", Value::Number(size)) => self.max_split_size = integer(size),
                (b"expandable_segments", value) => self.is_expandable = value == Value::True,
                (b"garbage_collection_threshold", Value::Number(of)) => {
                    self.collects = !is_zero(of)
                }
                (b"roundup_power2_divisions", Value::Object(of)) => self.divisions = divisions(of)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a number is 0 in any spelling: `0`, `0.0`, `-0e5`.
fn is_zero(number: &[u8]) -> bool {
    number
        .iter()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .all(|byte| !matches!(byte, b'1'..=b'9'))
}

/// The divisions by power of two: the keys are the powers in MiB, `"1"` to `"32768"`.
fn divisions(of: &[u8]) -> Result<Divisions, Stop> {
    let mut divisions = Divisions::default();
    let mut cursor = Cursor::whole(of);
    cursor.peek()?;
    cursor.enter();
    let mut first = true;
    while let Some(key) = cursor.next_key(first)? {
        first = false;
        let power = integer(key.raw).and_then(|mib| u64::try_from(mib).ok()?.checked_ilog2());
        let of_power = power.and_then(|power| divisions.get_mut(power as usize));
        if let (Some(parts), Value::Number(number)) = (of_power, cursor.value()?) {
            *parts = integer(number).unwrap_or_default();
        }
    }
    Ok(divisions)
}
