//! Writes the page as a folder and an archive, for any static host and path.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::digest::{Digest, files};
use crate::workspace::Workspace;
use crate::{page, size};

pub fn dist(workspace: &Workspace) -> Result<()> {
    let folder = workspace.dist();
    page::build(workspace, &folder)?;
    size::check(&folder)?;
    let archive = folder.with_file_name(format!("kinetoscope-{}.zip", env!("CARGO_PKG_VERSION")));
    pack(&folder, &archive)?;
    println!();
    println!("folder  {}", folder.display());
    println!("zip     {} ({})", archive.display(), Digest::of_file(&archive)?.integrity());
    println!(
        "Copy the folder, or the content of the zip, to any path of any web host. It must be served over http(s)."
    );
    Ok(())
}

/// Deterministic: names in byte order, one date, one set of permissions.
fn pack(folder: &Path, archive: &Path) -> Result<()> {
    let file =
        File::create(archive).with_context(|| format!("cannot create {}", archive.display()))?;
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut zip = ZipWriter::new(file);
    for name in files(folder)? {
        let bytes = fs::read(folder.join(&name)).with_context(|| format!("cannot read {name}"))?;
        zip.start_file(name, options)?;
        zip.write_all(&bytes)?;
    }
    zip.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pack;
    use std::fs;
    use std::io::Read as _;

    #[test]
    fn an_archive_is_the_folder_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("kinetoscope-pack-{}", std::process::id()));
        fs::create_dir_all(folder.join("page/assets")).unwrap();
        fs::write(folder.join("page/index.html"), "page").unwrap();
        fs::write(folder.join("page/assets/a.json"), "example").unwrap();
        let archive = folder.join("a.zip");
        pack(&folder.join("page"), &archive).unwrap();
        let first = fs::read(&archive).unwrap();
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(&first)).unwrap();
        let names: Vec<String> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
        assert_eq!(names, ["assets/a.json", "index.html"]);
        let mut text = String::new();
        zip.by_name("index.html").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "page");
        pack(&folder.join("page"), &archive).unwrap();
        assert_eq!(fs::read(&archive).unwrap(), first);
        fs::remove_dir_all(&folder).unwrap();
    }
}
