//! How TorchScript spells its work.

/// The op that runs a graph without a specialised version of it (`prim::FallbackGraph`). Until the profiling executor has compiled one
/// for these types, it is where it compiles.
pub const FALLBACK: &str = "fallback_function";
