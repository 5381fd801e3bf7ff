//! How TorchScript spells its work.

/// The op that runs a graph without a specialised version of it (`prim::FallbackGraph`). Until the profiling executor has compiled one
/// for these types, it is where it compiles.
pub const FALLBACK: &str = "fallback_function";

/// Whether a name is that of a kernel which TorchScript has fused, and of the op around it (`torch/csrc/jit/tensorexpr/cuda_codegen.cpp`).
#[must_use]
pub fn is_fused(name: &str) -> bool {
    name.starts_with("fused_")
}
