//! What a diagnosis of real traces says, and what it must not say: `../shared/spec/diagnosis_expectations.md` as a table.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::of_file;
use diagnosis::Finding;

/// What is expected of one rule on one trace.
enum Expected {
    /// One of these verdicts is said.
    Say(&'static [&'static str]),
    /// None of these verdicts is said; all of the rule's if empty.
    Not(&'static [&'static str]),
}

use Expected::{Not, Say};

const STARVED: &[&str] = &["starved", "under_used"];

const TABLE: &[(&str, &str, Expected)] = &[
    ("h100_bert_small", "M1", Say(&["starved"])),
    ("h100_bert_small", "M2", Say(&["launch_bound"])),
    ("h100_bert_small", "M4", Say(&["host_caused"])),
    ("h100_bert_small", "M16", Not(&[])),
    ("h100_bert_small", "M17", Say(&["no_graph"])),
    ("h100_bert_small", "M5", Not(&[])),
    ("h100_bert_small", "M6", Say(&["reads_gpu", "negligible"])),
    ("h100_bert_small", "M14", Say(&["counted"])),
    ("h100_bert_small", "M13", Say(&["single"])),
    ("h100_bert_small", "M23", Say(&["inflated"])),
    ("h100_bert_small", "M19", Not(&[])),
    ("mi300_bert_small", "M1", Say(&["starved"])),
    ("mi300_bert_small", "M2", Say(&["launch_bound"])),
    ("mi300_bert_small", "M4", Say(&["host_caused"])),
    ("mi300_bert_small", "M16", Say(&["short_kernels"])),
    ("mi300_bert_small", "M17", Say(&["no_graph"])),
    ("mi300_bert_small", "M5", Not(&[])),
    ("mi300_bert_small", "M6", Say(&["reads_gpu", "negligible"])),
    ("mi300_bert_small", "M14", Say(&["counted"])),
    ("mi300_bert_small", "M13", Say(&["single"])),
    ("mi300_bert_small", "M23", Say(&["inflated"])),
    ("mi300_bert_small", "M19", Not(&[])),
    ("h100_qwen15_0.5b", "M1", Say(&["ok"])),
    ("h100_qwen15_0.5b", "M2", Not(&[])),
    ("h100_qwen15_0.5b", "orphans", Say(&["carried_over"])),
    ("h100_qwen15_0.5b", "M5", Not(&[])),
    ("h100_qwen15_0.5b", "M7", Say(&["cast"])),
    ("h100_qwen15_0.5b", "M7", Say(&["layout"])),
    ("h100_qwen15_0.5b", "M14", Say(&["counted"])),
    ("h100_qwen15_0.5b", "M13", Say(&["single"])),
    ("h100_qwen15_0.5b", "M16", Not(&[])),
    ("h100_qwen15_0.5b", "M4", Not(&[])),
    ("h100_qwen15_0.5b", "M12", Say(&["peak"])),
    ("h100_qwen15_0.5b", "M12", Not(&["growth"])),
    ("mi300_qwen15_0.5b", "M1", Say(&["ok"])),
    ("mi300_qwen15_0.5b", "M2", Not(&[])),
    ("mi300_qwen15_0.5b", "orphans", Say(&["carried_over"])),
    ("mi300_qwen15_0.5b", "M5", Not(&[])),
    ("mi300_qwen15_0.5b", "M7", Say(&["cast"])),
    ("mi300_qwen15_0.5b", "M7", Say(&["layout"])),
    ("mi300_qwen15_0.5b", "M14", Say(&["counted"])),
    ("mi300_qwen15_0.5b", "M13", Say(&["single"])),
    ("mi300_qwen15_0.5b", "M16", Not(&[])),
    ("mi300_qwen15_0.5b", "M4", Not(&[])),
    ("mi300_qwen15_0.5b", "M12", Say(&["peak"])),
    ("mi300_qwen15_0.5b", "M12", Not(&["growth"])),
    ("mi300_resnet_training", "M1", Say(&["saturated"])),
    ("mi300_resnet_training", "M2", Not(&[])),
    ("mi300_resnet_training", "M10", Say(&["exposed"])),
    ("mi300_resnet_training", "orphans", Say(&["carried_over"])),
    ("mi300_resnet_training", "M5", Not(&[])),
    ("mi300_resnet_training", "M16", Not(&[])),
    ("mi300_resnet_training", "M7", Say(&["d2d"])),
    ("mi300_resnet_training", "M14", Say(&["counted"])),
    ("mi300_resnet_training", "M13", Say(&["few"])),
    ("mi300_resnet_training", "M15", Say(&["outside_modules"])),
    ("mi300_xdit_sd35", "M1", Say(&["under_used"])),
    ("mi300_xdit_sd35", "M2", Not(&[])),
    ("mi300_xdit_sd35", "M3", Say(&["host_bound"])),
    ("mi300_xdit_sd35", "M5", Say(&["host_blocked"])),
    ("mi300_xdit_sd35", "M14", Say(&["counted"])),
    ("mi300_xdit_sd35", "M14", Not(&["custom_ops"])),
    ("mi300_xdit_sd35", "M13", Say(&["single"])),
    ("mi300_xdit_sd35", "M16", Not(&[])),
    ("mi300_xdit_sd35", "M17", Say(&["no_graph"])),
    ("mi300_xdit_sd35", "M18", Not(&["compiling"])),
    ("mi300_xdit_sd35", "M9", Not(&[])),
    ("mi300_xdit_sd35", "M6", Say(&["negligible"])),
    ("mi300_sglang_decode_formal", "M1", Not(STARVED)),
    ("mi300_sglang_decode_formal", "M1", Say(&["unknown"])),
    ("mi300_sglang_decode_formal", "M5", Not(&[])),
    ("mi300_sglang_decode_formal", "M17", Say(&["graph_replay"])),
    ("mi300_sglang_decode_formal", "M16", Not(&[])),
    ("mi300_sglang_decode_formal", "M2", Not(&[])),
    ("mi300_sglang_decode_formal", "M14", Say(&["not_coverable"])),
    ("mi300_sglang_decode_formal", "M15", Say(&["not_coverable"])),
    ("mi300_sglang_prefilldecode", "M1", Not(STARVED)),
    ("mi300_sglang_prefilldecode", "M6", Say(&["reads_gpu", "negligible"])),
    ("mi300_sglang_prefilldecode", "M2", Not(&[])),
    ("mi300_sglang_prefilldecode", "M14", Say(&["counted"])),
    ("mi300_sglang_prefilldecode", "M14", Say(&["custom_ops"])),
    ("mi300_sglang_prefilldecode", "M16", Not(&[])),
    ("mi300_vllm_decode_formal", "M1", Say(&["saturated"])),
    ("mi300_vllm_decode_formal", "M2", Not(&[])),
    ("mi300_vllm_decode_formal", "M17", Say(&["graph_replay"])),
    ("mi300_vllm_decode_formal", "M16", Not(&[])),
    ("mi300_vllm_decode_formal", "M4", Not(&[])),
    // (A capture's busy share says nothing: the specification has no row for these, the audit of the words has.)
    ("mi300_vllm_decode_capture", "M1", Say(&["unknown"])),
    ("mi300_vllm_decode_capture", "M2", Not(&[])),
    ("mi300_sglang_decode_capture", "M1", Say(&["unknown"])),
    ("normalization_layers", "M1", Say(&["starved"])),
    ("normalization_layers", "M2", Not(&[])),
    ("normalization_layers", "M8", Say(&["cold_start"])),
    ("normalization_layers", "M18", Say(&["module_loads"])),
    ("normalization_layers", "M4", Say(&["in_calls"])),
    ("alexnet", "M1", Say(&["starved"])),
    ("alexnet", "M2", Not(&[])),
    ("alexnet", "M8", Say(&["cold_start"])),
    // (The calls that allocate and free are those of a cold start, not of steps: the file has none.)
    ("alexnet", "M11", Not(&[])),
    ("alexnet", "M7", Say(&["h2d_pageable"])),
    ("alexnet", "M14", Say(&["shapes_missing"])),
    ("nccl", "M1", Say(&["starved"])),
    ("nccl", "M2", Say(&["launch_bound"])),
    ("nccl", "M10", Say(&["exposed"])),
    ("nccl", "M13", Say(&["few"])),
    ("nccl", "M5", Not(&[])),
    ("nccl", "M7", Say(&["d2d"])),
    ("integer_us_control", "M1", Say(&["ok"])),
    ("integer_us_control", "M2", Not(&[])),
    ("integer_us_control", "M10", Say(&["exposed"])),
    ("integer_us_control", "M13", Say(&["few"])),
    ("integer_us_control", "M6", Say(&["reads_gpu"])),
    ("integer_us_control", "M9", Not(&[])),
    ("integer_us_control", "M14", Say(&["counted"])),
    ("integer_us_control", "M19", Say(&["fp32_tf32"])),
    // (The specification has no rows for this rule. These are by the names of the kernels: 37,575 of 464,594 us by a separate sum.)
    ("integer_us_control", "kernel_choice", Say(&["narrow_loads"])),
    ("integer_us_control", "kernel_choice", Not(&["older_generation"])),
    ("ns_resolution_absolute_us", "kernel_choice", Not(&[])),
    ("nccl", "kernel_choice", Not(&[])),
    ("h100_bert_small", "kernel_choice", Not(&[])),
    ("ns_resolution_absolute_us", "M1", Say(&["saturated"])),
    ("ns_resolution_absolute_us", "M2", Not(&[])),
    ("ns_resolution_absolute_us", "M13", Say(&["few"])),
    ("ns_resolution_absolute_us", "M13", Not(&["unstable"])),
    ("ns_resolution_absolute_us", "M8", Not(&[])),
    ("ns_resolution_absolute_us", "M5", Not(&[])),
    // (Launches that block on a full queue are not slow.)
    ("ns_resolution_absolute_us", "M3", Not(&[])),
    ("ns_resolution_absolute_us", "M4", Not(&[])),
    ("ns_resolution_absolute_us", "M17", Not(&[])),
    ("mi250_toy_training", "M1", Say(&["starved"])),
    ("mi250_toy_training", "M2", Not(&[])),
    ("mi250_toy_training", "M8", Say(&["cold_start"])),
    ("mi250_toy_training", "M13", Say(&["single"])),
    ("cpu_only", "M1", Say(&["no_gpu"])),
    ("cpu_only", "M2", Not(&[])),
    ("cpu_only", "M3", Not(&[])),
    ("cpu_only", "M4", Not(&[])),
    ("cpu_only", "M5", Not(&[])),
];

/// What an observation contains, where the specification names a figure.
const WORDS: &[(&str, &str, &str, &str)] = &[
    // The steps are those of the CPU: the ranges of the GPU are three of 17 us.
    ("mi300_resnet_training", "M13", "few", "3 steps on the CPU: mean 16.2 ms"),
    ("mi300_resnet_training", "M13", "few", "15.9 ms to 16.8 ms"),
    // (Idle time under malloc and free is 8.51 s, by the reference; launches that load code are the rest.)
    (
        "alexnet",
        "M8",
        "cold_start",
        "load code or allocate or free memory cover 11.5 s of the 12.9 s",
    ),
    ("alexnet", "M7", "h2d_pageable", "16 aten::copy_"),
    // ProfilerStep#2 is a stub.
    (
        "mi250_toy_training",
        "M13",
        "single",
        "One step of 9.29 ms on the CPU. A last one, in which nothing begins, is left out",
    ),
    ("ns_resolution_absolute_us", "M13", "few", "5 steps on the CPU: mean 78.8 ms"),
    ("cpu_only", "M1", "no_gpu", "The file has no GPU work"),
];

/// Lines of the programs and modules that own work, which a wrong link would give to others: those of `mi300_resnet_training`, where
/// parents' ids cross threads.
const PLACES: &[(&str, &str)] = &[
    ("mi300_resnet_training", "torch.distributed.ddp.reducer::copy_bucket_to_grad (186)"),
    ("mi300_resnet_training", "train_ddp.py:82 train_step (180)"),
];

/// The known causes of our recordings, which have no GPU.
const RECORDINGS: &[(&str, &str, Expected)] = &[
    ("item_syncs", "M6", Say(&["reads"])),
    ("slow_dataloader_workers0", "M9", Say(&["dataloader_bound"])),
    ("memory_leak", "M12", Say(&["growth"])),
    ("mlp_train", "M12", Not(&["growth"])),
    ("latency_120_steps", "M13", Say(&["many"])),
    ("latency_120_steps", "M13", Say(&["unstable"])),
    ("mlp_train", "M9", Not(&["dataloader_bound"])),
    ("conv_train", "M14", Say(&["counted"])),
];

fn hold(folder: &str, table: &[(&str, &str, Expected)]) {
    let Some(folder) = testkit::shared(folder) else { return };
    let mut wrong = Vec::new();
    let mut last: Option<(&str, Vec<Finding>)> = None;
    for (name, rule, expected) in table {
        if last.as_ref().is_none_or(|(other, _)| other != name) {
            let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
            last = Some((name, of_file(&file).findings));
        }
        let (_, found) = last.as_ref().unwrap();
        let verdicts: Vec<&str> = found
            .iter()
            .filter(|finding| finding.rule.id() == *rule)
            .map(|finding| finding.verdict)
            .collect();
        let holds = match expected {
            Say(any) => any.iter().any(|verdict| verdicts.contains(verdict)),
            Not([]) => verdicts.is_empty(),
            Not(none) => !none.iter().any(|verdict| verdicts.contains(verdict)),
        };
        if !holds {
            let (must, which) = match expected {
                Say(any) => ("say one of", any),
                Not(none) => ("not say", none),
            };
            wrong.push(format!("{name} {rule}: says {verdicts:?}, must {must} {which:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn every_expected_verdict_is_said_and_no_forbidden_one() {
    hold("corpus/traces", TABLE);
}

#[test]
fn the_known_causes_of_recordings_are_found() {
    hold("corpus/inputs/kineto-cpu", RECORDINGS);
}

/// The sentences of a trace.
fn sentences(name: &str) -> Option<Vec<Finding>> {
    let folder = testkit::shared("corpus/traces")?;
    let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
    Some(of_file(&file).findings)
}

#[test]
fn sentences_have_the_figures_of_the_specification() {
    for (name, rule, verdict, text) in WORDS {
        let Some(found) = sentences(name) else { return };
        let own = found.iter().filter(|one| one.rule.id() == *rule && one.verdict == *verdict);
        let said: Vec<&str> = own.map(|finding| finding.observation.as_str()).collect();
        assert!(said.iter().any(|said| said.contains(text)), "{name} {rule}: {said:?}");
    }
    for (name, text) in PLACES {
        let Some(found) = sentences(name) else { return };
        assert!(found.iter().any(|finding| finding.observation.contains(text)), "{name}: {text}");
    }
}

/// Old traces have the correlation as their `External id`: 17 of `alexnet` equal the number of an op that launched something else.
#[test]
fn work_of_a_file_whose_external_ids_are_correlations_belongs_to_the_op_around_its_launch() {
    let Some(folder) = testkit::shared("corpus/traces") else { return };
    let file = std::fs::read(folder.join("alexnet.json.gz")).unwrap();
    let (decoded, _) = common::read(&file);
    let index = host::HostIndex::of(&decoded.trace);
    let mut n = 0;
    for one in index.gpu.linked() {
        let (Some(launch), Some(op)) = (one.launch, one.owner) else { continue };
        let op = &index.slices.ops.slices[op];
        let around = op.start_ns <= launch.start_ns && launch.start_ns <= op.end_ns;
        assert!(around, "{} launches at {}", index.slices.name(op), launch.start_ns);
        n += 1;
    }
    assert!(n > 50, "{n}");
}

#[test]
fn growth_from_step_to_step_has_an_action_that_saves_memory_and_no_time() {
    let Some(folder) = testkit::shared("corpus/inputs/kineto-cpu") else { return };
    for (name, expected) in [("memory_leak", 1), ("mlp_train", 0)] {
        let file = std::fs::read(folder.join(format!("{name}.json.gz"))).unwrap();
        let found = of_file(&file);
        let own: Vec<_> = found.actions.iter().filter(|action| action.rule == "M12").collect();
        assert_eq!(own.len(), expected, "{name}");
        for action in own {
            assert_eq!((action.bound_ns, &*action.impact()), (0, "memory, not time"));
            assert!(action.action.contains("loss.item()"), "{}", action.action);
        }
    }
}
