//! The first rules: names with a grammar of their own (Tensile), the runtime's copies, and transfers between
//! devices.

use super::rules;

rules! { FIRST:
    // A Tensile name is a list of some sixty settings such as `_HA_` or `_Bias_`, each of which looks
    // like a word of a later rule.
    { id: "gemm.tensile", category: Gemm, scope: Head,
      any: ["^cijk_", "^custom_cijk_", "^sscijk_"],
      examples: [
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1_GSUAMBSK_GLS0_ISA942_IU1",
        "Custom_Cijk_Ailk_Bljk_F8BS_BH_Bias_SHB_HAS_SAB_SCD_SAV_UserArgs_MT256x256x64",
      ],
      source: "hipBLASLt, rocBLAS kernel names" }
    { id: "memset.runtime", category: Memset, scope: Head,
      any: ["^memset", "fillbuffer", "__amd_rocclr_fill"],
      examples: ["Memset (Device)", "__amd_rocclr_fillBufferAligned.kd", "FillBufferAligned"],
      source: "CUDA and ROCm runtimes" }
    { id: "memcpy.runtime", category: Memcpy, scope: Head,
      any: ["^memcpy", "copybuffer", "__amd_rocclr_copy", "^copyimage"],
      examples: ["Memcpy HtoD (Pageable -> Device)", "__amd_rocclr_copyBuffer.kd"],
      source: "CUDA and ROCm runtimes" }
    // Counting which token goes where is local work of the communication library.
    { id: "moe_route.dispatch_layout", category: MoeRoute, scope: Head,
      any: ["get_dispatch_layout"],
      examples: [
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*, int*, int*, bool*, int, int, int, int)",
        "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*, int*, int*, int*, bool*, int, int, int, int)",
      ],
      source: "DeepEP" }
    { id: "communication.collective", category: Communication, scope: Head,
      any: [
        "<nccl", "<rccl", "msccl", "multimem_", "cross_device_reduce", "cross_device_store",
        "all_?reduce", "all_?gather", "reduce_?scatter", "all_?to_?all", "all2all", "<a2a",
        "one_?shot_", "two_?shot_", "quick_?reduce", "deep_ep", "nvshmem", "rocshmem", "<mori",
        "<ep_dispatch", "<ep_combine", "internode", "intranode", "userbuffers", "custom_ar_",
        "lamport", "mooncake", "p2p_send", "p2p_recv", "symm_mem", "notify_dispatch",
        "cached_notify", "push_pull_halos", "halo_exchange", "<nvls", "tbo_barrier", "ringexchange",
        "<sendrecv", "allreducefusion", "peer_copy", "<barrier_all", "cross_rank", "oneshotkernel",
        "twoshotkernel", "put_signal", "minimaxreduce", "minimax_reduce", "wait_signal",
        "_sync_latency", "<producer_kernel", "<consumer_kernel", "<consumer_batch",
        "wait_until_on_stream",
      ],
      examples: [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "rcclDevKernel_Thing(int)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, int)",
        "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(int)",
        "_ZN5aiter34allreduce_fusion_kernel_oneshot_lamportIfEEvv",
        "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, float*)",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(void*)",
        "void one_shot_all_reduce_kernel<c10::BFloat16, 8>(int)", "multimem_all_reduce_kernel(int)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<int>(int)",
        "msccl::all_reduce_4(int)", "nvshmemi_entrypoint(int)",
        "void transformer_engine::userbuffers_fp16_sum_inplace_gpu_rr<8>(int)",
        "EpDispatchIntraNodeKernel", "push_pull_halos_1d_kernel", "consumer_kernel(void*, int)",
      ],
      source: "NCCL, RCCL, MSCCL++, vLLM, SGLang, AITER, DeepEP, TRT-LLM, Transformer Engine, apex" }
    // torch._foreach_copy_ is a copy, whatever launches it.
    { id: "copy.foreach", category: Copy, scope: Name,
      any: ["multi_tensor_apply*<copy\\<", "multi_tensor_apply*<copyfunctor"],
      examples: [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::CopyFunctor<float, float, 2>, at::native::Copy<float, float> >(int)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<long, 2, 1, 1>, at::native::Copy<long, long> >(int)",
      ],
      source: "PyTorch ForeachBinaryOpList.cu" }
    // FBGEMM's table-batched embeddings carry the optimizer in their name; the work is the lookup.
    { id: "index.table_batched_embedding", category: Index, scope: Head,
      any: [
        "split_embedding", "embedding_codegen", "tbe_forward", "tbe_backward", "pooled_embs",
        "bounds_check_indices", "dense_embedding", "ssd_cache", "lxu_cache", "lfu_cache",
        "lru_cache", "linearize_cache",
      ],
      examples: [
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float, float, float, 2ul>(int)",
        "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 2ul>(int)",
        "void permute_pooled_embs_kernel<float>(float const*)",
        "void bounds_check_indices_kernel<long>(int)",
      ],
      source: "FBGEMM_GPU" }
}
