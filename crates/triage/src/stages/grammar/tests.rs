//! Names of annotations, as traces and engines spell them.

use super::*;

fn load(name: &str) -> Load {
    read(name).unwrap().load
}

#[test]
fn every_example_is_read_by_its_own_rule_first() {
    for (at, rule) in RULES.iter().enumerate() {
        for (name, stage) in rule.examples {
            let first = RULES.iter().position(|rule| (rule.read)(name).is_some());
            assert_eq!(first, Some(at), "{name}");
            assert_eq!(read(name).unwrap().stage, *stage, "{name}");
        }
    }
}

#[test]
fn names_that_say_nothing_are_left_alone() {
    for name in [
        "",
        "ProfilerStep#12",
        "nccl:all_reduce",
        "## Call CompiledFxGraph fpdecodeless ##",
        "BatchNorm affine=True",
        "model_inference",
        "execute_diffusion_1_256x256",
        "decoder.layers.3",
        "## codecs decode ##",
        "extended attention",
        "forward_backward_step",
        "PP:0UNSHARD",
        "PP:0OVERLAP_F_B",
        "PP:",
        "f(x)",
        "mm (FB)",
        "(F",
        "weight norm",
        "capture_the_flag",
        "capture_32_",
        "capture_32_full",
        "step[",
        "step[]",
        "step[WARMUP bs=1]",
        "context_switch_generation_2",
        "execute_context_99999999999999999999(1)_generation_0(0)",
        "ctx reqs, gen reqs",
    ] {
        assert_eq!(read(name), None, "{name}");
    }
}

#[test]
fn batch_and_tokens_are_read() {
    let decode = load("step[DECODE bs=32]");
    assert_eq!((decode.requests, decode.tokens), (Some(32), Some(32)));
    assert_eq!(load("step[TARGET_VERIFY bs=32]").tokens, None);
    let extend = load("step[EXTEND bs=15 toks=15360]");
    assert_eq!((extend.requests, extend.tokens), (Some(15), Some(15360)));
    assert_eq!(load("capture_32_FULL").requests, Some(32));

    let prompt = load("execute_context_1(888_788544)_generation_0(0)");
    assert_eq!((prompt.requests, prompt.tokens), (Some(1), Some(888)));
    assert_eq!(prompt.context_tokens, None);
    let mixed = load("execute_context_2(100)_generation_17(17)");
    assert_eq!((mixed.requests, mixed.sides, mixed.tokens), (Some(19), Some((2, 17)), Some(117)));
    let sums =
        load("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)");
    assert_eq!((sums.tokens, sums.context_tokens), (Some(32), Some(55086)));
    assert_eq!(load("context_2_generation_17").tokens, None);
    assert_eq!(load("[Executor] _forward_step 7: 0 ctx reqs, 8 gen reqs").sides, Some((0, 8)));
}

#[test]
fn a_chore_of_the_optimizer_is_no_pass() {
    assert!(read("Optimizer.step#SGD.step").unwrap().is_pass);
    assert!(!read("Optimizer.zero_grad#SGD.zero_grad").unwrap().is_pass);
}

#[test]
fn words_are_cut_at_signs_and_capitals() {
    let found: Vec<_> = words("DecodeStep 12__prefillDone.CUDA").collect();
    assert_eq!(found, ["decode", "step", "12", "prefill", "done", "cuda"]);
}
