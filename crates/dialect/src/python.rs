//! How Python and its libraries spell frames.

use trace::{StringId, StringTable};

/// Where the interpreter imports modules (`Lib/importlib/_bootstrap.py`, frozen into it).
const BOOTSTRAP: &str = "importlib._bootstrap>";
/// Its function that loads a module. It is not called for one that is loaded already.
const LOADS: &str = ": _find_and_load";

/// Whether a frame of this name imports a module that was not loaded.
#[must_use]
pub fn imports(frame: &str) -> bool {
    frame.ends_with(LOADS) && frame.contains(BOOTSTRAP)
}

/// Where PyTorch builds an extension, or finds that it is built (`torch/utils/cpp_extension.py`), as a first call does.
const EXTENSIONS: &str = "torch/utils/cpp_extension.py";
const BUILDS: &str = ": _jit_compile";

/// Whether a frame of this name builds an extension.
#[must_use]
pub fn builds(frame: &str) -> bool {
    frame.ends_with(BUILDS) && frame.contains(EXTENSIONS)
}

/// Whether frames of the pipelines of Hugging Face Transformers are among the names: they make the data loader that inputs come from.
#[must_use]
pub fn has_pipeline(names: &StringTable) -> bool {
    let is_of_pipeline = |id| names.get(StringId(id)).contains("transformers/pipelines/");
    (0..names.len() as u32).any(is_of_pipeline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_build_an_extension() {
        assert!(builds("torch/utils/cpp_extension.py(1661): _jit_compile"));
        assert!(!builds("torch/utils/cpp_extension.py(1222): load"), "holds it");
        assert!(!builds("kernels.py(12): _jit_compile"));
    }

    #[test]
    fn frames_that_import_a_module() {
        assert!(imports("<frozen importlib._bootstrap>(1349): _find_and_load"));
        assert!(!imports("<frozen importlib._bootstrap>(1390): _handle_fromlist"));
        assert!(!imports("plugins.py(12): _find_and_load"));
    }
}
