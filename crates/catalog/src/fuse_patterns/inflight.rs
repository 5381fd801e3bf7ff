//! Fused kernels in open pull requests.

use super::{BASE, Framework, FusePattern, Heavy, Origin, rows};
use crate::Platform;

const OPEN: FusePattern = FusePattern { origin: Origin::Inflight, ..BASE };

rows! { INFLIGHT, OPEN =>
    {
        id: "F24",
        title: "Query and key norm, rotary embedding and KV cache write in one kernel (Qwen3.5)",
        platform: Platform::Rocm,
        models: "qwen3.5|qwen3_5",
        active: "fused_qk_norm_rope_cache_pts_quant_shuffle|fused_qk_norm_mrope_3d_cache_pts_quant_shuffle",
        groups: &[
            "apply_qk_norm|qknorm|q_norm|k_norm|in:apply_qk_norm",
            "rotary|rope|mrope",
            "cache|kv_buffer|cache write|store_kvcache",
        ],
        min_pct: 0.4,
        priority: 100,
        subsumes: "F06 F07 F08",
        path: "PR #20667; sgl:srt/models/qwen3_5.py; sgl:srt/models/utils.py",
    }
    yes: [
            "a op aiter::fused_qk_norm_rope_cache_pts_quant_shuffle", "1 fn k_norm",
            "2 void rotary_embedding_kernel<c10::BFloat16>(int)",
            "3 void (anonymous namespace)::store_kvcache<2048l, 4>(int)",
        ],
        no: ["fn block_norm", "void vllm::paged_attention_v2_kernel<(vllm::Fp8KVCacheDataType)1>(int)"];
    {
        id: "F25",
        title: "FP8 matrix product of CUTLASS in place of nvjet with its fills",
        platform: Platform::Cuda,
        heavy: Heavy::Gemm,
        active: "cutlass_scaled_mm|fp8_scaled_mm",
        groups: &["memset|memcpy128", "nvjet|_scaled_mm"],
        min_pct: 0.2,
        priority: 90,
        path: "PR #22392; sgl-kernel/python/sgl_kernel/gemm.py; sgl:srt/layers/quantization/fp8_utils.py",
    }
    yes: [
            "a op sgl_kernel::fp8_scaled_mm", "1 Memset (Device)",
            "2 nvjet_qqtst_128x128_128x6_1x2_h_bz_coopA_TNT", "2 op aten::_scaled_mm",
        ],
        no: ["sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "Memcpy DtoD (Device -> Device)"];
    {
        id: "F40",
        title: "Query and key norm, rotary embedding, cache write and quantization in one kernel",
        platform: Platform::Cuda,
        framework: Framework::Vllm,
        active: "fused_qk_norm_rope_cache_quant",
        groups: &[
            "qknorm|q_norm|k_norm",
            "rope|rotary|mrope",
            "cache|kv_buffer|cache write",
            "quant|fp8|nvfp4",
        ],
        min_pct: 0.4,
        priority: 100,
        subsumes: "F33",
        path: "PR #38621; vllm/csrc/fused_qk_norm_rope_cache_quant.cu; vllm/compilation/passes/fusion/qk_norm_rope_cache_quant_fusion.py",
    }
    yes: [
            "a void vllm::fused_qk_norm_rope_cache_quant_kernel<float>(int)", "1 fn q_norm",
            "2 void vllm::rotary_embedding_kernel<c10::BFloat16, true>(int)",
            "3 void vllm::reshape_and_cache_flash_kernel<float>(int)",
            "4 void vllm::dynamic_per_token_scaled_fp8_quant_kernel<float>(int)",
        ],
        no: ["fn requantize_kv_cache", "kernel_unified_attention_2d"];
}
