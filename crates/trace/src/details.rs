//! What the arguments of some events say beyond the columns: kept for those alone, and each distinct text once.

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
    /// Which number autograd gave an op, by row: the op of the forward pass and those of the backward pass that belong
    /// to it have the same one.
    pub sequences: Vec<(Row, Sequence)>,
    /// Waits of one stream for another, by row.
    pub waits: Vec<(Row, StreamWait)>,
    /// Events that were looked into.
    pub n_read: u64,
    /// Events that could not be: the text ended, changed, or was too long to hold.
    pub n_unread: u64,
    /// Lists of inputs that were too long, or too many, to keep.
    pub n_unkept: u64,
}

/// How a kernel was launched, as far as the file tells. On CUDA all of it stands on the kernel, on ROCm the launching
/// call has grid, block and shared memory, and (in newer files) the kernel grid and block.
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

/// What an op was called with; empty texts where the file does not tell (`record_shapes` was off).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpInputs {
    /// `Input Dims` as JSON without blanks: `[[2048,4096],[4096,4096],[]]`.
    pub dims: StringId,
    /// `Input type` as JSON without blanks.
    pub types: StringId,
}

/// The number that autograd gave an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// `Sequence number`.
    pub number: i64,
    /// `Fwd thread id`: 0 on the op of the forward pass itself; else this op is one of the backward pass.
    pub forward_thread: i64,
}

/// One stream was told to wait until another had come to an event (`cuda_sync`, `Stream Wait Event`).
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

impl Details {
    /// How the kernel of a kernel or launch was launched.
    #[must_use]
    pub fn launch(&self, row: Row) -> Option<&LaunchConfig> {
        self.configs.get(find(&self.launches, row)? as usize)
    }

    /// What an op was called with.
    #[must_use]
    pub fn inputs(&self, row: Row) -> Option<OpInputs> {
        self.inputs.get(find(&self.ops, row)? as usize).copied()
    }

    /// The number that autograd gave an op.
    #[must_use]
    pub fn sequence(&self, row: Row) -> Option<Sequence> {
        find(&self.sequences, row)
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
            n_read: _,
            n_unread: _,
            n_unkept: _,
        } = self;
        texts.heap_bytes()
            + configs.capacity() * size_of::<LaunchConfig>()
            + (launches.capacity() + ops.capacity()) * size_of::<(Row, u32)>()
            + inputs.capacity() * size_of::<OpInputs>()
            + sequences.capacity() * size_of::<(Row, Sequence)>()
            + waits.capacity() * size_of::<(Row, StreamWait)>()
    }
}

fn find<T: Copy>(by_row: &[(Row, T)], row: Row) -> Option<T> {
    let at = by_row.binary_search_by_key(&row, |(other, _)| *other).ok()?;
    by_row.get(at).map(|(_, value)| *value)
}
