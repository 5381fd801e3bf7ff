//! The example trace (see the next commit).
