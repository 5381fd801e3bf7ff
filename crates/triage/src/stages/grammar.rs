//! The stage from the name of an annotation.
//!
//! A rule per spelling, in order: the first that reads the name decides. The spellings are those of real
//! traces and of the engines' sources; each has its example, and the tests read all of them. Two readings
//! that other tools get wrong are why this is a parser and no search for words: `generation_32` is a decode
//! step of 32 requests as much as `generation_1` is one of one, and a step with requests on both sides is
//! mixed, whatever word comes first.

use super::Stage;

/// What an annotation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) stage: Stage,
    pub(crate) load: Load,
    /// Whether it is a pass of the stage, not a chore that belongs to it.
    pub(crate) is_pass: bool,
}

impl Reading {
    fn pass(stage: Stage, load: Load) -> Self {
        Self { stage, load, is_pass: true }
    }
}

/// The amount of work of a pass, as far as the annotation has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Requests in the batch.
    pub(crate) requests: Option<u64>,
    /// Requests of it that are in their prompt, and those that generate.
    pub(crate) sides: Option<(u64, u64)>,
    /// Tokens that go through the model.
    pub(crate) tokens: Option<u64>,
    /// Tokens that attention looks at: those of the pass and those of the cache before them.
    pub(crate) context_tokens: Option<u64>,
}

impl Load {
    /// The values of either of two names of one pass.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            requests: self.requests.or(other.requests),
            sides: self.sides.or(other.sides),
            tokens: self.tokens.or(other.tokens),
            context_tokens: self.context_tokens.or(other.context_tokens),
        }
    }
}

/// One spelling.
struct Rule {
    read: fn(&str) -> Option<Reading>,
    /// Names it reads, with what it reads in them.
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests read every example"))]
    examples: &'static [(&'static str, Stage)],
}

const RULES: &[Rule] = &[
    // The capture of a graph: vLLM, SGLang.
    Rule {
        read: capture,
        examples: &[
            ("capture_32_FULL", Stage::Capture),
            ("capture_32_DECODE", Stage::Capture),
            ("capture_8192_PIECEWISE", Stage::Capture),
        ],
    },
    // SGLang, by the modes of its `ForwardMode`.
    Rule {
        read: step,
        examples: &[
            ("step[DECODE bs=32]", Stage::Decode),
            ("step[EXTEND bs=15 toks=15360]", Stage::Extend),
            ("step[PREFILL bs=1 toks=7]", Stage::Extend),
            ("step[DRAFT_EXTEND bs=4]", Stage::Extend),
            ("step[MIXED bs=4 toks=900]", Stage::Mixed),
            ("step[TARGET_VERIFY bs=4]", Stage::Decode),
            ("step[IDLE bs=0]", Stage::All),
        ],
    },
    // vLLM: `annotate_profile` of its GPU worker, which grew from the third form to the first.
    Rule {
        read: context_and_generation,
        examples: &[
            (
                "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)",
                Stage::Decode,
            ),
            ("execute_32_context_0(..)_generation_32(..)", Stage::Decode),
            ("execute_context_1(888_788544)_generation_0(0)", Stage::Extend),
            ("execute_context_0(0)_generation_1(1)", Stage::Decode),
            ("execute_context_2(100)_generation_17(17)", Stage::Mixed),
            ("context_2_generation_17", Stage::Mixed),
            ("execute_context_0(0)_generation_0(0)", Stage::All),
        ],
    },
    // vLLM before that: requests that are new, and those that ran before. (A prompt in several chunks is new in the first alone.)
    Rule {
        read: new_and_cached,
        examples: &[
            ("execute_new_0_cached_4", Stage::Decode),
            ("execute_new_1_cached_0", Stage::Extend),
            ("execute_new_3_cached_1", Stage::Mixed),
            ("execute_new_0_cached_0", Stage::All),
        ],
    },
    // TensorRT-LLM: `_forward_step` of its PyExecutor.
    Rule {
        read: executor_step,
        examples: &[
            ("[Executor] _forward_step 7: 0 ctx reqs, 8 gen reqs", Stage::Decode),
            ("[Executor] _forward_step: 2 ctx reqs, 0 gen reqs", Stage::Extend),
            ("_forward_step: 2 ctx reqs, 3 gen reqs", Stage::Mixed),
        ],
    },
    // Pipeline schedules of PyTorch: `PP:` and an action of `torch/distributed/pipelining/schedules.py`.
    Rule {
        read: pipeline_action,
        examples: &[
            ("PP:0F1", Stage::Forward),
            ("PP:2B10", Stage::Backward),
            ("PP:3I4", Stage::Backward),
            ("PP:3W4", Stage::WeightGrad),
            ("PP:0SEND_F2", Stage::Forward),
            ("PP:0RECV_B2", Stage::Backward),
        ],
    },
    // Schedules that split the backward pass (DualPipe, zero bubble): the phase in parentheses at the end.
    Rule {
        read: phase_letter,
        examples: &[
            ("attn(F)", Stage::Forward),
            ("combine(B)", Stage::Backward),
            ("mlp (W)", Stage::WeightGrad),
        ],
    },
    // Anybody's words for a serving stage.
    Rule {
        read: serving_words,
        examples: &[
            ("prefill", Stage::Extend),
            ("model prefill (bs 4)", Stage::Extend),
            ("run_extend", Stage::Extend),
            ("DecodeStep 12", Stage::Decode),
            ("decode_32", Stage::Decode),
            ("prefill+decode", Stage::Mixed),
        ],
    },
    // PyTorch's own names and anybody's words for a training stage.
    Rule {
        read: training_words,
        examples: &[
            ("Optimizer.step#SGD.step", Stage::Optimizer),
            ("Optimizer.zero_grad#Adam.zero_grad", Stage::Optimizer),
            ("## optimizer ##", Stage::Optimizer),
            ("DistributedDataParallel.forward", Stage::Forward),
            ("FullyShardedDataParallel._pre_forward", Stage::Forward),
            ("## forward ##", Stage::Forward),
            ("## forward:over_arch ##", Stage::Forward),
            ("[pl][profile][Strategy]DDPStrategy.training_step", Stage::Forward),
            ("## backward ##", Stage::Backward),
            ("FSDP::post_backward", Stage::Backward),
            ("bwd_microstep", Stage::Backward),
            ("mlp_dgrad", Stage::Backward),
            ("backward input 3", Stage::Backward),
            ("moe wgrad", Stage::WeightGrad),
            ("backward_dw", Stage::WeightGrad),
            ("Backward weight 3", Stage::WeightGrad),
            ("weight_grad", Stage::WeightGrad),
        ],
    },
];

/// What `name` says; `None` when it says nothing about a stage.
#[inline(never)]
pub(crate) fn read(name: &str) -> Option<Reading> {
    // A compiled graph's name is a hash, which may spell any word.
    if name.starts_with("## Call ") {
        return None;
    }
    RULES.iter().find_map(|rule| (rule.read)(name))
}

fn capture(name: &str) -> Option<Reading> {
    let (requests, rest) = number(name.strip_prefix("capture_")?)?;
    let mode = rest.strip_prefix('_')?;
    let is_mode = |byte: u8| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit();
    let named = mode.starts_with(|first: char| first.is_ascii_uppercase());
    let load = Load { requests: Some(requests), ..Load::default() };
    (named && mode.bytes().all(is_mode)).then_some(Reading::pass(Stage::Capture, load))
}

/// The modes of SGLang's steps. A draft's extension follows what was accepted and looks like a prefill; to
/// verify a draft is to decode several tokens at once, a step of `DECODE` has one a request; an idle step has no sequence at all.
const MODES: &[(&str, Stage)] = &[
    ("EXTEND", Stage::Extend),
    ("PREFILL", Stage::Extend),
    ("SPLIT_PREFILL", Stage::Extend),
    ("DRAFT_EXTEND", Stage::Extend),
    ("DRAFT_EXTEND_V2", Stage::Extend),
    ("DECODE", Stage::Decode),
    ("TARGET_VERIFY", Stage::Decode),
    ("MIXED", Stage::Mixed),
    ("IDLE", Stage::All),
];

fn step(name: &str) -> Option<Reading> {
    let inner = name.strip_prefix("step[")?;
    let inner = inner.split(']').next()?;
    let mut parts = inner.split_ascii_whitespace();
    let mode = parts.next()?;
    let (_, stage) = *MODES.iter().find(|(word, _)| word.eq_ignore_ascii_case(mode))?;
    let mut load = Load::default();
    for part in parts {
        match part.split_once('=') {
            Some(("bs", value)) => load.requests = value.parse().ok(),
            Some(("toks", value)) => load.tokens = value.parse().ok(),
            _ => {}
        }
    }
    load.tokens = load.tokens.or(load.requests.filter(|_| mode.eq_ignore_ascii_case("DECODE")));
    Some(Reading::pass(stage, load))
}

fn context_and_generation(name: &str) -> Option<Reading> {
    let (_, rest) = name.split_once("context_")?;
    let (context, rest) = number(rest)?;
    let (of_context, rest) = group(rest);
    let (generation, rest) = number(rest.strip_prefix("_generation_")?)?;
    let (of_generation, _) = group(rest);
    let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    let load = Load {
        tokens: sum(of_context.and_then(tokens), of_generation.and_then(tokens)),
        context_tokens: sum(
            of_context.and_then(context_tokens),
            of_generation.and_then(context_tokens),
        ),
        ..Load::default()
    };
    Some(both_sides(context, generation, load))
}

fn new_and_cached(name: &str) -> Option<Reading> {
    let (new, rest) = number(name.strip_prefix("execute_new_")?)?;
    let (cached, rest) = number(rest.strip_prefix("_cached_")?)?;
    rest.is_empty().then(|| both_sides(new, cached, Load::default()))
}

fn executor_step(name: &str) -> Option<Reading> {
    let (before, rest) = name.split_once(" ctx reqs")?;
    let (between, _) = rest.split_once(" gen reqs")?;
    Some(both_sides(last_number(before)?, last_number(between)?, Load::default()))
}

fn both_sides(context: u64, generation: u64, load: Load) -> Reading {
    let stage = match (context > 0, generation > 0) {
        (true, false) => Stage::Extend,
        (false, true) => Stage::Decode,
        (true, true) => Stage::Mixed,
        (false, false) => Stage::All,
    };
    let requests = Some(context.saturating_add(generation));
    Reading::pass(stage, Load { requests, sides: Some((context, generation)), ..load })
}

/// Tokens of a group: `888` of `888_788544` (the second number is the sum of squares), 32 of
/// `sq32sk32785sqsq32sqsk32785` (sums over queries, keys and their products).
fn tokens(group: &str) -> Option<u64> {
    number(group.strip_prefix("sq").unwrap_or(group)).map(|(tokens, _)| tokens)
}

/// The sum over keys of a group that has one.
fn context_tokens(group: &str) -> Option<u64> {
    let (_, rest) = number(group.strip_prefix("sq")?)?;
    number(rest.strip_prefix("sk")?).map(|(tokens, _)| tokens)
}

/// An action of a pipeline schedule, such as `2F0`: stage, type, microbatch. Collectives on weights (`UNSHARD`) and
/// overlapped actions (`OVERLAP_F_B`) are no single phase.
fn pipeline_action(name: &str) -> Option<Reading> {
    let (_, action) = number(name.strip_prefix("PP:")?)?;
    let action = action.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let stage = match action {
        "F" | "SEND_F" | "RECV_F" => Stage::Forward,
        "B" | "I" | "SEND_B" | "RECV_B" => Stage::Backward,
        "W" => Stage::WeightGrad,
        _ => return None,
    };
    Some(Reading::pass(stage, Load::default()))
}

fn phase_letter(name: &str) -> Option<Reading> {
    let (_, phase) = name.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    let stage = match phase {
        "F" => Stage::Forward,
        "B" => Stage::Backward,
        "W" => Stage::WeightGrad,
        _ => return None,
    };
    Some(Reading::pass(stage, Load::default()))
}

fn serving_words(name: &str) -> Option<Reading> {
    let (mut extend, mut decode) = (false, false);
    for word in words(name) {
        // (TorchRec's codecs shrink what ranks exchange.)
        if word.starts_with("codec") {
            return None;
        }
        extend |= word.contains("prefill") || has(&word, "extend", &["extended", "extender"]);
        decode |= has(&word, "decode", &["decoder", "decoded"]) || word == "decoding";
    }
    let stage = match (extend, decode) {
        (true, false) => Stage::Extend,
        (false, true) => Stage::Decode,
        (true, true) => Stage::Mixed,
        (false, false) => return None,
    };
    Some(Reading::pass(stage, Load::default()))
}

/// Words for work of the backward pass, in names of annotations and kernels.
const BACKWARD_WORDS: [&str; 3] = ["backward", "bwd", "dgrad"];

/// Whether TorchInductor made the name, of a kernel or of the op that launches it. It lists the ops whose arithmetic the
/// kernel contains, and these say nothing of the pass: `triton_per_fused_native_layer_norm_backward_0` may keep what the
/// backward pass needs, in the forward pass.
pub(super) fn is_generated(name: &str) -> bool {
    ["triton_", "cpp_fused_"].iter().any(|start| name.starts_with(start))
}

/// Whether the name of a kernel says that it is work of the backward pass.
pub(super) fn is_backward_kernel(name: &str) -> bool {
    !is_generated(name)
        && words(name).any(|word| word == "wgrad" || BACKWARD_WORDS.contains(&word.as_str()))
}

/// Whether an op may be somebody's annotation: profilers before PyTorch 1.11 write every `record_function` as an op.
/// Ops have a namespace, and nodes of the autograd graph end in `Backward`.
pub(super) fn may_be_annotation(op: &str) -> bool {
    !op.contains("::") && !op.starts_with("Torch-Compiled") && !is_generated(op)
}

fn training_words(name: &str) -> Option<Reading> {
    let (mut forward, mut backward, mut optimizer) = (false, false, false);
    let (mut weight, mut weight_grad) = (false, false);
    let mut last = String::new();
    for word in words(name) {
        forward |= word == "forward" || word == "fwd";
        backward |= BACKWARD_WORDS.contains(&word.as_str());
        optimizer |= word == "optimizer" || word == "optim";
        weight |= matches!(word.as_str(), "weight" | "weights" | "dw");
        weight_grad |= word == "wgrad"
            || last == "weight" && matches!(word.as_str(), "grad" | "grads" | "gradient");
        last = word;
    }
    // Lightning calls the step of the model inside the one of the optimizer.
    forward |= name.starts_with("[pl]") && name.ends_with("training_step");
    weight_grad |= backward && weight;
    let stage = match (forward, backward || weight_grad, optimizer) {
        (true, false, false) => Stage::Forward,
        (false, true, false) if weight_grad => Stage::WeightGrad,
        (false, true, false) => Stage::Backward,
        (false, false, true) => Stage::Optimizer,
        // A name with two of them is a whole step: its parts decide.
        _ => return None,
    };
    // An optimizer clears its gradients once per step, too.
    Some(Reading { stage, load: Load::default(), is_pass: !name.contains("zero_grad") })
}

/// Whether `word` holds `part` and none of the words that hold it by chance.
fn has(word: &str, part: &str, not: &[&str]) -> bool {
    word.contains(part) && !not.iter().any(|not| word.contains(not))
}

/// The words of a name in lower case: runs of letters and digits, cut where a capital follows a small
/// letter.
pub(super) fn words(name: &str) -> impl Iterator<Item = String> + '_ {
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).flat_map(|run| {
        let mut words = vec![String::new()];
        let mut small = false;
        for letter in run.chars() {
            if small && letter.is_ascii_uppercase() {
                words.push(String::new());
            }
            small = letter.is_ascii_lowercase();
            if let Some(word) = words.last_mut() {
                word.push(letter.to_ascii_lowercase());
            }
        }
        words.retain(|word| !word.is_empty());
        words
    })
}

/// The number at the start of `text`, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

/// The number at the end of `text`.
fn last_number(text: &str) -> Option<u64> {
    text.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The text in parentheses at the start of `text`, and the rest.
fn group(text: &str) -> (Option<&str>, &str) {
    let inner = text.strip_prefix('(').and_then(|inner| inner.split_once(')'));
    inner.map_or((None, text), |(inner, rest)| (Some(inner), rest))
}

#[cfg(test)]
mod tests;
