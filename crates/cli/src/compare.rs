//! `kinetoscope compare`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kinetoscope::artifacts::{FUSE, KERNELS, METADATA};
use kinetoscope::{Run, compare, report};
use serde::de::DeserializeOwned;

use crate::traces;
use crate::triage::{Facts, How, Others, triage_one};

#[derive(clap::Args)]
pub struct Arguments {
    /// The first run: a trace, or what `triage --out` wrote of it.
    a: PathBuf,
    /// The second run.
    b: PathBuf,
    /// What holds for both runs, where they are traces; each also takes the server_args.json beside it.
    #[command(flatten)]
    facts: Facts,
}

/// Prints two runs side by side, and before that whether they may be compared.
///
/// # Errors
/// When a file cannot be read or is no trace, or stdout is closed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (a, b) = (load(&arguments.a, &arguments.facts)?, load(&arguments.b, &arguments.facts)?);
    let name =
        |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let title = format!("A: {}, B: {}", name(&arguments.a), name(&arguments.b));
    let text = report::document(&title, &compare(&a, &b).sections());
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// A run from its artifacts, or from its trace.
fn load(path: &Path, facts: &Facts) -> Result<Run> {
    if path.join(METADATA).is_file() {
        let text = |name: &str| -> Result<String> {
            let file = path.join(name);
            std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))
        };
        // A table that was not made is absent; the kernel table always is made.
        let fuse = if path.join(FUSE).exists() { text(FUSE)? } else { "[]".to_owned() };
        return Ok(Run {
            metadata: parse(METADATA, &text(METADATA)?)?,
            kernels: parse(KERNELS, &text(KERNELS)?)?,
            fuse: parse(FUSE, &fuse)?,
        });
    }
    let chosen = traces::choose(&[path.to_owned()], None)?;
    let [one] = chosen.as_slice() else {
        bail!("{} holds {} traces: name one of them", path.display(), chosen.len());
    };
    let done =
        triage_one(&one.path, &How::default(), &Others::default(), &facts.read(&one.path)?, facts)?;
    let text = |name: &str| {
        done.files.iter().find(|file| file.name == name).map_or("[]", |file| file.text.as_str())
    };
    Ok(Run {
        metadata: parse(METADATA, text(METADATA))?,
        kernels: parse(KERNELS, text(KERNELS))?,
        fuse: parse(FUSE, text(FUSE))?,
    })
}

fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T> {
    serde_json::from_str(text)
        .with_context(|| format!("cannot use {name}: it is not of this schema"))
}
