//! Functions of libraries that cost time for a reason that is known, each with what to do instead.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCode {
    /// The end of the path of its file.
    pub file: &'static str,
    /// Its name.
    pub function: &'static str,
    /// The end of the path of a file and a function that calls it; where others call it, the cure is not theirs.
    pub caller: Option<(&'static str, &'static str)>,
    /// What it does, as a clause: "PyTorch runs ... again".
    pub what: &'static str,
    /// What that means for the run, in a sentence.
    pub why: &'static str,
    /// The row of the remedies.
    pub remedy: &'static [&'static str],
}

/// The forward pass of a checkpoint, run again with `use_reentrant=False`. (`torch/utils/checkpoint.py`, PyTorch 2.0 to 2.11. The frame of
/// the other kind holds the backward pass, too.)
pub const RECOMPUTES: KnownCode = KnownCode {
    file: "torch/utils/checkpoint.py",
    function: "recompute_fn",
    caller: None,
    what: "Gradient checkpointing runs layers again in the backward pass",
    why: "It saves memory for this time.",
    remedy: &["checkpoint-less"],
};

/// All of them.
pub const KNOWN: &[KnownCode] = &[
    RECOMPUTES,
    // (torch_geometric.nn.GCNConv, parameter `cached`.)
    KnownCode {
        file: "torch_geometric/nn/conv/gcn_conv.py",
        function: "gcn_norm",
        caller: Some(("torch_geometric/nn/conv/gcn_conv.py", "forward")),
        what: "GCNConv computes the norm of the graph",
        why: "It depends on the edges alone.",
        remedy: &["cached-graph-norm"],
    },
    // (peft.get_peft_model, parameter `autocast_adapter_dtype`: True by default, which makes adapters of 16-bit models 32-bit floats.)
    KnownCode {
        file: "peft/tuners/tuners_utils.py",
        function: "_cast_input_dtype",
        caller: None,
        what: "PEFT changes the type of what it gives to adapters",
        why: "Adapters are 32-bit floats, and the model is not; their products run in 32 bits, too.",
        remedy: &["adapter-type"],
    },
    // (`torchvision/ops/boxes.py`: batched_nms calls it on a GPU from 25,000 boxes on, and calls nms for each class.)
    KnownCode {
        file: "torchvision/ops/boxes.py",
        function: "_batched_nms_vanilla",
        caller: None,
        what: "torchvision suppresses overlapping boxes class by class",
        why: "It does so for very many boxes, and reads from the GPU for each class.",
        remedy: &["fewer-boxes"],
    },
];

impl KnownCode {
    /// Whether a frame, as the profiler names it, is of the function: `path(line): function`.
    #[must_use]
    pub fn is(&self, frame: &str) -> bool {
        is_of(frame, self.file, self.function)
    }

    /// Whether a frame is of the function that calls it.
    #[must_use]
    pub fn is_caller(&self, frame: &str) -> bool {
        self.caller.is_some_and(|(file, function)| is_of(frame, file, function))
    }
}

fn is_of(frame: &str, file: &str, function: &str) -> bool {
    frame.rsplit_once("): ").is_some_and(|(place, name)| {
        let path = place.rsplit_once('(').map_or(place, |(path, _)| path);
        let folder = path.strip_suffix(file);
        name == function && folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedies::remedy;

    #[test]
    fn frames_are_known_by_file_and_function() {
        let known = |frame: &str| KNOWN.iter().filter(|one| one.is(frame)).count();
        assert_eq!(known("torch/utils/checkpoint.py(1588): recompute_fn"), 1);
        assert_eq!(known("/opt/torch/utils/checkpoint.py(1): recompute_fn"), 1);
        assert_eq!(known("torch/utils/checkpoint.py(1588): unpack_hook"), 0);
        assert_eq!(known("my/checkpoint.py(1588): recompute_fn"), 0);
        assert_eq!(known("fastertorch/utils/checkpoint.py(1588): recompute_fn"), 0);
        assert_eq!(known("<built-in method recompute_fn>"), 0);
    }

    #[test]
    fn each_has_a_remedy() {
        for known in KNOWN {
            assert!(known.remedy.iter().all(|id| remedy(id).is_some()), "{known:?}");
        }
    }
}
