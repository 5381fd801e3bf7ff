//! What can be done about a measured cost, and under which conditions it may be printed.
//!
//! `REMEDIES` is the only table of advice. A row has a sentence that says what to do, why, and how to check the
//! result, and *gates*: the conditions under which the advice can work at all. A gate needs a fact of the trace
//! ([`RunFacts`]). A fact that is not known never passes a gate, so that a remedy is printed only where the trace
//! proves that it applies.

mod gates;
mod table;

pub use gates::{
    Activation, Execution, Gate, Gates, Mask, Norm, Optimizer, Parts, Phase, RunFacts, RunType,
    Stack,
};
use table::REMEDIES;
pub use table::{PYTORCH_2_0, released};

/// One row of the table of advice.
#[derive(Clone, Copy, Debug)]
pub struct Remedy {
    /// Id, unique in the table.
    pub id: &'static str,
    /// What replaces the present code, as a short noun: `torch.nn.functional.rms_norm`.
    pub what: &'static str,
    /// What to do: an imperative sentence.
    pub action: &'static str,
    /// Why it helps: a sentence.
    pub why: &'static str,
    /// How to check the result: a sentence.
    pub check: &'static str,
    /// When it applies.
    pub gates: Gates,
}

/// (Ids are unique.)
impl PartialEq for Remedy {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// The remedy of an id.
#[must_use]
pub fn remedy(id: &str) -> Option<&'static Remedy> {
    REMEDIES.iter().find(|remedy| remedy.id == id)
}

/// Of the remedies named by `ids`, those whose gates `facts` pass, in the order of `ids`.
#[must_use]
pub fn applicable(ids: &[&str], facts: &RunFacts) -> Vec<&'static Remedy> {
    let row = |id: &&str| {
        let found = remedy(id);
        debug_assert!(found.is_some(), "{id} is no remedy");
        found
    };
    let rows = ids.iter().filter_map(row);
    rows.filter(|remedy| remedy.gates.closed(facts).is_none()).collect()
}

#[cfg(test)]
mod tests;
