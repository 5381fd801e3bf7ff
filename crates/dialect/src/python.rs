//! How Python spells frames of its own.

/// Where the interpreter imports modules (`Lib/importlib/_bootstrap.py`, frozen into it).
const BOOTSTRAP: &str = "importlib._bootstrap>";
/// Its function that loads a module. It is not called for one that is loaded already.
const LOADS: &str = ": _find_and_load";

/// Whether a frame of this name imports a module that was not loaded.
#[must_use]
pub fn imports(frame: &str) -> bool {
    frame.ends_with(LOADS) && frame.contains(BOOTSTRAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_import_a_module() {
        assert!(imports("<frozen importlib._bootstrap>(1349): _find_and_load"));
        assert!(!imports("<frozen importlib._bootstrap>(1390): _handle_fromlist"));
        assert!(!imports("plugins.py(12): _find_and_load"));
    }
}
