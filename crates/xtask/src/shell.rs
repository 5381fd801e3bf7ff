//! Running other programs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Where a program is on PATH.
pub fn which(program: &str) -> Option<PathBuf> {
    let file = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}

/// Cargo without the variables that `cargo run` has set in our own environment.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST_")
            || name == "CARGO_BIN_NAME"
        {
            command.env_remove(name);
        }
    }
    command
}

/// Prints the command, runs it in our own terminal, and fails if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let status = command.status().with_context(|| format!("cannot start {}", program(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", program(command));
    }
    Ok(())
}

/// What the command prints on its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", line(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed text that is not UTF-8", program(command)))
}

/// The first line that `program --version` prints; nothing if it cannot be run.
pub fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// True if the command succeeds; prints nothing.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// CPU seconds of every program that we have run and waited for, with their children. Linux only.
pub fn children_cpu_seconds() -> Option<f64> {
    // Linux reports these in 1/100 s whatever the kernel's own tick is.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    children_ticks(&stat).map(|ticks| ticks as f64 / TICKS_PER_SECOND)
}

/// Fields 16 and 17 of proc(5) stat. The second field is the program's name in brackets and may itself contain spaces and
/// brackets, so fields are counted from its end.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn program(command: &Command) -> String {
    Path::new(command.get_program())
        .file_stem()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned()
}

fn line(command: &Command) -> String {
    let mut line = program(command);
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{children_ticks, which};

    #[test]
    fn the_times_of_children_are_read_behind_any_name() {
        let stat = "42 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 5 6 70 8 20 0 1 0";
        assert_eq!(children_ticks(stat), Some(78));
    }

    #[test]
    fn cargo_is_on_the_path() {
        assert!(which("cargo").is_some());
        assert!(which("no-such-program-anywhere").is_none());
    }
}
