//! Open `B` events and the `E` events that close them, in constant time each however many stay open.

use std::collections::HashMap;

use trace::{BuildIdHasher, Row, StringId, Trace};

use super::nesting::NO_NAME;

/// What an `E` may ask for: a name, a category, both or nothing.
type Wanted = (Option<StringId>, Option<StringId>);

/// One `B`.
struct Begin {
    number: usize,
    is_open: bool,
    /// For each of the four things that an `E` may ask for, the `B` before this one, counted from 1; 0 if there is none.
    before: [u32; 4],
}

/// The open `B` events of one thread, each with a number that the caller chose.
#[derive(Default)]
pub(crate) struct OpenBegins {
    begins: Vec<Begin>,
    /// The latest `B` for what an `E` may ask for, counted from 1. (A list of all for each would be an allocation each.)
    latest: HashMap<Wanted, u32, BuildIdHasher>,
}

/// A name as `E` events are compared with: a `B` without one is called `[No name]`.
fn name_of(trace: &Trace, row: Row) -> StringId {
    let name = trace.name(row);
    if trace.strings.get(name) == NO_NAME { StringId::EMPTY } else { name }
}

/// Which of the four things that an `E` may ask for.
fn kind((name, category): Wanted) -> usize {
    usize::from(name.is_some()) * 2 + usize::from(category.is_some())
}

impl OpenBegins {
    /// Notes a `B`.
    pub(crate) fn open(&mut self, trace: &Trace, begin: Row, number: usize) {
        let (name, category) = (name_of(trace, begin), trace.raw_category(begin));
        let mut before = [0; 4];
        let own = self.begins.len() as u32 + 1;
        for name in [None, Some(name)] {
            for category in [None, Some(category)] {
                let wanted = (name, category);
                before[kind(wanted)] = self.latest.insert(wanted, own).unwrap_or_default();
            }
        }
        self.begins.push(Begin { number, is_open: true, before });
    }

    /// The number of the innermost `B` that an `E` closes: names and categories that the `E` has must be equal.
    pub(crate) fn close(&mut self, trace: &Trace, end: Row) -> Option<usize> {
        let has_name = trace.name(end) != StringId::EMPTY;
        let category = trace.raw_category(end);
        let wanted = (
            has_name.then(|| name_of(trace, end)),
            (category != StringId::EMPTY).then_some(category),
        );
        let latest = self.latest.get_mut(&wanted)?;
        while let Some(at) = latest.checked_sub(1) {
            let begin = self.begins.get_mut(at as usize)?;
            *latest = begin.before[kind(wanted)];
            if std::mem::take(&mut begin.is_open) {
                return Some(begin.number);
            }
        }
        None
    }
}
