//! Calls of the CUDA and HIP runtimes and drivers, by parts of their names: `cudaMemcpyAsync` and `hipMemcpyAsync` do the same.

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Launches a kernel.
    Launch,
    /// Launches a graph of kernels.
    LaunchGraph,
    /// Puts a function of the host on a stream.
    LaunchHostFunction,
    /// Waits for the GPU.
    Synchronize,
    /// Copies.
    Copy,
    /// Fills.
    Fill,
    /// Allocates, registers or maps memory.
    Allocate,
    /// Gives memory back.
    Free,
    /// Records an event, asks for one, or makes a stream wait for one.
    Event,
    /// Loads code.
    LoadModule,
}

/// Parts of names. The first row that is part of a name counts. (Names of the CUDA runtime API 12, the CUDA driver API 12 and
/// the HIP API 6.)
const CALLS: &[(&str, Does)] = &[
    ("GraphLaunch", Does::LaunchGraph),
    ("Synchronize", Does::Synchronize),
    ("LaunchHostFunc", Does::LaunchHostFunction),
    ("Launch", Does::Launch),
    ("Memcpy", Does::Copy),
    ("Memset", Does::Fill),
    ("Malloc", Does::Allocate),
    ("HostAlloc", Does::Allocate),
    ("MemAlloc", Does::Allocate),
    ("MemCreate", Does::Allocate),
    ("MemMap", Does::Allocate),
    ("AddressReserve", Does::Allocate),
    ("HostRegister", Does::Allocate),
    ("Free", Does::Free),
    ("MemRelease", Does::Free),
    ("MemUnmap", Does::Free),
    ("HostUnregister", Does::Free),
    ("Event", Does::Event),
    ("ModuleLoad", Does::LoadModule),
    ("LibraryLoad", Does::LoadModule),
];

/// What a call of this name does; `None` for a name that has no row.
#[must_use]
pub fn does(call: &str) -> Option<Does> {
    CALLS.iter().find(|(part, _)| call.contains(part)).map(|(_, does)| *does)
}

/// Whether a call that copies waits for the copy, by its name: `cudaMemcpy`, `hipMemcpyWithStream`.
#[must_use]
pub fn blocks(copy: &str) -> bool {
    !copy.contains("Async")
}

/// Calls that give memory back to the driver.
pub const FREES: &[&str] = &["cudaFree", "hipFree"];

/// Whether a call launches a graph: `cudaGraphLaunch`, `hipGraphLaunch`.
#[must_use]
pub fn launches_graph(call: &str) -> bool {
    call.contains("GraphLaunch")
}

/// Whether a call launches one kernel: `cudaLaunchKernel`, `hipExtModuleLaunchKernel`, `cuLaunchKernelEx`.
#[must_use]
pub fn launches_kernel(call: &str) -> bool {
    call.contains("LaunchKernel")
}

/// Whether a call puts work on a stream that a capture records: a kernel, a copy or a fill, but not a graph.
#[must_use]
pub fn is_captured(call: &str) -> bool {
    ["Launch", "Memcpy", "Memset"].iter().any(|part| call.contains(part)) && !launches_graph(call)
}

/// Whether a call begins the capture of a graph: `cudaStreamBeginCapture`.
#[must_use]
pub fn begins_capture(call: &str) -> bool {
    call.contains("StreamBeginCapture")
}

/// Whether a call ends the capture of a graph: `cudaStreamEndCapture`.
#[must_use]
pub fn ends_capture(call: &str) -> bool {
    call.contains("StreamEndCapture")
}

/// Whether a call makes a stream wait for an event: `cudaStreamWaitEvent`.
#[must_use]
pub fn makes_stream_wait(call: &str) -> bool {
    call.ends_with("StreamWaitEvent")
}

/// Whether a call waits for the GPU: `cudaStreamSynchronize`, `hipDeviceSynchronize`, `cuCtxSynchronize`. (Frames of Python
/// may have the word, too.)
#[must_use]
pub fn synchronizes(call: &str) -> bool {
    call.contains("Synchronize") && (call.starts_with("cu") || call.starts_with("hip"))
}

/// Whether a call waits for all streams of a device.
#[must_use]
pub fn synchronizes_device(call: &str) -> bool {
    call.contains("DeviceSynchronize")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_platforms() {
        for (calls, expected) in [
            (&["cudaLaunchKernel", "hipExtModuleLaunchKernel"][..], Some(Does::Launch)),
            (&["cudaGraphLaunch", "hipGraphLaunch"], Some(Does::LaunchGraph)),
            (&["cudaLaunchHostFunc", "hipLaunchHostFunc"], Some(Does::LaunchHostFunction)),
            (&["cudaStreamSynchronize", "cudaEventSynchronize"], Some(Does::Synchronize)),
            (&["cudaMemcpyAsync", "hipMemcpyWithStream"], Some(Does::Copy)),
            (&["cudaMemsetAsync"], Some(Does::Fill)),
            (&["cudaMalloc", "cuMemMap", "hipHostRegister"], Some(Does::Allocate)),
            (&["hipFree", "cuMemUnmap", "cudaHostUnregister"], Some(Does::Free)),
            (&["cudaEventRecord", "cudaStreamWaitEvent"], Some(Does::Event)),
            (&["hipModuleLoadData", "cuLibraryLoadData"], Some(Does::LoadModule)),
            (&["cudaGetDevice", "hipCtxSetCurrent"], None),
        ] {
            for call in calls {
                assert_eq!(does(call), expected, "{call}");
            }
        }
    }

    #[test]
    fn copies_block_unless_their_name_says_otherwise() {
        assert!(blocks("cudaMemcpy") && blocks("hipMemcpyWithStream"));
        assert!(!blocks("cudaMemcpyAsync") && !blocks("hipMemcpyDtoHAsync"));
    }

    #[test]
    fn each_launch_that_names_its_platform_is_a_launch() {
        for call in crate::cuda::LAUNCHES.iter().chain(crate::rocm::LAUNCHES) {
            assert!(launches_kernel(call) != launches_graph(call), "{call}");
        }
        for call in crate::rocm::GRID_IN_THREADS {
            assert!(launches_kernel(call) && is_captured(call), "{call}");
        }
    }

    #[test]
    fn captures_and_waits() {
        assert!(
            begins_capture("cudaStreamBeginCapture") && !ends_capture("cudaStreamBeginCapture")
        );
        assert!(ends_capture("hipStreamEndCapture") && !begins_capture("hipStreamEndCapture"));
        assert!(!is_captured("hipGraphLaunch") && is_captured("cudaMemsetAsync"));
        assert!(makes_stream_wait("hipStreamWaitEvent") && !makes_stream_wait("cudaEventRecord"));
        assert!(synchronizes("cuCtxSynchronize") && !synchronizes("Event Synchronize"));
        assert!(synchronizes_device("hipDeviceSynchronize"));
    }
}
