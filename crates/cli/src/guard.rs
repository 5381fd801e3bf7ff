//! No output replaces an input. Every file that a command writes passes [`Guard::allow`] first, and [`Pending`] accepts
//! nothing else.
//!
//! Two names are one file if device and inode are equal, or, on systems where the standard library gives neither, if the
//! canonical paths are equal. A hard link is not seen there, but it loses nothing either: an output is renamed to its
//! name, which leaves the content of the other name alone.
//!
//! [`Pending`]: crate::output::Pending

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::failure::Usage;
use crate::traces;

/// Folders in folders are searched this deep; deeper ones hold no input either ([`traces::choose`]).
const DEPTH: u32 = traces::DEPTH;

/// An input, by every name that it may have.
struct Input {
    /// As the user named it, or as it was found in a folder.
    path: PathBuf,
    id: Id,
    /// Found in a folder. Only a trace is an input then: artifacts of an earlier run may be there too.
    found: bool,
}

/// What all names of a file have in common.
struct Id {
    canonical: PathBuf,
    device_inode: Option<(u64, u64)>,
}

impl Id {
    /// `None` when there is no such file.
    fn of(path: &Path) -> Option<Self> {
        let canonical = std::fs::canonicalize(path).ok()?;
        let metadata = std::fs::metadata(&canonical).ok()?;
        Some(Self { canonical, device_inode: device_inode(&metadata) })
    }

    fn is(&self, other: &Self) -> bool {
        let same_inode = self.device_inode.is_some() && self.device_inode == other.device_inode;
        same_inode || self.canonical == other.canonical
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have no inode")]
fn device_inode(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn device_inode(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// The inputs of a command.
#[derive(Default)]
pub struct Guard(Vec<Input>);

/// A name that an output may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// As the user named it.
    pub path: PathBuf,
    /// The file itself, where the name is a symbolic link.
    pub target: PathBuf,
}

impl Guard {
    /// The inputs at these paths: files, and the traces in folders. A path without a file is no input.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut guard = Self::default();
        for path in paths {
            guard.add(path);
        }
        guard
    }

    /// One more input.
    pub fn add(&mut self, path: &Path) {
        if path.is_dir() {
            self.add_folder(path, DEPTH);
        } else if let Some(id) = Id::of(path) {
            self.0.push(Input { path: path.to_owned(), id, found: false });
        }
    }

    fn add_folder(&mut self, folder: &Path, depth: u32) {
        // A folder that cannot be read fails later, with its reason.
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                if depth > 0 {
                    self.add_folder(&path, depth - 1);
                }
            } else if let Some(id) = Id::of(&path) {
                self.0.push(Input { path, id, found: true });
            }
        }
    }

    /// Allows an output to have this name.
    ///
    /// # Errors
    /// When the name is one of an input.
    pub fn allow(&self, output: &Path) -> Result<Allowed, Usage> {
        let Some(id) = Id::of(output) else {
            // Nothing is there to be replaced. Two spellings of the name must still be one target.
            let folder = output.parent().map(|folder| match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            });
            let folder = folder.and_then(|folder| std::fs::canonicalize(folder).ok());
            let target = folder.and_then(|folder| Some(folder.join(output.file_name()?)));
            let target = target.unwrap_or_else(|| output.to_owned());
            return Ok(Allowed { path: output.to_owned(), target });
        };
        if let Some(input) = self.input(&id) {
            let (output, input) = (output.display(), input.display());
            let text = format!("{output} is the input {input}: choose another name for the output");
            return Err(Usage(text));
        }
        Ok(Allowed { path: output.to_owned(), target: id.canonical })
    }

    /// Allows several outputs, which must not replace each other.
    ///
    /// # Errors
    /// As [`Guard::allow`], and when two are one file.
    pub fn allow_all<'a>(&self, outputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Usage> {
        let mut all: Vec<Allowed> = Vec::new();
        for output in outputs {
            let allowed = self.allow(output)?;
            if let Some(other) = all.iter().find(|other| other.target == allowed.target) {
                let (one, two) = (other.path.display(), allowed.path.display());
                let text =
                    format!("{two} would replace {one}, another output: choose another name");
                return Err(Usage(text));
            }
            all.push(allowed);
        }
        Ok(())
    }

    /// Refuses to print into an input (`>> trace.json`).
    ///
    /// # Errors
    /// When standard output is an input.
    #[cfg(unix)]
    pub fn allow_stdout(&self) -> Result<(), Usage> {
        use std::os::fd::AsFd;
        let Ok(stdout) = std::io::stdout().as_fd().try_clone_to_owned() else { return Ok(()) };
        let Ok(metadata) = std::fs::File::from(stdout).metadata() else { return Ok(()) };
        if !metadata.is_file() {
            return Ok(());
        }
        let id = Id { canonical: PathBuf::new(), device_inode: device_inode(&metadata) };
        match self.input(&id) {
            Some(input) => {
                let input = input.display();
                Err(Usage(format!(
                    "standard output is the input {input}: redirect it to another file"
                )))
            }
            None => Ok(()),
        }
    }

    /// Nothing is known of standard output on this system.
    ///
    /// # Errors
    /// Never.
    #[cfg(not(unix))]
    pub fn allow_stdout(&self) -> Result<(), Usage> {
        Ok(())
    }

    fn input(&self, id: &Id) -> Option<&Path> {
        let mut same = self.0.iter().filter(|input| input.id.is(id));
        let input = same.find(|input| !input.found || traces::may_be_input(&input.path));
        input.map(|input| input.path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_outputs_of_one_name_are_refused_however_they_are_spelled() {
        let guard = Guard::default();
        let of = |paths: &[&str]| guard.allow_all(paths.iter().map(Path::new)).is_ok();
        assert!(of(&["a.json", "b.json"]));
        assert!(!of(&["a.json", "./a.json"]));
        assert!(!of(&["src/a.json", "./src/../src/a.json"]));
    }
}
