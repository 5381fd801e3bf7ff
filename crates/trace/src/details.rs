//! Arguments that have no column: kept only for some events, and each distinct text once.

use crate::{Row, StringId, StringTable};

/// Arguments of some events, read from the file a second time: GPU kernels and the calls that launch them, ops,
/// waits of streams. Sparse: 8 to 16 bytes for each of these events.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Texts of [`OpInputs`].
    pub texts: StringTable,
    /// Every distinct launch.
    pub configs: Vec<LaunchConfig>,
    /// Index into `configs` of kernels and launches, by row.
    pub launches: Vec<(Row, u32)>,
    /// Every distinct list of inputs.
    pub inputs: Vec<OpInputs>,
    /// Index into `inputs` of ops, by row.
    pub ops: Vec<(Row, u32)>,
    /// Autograd's sequence number of an op, by row: the op of the forward pass and its ops of the backward pass have
    /// the same one.
    pub sequences: Vec<(Row, Sequence)>,
    /// Waits of one stream for another, by row.
    pub waits: Vec<(Row, StreamWait)>,
    /// Every distinct collective.
    pub collectives: Vec<Collective>,
    /// Index into `collectives` of kernels, by row.
    pub collective_of: Vec<(Row, u32)>,
    /// `Concrete Inputs` of the ops for which they were asked, as JSON without white space, by row.
    pub concrete_inputs: Vec<(Row, StringId)>,
    /// `Input Strides` of the same ops, as JSON without white space, by row.
    pub strides: Vec<(Row, StringId)>,
    /// Bytes of a copy on a GPU, by row.
    pub copied_bytes: Vec<(Row, i64)>,
    /// Changes of allocated memory, by row.
    pub memory: Vec<(Row, MemoryEvent)>,
    /// Names of threads as metadata events give them, by row of the event.
    pub thread_names: Vec<(Row, StringId)>,
    /// Whether frames of Python have the line that called them (PyTorch from 2.15 on).
    pub frames_have_call_sites: bool,
    /// Whether ops have the frames around them as a text (PyTorch of 2021 and 2022).
    pub ops_have_stacks: bool,
    /// Events whose arguments were read.
    pub n_read: u64,
    /// Events whose arguments could not be read: the text ended, changed, or was too long.
    pub n_unread: u64,
    /// Lists of inputs that were too long, or too many, to keep.
    pub n_unkept: u64,
}

/// The launch config of a kernel, as far as it was recorded. On CUDA the kernel has all of it. On ROCm the launching
/// call has grid, block and shared memory, and in newer files the kernel has grid and block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchConfig {
    /// Blocks (workgroups) in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Registers of each thread.
    pub registers: Option<u32>,
    /// Shared memory (LDS) of each block, in bytes.
    pub shared_bytes: Option<u32>,
    /// `est. achieved occupancy %`, in thousandths of a percent: the profiler's own estimate.
    pub occupancy_milli_pct: Option<u32>,
    /// `blocks per SM`, in thousandths.
    pub blocks_per_sm_milli: Option<u32>,
    /// `warps per SM`, in thousandths.
    pub warps_per_sm_milli: Option<u32>,
}

/// Inputs of an op; empty texts where they were not recorded (`record_shapes` was off).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpInputs {
    /// `Input Dims` as JSON without white space: `[[2048,4096],[4096,4096],[]]`.
    pub dims: StringId,
    /// `Input type` as JSON without white space.
    pub types: StringId,
}

/// What a kernel of a collective was called with, as PyTorch's `record_param_comms` records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collective {
    /// `Collective name`, such as `allreduce`.
    pub name: StringId,
    /// `dtype`, process group and split sizes, as one text: equal for equal calls.
    pub kind: StringId,
    /// `In msg nelems`: elements that this rank sends.
    pub in_elements: i64,
    /// `Out msg nelems`: elements that this rank gets.
    pub out_elements: i64,
    /// `Group size`: ranks.
    pub group_size: i64,
}

/// Autograd's sequence number of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// `Sequence number`.
    pub number: i64,
    /// `Fwd thread id`: 0 on an op of the forward pass; otherwise the op belongs to the backward pass.
    pub forward_thread: i64,
}

/// One stream waits until another has reached an event (`cuda_sync`, `Stream Wait Event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWait {
    /// The device of both.
    pub device: Option<i64>,
    /// The stream that waits.
    pub stream: Option<i64>,
    /// `wait_on_stream`: the stream on which the event was recorded.
    pub on_stream: Option<i64>,
    /// `wait_on_cuda_event_record_corr_id`: the correlation of the call that recorded the event.
    pub record: Option<i64>,
}

/// One `[memory]` event: PyTorch's allocator gave or took back memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryEvent {
    /// `Device Type`: 0 is the CPU, 1 a GPU.
    pub device_type: Option<i64>,
    /// `Device Id`; -1 on the CPU.
    pub device: Option<i64>,
    /// `Addr`.
    pub address: Option<i64>,
    /// `Bytes`: negative where memory was given back. 0 if missing.
    pub bytes: i64,
    /// `Total Allocated`, after the change.
    pub allocated_bytes: Option<i64>,
    /// `Total Reserved`, after the change.
    pub reserved_bytes: Option<i64>,
}

impl Details {
    /// The launch config of a kernel or launch.
    #[must_use]
    pub fn launch(&self, row: Row) -> Option<&LaunchConfig> {
        self.configs.get(self.launch_index(row)? as usize)
    }

    /// The same as an index of `configs`.
    #[must_use]
    pub fn launch_index(&self, row: Row) -> Option<u32> {
        find(&self.launches, row)
    }

    /// The inputs of an op.
    #[must_use]
    pub fn inputs(&self, row: Row) -> Option<OpInputs> {
        self.inputs.get(find(&self.ops, row)? as usize).copied()
    }

    /// The collective of a kernel, as an index of `collectives`.
    #[must_use]
    pub fn collective(&self, row: Row) -> Option<u32> {
        find(&self.collective_of, row)
    }

    /// Autograd's sequence number of an op.
    #[must_use]
    pub fn sequence(&self, row: Row) -> Option<Sequence> {
        find(&self.sequences, row)
    }

    /// The concrete inputs of an op, if they were asked for and recorded: JSON without white space.
    #[must_use]
    pub fn concrete_inputs(&self, row: Row) -> Option<&str> {
        Some(self.texts.get(find(&self.concrete_inputs, row)?))
    }

    /// The strides of the inputs of an op, likewise.
    #[must_use]
    pub fn strides(&self, row: Row) -> Option<&str> {
        Some(self.texts.get(find(&self.strides, row)?))
    }

    /// Bytes of a copy on a GPU.
    #[must_use]
    pub fn copied_bytes(&self, row: Row) -> Option<i64> {
        find(&self.copied_bytes, row)
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            texts,
            configs,
            launches,
            inputs,
            ops,
            sequences,
            waits,
            collectives,
            collective_of,
            concrete_inputs,
            strides,
            copied_bytes,
            memory,
            thread_names,
            frames_have_call_sites: _,
            ops_have_stacks: _,
            n_read: _,
            n_unread: _,
            n_unkept: _,
        } = self;
        texts.heap_bytes()
            + configs.capacity() * size_of::<LaunchConfig>()
            + (launches.capacity() + ops.capacity() + collective_of.capacity())
                * size_of::<(Row, u32)>()
            + collectives.capacity() * size_of::<Collective>()
            + inputs.capacity() * size_of::<OpInputs>()
            + sequences.capacity() * size_of::<(Row, Sequence)>()
            + waits.capacity() * size_of::<(Row, StreamWait)>()
            + [concrete_inputs, strides, thread_names].map(Vec::capacity).iter().sum::<usize>()
                * size_of::<(Row, StringId)>()
            + copied_bytes.capacity() * size_of::<(Row, i64)>()
            + memory.capacity() * size_of::<(Row, MemoryEvent)>()
    }
}

fn find<T: Copy>(by_row: &[(Row, T)], row: Row) -> Option<T> {
    let at = by_row.binary_search_by_key(&row, |(other, _)| *other).ok()?;
    by_row.get(at).map(|(_, value)| *value)
}
