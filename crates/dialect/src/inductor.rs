//! How `torch.compile` spells its work.

/// Ends the name of a range that PyTorch puts around a phase of its compiler (`torch/_dynamo/utils.py`, `dynamo_timed`; from 2.6 on
/// they are in the profile).
const TIMED: &str = "(dynamo_timed)";

/// Functions of PyTorch that compile. (Frames of `aot_autograd.py` also run compiled code.)
const FRAMES: [&str; 2] = ["torch/_dynamo/convert_frame.py", "compile_fx_inner"];

/// Begins the name of the range in which a graph is captured (`torch/_inductor/cudagraph_trees.py`): nothing is compiled there.
const CAPTURES: &str = "CUDAGraphNode.record";

/// Whether a range is code of a compiler: names that PyTorch gives to compiled functions.
#[must_use]
pub fn is_compiled(name: &str) -> bool {
    name.starts_with("Torch-Compiled Region")
        || name.contains("CompiledFxGraph")
        || name.contains("torchinductor_")
        || name.starts_with("CompiledFunction")
}

/// Whether a range of this name captures a graph.
#[must_use]
pub fn captures(name: &str) -> bool {
    name.starts_with(CAPTURES) && name.ends_with(TIMED)
}

/// Whether a range or a frame of this name compiles.
#[must_use]
pub fn compiles(name: &str) -> bool {
    name.ends_with(TIMED) && !captures(name) || FRAMES.iter().any(|frame| name.contains(frame))
}

/// Whether a range or a frame of this name does what is done once: it compiles, or captures a graph.
#[must_use]
pub fn sets_up(name: &str) -> bool {
    compiles(name) || captures(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_frames_of_the_compiler() {
        assert!(compiles("bytecode_tracing (dynamo_timed)"));
        assert!(compiles("torch/_dynamo/convert_frame.py(1023): __call__"));
        assert!(!compiles("torch/_dynamo/eval_frame.py(410): _fn"));
        assert!(!compiles("Torch-Compiled Region: 0/0"));
        let capture = "CUDAGraphNode.record (dynamo_timed)";
        assert!(captures(capture) && !compiles(capture));
        assert!(!captures("bytecode_tracing (dynamo_timed)"));
    }
}
