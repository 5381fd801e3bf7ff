//! The profiler of ONNX Runtime (measured: 1.12 to 1.31).

/// Raw category of the events of a session.
pub const SESSION: &str = "Session";

/// How the names of the events begin that a session starts with.
pub const SESSION_STARTS: &[&str] = &["model_loading_", "session_initialization", "model_run"];
