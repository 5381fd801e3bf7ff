//! What the page knows of something that it asks a worker for.

use std::rc::Rc;

use crate::protocol::{Failure, RequestId};
use crate::shared::Shared;

/// Something that a worker makes on request. It takes an answer only to the request that is pending, so an answer to a
/// former one cannot be stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Remote<T> {
    /// Not asked for, or the worker ended before it answered.
    Idle,
    /// Asked for.
    Pending(RequestId),
    /// There.
    Ready(Shared<T>),
    /// It cannot be made.
    Failed(Rc<Failure>),
}

impl<T> Remote<T> {
    /// The value, once it is there.
    #[must_use]
    pub fn ready(&self) -> Option<&Shared<T>> {
        match self {
            Self::Ready(value) => Some(value),
            Self::Idle | Self::Pending(_) | Self::Failed(_) => None,
        }
    }

    /// The request that is to be answered.
    #[must_use]
    pub fn pending(&self) -> Option<RequestId> {
        match self {
            Self::Pending(id) => Some(*id),
            Self::Idle | Self::Ready(_) | Self::Failed(_) => None,
        }
    }

    /// Takes the answer to a request; `false` if it is not the one that is pending.
    pub(crate) fn answer(&mut self, id: RequestId, answer: Result<T, Failure>) -> bool {
        let is_pending = self.pending() == Some(id);
        if is_pending {
            *self = match answer {
                Ok(value) => Self::Ready(Shared::new(value)),
                Err(failure) => Self::Failed(Rc::new(failure)),
            };
        }
        is_pending
    }

    /// The worker ended: nothing is pending any more.
    pub(crate) fn give_up(&mut self) {
        if self.pending().is_some() {
            *self = Self::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pending_request_is_answered() {
        let (first, second) = (RequestId(1), RequestId(2));
        let mut remote = Remote::Pending(second);
        assert!(!remote.answer(first, Ok("stale")));
        assert_eq!(remote.pending(), Some(second));
        assert!(remote.answer(second, Ok("asked for")));
        assert!(!remote.answer(second, Ok("again")));
        assert_eq!(remote.ready().map(|value| **value), Some("asked for"));
        let mut ended = Remote::Pending(first);
        ended.give_up();
        assert!(!ended.answer(first, Ok("late")) && ended == Remote::Idle);
    }
}
