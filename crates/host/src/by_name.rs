//! Values by interned name.

use trace::{SmallIndex, StringId, Trace};

/// A value for each name that was asked for, in that order.
pub struct ByName<T> {
    /// By name: number in `values`.
    numbers: Vec<Option<SmallIndex>>,
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
            Some(number) => number.at(),
            None => {
                let at = self.values.len();
                self.numbers[name.0 as usize] = SmallIndex::new(at as u32);
                self.values.push((name, T::default()));
                at
            }
        };
        &mut self.values[at].1
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: StringId) -> Option<&T> {
        let number = (*self.numbers.get(name.0 as usize)?)?;
        self.values.get(number.at()).map(|(_, value)| value)
    }

    /// Names and values, in order of first use.
    pub fn iter(&self) -> impl Iterator<Item = (StringId, &T)> {
        self.values.iter().map(|(name, value)| (*name, value))
    }
}
