//! Functions of libraries that cost time for a reason that is known, each with what to do instead.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCode {
    /// The end of the path of its file.
    pub file: &'static str,
    /// Its name.
    pub function: &'static str,
    /// What it does, as a clause: "PyTorch runs ... again".
    pub what: &'static str,
    /// What that means for the run, in a sentence.
    pub why: &'static str,
    /// The row of the remedies.
    pub remedy: &'static [&'static str],
}

/// All of them.
pub const KNOWN: &[KnownCode] = &[
    // (`torch/utils/checkpoint.py`, use_reentrant=False. With True the function that runs the layers again runs their backward pass, too.)
    KnownCode {
        file: "torch/utils/checkpoint.py",
        function: "recompute_fn",
        what: "Gradient checkpointing runs layers again in the backward pass",
        why: "It saves memory for this time.",
        remedy: &["checkpoint-less"],
    },
    // (torch_geometric.nn.GCNConv, parameter `cached`.)
    KnownCode {
        file: "torch_geometric/nn/conv/gcn_conv.py",
        function: "gcn_norm",
        what: "GCNConv computes the norm of the graph",
        why: "It depends on the edges alone.",
        remedy: &["cached-graph-norm"],
    },
    // (peft.get_peft_model, parameter `autocast_adapter_dtype`: True by default, which makes adapters of 16-bit models 32-bit floats.)
    KnownCode {
        file: "peft/tuners/tuners_utils.py",
        function: "_cast_input_dtype",
        what: "PEFT changes the type of what it gives to adapters",
        why: "Adapters are 32-bit floats, and the model is not; their products run in 32 bits, too.",
        remedy: &["adapter-type"],
    },
    // (`torchvision/ops/boxes.py`: batched_nms takes it on a GPU from 25,000 boxes on, and calls nms for each class.)
    KnownCode {
        file: "torchvision/ops/boxes.py",
        function: "_batched_nms_vanilla",
        what: "torchvision suppresses overlapping boxes class by class",
        why: "It does so where very many boxes come, and reads from the GPU for each class.",
        remedy: &["fewer-boxes"],
    },
];

impl KnownCode {
    /// Whether a frame, as the profiler names it, is of the function: `path(line): function`.
    #[must_use]
    pub fn is(&self, frame: &str) -> bool {
        frame.rsplit_once("): ").is_some_and(|(place, function)| {
            let path = place.rsplit_once('(').map_or(place, |(path, _)| path);
            function == self.function && path.ends_with(self.file)
        })
    }
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
        assert_eq!(known("<built-in method recompute_fn>"), 0);
    }

    #[test]
    fn each_has_a_remedy() {
        for known in KNOWN {
            assert!(known.remedy.iter().all(|id| remedy(id).is_some()), "{known:?}");
        }
    }
}
