//! Values by interned name.

use trace::{StringId, Trace};

/// A value for each name that was asked for, in that order.
pub struct ByName<T> {
    /// By name: number in `values`.
    numbers: Vec<Option<std::num::NonZeroU32>>,
    values: Vec<(StringId, T)>,
}

impl<T: Default> ByName<T> {
    /// No values.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self { numbers: vec![None; trace.strings.len()], values: Vec::new() }
    }

    /// The value of a name; the default one if it is new.
    pub fn entry(&mut self, name: StringId) -> &mut T {
        let at = match self.numbers[name.0 as usize] {
            Some(number) => number.get() as usize - 1,
            None => {
                self.values.push((name, T::default()));
                self.numbers[name.0 as usize] = std::num::NonZeroU32::new(self.values.len() as u32);
                self.values.len() - 1
            }
        };
        &mut self.values[at].1
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: StringId) -> Option<&T> {
        let number = (*self.numbers.get(name.0 as usize)?)?;
        self.values.get(number.get() as usize - 1).map(|(_, value)| value)
    }

    /// Names and values, in order of first use.
    pub fn iter(&self) -> impl Iterator<Item = (StringId, &T)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }
}
