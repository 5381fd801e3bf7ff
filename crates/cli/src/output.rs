//! The repaired file in the making: it has its name only when it is whole and proven.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A file that is written under another name and gets its own at the end; without an end it vanishes.
pub struct Pending {
    /// Where it goes: the file itself, if `-o` names a link to it.
    target: PathBuf,
    /// Where it is meanwhile; `None` for a pipe or a device, which has no other place.
    partial: Option<PathBuf>,
    file: BufWriter<File>,
}

impl Pending {
    /// Begins a file.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn create(output: &Path) -> Result<Self> {
        let context = || format!("cannot write {}", output.display());
        let target = std::fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
        match std::fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => {
                bail!("cannot write {}: it is a folder", output.display())
            }
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(&target).with_context(context)?;
                return Ok(Self { target, partial: None, file: BufWriter::new(file) });
            }
            _ => {}
        }
        // The number keeps apart runs at the same time, and the input from a file of that name.
        let partial = with_suffix(&target, &format!(".{}.partial", std::process::id()));
        let file = File::create_new(&partial).with_context(context)?;
        Ok(Self { target, partial: Some(partial), file: BufWriter::new(file) })
    }

    /// Appends to it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(self) -> Result<PathBuf> {
        let target = self.target.clone();
        self.keep_as(target)
    }

    /// Keeps it beside its name, which says that it was not proven; `input` is never overwritten.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_unproven(self, input: &Path) -> Result<PathBuf> {
        let mut name = with_suffix(&self.target, ".unproven");
        while same_file(&name, input) {
            name = with_suffix(&name, ".unproven");
        }
        self.keep_as(name)
    }

    fn keep_as(mut self, name: PathBuf) -> Result<PathBuf> {
        let context = || format!("cannot write {}", name.display());
        self.file.flush().with_context(context)?;
        let Some(partial) = &self.partial else { return Ok(self.target.clone()) };
        std::fs::rename(partial, &name).with_context(context)?;
        self.partial = None;
        Ok(name)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // Whatever made it end early is told; that the rest stays behind would hide it.
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// Whether both names lead to one file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::canonicalize(a), std::fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for each test, gone at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = format!("kinetoscope-output-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_has_its_name_only_at_the_end() {
        let folder = Folder::new("end");
        let out = folder.0.join("out.json");
        std::fs::write(&out, "old").unwrap();
        let mut pending = Pending::create(&out).unwrap();
        pending.write(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
        pending.keep().unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "new");
        assert_eq!(folder.names(), ["out.json"]);
    }

    #[test]
    fn a_file_without_an_end_vanishes() {
        let folder = Folder::new("vanish");
        let mut pending = Pending::create(&folder.0.join("out.json")).unwrap();
        pending.write(b"new").unwrap();
        assert_eq!(folder.names().len(), 1);
        drop(pending);
        assert!(folder.names().is_empty());
    }

    #[test]
    fn what_is_not_proven_never_takes_the_name_or_the_input() {
        let folder = Folder::new("unproven");
        let input = folder.0.join("out.json.unproven");
        std::fs::write(&input, "input").unwrap();
        let mut pending = Pending::create(&folder.0.join("out.json")).unwrap();
        pending.write(b"new").unwrap();
        pending.keep_unproven(&input).unwrap();
        assert_eq!(folder.names(), ["out.json.unproven", "out.json.unproven.unproven"]);
        assert_eq!(std::fs::read_to_string(&input).unwrap(), "input");
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = Folder::new("folder");
        assert!(Pending::create(&folder.0).is_err());
        assert!(folder.names().is_empty());
    }
}
