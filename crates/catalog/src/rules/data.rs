//! Kernels that choose, find, move and rearrange data.
//!
//! A row with scope `Name` is for generic kernels that carry their work in a template argument; its
//! patterns are the names of such arguments. The row of scope `Head` next to it takes plain words.

use super::rules;

rules! { DATA:
    { id: "sampling_topk.name", category: SamplingTopk, scope: Name,
      any: [
        "top_?k", "top_?p", "sampl", "multinomial", "arg_?max", "arg_?min", "gathertopk",
        "gatherkth", "gathermedian", "speculative",
      ],
      examples: [
        "void argmax_kernel<float>(int)",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(int)", "_topk_topp_kernel",
        "void flashinfer::sampling::TopKRenormProbKernel<1024u>(float*)",
        "void at::native::gatherKthValue<float, int, 2>(int)",
        "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)",
        "rejection_greedy_sample_kernel",
      ],
      source: "CUB, PyTorch, FlashInfer, vLLM" }
    { id: "sampling_topk.head", category: SamplingTopk, scope: Head,
      any: [
        "min_?p_", "kthvalue", "radix_?select", "<mode_kernel",
        "rejection", "renormprob", "beam_?search", "beamhyp", "beam_", "ban_bad", "logits_proc",
        "logit_bias", "temperature", "logprob", "log_prob", "<median", "_ranks_kernel", "<prob_",
      ],
      examples: [
        "void beamSearchKernel<float, 4>(int)", "_ranks_kernel",
      ],
      source: "PyTorch, vLLM, TRT-LLM" }
    // The name of a sort does not include its purpose: triage makes it sampling if its op samples.
    { id: "scan_sort.sort", category: ScanSort, scope: Name,
      any: [
        "radix_?sort", "bitonic", "segmented_?sort", "sort_", "sort>", "sortpairs", "merge_?sort",
        "sortkernel", "sortkeyvalue",
      ],
      examples: [
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false>(int)",
        "void at::native::bitonicSortKVInPlace<2, -1, 16, 16, float>(int)",
      ],
      source: "CUB, PyTorch" }
    { id: "scan_sort.name", category: ScanSort, scope: Name,
      any: [
        "rocprim", "hipcub", "cub::", "thrust::", "<scan", "lookback", "unique", "nonzero",
        "histogram", "exclusive_sum", "cumsum", "cumprod", "tensor_kernel_scan", "searchsorted",
        "flag_kernel", "compact",
      ],
      examples: [
        "void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int> >(int)",
        "void rocprim::ROCPRIM_400400_NS::detail::trampoline_kernel<rocprim::ROCPRIM_400400_NS::default_config>(int)",
        "void at::native::(anonymous namespace)::searchsorted_cuda_kernel<float, long>(long*)",
        "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >(float*)",
      ],
      source: "CUB, rocPRIM, PyTorch" }
    { id: "scan_sort.head", category: ScanSort, scope: Head,
      any: [
        "histc", "exclusivesum", "cummax", "cummin", "logcumsumexp", "prefix_?sum", "bucketize",
        "_scan$", "scan_?kernel", "offsets_range", "invert_permute", "onesweep", "<partition_kernel",
      ],
      examples: [
        "void fbgemm_gpu::_offsets_range_cuda_kernel<long>(long)", "blockPrefixSum",
        "onesweep_iteration_kernel",
      ],
      source: "FBGEMM, PyTorch, rocPRIM under rocprof" }
    { id: "index.name", category: Index, scope: Name,
      any: [
        "index_?select", "index_?put", "index_?kernel", "index_?add", "index_?copy", "index_?fill",
        "index_?elementwise", "index_?func", "index_?reduce", "gather", "scatter", "embedding",
        "take_put", "masked_fill", "masked_select", "masked_scatter", "gpu_index_kernel", "lookup",
        "repeat_interleave", "krn_partial", "compute_grad_weight", "compute_num_weight",
      ],
      examples: [
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, int, unsigned int, 1, 1, -2, true>(int)",
        "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<int> >(int)",
        "void at::native::vectorized_gather_kernel<16, long>(char*)",
        "void linearize_index_kernel<long>(int)",
        "void at::native::_scatter_gather_elementwise_kernel<128, 4, int>(int)",
        "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>(int)",
      ],
      source: "PyTorch" }
    { id: "index.head", category: Index, scope: Head,
      any: [
        "to_dense_representation", "indexing_backward", "jagged", "_indices", "<take_",
        "permute_2d", "permute_1d", "block_bucketize", "find_long_segments", "one_?hot", "<select_",
        "<index_", "embbag", "emb_kernel", "<emb_", "<csr_", "<coo_", "_to_csr",
        "relative_position_bias", "rel_pos", "compute_cuda_kernel",
      ],
      examples: [
        "void at::to_dense_representation_kernel<float>(long)",
        "void fbgemm_gpu::permute_indices_weights_kernel<false, int>(int)",
        "void at::native::indexing_backward_kernel<float, 4>(long const*)",
        "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int)",
        "void fbgemm_gpu::jagged_2d_to_dense_kernel<float>(int)",
        "void compute_cuda_kernel<long>(long*, long*, long*, long, long)",
      ],
      source: "PyTorch, FBGEMM" }
    { id: "fill.name", category: Fill, scope: Name,
      any: ["fillfunctor", "fill_kernel", "zero_kernel", "<fill", "set_zero", "setzero", "memzero"],
      examples: [
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, at::detail::Array<char*, 1> >(int)",
        "zero_kernel", "_fill_buffer",
      ],
      source: "PyTorch, Triton" }
    { id: "fill.head", category: Fill, scope: Head,
      any: [
        "fillkernel", "zerokernel", "_fill$", "_fill_", "memset", "zero_out", "<zero",
        "_init_kernel", "<init_", "initialize", "set_?value", "clear_buf", "<clear_", "<reset_",
      ],
      examples: ["_zero_buffer_triton", "kernel_memset_t", "void initializeOutput<float>(int)"],
      source: "Triton, TRT-LLM" }
    // A transposing pack is a change of layout, not a copy.
    { id: "layout.transpose", category: Layout, scope: Head,
      any: ["transpose", "permute", "nchw", "nhwc", "<roll_", "<converttensor_kernel"],
      examples: [
        "batched_transpose_16x64_pack_1x4_ediv_1x2_half", "transpose_CNHW2NCHW_V2_2D_WG_off64",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)",
        "void cudnn::engines_precompiled::convertTensor_kernel<float, float, float, (cudnnKernelDataType_t)2>(float)",
      ],
      source: "MIOpen, cuDNN" }
    { id: "copy.name", category: Copy, scope: Name,
      any: [
        "catarraybatched", "direct_copy_kernel", "copy_kernel", "copy_device_to_device",
        "chunk_cat", "split_with_sizes", "loadwithcast*copy", "conj_kernel", "<pack_kernel",
        "unpack_kernel", "_copy_", "copy_page", "castkernel",
      ],
      examples: [
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 1, 128, 1>(int)",
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>(int)",
        "void recat_copy_async_kernel<float>(long const*)",
        "void at::native::(anonymous namespace)::split_with_sizes_copy_out_contiguous_no_cast_kernel<int>(int)",
      ],
      source: "PyTorch, torchrec, FSDP2" }
    { id: "copy.head", category: Copy, scope: Head,
      any: [
        "copykernel", "<copy", "_copy$", "copy$", "recat", "concat", "<cat_", "_cat_", "<cat>",
        "memcpy", "batch_?copy", "batchedcopy", "flatten", "<convert_", "_convert_", "cast_kernel",
        "downcast", "upcast", "_cast_", "<split", "_split_", "stack_kernel", "<chunk_", "<slice_",
        "prefetch", "<unpad", "unpad_", "<pack", "<unpack", "pack_seq", "merge_kernel", "<clone_",
        "bf16_to", "fp16_to", "fp32_to", "to_bf16", "to_fp16", "to_fp32", "duplicate", "<load_",
        "<store_",
      ],
      examples: [
        "_concat_halves_kernel", "_pack_seq_kernel", "void copyKernel<float>(float*)",
        "_fused_flatten_kernel",
      ],
      source: "SGLang, vLLM, Triton" }
    { id: "layout.name", category: Layout, scope: Name,
      any: [
        "chw2", "cnhw", "swizzle", "shuffle", "roll_cuda", "flip_", "triu", "tril", "pad#d",
        "_pad_", "reflection_pad", "replication_pad", "constant_pad", "tensor_reorder",
        "interleave", "reorder", "unfold", "col2row",
      ],
      examples: [
        "void at::native::triu_tril_kernel<float, int, true, 1, false>(int)",
        "void at::native::(anonymous namespace)::reflection_pad2d_out_kernel<float>(int)",
      ],
      source: "PyTorch, MIOpen" }
    { id: "layout.head", category: Layout, scope: Head,
      any: [
        "<pad_", "padding", "pad_kernel", "repack", "rearrange", "_repeat", "<repeat", "patchify",
        "pixel", "window_partition", "expand_kernel", "<reshape",
      ],
      examples: ["_repeat_rows", "_expand_kernel", "rearrange_kn_weight_x"],
      source: "vLLM, Triton" }
}
