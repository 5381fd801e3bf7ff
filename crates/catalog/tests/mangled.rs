//! A kernel has one category, however the profiler writes its name: mangled (ROCm, CUDA 13) or not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use catalog::fuse_patterns::kind_of;
use catalog::{Category, Class, Platform, RawKind, classify, head};

/// Mangled names, each with what `c++filt` makes of it, without parameters.
const PAIRS: &[(&str, &str)] = &[
    (
        "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_49_GLOBAL__N__97375e57_16_TensorCompare_cu_71e06f4e19launch_clamp_scalarERNS_18TensorIteratorBaseEN3c106ScalarES6_NS0_6detail11ClampLimitsEENKUlvE_clEvENKUlvE5_clEvEUlfE_St5arrayIPcLy2EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ull> >(int)",
    ),
    (
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLy3EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ull> >(int)",
    ),
    (
        "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_21CUDAFunctorOnSelf_addIxEESt5arrayIPcLy2EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long long>, std::array<char*, 2ull> >(int)",
    ),
    (
        "_ZN2at6native40_GLOBAL__N__0b46c3ea_8_Shape_cu_85d9f36c19CatArrayBatchedCopyINS1_10OpaqueTypeILj4EEEjLi4ELi64ELi64EEEvPT_NS1_25CatArrInputTensorMetadataIS5_T0_XT2_EXT3_EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 4, 64, 64>(int)",
    ),
    (
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLy1EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ull> >(int)",
    ),
    (
        "_ZN2at6native52_GLOBAL__N__83ba8c45_19_DilatedMaxPool2d_cu_9872839c21max_pool_forward_nchwIfiEEvT0_PKT_xxxiiiiiiiiiiPS4_Px",
        "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int)",
    ),
    (
        "_ZN2at6native57_GLOBAL__N__cd4e0f1a_24_ForeachBinaryOpScalar_cu_6a3e1b2c25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEENS1_21BinaryOpScalarFunctorIfLi1ELi1ELi0EEEJSt10multipliesIfEfEEEvT_T0_DpT1_",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(int)",
    ),
    (
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4EEEEEvT1_",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> >(int)",
    ),
    (
        "_ZN2at6native53_GLOBAL__N__cd4e0f1a_20_layer_norm_kernel_cu_6a3e1b2c28vectorized_layer_norm_kernelIN3c108BFloat16EfEEviT0_PKT_S6_S6_PS3_S7_S7_",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
    ),
    (
        "_ZN2at6native44_GLOBAL__N__cd4e0f1a_11_Indexing_cu_6a3e1b2c21indexSelectLargeIndexIfljLi2ELi2ELin2ELb1EEEvNS_4cuda6detail10TensorInfoIT_T1_EES8_NS5_IT0_S7_EEiiS7_S7_l",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(int)",
    ),
    (
        "_ZN2at6native43_GLOBAL__N__cd4e0f1a_10_SoftMax_cu_6a3e1b2c20softmax_warp_forwardIfffLi10ELb0ELb0EEEvPT0_PKT_iiiPKbib",
        "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(int)",
    ),
    (
        "_ZN2at6native27unrolled_elementwise_kernelINS0_13BinaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm3EELi4E23TrivialOffsetCalculatorILi2EjES8_ILi1EjENS0_6memory15LoadWithoutCastENSB_16StoreWithoutCastEEEviT_T0_T2_T3_T4_T5_",
        "void at::native::unrolled_elementwise_kernel<at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>, 4, TrivialOffsetCalculator<2, unsigned int>, char*<1, unsigned int>, at::native::memory::LoadWithoutCast, TrivialOffsetCalculator<2, unsigned int>::StoreWithoutCast>(int)",
    ),
    (
        "_ZN5cudnn19engines_precompiled16nchwToNhwcKernelIfffLb0ELb1EL21cudnnKernelDataType_t2EEEvNS0_18nchw2nhwc_params_tIT1_EEPKT_PT0_",
        "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(int)",
    ),
    (
        "_ZN5cudnn25bn_fw_tr_1C11_kernel_NCHWIffiLi128ELb1ELi1ELb1EEEv17cudnnTensorStructPKT_S1_PS2_PKT0_S8_S6_S6_PS6_S9_S9_S9_S6_S6_",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true, 1, true>(int)",
    ),
    (
        "_Z23implicit_convolve_sgemmIffLi1024ELi5ELi5ELi3ELi3ELi3ELi1ELb0ELb0ELb1EEviiiPKT_iPT0_S2_18kernel_conv_paramsyiffiPKS3_S7_bbii",
        "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int)",
    ),
];

fn of(name: &str) -> Class {
    classify(RawKind::Kernel, name, Platform::Cuda)
}

#[test]
fn both_forms_of_a_name_are_one_kernel() {
    for (mangled, plain) in PAIRS {
        assert_eq!(head(mangled), head(plain));
        assert_eq!(of(mangled), of(plain), "{mangled}");
        let kinds = |name| kind_of(RawKind::Kernel, name, &of(name));
        assert_eq!(kinds(mangled), kinds(plain), "{mangled}");
    }
}

#[test]
fn the_types_of_parameters_say_nothing() {
    let (cat, _) = PAIRS.iter().find(|(name, _)| name.contains("CatArrayBatchedCopy")).unwrap();
    assert_eq!(of(cat).category, Category::Copy, "its parameter is CatArrInputTensorMetadata");
    let (list, _) = PAIRS.iter().find(|(name, _)| name.contains("multi_tensor_apply")).unwrap();
    assert_eq!(of(list).category, Category::Elementwise, "its argument is TensorListMetadata");
}
