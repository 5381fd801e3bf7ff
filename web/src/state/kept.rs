//! What the browser keeps of the files, if a person wants that.

/// Copies of opened files in the private file system of the page's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files of earlier visits that can be opened again.
    pub n_waiting: u64,
    /// Their size.
    pub waiting_bytes: u64,
    /// All copies, those of open files too.
    pub n_files: u64,
    /// Their size.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Action, Effect, State, reduce};

    #[test]
    fn nothing_is_kept_unless_a_person_wants_it() {
        let state = State::default();
        assert!(!state.keeps);
        let (state, effects) = reduce(&state, Action::KeepSet(true));
        assert_eq!((state.keeps, effects), (true, vec![Effect::Keep(true)]));
        let kept = Kept { n_waiting: 1, waiting_bytes: 5, n_files: 2, bytes: 9 };
        let (state, effects) = reduce(&state, Action::KeptFound(kept));
        assert_eq!((state.kept, effects), (kept, Vec::new()));
        let (state, effects) = reduce(&state, Action::KeepSet(false));
        assert_eq!((state.keeps, effects), (false, vec![Effect::Keep(false)]));
    }

    #[test]
    fn a_newer_build_is_said_until_a_person_does_not_want_it() {
        let (state, _) = reduce(&State::default(), Action::NewerFound(true));
        assert!(state.is_newer);
        let (state, _) = reduce(&state, Action::NewerFound(false));
        assert!(!state.is_newer);
    }
}
