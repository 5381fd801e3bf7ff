//! The enums of rows that JSON has as their ids ([`analysis::ids`]).

use analysis::ids::AsId;

use crate::fuse::{FuseStatus, GainConfidence, PatternConfidence};
use crate::overlap::{Risk, Verdict};
use crate::priority::Priority;

macro_rules! as_id {
    ($($kind:ty),*) => {
        $(impl AsId for $kind {
            fn as_id(&self) -> Option<&'static str> {
                Some(self.id())
            }
        })*
    };
}

as_id!(FuseStatus, GainConfidence, PatternConfidence, Priority, Risk, Verdict);
