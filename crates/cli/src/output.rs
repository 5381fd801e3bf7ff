//! Files in the making: each has its name only when it is whole. A repaired trace must be proven, too.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::guard::{Allowed, Guard};

/// A file that is written under a temporary name in the same folder and renamed at the end; without an end it is removed.
pub struct Pending {
    output: Allowed,
    /// Where it is meanwhile; `None` for a pipe or a device, which has no other place.
    partial: Option<PathBuf>,
    file: BufWriter<File>,
}

/// A file that has its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub path: PathBuf,
    /// Whether it replaced an older file of that name.
    pub replaced: bool,
}

impl Pending {
    /// Begins a file.
    ///
    /// # Errors
    /// When the temporary file cannot be made.
    pub fn create(output: Allowed) -> Result<Self> {
        let Allowed { path, target } = &output;
        let context = || format!("cannot write {}", path.display());
        match std::fs::metadata(target) {
            Ok(metadata) if metadata.is_dir() => {
                bail!("cannot write {}: it is a folder", path.display())
            }
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(target).with_context(context)?;
                return Ok(Self { output, partial: None, file: BufWriter::new(file) });
            }
            _ => {}
        }
        // The number keeps apart runs at the same time; no file that exists is opened.
        let partial = with_suffix(target, &format!(".{}.partial", std::process::id()));
        let file = File::create_new(&partial).with_context(context)?;
        Ok(Self { output, partial: Some(partial), file: BufWriter::new(file) })
    }

    /// A whole file, still under its temporary name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn whole(output: Allowed, bytes: &[u8]) -> Result<Self> {
        let mut pending = Self::create(output)?;
        let written = pending.write(bytes).and_then(|()| pending.flush());
        written.with_context(|| format!("cannot write {}", pending.output.path.display()))?;
        Ok(pending)
    }

    /// Appends to it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Hands everything to the system, so that [`Pending::place`] can be read.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }

    /// Where the bytes are until it has its name.
    pub fn place(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.output.target)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(self) -> Result<Kept> {
        let Allowed { path, target } = self.output.clone();
        self.keep_as(path, &target)
    }

    /// Gives it another name, which says that it was not proven; no input is replaced.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_unproven(self, guard: &Guard) -> Result<Kept> {
        let mut name = with_suffix(&self.output.target, ".unproven");
        loop {
            match guard.allow(&name) {
                Ok(Allowed { path, target }) => return self.keep_as(path, &target),
                Err(_) => name = with_suffix(&name, ".unproven"),
            }
        }
    }

    fn keep_as(mut self, path: PathBuf, target: &Path) -> Result<Kept> {
        let context = || format!("cannot write {}", path.display());
        self.file.flush().with_context(context)?;
        let Some(partial) = &self.partial else { return Ok(Kept { path, replaced: false }) };
        let replaced = target.is_file();
        std::fs::rename(partial, target).with_context(context)?;
        self.partial = None;
        Ok(Kept { path, replaced })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // The error that ended the work early is printed; a failure to clean up would only hide it.
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// Prints which older files were replaced, in one line.
pub fn say_replaced(kept: &[Kept]) {
    let replaced: Vec<String> = kept
        .iter()
        .filter(|kept| kept.replaced)
        .map(|kept| kept.path.display().to_string())
        .collect();
    match &replaced[..] {
        [] => {}
        [one] => eprintln!("replaced the existing {one}"),
        many => eprintln!("replaced {} existing files: {}", many.len(), many.join(", ")),
    }
}

/// A folder for outputs. Unless it is kept, what was made for it is removed again, as far as it is empty.
pub struct OutputFolder {
    /// The folders that did not exist, the innermost first.
    made: Vec<PathBuf>,
}

impl OutputFolder {
    /// Makes the folder and those around it.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        let missing =
            folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let made = Self { made: missing.map(Path::to_owned).collect() };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot write {}", folder.display()))?;
        Ok(made)
    }

    /// The folder stays.
    pub fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // One that holds something stays.
            let _ = std::fs::remove_dir(folder);
        }
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

    fn allowed(path: &Path) -> Allowed {
        Guard::default().allow(path).unwrap()
    }

    #[test]
    fn a_file_has_its_name_only_at_the_end() {
        let folder = Folder::new("end");
        let out = folder.0.join("out.json");
        std::fs::write(&out, "old").unwrap();
        let mut pending = Pending::create(allowed(&out)).unwrap();
        pending.write(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
        assert_eq!(pending.keep().unwrap(), Kept { path: out.clone(), replaced: true });
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "new");
        assert_eq!(folder.names(), ["out.json"]);
    }

    #[test]
    fn a_file_without_an_end_vanishes() {
        let folder = Folder::new("vanish");
        let mut pending = Pending::create(allowed(&folder.0.join("out.json"))).unwrap();
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
        let mut pending = Pending::create(allowed(&folder.0.join("out.json"))).unwrap();
        pending.write(b"new").unwrap();
        pending.keep_unproven(&Guard::of([input.as_path()])).unwrap();
        assert_eq!(folder.names(), ["out.json.unproven", "out.json.unproven.unproven"]);
        assert_eq!(std::fs::read_to_string(&input).unwrap(), "input");
    }

    #[test]
    fn a_folder_that_is_not_kept_is_removed_if_it_is_empty() {
        let folder = Folder::new("made");
        let inner = folder.0.join("a/b");
        drop(OutputFolder::create(&inner).unwrap());
        assert!(folder.names().is_empty());
        let made = OutputFolder::create(&inner).unwrap();
        std::fs::write(inner.join("file"), "").unwrap();
        drop(made);
        assert!(inner.join("file").exists());
        OutputFolder::create(&folder.0.join("kept")).unwrap().keep();
        assert_eq!(folder.names(), ["a", "kept"]);
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = Folder::new("folder");
        assert!(Pending::create(allowed(&folder.0)).is_err());
        assert!(folder.names().is_empty());
    }
}
