//! Keys of `args` that mean something here.

use trace::same_bytes;

/// Declares the keys, and with them the lookup: a search, because a `match` on the bytes is 5 kB that a browser compiles twice.
/// (Decoding asks for few keys: it predicts them.)
macro_rules! args {
    ($($(#[$doc:meta])* $name:ident $key:literal;)*) => {
        /// A key of `args`. Kineto writes the same keys on CUDA and ROCm; where one has a key alone, its line says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Arg {
            $($(#[$doc])* $name,)*
        }

        impl Arg {
            /// The argument of a key, without its quotes, escapes resolved.
            #[must_use]
            #[inline(never)]
            pub fn of(key: &[u8]) -> Option<Self> {
                Self::ALL.iter().find(|(_, known)| same_bytes(known, key)).map(|(arg, _)| *arg)
            }

            /// Every argument, with its key.
            const ALL: &'static [(Self, &'static [u8])] = &[$((Self::$name, $key),)*];
        }
    };
}

args! {
    // Kernels, copies, fills and calls: `libkineto/src/CuptiActivity.cpp`, `RoctracerActivity_inl.h`.
    /// Number of the device.
    Device b"device";
    /// The same, read where `device` is missing.
    DeviceId b"Device Id";
    /// Number of the stream.
    Stream b"stream";
    /// The same, read where `stream` is missing.
    StreamTitled b"Stream";
    /// The number that a call shares with what it launched.
    Correlation b"correlation";
    /// The number of the op that made the call.
    ExternalId b"External id";
    /// The same, as the profilers of PyTorch 1.8 to 1.12 spell it.
    ExternalIdLower b"external id";
    /// ROCm: the name of the kernel that a call launches.
    Kernel b"kernel";
    /// Blocks of the launch; of some calls of ROCm threads (`crate::rocm::GRID_IN_THREADS`).
    Grid b"grid";
    /// Threads of a block.
    Block b"block";
    /// CUDA: registers.
    Registers b"registers per thread";
    /// Shared memory of a block.
    SharedMemory b"shared memory";
    /// CUDA: the profiler's own estimate.
    Occupancy b"est. achieved occupancy %";
    /// CUDA: blocks per multiprocessor.
    BlocksPerSm b"blocks per SM";
    /// CUDA: warps per multiprocessor.
    WarpsPerSm b"warps per SM";
    /// CUDA: the stream that a wait is for.
    WaitOnStream b"wait_on_stream";
    /// CUDA: the correlation of the call that recorded the event that is waited for.
    WaitOnRecord b"wait_on_cuda_event_record_corr_id";
    // Frames of Python: `torch/csrc/autograd/profiler_kineto.cpp`.
    /// Number of a frame.
    PythonId b"Python id";
    /// Number of the frame that called.
    PythonParent b"Python parent id";
    /// File and line that called the frame (from PyTorch 2.15 on).
    CallFrom b"CallFrom";
    // Copies: `libkineto/src/CuptiActivity.cpp`.
    /// Bytes of a copy.
    CopiedBytes b"bytes";
    // Changes of memory: `torch/csrc/profiler/kineto_shim.cpp`, as [`crate::kineto::MEMORY`].
    /// Bytes that were allocated, or freed if negative.
    MemoryBytes b"Bytes";
    /// Where.
    Address b"Addr";
    /// Kind of the device: 0 is the CPU.
    DeviceType b"Device Type";
    /// Bytes allocated after the change.
    TotalAllocated b"Total Allocated";
    /// Bytes reserved after the change.
    TotalReserved b"Total Reserved";
    // Metadata of a thread: the Trace Event Format.
    /// Its name.
    Name b"name";
    // Ops: the same file as frames.
    /// Shapes of the inputs.
    InputDims b"Input Dims";
    /// The same, as the profilers of early 2021 spell it.
    InputDimsLower b"Input dims";
    /// Types of the inputs.
    InputType b"Input type";
    /// Strides of the inputs.
    InputStrides b"Input Strides";
    /// Values of the inputs that are not tensors.
    ConcreteInputs b"Concrete Inputs";
    /// The frames of Python around the op as one text, as the profilers of 2021 and 2022 write them; empty without stacks.
    CallStack b"Call stack";
    /// The number that a forward op shares with its backward op.
    SequenceNumber b"Sequence number";
    /// The thread of the forward op.
    ForwardThread b"Fwd thread id";
    // Collectives: `torch/csrc/profiler/util.cpp`.
    /// Name of the collective.
    CollectiveName b"Collective name";
    /// Elements that go in.
    InElements b"In msg nelems";
    /// Elements that come out.
    OutElements b"Out msg nelems";
    /// Ranks of the group.
    GroupSize b"Group size";
    /// Type of the elements.
    Dtype b"dtype";
    /// Name of the group.
    GroupName b"Process Group Name";
    /// The ranks, as a list.
    GroupRanks b"Process Group Ranks";
    /// Elements for each rank.
    InSplit b"In split size";
    /// Elements from each rank.
    OutSplit b"Out split size";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_as_it_is_spelled() {
        for (arg, key) in Arg::ALL {
            assert_eq!(Arg::of(key), Some(*arg));
        }
        assert_eq!(Arg::of(b"Correlation"), None);
        assert_eq!(Arg::of(b""), None);
    }
}
