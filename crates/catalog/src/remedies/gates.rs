//! The facts of a run that decide which advice applies, and the gates that ask for them.

use crate::Platform;

/// The software that runs the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// PyTorch without an inference framework.
    Pytorch,
    /// Diffusers or xDiT.
    Diffusers,
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
    /// TensorRT-LLM.
    TensorRtLlm,
    /// TokenSpeed.
    TokenSpeed,
}

/// What the run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunType {
    /// A backward pass or an optimizer runs.
    Training,
    /// Neither runs.
    Inference,
}

/// The part of a run that the kernels belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A forward pass, or a pass of inference.
    Forward,
    /// A backward pass.
    Backward,
    /// An optimizer step.
    Optimizer,
}

/// The kind of a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// RMSNorm.
    Rms,
    /// LayerNorm.
    Layer,
    /// BatchNorm, GroupNorm, InstanceNorm.
    Other,
}

/// An activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// SiLU, before the multiplication with its gate: SwiGLU.
    Silu,
    /// GELU as one kernel.
    Gelu,
    /// GELU by its tanh approximation, written as single ops (NewGELU).
    NewGelu,
    /// ReLU.
    Relu,
}

/// An optimizer of `torch.optim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimizer {
    /// SGD.
    Sgd,
    /// Adam.
    Adam,
    /// AdamW.
    AdamW,
    /// Adagrad.
    Adagrad,
    /// Another one, for which `torch.optim` has no fused kernel.
    Other,
}

/// What is added to the scores of an attention, or taken out of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Nothing.
    None,
    /// Future positions are taken out, by a kernel that does nothing else.
    Causal,
    /// Positions are taken out by a mask of true and false.
    Boolean,
    /// A tensor is added: a bias of positions, or a mask of large negative numbers.
    Additive,
}

/// How the kernels are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Op by op.
    Eager,
    /// By code of a compiler (TorchInductor).
    Compiled,
    /// By a CUDA or HIP graph.
    Graph,
}

/// Whose kernels the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// All are PyTorch's own kernels.
    Aten,
    /// At least one is from a library or a framework, and none was made by a compiler.
    Library,
    /// At least one was made by a compiler.
    Compiled,
}

/// What a trace says of the place that a remedy is for. `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Whose GPU it is; `Unknown` is not known.
    pub platform: Platform,
    /// The software that runs the model.
    pub stack: Option<Stack>,
    /// What the run is for.
    pub run: Option<RunType>,
    /// The part of the run.
    pub phase: Option<Phase>,
    /// The norm among the kernels.
    pub norm: Option<Norm>,
    /// The activation among the kernels.
    pub activation: Option<Activation>,
    /// The optimizer of the run.
    pub optimizer: Option<Optimizer>,
    /// The mask of the attention.
    pub mask: Option<Mask>,
    /// How the kernels are launched.
    pub execution: Option<Execution>,
    /// Whose kernels they are.
    pub parts: Option<Parts>,
    /// The host side of the copy is pinned memory.
    pub pinned: Option<bool>,
    /// The copy runs on a stream without kernels.
    pub own_stream: Option<bool>,
    /// The copy goes to the device.
    pub to_device: Option<bool>,
    /// The kernels fill gradients with zeros (`zero_grad`).
    pub zero_grad: Option<bool>,
    /// The kernels were called with inputs of equal sizes.
    pub equal_inputs: Option<bool>,
    /// All tensors of the matrix products are of 16 bits.
    pub half: Option<bool>,
    /// The GPU has faster convolutions for images whose channels come last, in the number format of the convolutions.
    pub faster_nhwc: Option<bool>,
    /// Group norms stand between the convolutions, which put the channels first again.
    pub group_norms: Option<bool>,
    /// The data loader loads in the process that trains (`num_workers=0`).
    pub single_process_loader: Option<bool>,
    /// The NVIDIA compute capability as `major * 10 + minor`: 90 is an H100.
    pub sm: Option<u32>,
    /// Some code of the run is compiled (TorchInductor).
    pub compiled: Option<bool>,
    /// The kernels are launched below the eager function of the attention interface of Hugging Face Transformers, which
    /// another `attn_implementation` replaces.
    pub attention_interface: Option<bool>,
    /// The most rows (tokens) that the kernels work on at once.
    pub tokens: Option<u64>,
    /// The largest tensor that the kernels reduce or norm, in bytes.
    pub bytes: Option<u64>,
    /// The collectives are launched by the gradient hooks of DistributedDataParallel.
    pub ddp: Option<bool>,
    /// The collectives move 32-bit floats.
    pub collective_f32: Option<bool>,
    /// The run has foreach or fused optimizer kernels.
    pub foreach: Option<bool>,
    /// The run has recurrent layers of cuDNN or MIOpen.
    pub recurrent: Option<bool>,
    /// Most of the late launches are those of prefills, which no graph launches.
    pub prefill: Option<bool>,
    /// Each call of an outermost module launches one kernel at most: a graph of it saves no launch.
    pub single_kernel_calls: Option<bool>,
    /// The program asks whether FlashInfer's all-reduce can be used: it is switched on.
    pub asks_flashinfer: Option<bool>,
    /// The month of the recording, as `year * 100 + month`; where the file names the version of PyTorch, what
    /// [`released`](super::released) has for it.
    pub recorded: Option<u32>,
}

/// Which gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The GPU's vendor.
    Vendor,
    /// The framework.
    Framework,
    /// Training or inference.
    RunType,
    /// Forward, backward or optimizer.
    Phase,
    /// The kind of norm.
    Norm,
    /// The activation.
    Activation,
    /// The optimizer.
    Optimizer,
    /// The attention mask.
    Mask,
    /// Eager, compiled or graph.
    Execution,
    /// Whose kernels the parts are.
    Parts,
    /// Pinned host memory.
    Pinned,
    /// A stream of its own.
    OwnStream,
    /// The direction of a copy.
    Direction,
    /// Gradients are filled with zeros.
    ZeroGrad,
    /// Equal inputs.
    EqualInputs,
    /// The number format.
    Precision,
    /// What the GPU has for images whose channels come last.
    Nhwc,
    /// What norms do with such images.
    GroupNorms,
    /// How the data loader works.
    Loader,
    /// The compute capability.
    Capability,
    /// The run is compiled already.
    Compiled,
    /// Which code calls the attention.
    AttentionInterface,
    /// How many tokens a step has.
    Tokens,
    /// How large the tensors are.
    Bytes,
    /// Which code starts the collective.
    Ddp,
    /// The number format of the collective.
    CollectiveFormat,
    /// The optimizer's kernels.
    Foreach,
    /// Recurrent layers.
    Recurrent,
    /// Prefill or decode.
    Prefill,
    /// How many kernels a call launches.
    Kernels,
    /// What is switched on already.
    SwitchedOn,
    /// When the trace was recorded.
    Released,
}

/// The conditions of a remedy: a list of allowed values for each fact. An empty list and `None` ask for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    /// Vendors.
    pub platforms: &'static [Platform],
    /// Frameworks.
    pub stacks: &'static [Stack],
    /// Training or inference.
    pub runs: &'static [RunType],
    /// Forward, backward or optimizer.
    pub phases: &'static [Phase],
    /// Kinds of norm.
    pub norms: &'static [Norm],
    /// Activations.
    pub activations: &'static [Activation],
    /// Optimizers.
    pub optimizers: &'static [Optimizer],
    /// Attention masks.
    pub masks: &'static [Mask],
    /// Ways of launching.
    pub executions: &'static [Execution],
    /// Whose kernels the parts are.
    pub parts: &'static [Parts],
    /// Whether the host side of the copy is pinned.
    pub pinned: Option<bool>,
    /// Whether the copy has a stream of its own.
    pub own_stream: Option<bool>,
    /// Whether the copy goes to the device.
    pub to_device: Option<bool>,
    /// Whether gradients are filled with zeros.
    pub zero_grad: Option<bool>,
    /// Whether the inputs are equal in size.
    pub equal_inputs: Option<bool>,
    /// Whether the matrix products are of 16 bits.
    pub half: Option<bool>,
    /// Whether convolutions are faster where the channels come last.
    pub faster_nhwc: Option<bool>,
    /// Group norms stand between the convolutions, which put the channels first again.
    pub group_norms: Option<bool>,
    /// Whether the data loader loads in the process that trains.
    pub single_process_loader: Option<bool>,
    /// The least and the greatest NVIDIA compute capability. GPUs of other vendors pass.
    pub sm: Option<(u32, u32)>,
    /// Whether some code of the run is compiled.
    pub compiled: Option<bool>,
    /// Whether the attention is called through the interface of Hugging Face Transformers.
    pub attention_interface: Option<bool>,
    /// The most tokens.
    pub most_tokens: Option<u64>,
    /// The most bytes.
    pub most_bytes: Option<u64>,
    /// Whether the hooks of DistributedDataParallel start the collective.
    pub ddp: Option<bool>,
    /// Whether the collective moves 32-bit floats.
    pub collective_f32: Option<bool>,
    /// Whether the optimizer has foreach or fused kernels.
    pub foreach: Option<bool>,
    /// Whether the run has recurrent layers of cuDNN or MIOpen.
    pub recurrent: Option<bool>,
    /// Whether most of the late launches are those of prefills without graphs.
    pub prefill: Option<bool>,
    /// Whether each call of an outermost module launches one kernel at most.
    pub single_kernel_calls: Option<bool>,
    /// Whether the program asks for FlashInfer's all-reduce.
    pub asks_flashinfer: Option<bool>,
    /// The month in which what the remedy uses was released, as `year * 100 + month`. A trace that was recorded before is of a
    /// version that lacks it; one without a date passes.
    pub since: Option<u32>,
    /// The month of the release that does by itself what the remedy asks for, in the same form: the trace has to be of an older version, so
    /// one without a date does not pass.
    pub until: Option<u32>,
}

/// No conditions.
pub(crate) const OPEN: Gates = Gates {
    platforms: &[],
    stacks: &[],
    runs: &[],
    phases: &[],
    norms: &[],
    activations: &[],
    optimizers: &[],
    masks: &[],
    executions: &[],
    parts: &[],
    pinned: None,
    own_stream: None,
    to_device: None,
    zero_grad: None,
    equal_inputs: None,
    half: None,
    faster_nhwc: None,
    group_norms: None,
    single_process_loader: None,
    sm: None,
    compiled: None,
    attention_interface: None,
    most_tokens: None,
    most_bytes: None,
    ddp: None,
    collective_f32: None,
    foreach: None,
    recurrent: None,
    prefill: None,
    single_kernel_calls: None,
    asks_flashinfer: None,
    since: None,
    until: None,
};

/// A fact that is not known is in no list.
fn allows<T: PartialEq>(allowed: &[T], fact: Option<T>) -> bool {
    allowed.is_empty() || fact.is_some_and(|fact| allowed.contains(&fact))
}

fn agrees(wanted: Option<bool>, fact: Option<bool>) -> bool {
    wanted.is_none() || wanted == fact
}

fn at_most(most: Option<u64>, fact: Option<u64>) -> bool {
    most.is_none_or(|most| fact.is_some_and(|fact| fact <= most))
}

impl Gates {
    /// The first gate that `facts` do not pass; `None` if they pass all.
    #[must_use]
    pub fn closed(&self, facts: &RunFacts) -> Option<Gate> {
        // (Without `..`: a gate that is left out here would be open for all.)
        let Self {
            platforms,
            stacks,
            runs,
            phases,
            norms,
            activations,
            optimizers,
            masks,
            executions,
            parts,
            pinned,
            own_stream,
            to_device,
            zero_grad,
            equal_inputs,
            half,
            faster_nhwc,
            group_norms,
            single_process_loader,
            sm: _,
            compiled,
            attention_interface,
            most_tokens,
            most_bytes,
            ddp,
            collective_f32,
            foreach,
            recurrent,
            prefill,
            single_kernel_calls,
            asks_flashinfer,
            since: _,
            until: _,
        } = *self;
        let platform = Some(facts.platform).filter(|platform| *platform != Platform::Unknown);
        let gates = [
            (allows(platforms, platform), Gate::Vendor),
            (allows(stacks, facts.stack), Gate::Framework),
            (allows(runs, facts.run), Gate::RunType),
            (allows(phases, facts.phase), Gate::Phase),
            (allows(norms, facts.norm), Gate::Norm),
            (allows(activations, facts.activation), Gate::Activation),
            (allows(optimizers, facts.optimizer), Gate::Optimizer),
            (allows(masks, facts.mask), Gate::Mask),
            (allows(executions, facts.execution), Gate::Execution),
            (allows(parts, facts.parts), Gate::Parts),
            (agrees(pinned, facts.pinned), Gate::Pinned),
            (agrees(own_stream, facts.own_stream), Gate::OwnStream),
            (agrees(to_device, facts.to_device), Gate::Direction),
            (agrees(zero_grad, facts.zero_grad), Gate::ZeroGrad),
            (agrees(equal_inputs, facts.equal_inputs), Gate::EqualInputs),
            (agrees(half, facts.half), Gate::Precision),
            (agrees(faster_nhwc, facts.faster_nhwc), Gate::Nhwc),
            (agrees(group_norms, facts.group_norms), Gate::GroupNorms),
            (agrees(single_process_loader, facts.single_process_loader), Gate::Loader),
            (self.allows_capability(facts), Gate::Capability),
            (agrees(compiled, facts.compiled), Gate::Compiled),
            (agrees(attention_interface, facts.attention_interface), Gate::AttentionInterface),
            (at_most(most_tokens, facts.tokens), Gate::Tokens),
            (at_most(most_bytes, facts.bytes), Gate::Bytes),
            (agrees(ddp, facts.ddp), Gate::Ddp),
            (agrees(collective_f32, facts.collective_f32), Gate::CollectiveFormat),
            (agrees(foreach, facts.foreach), Gate::Foreach),
            (agrees(recurrent, facts.recurrent), Gate::Recurrent),
            (agrees(prefill, facts.prefill), Gate::Prefill),
            (agrees(single_kernel_calls, facts.single_kernel_calls), Gate::Kernels),
            (agrees(asks_flashinfer, facts.asks_flashinfer), Gate::SwitchedOn),
            (self.is_released(facts), Gate::Released),
        ];
        gates.into_iter().find(|(open, _)| !open).map(|(_, gate)| gate)
    }

    fn is_released(&self, facts: &RunFacts) -> bool {
        let is_older = |until: u32| facts.recorded.is_some_and(|recorded| recorded < until);
        self.since.zip(facts.recorded).is_none_or(|(since, recorded)| recorded >= since)
            && self.until.is_none_or(is_older)
    }

    /// Compute capabilities are NVIDIA's; on other GPUs the vendor's gate decides.
    fn allows_capability(&self, facts: &RunFacts) -> bool {
        self.sm.is_none_or(|(least, most)| {
            facts.platform != Platform::Cuda
                || facts.sm.is_some_and(|sm| (least..=most).contains(&sm))
        })
    }
}
