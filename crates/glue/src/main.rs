//! `glue TARGET FOLDER PROGRAM...`: writes each wasm program into a folder, with the JavaScript that joins it to a browser or to Node.
//!
//! wasm-bindgen's own command line does the same, but most of what it compiles is a test runner with a server. Here Cargo.lock gives
//! the library the version that the programs are compiled with. `cargo xtask` runs this program (`xtask/src/glue.rs`). It is a package
//! of its own because only a build of the page needs its dependencies.

use std::path::Path;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder, programs @ ..] = &arguments[..] else {
        bail!("usage: glue web|no-modules|nodejs FOLDER PROGRAM...");
    };
    for program in programs {
        let mut bindgen = Bindgen::new();
        match &**target {
            "web" => bindgen.web(true),
            "no-modules" => bindgen.no_modules(true),
            "nodejs" => bindgen.nodejs(true),
            unknown => bail!("unknown target {unknown:?}"),
        }?;
        // As the command line does. (No type declarations: the library writes them only on request.)
        bindgen.omit_default_module_path(false);
        let written = bindgen.input_path(program).generate(Path::new(folder));
        written.with_context(|| format!("no JavaScript for {program}"))?;
    }
    Ok(())
}
