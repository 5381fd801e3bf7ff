//! Functions in which a thread waits for another process, or another thread: for work, or for the CPUs of other ranks.

/// File and function of frames, as Kineto writes them: `path/file.py(12): function`.
const FRAMES: &[(&str, &str)] = &[
    // vLLM: the next request of the executor.
    ("shm_broadcast.py(", ": acquire_read"),
    ("shm_broadcast.py(", ": dequeue"),
    // Python's own.
    ("queue.py(", ": get"),
    ("multiprocessing/queues.py(", ": get"),
    ("multiprocessing/connection.py(", ": recv"),
    ("multiprocessing/connection.py(", ": wait"),
    ("multiprocessing/connection.py(", ": poll"),
    ("zmq/sugar/poll.py(", ": poll"),
    ("zmq/sugar/socket.py(", ": recv_multipart"),
];

/// What annotations of gloo begin with.
const GLOO: &str = "gloo:";
/// Functions that send objects of Python by it: PyTorch's, and the engines' own.
const SENDERS: [&str; 3] = ["broadcast_pyobj", "broadcast_object_list", "all_gather_object"];
/// One that waits and sends nothing.
const BARRIER: &str = "monitored_barrier";

/// Parts of names of built-ins that wait. (The wait of a collective of NCCL only orders streams, and takes no time.)
const WAITS: &[&str] = &[
    "<built-in method wait of torch._C._distributed_c10d.",
    // (What pybind11 3 calls its methods: here that of a Work.)
    "<built-in method wait of pybind11_builtins.",
];

/// Whether a frame or an annotation of this name waits for another process or thread.
#[must_use]
pub fn waits_for_others(name: &str) -> bool {
    let is_frame = |(file, function): &(&str, &str)| {
        let at = name.find(file).filter(|at| *at == 0 || name[..*at].ends_with('/'));
        at.is_some() && name.ends_with(function)
    };
    let function = name.rsplit_once(": ").map_or("", |(_, function)| function);
    FRAMES.iter().any(is_frame)
        || name.contains(GLOO)
        || SENDERS.iter().any(|sender| function.starts_with(sender))
        || WAITS.iter().any(|part| name.contains(part))
}

/// Whether an op, a function or an annotation of this name waits on the CPU for the processes of other ranks.
#[must_use]
pub fn is_cpu_collective(name: &str) -> bool {
    [GLOO, BARRIER].iter().chain(&SENDERS).any(|part| name.contains(part))
}

/// Whether an op or an annotation of this name is a call of an all-to-all, which NCCL runs as kernels that send and receive.
#[must_use]
pub fn is_all_to_all(name: &str) -> bool {
    ALL_TO_ALL.contains(&name)
}

/// Whether a frame is of PyTorch's data loader, which waits for workers of its own.
#[must_use]
pub fn loads_data(frame: &str) -> bool {
    frame.contains("torch/utils/data/dataloader.py(")
}

/// Calls of an all-to-all: the annotation of PyTorch's NCCL backend, and its ops for one tensor and for lists of them.
const ALL_TO_ALL: [&str; 3] = ["nccl:all_to_all", "c10d::alltoall_base_", "c10d::alltoall_"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_takes_from_a_queue_waits() {
        let path = "vllm/distributed/device_communicators/shm_broadcast.py";
        assert!(waits_for_others(&format!("{path}(680): acquire_read")));
        assert!(!waits_for_others(&format!("{path}(614): acquire_write")));
        assert!(waits_for_others("sglang/srt/utils/common.py(1401): broadcast_pyobj"));
        assert!(waits_for_others("gloo:broadcast") && waits_for_others("queue.py(154): get"));
        assert!(
            !waits_for_others("cache.py(3): get") && !waits_for_others("my/task_queue.py(3): get")
        );
    }
}
