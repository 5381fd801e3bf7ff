//! `kinetoscope compare`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kinetoscope::artifacts::{Artifact, METADATA};
use kinetoscope::{Run, compare, report};

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
        // A table that was not made is absent.
        let there = Run::FILES.into_iter().filter(|name| path.join(name).exists());
        let files = there.map(|name| {
            let file = path.join(name);
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            Ok(Artifact { name: name.to_owned(), text })
        });
        return Ok(Run::of(&files.collect::<Result<Vec<_>>>()?)?);
    }
    let chosen = traces::choose(&[path.to_owned()], None)?;
    let [one] = chosen.as_slice() else {
        bail!("{} holds {} traces: name one of them", path.display(), chosen.len());
    };
    let done =
        triage_one(&one.path, &How::default(), &Others::default(), &facts.read(&one.path)?, facts)?;
    Ok(Run::of(&done.files)?)
}
