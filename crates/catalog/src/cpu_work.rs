//! What the CPU does for long in one call while a GPU waits for it.

/// A kind of such work, that has one change as its cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuWork {
    /// Python's garbage collector, called by the program.
    Collects,
    /// Random numbers in memory of the host.
    Random,
    /// Other ops of PyTorch on tensors in memory of the host.
    Computes,
}

impl CpuWork {
    /// The rows of the remedies that are its cure.
    #[must_use]
    pub fn remedies(self) -> &'static [&'static str] {
        match self {
            Self::Collects => &["collect-rarely"],
            Self::Random => &["random-on-gpu"],
            Self::Computes => &["compute-on-gpu"],
        }
    }
}

/// `gc.collect`, as PyTorch's profiler names it.
const COLLECT: &str = "<built-in function collect>";

/// What fills a tensor with random numbers (`aten/src/ATen/native/native_functions.yaml`, tag `nondeterministic_seeded`).
const RANDOM: &[&str] = &[
    "aten::normal_",
    "aten::normal",
    "aten::uniform_",
    "aten::random_",
    "aten::bernoulli_",
    "aten::bernoulli",
    "aten::exponential_",
    "aten::randperm",
    "aten::multinomial",
];

/// What allocates, copies, reads, looks at the same memory in another way, or calls others: it computes nothing itself.
const MOVES: &[&str] = &[
    "aten::copy_",
    "aten::_to_copy",
    "aten::to",
    "aten::clone",
    "aten::contiguous",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::pin_memory",
    "aten::_pin_memory",
    "aten::resize_",
    "aten::view",
    "aten::_unsafe_view",
    "aten::reshape",
    "aten::_reshape_alias",
    "aten::expand",
    "aten::slice",
    "aten::select",
    "aten::narrow",
    "aten::t",
    "aten::transpose",
    "aten::permute",
    "aten::unsqueeze",
    "aten::squeeze",
    "aten::squeeze_",
    "aten::flatten",
    "aten::as_strided",
    "aten::alias",
    "aten::detach",
    "aten::detach_",
    "aten::set_",
    "aten::lift_fresh",
    "aten::record_stream",
    "aten::is_pinned",
    "aten::split",
    "aten::split_with_sizes",
    "aten::chunk",
    "aten::unbind",
    "aten::linear",
    "aten::matmul",
];

/// The kind of a frame of Python that calls nothing recorded.
#[must_use]
pub fn of_frame(name: &str) -> Option<CpuWork> {
    (name == COLLECT).then_some(CpuWork::Collects)
}

/// The kind of an op that launches nothing and calls nothing recorded: then its tensors are in memory of the host.
#[must_use]
pub fn of_op(name: &str) -> Option<CpuWork> {
    let is = |names: &[&str]| names.contains(&name);
    match name.starts_with("aten::") {
        false => None,
        true if is(RANDOM) => Some(CpuWork::Random),
        true if is(MOVES) || name.starts_with("aten::empty") => None,
        true => Some(CpuWork::Computes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedies::remedy;

    #[test]
    fn names_have_their_kind() {
        assert_eq!(of_frame("<built-in function collect>"), Some(CpuWork::Collects));
        assert_eq!(of_frame("collection.py(3): collect"), None);
        for (name, kind) in [
            ("aten::normal_", Some(CpuWork::Random)),
            ("aten::_fft_r2c", Some(CpuWork::Computes)),
            ("aten::copy_", None),
            ("aten::view", None),
            ("aten::empty_strided", None),
            ("vllm::something", None),
        ] {
            assert_eq!(of_op(name), kind, "{name}");
        }
    }

    #[test]
    fn each_kind_has_a_cure() {
        for kind in [CpuWork::Collects, CpuWork::Random, CpuWork::Computes] {
            assert!(kind.remedies().iter().all(|id| remedy(id).is_some()), "{kind:?}");
        }
    }
}
