//! Packages that we know, with the folders at their top: a folder of a package's name that holds none of these is
//! something else that was called so.

/// Packages whose frames say what a model does.
#[rustfmt::skip]
const MODELS: &[(&str, &[&str])] = &[
    ("vllm", &["v1", "model_executor", "engine", "worker", "entrypoints", "attention", "distributed", "compilation", "lora", "executor", "utils", "multimodal", "platforms", "core", "transformers_utils", "spec_decode", "vllm_flash_attn"]),
    ("sglang", &["srt", "lang", "jit_kernel", "multimodal_gen"]),
    ("transformers", &["models", "generation", "integrations", "utils", "pipelines", "kernels", "quantizers", "loss", "data"]),
    ("diffusers", &["models", "pipelines", "schedulers", "loaders", "utils", "quantizers", "hooks", "modular_pipelines", "guiders"]),
    ("xfuser", &["core", "model_executor", "config", "ray", "entrypoints"]),
    ("megatron", &["core", "training", "legacy", "model", "optimizer", "data"]),
    ("deepspeed", &["runtime", "ops", "inference", "comm", "moe", "module_inject", "sequence", "pipe", "utils"]),
    ("tensorrt_llm", &["_torch", "models", "layers", "runtime", "executor", "llmapi", "serve"]),
    ("tokenspeed", &["runtime", "models", "layers"]),
    ("timm", &["models", "layers", "optim", "data", "loss"]),
    ("torchvision", &["models", "ops", "transforms", "datasets", "io"]),
    ("torchaudio", &["models", "functional", "transforms", "pipelines"]),
    ("accelerate", &["utils", "commands"]),
    ("peft", &["tuners", "utils"]),
    ("trl", &["trainer", "models", "extras", "experimental"]),
    ("torchtitan", &["models", "distributed", "components", "experiments", "tools"]),
    ("torchtune", &["modules", "models", "training", "data", "rlhf"]),
    ("lightning", &["pytorch", "fabric"]),
    ("fairscale", &["nn", "optim", "experimental"]),
    ("nemo", &["core", "collections", "lightning"]),
    ("lmdeploy", &["pytorch", "turbomind", "serve"]),
];

/// Packages of kernels: a model calls them, and the call says more than what is inside.
#[rustfmt::skip]
const KERNELS: &[(&str, &[&str])] = &[
    ("aiter", &["ops", "jit", "dist", "rotary_embedding", "utility"]),
    ("sgl_kernel", &["testing", "quantization"]),
    ("flash_attn", &["ops", "layers", "modules", "models", "cute", "utils", "flash_attn_triton_amd"]),
    ("flashinfer", &["jit", "fused_moe", "comm", "triton", "norm", "cute_dsl", "gemm"]),
    ("xformers", &["ops", "components", "triton"]),
    ("apex", &["optimizers", "normalization", "contrib", "transformer", "multi_tensor_apply", "amp"]),
    ("triton_kernels", &["matmul_ogs_details", "numerics_details", "topk_details", "tensor_details", "routing_details"]),
    ("liger_kernel", &["transformers", "ops", "chunked_loss"]),
    ("bitsandbytes", &["nn", "optim", "autograd", "backends", "research"]),
    ("transformer_engine", &["pytorch", "common", "jax"]),
];

/// What all of these are written with.
#[rustfmt::skip]
const FRAMEWORKS: &[(&str, &[&str])] = &[
    ("torch", &["nn", "_inductor", "_dynamo", "_functorch", "autograd", "distributed", "utils", "optim", "fx", "cuda", "profiler", "amp", "ao", "_higher_order_ops", "_prims", "_refs", "export", "backends", "_library", "_C"]),
    ("triton", &["runtime", "backends", "compiler", "language", "tools", "experimental"]),
    ("torch_xla", &["core", "distributed", "utils"]),
    ("pytorch_lightning", &["core", "loops", "trainer", "strategies", "plugins", "callbacks", "utilities"]),
];

fn of(
    table: &[(&'static str, &'static [&'static str])],
    name: &str,
) -> Option<&'static [&'static str]> {
    table.iter().find(|(package, _)| *package == name).map(|(_, parts)| *parts)
}

/// The folders at the top of a known package.
pub(super) fn parts(name: &str) -> Option<&'static [&'static str]> {
    of(MODELS, name).or_else(|| of(KERNELS, name)).or_else(|| of(FRAMEWORKS, name))
}

/// Whether a package holds models or serves them.
pub(super) fn is_model(name: &str) -> bool {
    of(MODELS, name).is_some()
}

/// Whether a package holds kernels.
pub(super) fn is_kernel(name: &str) -> bool {
    of(KERNELS, name).is_some()
}

/// Whether a package is what the others are written with.
pub(super) fn is_framework(name: &str) -> bool {
    of(FRAMEWORKS, name).is_some()
}
