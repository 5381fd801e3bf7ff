//! Short names for what a program imports from its script. wasm-bindgen names an import by a function and sixteen digits, in
//! the script and in the program: of the whole download these names are a hundredth, because digits do not compress.

use anyhow::{Result, ensure};

use crate::wasm::with_imports;

/// Program and script, with short names.
pub fn shorten(wasm: &[u8], script: &str) -> Result<(Vec<u8>, String)> {
    let mut script = script.to_owned();
    let mut n_names = 0;
    let wasm = with_imports(wasm, |name| {
        let short = short_name(n_names);
        n_names += 1;
        // wasm-bindgen writes a line for each.
        let (long_key, short_key) = (format!(" {name}: "), format!(" {short}: "));
        let n = script.matches(&long_key).count();
        ensure!(n == 1, "the script has {n} functions called {name}; the build expects one");
        script = script.replace(&long_key, &short_key);
        Ok(short)
    })?;
    Ok((wasm, script))
}

/// `a`, `b` ... `z`, `a1`, `b1` ...
fn short_name(n: usize) -> String {
    let letter = char::from(b'a' + (n % 26) as u8);
    match n / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{short_name, shorten};

    const WASM: &[u8] = b"\0asm\x01\0\0\0\x02\x15\x02\x01m\x05__get\x00\x03\x01m\x05__set\x00\x04";

    #[test]
    fn program_and_script_agree() {
        let script = "{\n  __get: function() {},\n  __set: function() { __get; },\n}";
        let (wasm, script) = shorten(WASM, script).unwrap();
        assert_eq!(wasm, b"\0asm\x01\0\0\0\x02\x0d\x02\x01m\x01a\x00\x03\x01m\x01b\x00\x04");
        assert_eq!(script, "{\n  a: function() {},\n  b: function() { __get; },\n}");
        assert!(shorten(WASM, "{ __get: 1 }").is_err(), "a name that the script lacks");
    }

    #[test]
    fn names_differ() {
        let names: std::collections::BTreeSet<String> = (0..300).map(short_name).collect();
        assert_eq!(names.len(), 300);
    }
}
