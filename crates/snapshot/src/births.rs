//! Which allocation each free ends.

use std::collections::HashMap;

use crate::model::{Action, Event};

const NONE: u32 = u32::MAX;

/// The allocation of each block that is freed, and of each that is not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Births {
    /// Per event: for a free, the index of the allocation.
    of_free: Vec<u32>,
    /// Blocks that are never freed: their allocation.
    open: HashMap<u64, u32>,
}

impl Births {
    pub(crate) fn of(trace: &[Event]) -> Self {
        let mut open: HashMap<u64, u32> = HashMap::new();
        let mut of_free = vec![NONE; trace.len()];
        for (at, event) in trace.iter().enumerate() {
            let index = u32::try_from(at).unwrap_or(NONE);
            match event.action {
                Action::Alloc => {
                    open.insert(event.address, index);
                }
                Action::FreeCompleted => {
                    if let (Some(place), Some(birth)) =
                        (of_free.get_mut(at), open.remove(&event.address))
                    {
                        *place = birth;
                    }
                }
                _ => {}
            }
        }
        Self { of_free, open }
    }

    /// The allocation that a free ends; `None` if it was made before the first event.
    pub(crate) fn of_free(&self, free: usize) -> Option<usize> {
        self.of_free.get(free).filter(|birth| **birth != NONE).map(|birth| *birth as usize)
    }

    /// The allocation of a block that is still there after the last event; `None` if it was made before the first.
    pub(crate) fn of_block(&self, address: u64) -> Option<usize> {
        self.open.get(&address).map(|birth| *birth as usize)
    }
}
