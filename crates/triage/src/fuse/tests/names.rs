//! What the names of kernels, operators, callers and modules say.

use super::*;

#[test]
fn a_number_format_in_a_matrix_product_is_no_quantization() {
    // Seen in vLLM decoding GPT-OSS: "fp4" of mxfp4 next to norms read as norm with quantization.
    let names = [RMS_NORM, GEMM, "_topk_forward", EXPERTS, RMS_NORM, EXPERTS, RMS_NORM];
    for context in [FuseContext::default(), of(Framework::Vllm)] {
        assert_eq!(brief(&found(&names, &context)), []);
    }
}

#[test]
fn a_number_format_in_attention_is_no_cache_write() {
    // Seen in SGLang decoding: the template argument Fp8KVCacheDataType read as a cache write.
    let sglang = of(Framework::Sglang);
    assert_eq!(brief(&found(&[ROPE, PAGED, GEMM], &sglang)), []);
    // With a real cache write between, attention's time does not count.
    let found = found(&[ROPE, CACHE, PAGED, GEMM], &sglang);
    assert_eq!(brief(&found), [("F07", "opportunity", 20)]);
    assert_eq!(
        found.rows[0].evidence,
        [
            "rotary_embedding_kernel<BFloat16, true> (25.0%)",
            "store_kvcache<2048l, 4, false, long> (25.0%)"
        ]
    );
}

#[test]
fn a_number_format_in_attention_is_no_quantization() {
    // Seen on B200: attention with FP8 in its template arguments read as attention with quantization.
    let fp8 = "void flashinfer::BatchPrefillWithPagedKVCacheKernel<128, __nv_fp8_e4m3, (QuantMode)1>(int)";
    for context in [FuseContext::default(), of(Framework::Vllm)] {
        assert_eq!(brief(&found(&[PAGED, PAGED, GEMM], &context)), []);
        assert_eq!(brief(&found(&[fp8, fp8, GEMM], &context)), []);
    }
    // What it would be: the pattern is about attention, so that its time counts.
    let found = found(&[PAGED, QUANT, GEMM], &of(Framework::Vllm));
    assert_eq!(brief(&found), [("F33", "opportunity", 20)]);
}

#[test]
fn callers_tell_which_norm_it_is_and_modules_which_model() {
    let trace = lane(&[RMS_NORM, RMS_NORM, ROPE, CACHE]);
    let places = |caller: &str| {
        let norm = Site {
            cpu_op: Some("aiter::rmsnorm".to_owned()),
            modules: Some("Qwen3Attention > RMSNorm".to_owned()),
            stack: vec![format!("sglang/srt/models/utils.py:416 {caller}")],
            confidence: Confidence::Exact,
            ..attribution::unknown()
        };
        Attribution::new(vec![attribution::unknown(), norm], vec![1, 1, 0, 0])
    };
    let context = of(Framework::Sglang);
    let ids = |caller| {
        brief(&look_on(&trace, |_| Stage::All, |_| Some(places(caller)), &context, Platform::Rocm))
            .first()
            .map(|row| row.0.to_owned())
    };
    assert_eq!(ids("apply_qk_norm").as_deref(), Some("F13"));
    assert_eq!(ids("forward").as_deref(), Some("F07"), "another norm");
}

#[test]
fn operators_and_functions_say_what_names_do_not() {
    let trace = lane(&[RMS_NORM, RMS_NORM, ROPE, CACHE, GEMM]);
    let places = |_: &Gpu<'_>| {
        let site = |op: &str, function: &str| Site {
            cpu_op: Some(op.to_owned()),
            location: Some(Location {
                path: "sglang/srt/models/qwen3.py".to_owned(),
                full_path: None,
                line: 7,
                function: function.to_owned(),
            }),
            ..attribution::unknown()
        };
        assert_eq!(attribution::unknown().confidence, Confidence::None);
        let sites = vec![
            site("aiter::rmsnorm", "apply_qk_norm"),
            site("sgl_kernel::rotary_embedding", "forward"),
            site("sglang::store_cache", "forward"),
            site("aten::mm", "forward"),
        ];
        Some(Attribution::new(sites, vec![0, 0, 1, 2, 3]))
    };
    let qwen = FuseContext { model: Some("Qwen/Qwen3-8B"), ..of(Framework::Sglang) };
    let found = look_on(&trace, |_| Stage::All, places, &qwen, Platform::Rocm);
    assert_eq!(brief(&found), [("F13", "opportunity", 40)], "what it subsumes is gone");
    let other = look(&trace, |_| Stage::All, places, &of(Framework::Sglang));
    assert_eq!(brief(&other), [("F05", "opportunity", 20), ("F07", "opportunity", 20)]);
    assert_eq!(
        found.rows[0].current_location,
        "sglang/srt/models/qwen3.py:7 apply_qk_norm; sglang/srt/models/qwen3.py:7 forward"
    );
}
