//! The profiler of XLA (JAX, TensorFlow).

/// How the names of planes begin, which it writes as names of processes (`XPlane` of OpenXLA).
pub const PLANES: &[&str] = &["/host:", "/device:"];
