//! What a person reads: advice of whole traces, with the ops, frames and arguments that its gates ask for.

use trace::{Details, OpInputs, Row};

use crate::{FuseRow, Sources, TriageOptions, TriageReport, triage};
use fixture::{Fixture, kernel, slice};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

const BMM: &str = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn";
const SOFTMAX: &str = "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, false>(int)";
const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)";
const FILL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)";
const NORM: &str = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)";
const REDUCE: &str = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)";
const ROPE: &str = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, int)";
const CACHE: &str =
    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)";

/// A program: ops that launch kernels, within ranges and frames.
struct Program {
    fixture: Fixture,
    details: Details,
    rows: Row,
    n: i64,
}

impl Program {
    fn on(device: &str, sm: (u32, u32)) -> Self {
        let mut fixture = Fixture::default();
        let (major, minor) = sm;
        fixture.metadata(
            "deviceProperties",
            &format!(
                r#"[{{"id": 0, "name": "{device}", "computeMajor": {major}, "computeMinor": {minor}, "warpSize": 32}}]"#
            ),
        );
        Self { fixture, details: Details::default(), rows: 0, n: 0 }
    }

    /// A range on the CPU's thread.
    fn range(&mut self, category: &str, name: &str, start_ns: i64, dur_ns: i64) {
        self.fixture.push(slice(category, name).on(1, 1).at(start_ns, dur_ns));
        self.rows += 1;
    }

    /// An op that launches a kernel: when, and when the kernel runs. `dims` are the op's, or empty.
    fn run(&mut self, op: &str, dims: &str, name: &str, launched_ns: i64, (at, dur): (i64, i64)) {
        self.n += 1;
        let cpu = |category, name| slice(category, name).on(1, 1);
        self.fixture.push(cpu("cpu_op", op).at(launched_ns, 4 * US).external(self.n));
        self.fixture.push(
            cpu("cuda_runtime", "cudaLaunchKernel").at(launched_ns + US, 2 * US).link(self.n),
        );
        self.fixture.push(kernel(name).at(at, dur).link(self.n).external(self.n));
        if !dims.is_empty() {
            let types = r#"["c10::Half","c10::Half","c10::Half"]"#;
            let (dims, types) = (self.details.texts.intern(dims), self.details.texts.intern(types));
            self.details.ops.push((self.rows, self.details.inputs.len() as u32));
            self.details.inputs.push(OpInputs { dims, types });
        }
        self.rows += 3;
    }

    fn report(self) -> TriageReport {
        let sources = Sources { details: Some(&self.details), ..Sources::default() };
        triage(&self.fixture.finish(), &TriageOptions::default(), &sources)
    }
}

fn advised(report: &TriageReport, id: &str) -> Option<FuseRow> {
    report.fuse.iter().find(|row| row.pattern_id == id && row.is_advice()).cloned()
}

/// Ten attentions of single ops, queued: 16 heads of 4096 tokens of 64, and one of a handful of tokens.
fn attention(frame: &str) -> TriageReport {
    let mut program = Program::on("NVIDIA H100 80GB HBM3", (9, 0));
    program.range("python_function", frame, 0, 10 * MS);
    let (scores, values) = ("[[16,4096,64],[16,64,4096]]", "[[16,4096,4096],[16,4096,64]]");
    for at in 0..10_i64 {
        let (cpu, gpu) = (at * 100 * US, 10 * MS + at * 4 * MS);
        program.run("aten::bmm", scores, BMM, cpu, (gpu, MS));
        program.run("aten::softmax", "", SOFTMAX, cpu + 10 * US, (gpu + MS, 2 * MS));
        program.run("aten::bmm", values, BMM, cpu + 20 * US, (gpu + 3 * MS, MS));
    }
    let (cpu, gpu) = (2 * MS, 60 * MS);
    program.run("aten::bmm", "[[1,16,64],[1,64,16]]", BMM, cpu, (gpu, 5 * US));
    program.run("aten::softmax", "", SOFTMAX, cpu + 10 * US, (gpu + 5 * US, 5 * US));
    program.run("aten::bmm", "[[1,16,16],[1,16,64]]", BMM, cpu + 20 * US, (gpu + 10 * US, 5 * US));
    program.report()
}

#[test]
fn the_bound_of_unfused_attention_counts_its_products() {
    let row = advised(&attention("model.py(3): forward"), "K04").unwrap();
    assert_eq!(row.n_occurrences, 10, "a handful of tokens does not count");
    // 68.7 GFLOP each at 989 TFLOPS take 69 µs of the 4 ms.
    let saved_ns = row.savings_bound_ns.unwrap();
    assert!((39 * MS..40 * MS).contains(&saved_ns), "{saved_ns}");
    assert!(row.rationale.contains("which a fused kernel takes at the GPU's peak rates"));
}

/// Ten attentions with a bias of relative positions, as in Segment Anything: after the scores, of which 14 tokens of 80 have so many, two
/// products of 50 us and two additions of 1 ms.
fn biased(scores: &str) -> Option<FuseRow> {
    let mut program = Program::on("NVIDIA H100 80GB HBM3", (9, 0));
    let (bias, values) = ("[[14,5600,80],[14,80,14]]", "[[400,196,196],[400,196,80]]");
    for at in 0..10_i64 {
        let (mut cpu, mut gpu) = (at * 200 * US, 10 * MS + at * 10 * MS);
        let mut run = |op: &str, dims: &str, name: &str, ns: i64| {
            program.run(op, dims, name, cpu, (gpu, ns));
            (cpu, gpu) = (cpu + 10 * US, gpu + ns);
        };
        run("aten::bmm", scores, BMM, 2 * MS);
        run("aten::bmm", bias, BMM, 50 * US);
        run("aten::bmm", bias, BMM, 50 * US);
        run("aten::add", "", ADD, MS);
        run("aten::add", "", ADD, MS);
        run("aten::softmax", "", SOFTMAX, MS);
        run("aten::bmm", values, BMM, 3 * MS);
    }
    advised(&program.report(), "K04")
}

#[test]
fn an_attention_begins_with_its_scores_and_not_with_the_products_of_a_bias() {
    let row = biased("[[400,196,80],[400,80,196]]").unwrap();
    // (One addition stays: it adds up the bias.)
    assert_eq!((row.n_occurrences, row.related_ns), (10, 10 * (2 + 1 + 1 + 3) * MS));
    // No product makes the scores: what stands there counts.
    let other = biased("[[400,100,80],[400,80,100]]").unwrap();
    assert_eq!(other.related_ns, 10 * (6 * MS + 50 * US));
}

#[test]
fn an_attention_takes_the_scaling_of_its_queries_and_the_mean_over_its_heads_with_it() {
    const SCALE: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<c10::Half, c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)";
    const MEAN: &str = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float> > >(int)";
    let of = |scaled: &str, averaged: &str| {
        let mut program = Program::on("NVIDIA H100 80GB HBM3", (9, 0));
        for at in 0..10_i64 {
            let (mut cpu, mut gpu) = (at * 200 * US, 10 * MS + at * 10 * MS);
            let mut run = |op: &str, dims: &str, name: &str, ns: i64| {
                program.run(op, dims, name, cpu, (gpu, ns));
                (cpu, gpu) = (cpu + 10 * US, gpu + ns);
            };
            run("aten::mul", scaled, SCALE, 100 * US);
            run("aten::bmm", "[[400,196,80],[400,80,196]]", BMM, 2 * MS);
            run("aten::softmax", "", SOFTMAX, MS);
            run("aten::bmm", "[[400,196,196],[400,196,80]]", BMM, 3 * MS);
            run("aten::add", "", ADD, 50 * US);
            run("aten::mean", averaged, MEAN, 200 * US);
        }
        advised(&program.report(), "K04").unwrap().related_ns
    };
    let (queries, scores, other) = ("[[400,196,80]]", "[[50,8,196,196]]", "[[400,10]]");
    assert_eq!(of(other, other), 10 * 6 * MS);
    assert_eq!(of(queries, other), 10 * (6 * MS + 100 * US));
    assert_eq!(of(queries, scores), 10 * (6 * MS + 300 * US));
}

#[test]
fn an_addition_that_pytorch_splits_into_two_kernels_counts_whole() {
    let of = |rows: i64| {
        let dims = format!("[[{rows},4096,256],[{rows},4096,256]]");
        let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
        for nth in 0..10_i64 {
            let (cpu, gpu) = (nth * 100 * US, 2 * MS + nth * 10 * MS);
            program.run("aten::add", &dims, ADD, cpu, (gpu, 2 * MS));
            program.run("aten::add", &dims, ADD, cpu + 10 * US, (gpu + 2 * MS, 2 * MS));
            program.run("aten::layer_norm", &dims, NORM, cpu + 20 * US, (gpu + 4 * MS, MS));
        }
        advised(&program.report(), "K05").unwrap().related_ns
    };
    assert_eq!(of(1_024), 10 * 5 * MS, "2.1 GB of 16 bits");
    assert_eq!(of(1_023), 10 * 3 * MS, "one kernel a call: these are two additions");
}

#[test]
fn attn_implementation_is_advised_only_below_the_interface_of_transformers() {
    let own =
        advised(&attention("transformers/models/owlv2/modeling_owlv2.py(364): forward"), "K04");
    let own = own.unwrap();
    assert!(!own.candidate_fused_path.contains("attn_implementation"), "{own:?}");
    assert!(own.action.contains("torch.nn.functional.scaled_dot_product_attention"), "{own:?}");
    let frame = "transformers/models/llama/modeling_llama.py(171): eager_attention_forward";
    let interface = advised(&attention(frame), "K04").unwrap();
    assert!(interface.action.contains("attn_implementation=\"sdpa\""), "{interface:?}");
}

#[test]
fn a_fallback_of_a_fused_attention_is_not_advised_to_call_it() {
    let mut program = Program::on("NVIDIA H100 80GB HBM3", (9, 0));
    program.range("cpu_op", "aten::scaled_dot_product_attention", 0, 10 * MS);
    for at in 0..10_i64 {
        let (cpu, gpu) = (at * 100 * US, 10 * MS + at * 4 * MS);
        program.run("aten::bmm", "", BMM, cpu, (gpu, MS));
        program.run("aten::softmax", "", SOFTMAX, cpu + 10 * US, (gpu + MS, 2 * MS));
        program.run("aten::bmm", "", BMM, cpu + 20 * US, (gpu + 3 * MS, MS));
    }
    assert_eq!(advised(&program.report(), "K04"), None);
}

/// Rotary embeddings before the KV cache write on a GPU of AMD, in steps of so many tokens: by the recorded sizes, or by the
/// annotation around the steps.
fn rope_and_cache(tokens: u32, has_sizes: bool) -> Option<FuseRow> {
    let mut program = Program::on("AMD Instinct MI300X", (9, 4));
    program.fixture.metadata("hip_runtime_version", "60443483");
    program.range("python_function", "vllm/model_executor/models/llama.py(3): forward", 0, 10 * MS);
    let mut positions = format!("[[{tokens}],[{tokens},4096],[{tokens},1024]]");
    let mut keys = format!("[[{tokens},8,128],[{tokens},8,128],[]]");
    if !has_sizes {
        [&mut positions, &mut keys].into_iter().for_each(String::clear);
        let side = format!("sq{tokens}sk9000sqsq{tokens}sqsk9000");
        let name =
            format!("execute_{tokens}_context_0(sq0sk0sqsq0sqsk0)_generation_{tokens}({side})");
        program.range("user_annotation", &name, 0, 10 * MS);
    }
    for at in 0..10_i64 {
        let (cpu, gpu) = (at * 100 * US, 10 * MS + at * MS);
        program.run("_C::rotary_embedding", &positions, ROPE, cpu, (gpu, 500 * US));
        let call = "_C_cache_ops::reshape_and_cache_flash";
        program.run(call, &keys, CACHE, cpu + 10 * US, (gpu + 500 * US, 500 * US));
    }
    advised(&program.report(), "K08")
}

#[test]
fn a_pass_of_vllm_is_advised_only_for_steps_that_it_applies_to() {
    for has_sizes in [true, false] {
        let decode = rope_and_cache(64, has_sizes).unwrap();
        assert!(decode.action.contains("fuse_rope_kvcache"), "{decode:?}");
        assert_eq!(rope_and_cache(8192, has_sizes), None, "by default at most 256 tokens");
    }
}

#[test]
fn gradients_filled_with_zeros_cost_their_launches_where_the_gpu_waits() {
    let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
    program.range("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 0, 2 * MS);
    // Fills of 2 µs, 50 µs apart, then the step.
    for at in 0..40_i64 {
        program.run("aten::zero_", "", FILL, at * 50 * US, (at * 50 * US + 8 * US, 2 * US));
    }
    program.run("aten::mm", "", BMM, 2 * MS + 10 * US, (2 * MS + 20 * US, 3 * MS));
    program.range("user_annotation", "Optimizer.step#SGD.step", 6 * MS, MS);
    let report = program.report();
    let row = advised(&report, "K16").unwrap();
    let saved_ns = row.savings_bound_ns.unwrap();
    assert!((1_800 * US..=2_000 * US).contains(&saved_ns), "{saved_ns}");
    assert!(row.rationale.contains("the CPU time of 40 launches that go away"), "{row:?}");
}

/// An optimizer that updates one parameter after the other, and its advice.
fn per_parameter(class: &str, foreach: bool) -> Option<FuseRow> {
    let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
    program.range("user_annotation", &format!("Optimizer.step#{class}.step"), 0, 100 * MS);
    for at in 0..400_i64 {
        program.run("aten::add_", "", ADD, at * 50 * US, (at * 50 * US + 8 * US, 2 * US));
    }
    if foreach {
        let name = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(int)";
        program.run("aten::_foreach_mul_", "", name, 21 * MS, (22 * MS, US));
    }
    program.run("aten::mm", "", BMM, 99 * MS, (110 * MS, MS));
    advised(&program.report(), "K11")
}

#[test]
fn an_optimizer_of_one_kernel_a_parameter_is_told_of_foreach() {
    let row = per_parameter("Adam", false).unwrap();
    assert!(row.action.contains("foreach=True"), "{row:?}");
    assert_eq!(per_parameter("Adam", true), None, "done already");
    assert_eq!(per_parameter("FusedLamb", false), None, "which has no such option");
}

/// Elementwise ops of these sizes, again and again, that the CPU launches slowly.
fn elementwise(sizes: &[&str], change: impl Fn(&mut Program)) -> Option<FuseRow> {
    let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
    // A pause ends the row.
    for (at, dims) in (0..40_i64).chain(100..140).zip(sizes.iter().cycle()) {
        let at = at * 50 * US;
        program.run("aten::add_", dims, ADD, at, (at + 8 * US, 2 * US));
    }
    change(&mut program);
    advised(&program.report(), "K11")
}

/// Forty pairs of kernels with inputs of these dims: op, kernel and time of each. All have one launch config. The second one of one pair takes
/// as long as told.
fn pairs(dims: &str, parts: [(&str, &str, i64); 2], longest_ns: i64) -> TriageReport {
    let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
    let config = trace::LaunchConfig { grid: Some([128, 1, 1]), ..Default::default() };
    program.details.configs.push(config);
    let [(first_op, first, first_ns), (second_op, second, second_ns)] = parts;
    for nth in 0..40_i64 {
        let (cpu, gpu) = (nth * 20 * US, 2 * MS + nth * MS);
        program.run(first_op, dims, first, cpu, (gpu, first_ns));
        program.details.launches.push((program.rows - 1, 0));
        let ns = if nth == 20 { longest_ns } else { second_ns };
        program.run(second_op, dims, second, cpu + 10 * US, (gpu + first_ns, ns));
        program.details.launches.push((program.rows - 1, 0));
    }
    program.report()
}

/// Additions before a layer norm, of 10 us each; one norm takes as long as told.
fn added_and_normed(longest_ns: i64) -> FuseRow {
    let parts = [("aten::add", ADD, 10 * US), ("aten::layer_norm", NORM, 10 * US)];
    advised(&pairs("[[32,128,768],[32,128,768]]", parts, longest_ns), "K05").unwrap()
}

#[test]
fn an_interrupted_kernel_saves_no_more_than_its_equals() {
    let (plain, interrupted) = (added_and_normed(10 * US), added_and_normed(600 * US));
    assert_eq!(interrupted.savings_bound_ns, plain.savings_bound_ns);
    assert!(!plain.rationale.contains("equal ones"), "{}", plain.rationale);
    let told =
        "1 launch that ran over 20 times as long as equal ones counts with the median of those";
    assert!(interrupted.rationale.contains(told), "{}", interrupted.rationale);
    let long = added_and_normed(190 * US);
    assert!(long.savings_bound_ns > plain.savings_bound_ns, "only longer than others");
}

/// Activations of 30 us, each with a multiplication of 10 us; one multiplication takes as long as told. Their tensors take 43 us to read
/// and write once.
fn activated_and_multiplied(longest_ns: i64) -> FuseRow {
    const SILU: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)";
    const MUL: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)";
    let parts = [("aten::silu", SILU, 30 * US), ("aten::mul", MUL, 10 * US)];
    advised(&pairs("[[4096,4096],[4096,4096]]", parts, longest_ns), "K02").unwrap()
}

#[test]
fn the_longest_part_is_found_by_the_time_of_its_equals() {
    let told = activated_and_multiplied;
    let (plain, interrupted) = (told(10 * US), told(600 * US));
    assert_eq!(interrupted.savings_bound_ns, plain.savings_bound_ns);
    assert!(interrupted.rationale.contains("as equal ones"), "{}", interrupted.rationale);
    assert!(!plain.rationale.contains("as equal ones"), "{}", plain.rationale);
}

const EQUAL: &[&str] = &["[[32,128],[32,128]]", "[[4096],[]]", "[[128],[32,128]]"];

#[test]
fn a_compiled_run_is_not_told_to_compile() {
    let eager = elementwise(EQUAL, |_| {}).unwrap();
    assert!(eager.action.contains("torch.compile"));
    assert_eq!(eager.n_occurrences, 2);
    let compiled = |program: &mut Program| {
        program.range("cpu_op", "CompiledFunctionBackward", 50 * MS, MS);
    };
    assert_eq!(elementwise(EQUAL, compiled), None);
}

#[test]
fn a_function_that_no_module_calls_is_no_module_to_compile() {
    let meter = |program: &mut Program| {
        program.range("python_function", "utils/helper.py(20): update", 0, 10 * MS);
    };
    assert_eq!(elementwise(EQUAL, meter), None);
    let model = |program: &mut Program| {
        program.range("python_function", "nn.Module: Scale_0", 0, 10 * MS);
        program.range("python_function", "model/scale.py(20): forward", US / 2, 9 * MS);
    };
    let row = elementwise(EQUAL, model).unwrap();
    assert!(row.action.contains("torch.compile"), "{row:?}");
}

#[test]
fn elementwise_kernels_of_other_or_unknown_sizes_are_nothing_to_compile() {
    assert_eq!(elementwise(&[""], |_| {}), None, "no sizes are recorded");
    let three = ["[[32,128]]", "[[32,128]]", "[[32,128]]", "[[1]]"];
    assert_eq!(elementwise(&three, |_| {}), None, "three of one size");
    let four = ["[[32,128]]", "[[32,128]]", "[[32,128]]", "[[32,128]]", "[[1]]"];
    let row = elementwise(&four, |_| {}).unwrap();
    assert_eq!((row.n_occurrences, row.related_ns), (16, 16 * 4 * 2 * US));
    let linear = |program: &mut Program| program.range("cpu_op", "aten::linear", 0, 20 * MS);
    assert_eq!(elementwise(EQUAL, linear), None, "they belong to the matrix product");
}

#[test]
fn gradients_that_the_engine_adds_are_nothing_to_compile() {
    let hook = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
    let accumulate = |program: &mut Program| program.range("cpu_op", hook, 0, 20 * MS);
    assert_eq!(elementwise(EQUAL, accumulate), None);
}

/// A backward pass whose all-reduces of 32-bit floats are exposed: all by the hooks of DDP, so many of so long.
fn reduced(n: i64, dur_ns: i64) -> TriageReport {
    let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
    let hook = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
    program.range("cpu_op", hook, 0, 10 * MS);
    for at in 0..n {
        program.n += 1;
        let cpu = |category, name| slice(category, name).on(1, 1);
        let call = cpu("cuda_runtime", "cudaLaunchKernel").at(at * 10 * US, 2 * US);
        program.fixture.push(call.link(program.n));
        let begun_ns = 20 * MS + at * (dur_ns + 30 * US);
        program.fixture.push(kernel(REDUCE).at(begun_ns, dur_ns).on(0, 20).link(program.n));
    }
    let end_ns = 20 * MS + n * (dur_ns + 30 * US);
    program.run("aten::mm", "", BMM, 9 * MS, (15 * MS, 4 * MS));
    program.run("aten::mm", "", BMM, 9 * MS + 10 * US, (end_ns, 4 * MS));
    program.report()
}

#[test]
fn all_reduces_of_ddp_are_not_told_to_start_earlier() {
    let report = reduced(10, 5 * MS);
    let row = report.overlap.iter().find(|row| row.kernel_name == REDUCE).unwrap();
    assert!(row.recommendation.as_ref().unwrap().contains("bf16_compress_hook"), "{row:?}");
    assert!(!row.reason.contains("Start the collective earlier"), "{}", row.reason);
    assert_eq!(row.savings_bound_ns, Some(25 * MS), "half of what is exposed");
}

#[test]
fn many_small_all_reduces_ask_for_buckets() {
    let report = reduced(200, 20 * US);
    let row = report.overlap.iter().find(|row| row.kernel_name == REDUCE).unwrap();
    assert!(row.recommendation.as_ref().unwrap().contains("larger buckets"), "{row:?}");
    assert!(row.reason.contains("the latency of each collective"), "{}", row.reason);
}

#[test]
fn documents_print_only_rows_with_advice() {
    let mut program = Program::on("NVIDIA A100-SXM4-80GB", (8, 0));
    program.run("aten::mm", "", BMM, 0, (10 * US, 4 * MS));
    program.fixture.push(kernel(ADD).at(5 * MS, 4 * MS).on(0, 20));
    let report = program.report();
    assert!(!report.overlap.is_empty(), "artifacts keep them");
    assert!(report.overlap.iter().all(|row| row.recommendation.is_none()), "{:?}", report.overlap);
    assert!(!report.overlap.iter().any(|row| row.reason.contains("Compute-bound")));
    let sections = report.sections(0.0);
    let overlap = sections.iter().find(|section| section.id == "overlap").unwrap();
    let table = &overlap.tables[0];
    assert_eq!(table.n_rows(), report.overlap.len(), "the page has all");
    assert_eq!(table.printed, Some(Vec::new()));
}

#[test]
fn one_off_pauses_hide_no_advice() {
    let with_pause = |pause_ns: i64| {
        let mut program = Program::on("NVIDIA H100 80GB HBM3", (9, 0));
        program.run("aten::mm", "", BMM, 0, (10 * US, 4 * MS));
        for at in 0..2_i64 {
            let (cpu, gpu) = (pause_ns + at * 100 * US, pause_ns + MS + at * MS);
            program.run("aten::bmm", "", BMM, cpu, (gpu, 100 * US));
            program.run("aten::softmax", "", SOFTMAX, cpu + 10 * US, (gpu + 100 * US, 100 * US));
            program.run("aten::bmm", "", BMM, cpu + 20 * US, (gpu + 200 * US, 100 * US));
        }
        advised(&program.report(), "K04")
    };
    let row = with_pause(5_000 * MS).unwrap();
    assert!(row.rationale.contains("of the GPU span without one-off pauses"), "{row:?}");
    assert!(with_pause(5 * MS).is_some());
}

/// Convolutions of 32-bit floats with kernels of Volta, in a file that lists no device; so many warps per SM, in thousandths, of 50,176.
fn plain_convolutions(warps_per_sm_milli: u32) -> TriageReport {
    const CONV: &str = "volta_scudnn_128x64_relu_interior_nn_v1";
    let mut fixture = Fixture::default();
    fixture.metadata("cuda_runtime_version", "10020");
    for at in 0..10 {
        let launched_ns = at * 10 * US;
        fixture.push(slice("cpu_op", "aten::conv2d").on(1, 1).at(launched_ns, 8 * US));
        let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
        fixture.push(launch.at(launched_ns + US, 2 * US));
        fixture.push(kernel(CONV).at(MS + at * MS, MS).link(at + 1));
    }
    let config = trace::LaunchConfig {
        grid: Some([12_544, 2, 1]),
        block: Some([64, 1, 1]),
        warps_per_sm_milli: Some(warps_per_sm_milli),
        ..trace::LaunchConfig::default()
    };
    let details = Details { configs: vec![config], ..Details::default() };
    let sources = Sources { details: Some(&details), ..Sources::default() };
    triage(&fixture.finish(), &TriageOptions::default(), &sources)
}

#[test]
fn autocast_is_advised_on_a_v100_that_the_file_does_not_name() {
    let report = plain_convolutions(627_200);
    assert_eq!(report.arch.observed_arch, "sm_70");
    let plain = report.plain_products.unwrap();
    assert!(plain.action.contains("torch.autocast"), "{}", plain.action);
    // 15.7 of 125 TFLOPS: of 10 ms 8.74 go away.
    assert_eq!(plain.saved_ns, 8_744_000);
    // (A GeForce RTX 2080 Ti has 68 multiprocessors.)
    assert!(plain_convolutions(737_882).plain_products.is_none_or(|plain| !plain.is_told()));
}

#[test]
fn a_table_of_stages_without_a_stage_is_not_printed() {
    let of = |annotation: &str| {
        let mut fixture = Fixture::default();
        fixture.push(slice("user_annotation", annotation).on(1, 1).at(0, MS));
        fixture.push(slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).at(US, US).link(1));
        fixture.push(kernel(BMM).at(3 * US, US).link(1));
        triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
    };
    let none = of("benchmark");
    let sections = none.sections(1.0);
    assert_eq!(sections[0].printed_tables().count(), 0, "the page has it, to choose from");
    assert_eq!(none.stages[0].recognised_by, "no annotation of a stage; launched in benchmark");
    assert_eq!(sections[1].id, "kernel-table");
    let intro = &sections[1].intro;
    assert!(!intro.iter().any(|text| text.contains("No stages")), "{intro:?}");
    let decode = of("step[DECODE bs=16]");
    let first = &decode.sections(1.0)[0];
    assert_eq!(first.printed_tables().count(), 1, "a stage has a batch");
}
