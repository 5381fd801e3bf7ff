//! Where packages begin in the paths of a program's frames.
//!
//! The profiler cuts what lies on Python's path off the front of a path (`_prefix_regex` of
//! `torch/profiler/python_tracer.py`), so most paths begin with their package. Those of a package that is imported some
//! other way, as from a checkout, stay absolute. There, known packages are recognised by their
//! folders, and the files of one package share a root.

use std::collections::{BTreeMap, BTreeSet};

use super::packages;

/// Folders of a checkout that hold its packages.
const CONTAINERS: [&str; 3] = ["python", "src", "lib"];

/// Folders that hold the folders of users.
const HOMES: [&str; 3] = ["home", "Users", "mnt"];

/// Python's folders for installed packages.
const INSTALLED: [&str; 2] = ["site-packages/", "dist-packages/"];

/// How the folder begins that TorchInductor writes its code into; the name of the user follows.
const INDUCTOR: &str = "torchinductor_";

/// What such code is shown under.
pub(super) const COMPILED: &str = "torchinductor";

/// How a path is shown, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub path: String,
    pub from: From,
}

/// What a shown path begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A package below `site-packages` or `dist-packages`.
    Installed,
    /// An entry of Python's path, as the profiler cut it.
    PythonPath,
    /// A package that is known by its name and folders.
    Known,
    /// A folder of the user's own code.
    Own,
    /// Code that TorchInductor wrote.
    Compiled,
    /// Python's standard library.
    Stdlib,
}

/// The folders in which the packages of a program begin.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Folders of known packages, with their name and a `/` at the end.
    known: BTreeSet<String>,
    /// Folders of other packages, found as the folder that several files share.
    own: BTreeSet<String>,
}

impl Roots {
    /// Finds them among the names of a trace; those that are no frames are passed over.
    #[must_use]
    pub fn of_frames<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let absolute = names.filter(|name| name.starts_with('/'));
        Self::of(absolute.filter_map(|name| Some(super::frame_parts(name)?.0)))
    }

    /// The roots of a program with frames in files of these paths.
    #[must_use]
    pub fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let absolute: BTreeSet<&str> = paths.filter(|path| is_open(path)).collect();
        let mut known: BTreeSet<String> =
            absolute.iter().filter_map(|path| known_root(path)).map(str::to_owned).collect();
        // A folder of that name within somebody's package is a part of that package.
        known.retain(|root| {
            in_container(root) || !absolute.iter().any(|path| has_file_around(path, root))
        });
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for path in absolute {
            if root_in(&known, path).is_some() {
                continue;
            }
            if let Some(group) = group(path) {
                groups.entry(group).or_default().push(path);
            }
        }
        let own = groups.values().filter_map(|paths| shared_folder(paths)).collect();
        Self { known, own }
    }

    pub(super) fn shown(&self, path: &str) -> Shown {
        let shown = |path: &str, from: From| Shown { path: path.to_owned(), from };
        for folder in INSTALLED {
            if let Some((_, rest)) = path.rsplit_once(folder) {
                return shown(rest, From::Installed);
            }
        }
        if let Some((_, file)) =
            path.rsplit_once(INDUCTOR).and_then(|(_, rest)| rest.split_once('/'))
        {
            return shown(&format!("{COMPILED}/{file}"), From::Compiled);
        }
        if let Some((_, rest)) = path.rsplit_once("lib/python3") {
            let rest = rest.split_once('/').map_or(rest, |(_, rest)| rest);
            return shown(rest, From::Stdlib);
        }
        if !path.starts_with('/') {
            // A path that begins at the file system's root, of which only the slash is missing.
            let root = known_root(path).filter(|root| in_container(root));
            let root = root.map_or(0, before_name);
            return shown(&path[root..], From::PythonPath);
        }
        if let Some(root) = root_in(&self.known, path) {
            return shown(&path[before_name(root)..], From::Known);
        }
        let root = root_in(&self.own, path).map_or(0, before_name);
        shown(&path[root..], From::Own)
    }
}

/// Whether the package of a path must be found by its folders.
fn is_open(path: &str) -> bool {
    path.starts_with('/')
        && !INSTALLED.iter().any(|folder| path.contains(folder))
        && !path.contains(INDUCTOR)
        && !path.contains("lib/python3")
}

/// The longest of `roots` that `path` is in. (Roots do not lie in each other, but for a package within another.)
fn root_in<'a>(roots: &'a BTreeSet<String>, path: &str) -> Option<&'a str> {
    let folders = path.match_indices('/').map(|(at, _)| &path[..=at]);
    folders.filter_map(|folder| roots.get(folder)).map(String::as_str).next()
}

/// Where the name of the last folder begins in a root.
fn before_name(root: &str) -> usize {
    root.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1)
}

/// The outermost folder of a path that is a known package by its name and what is in it.
fn known_root(path: &str) -> Option<&str> {
    let mut folders = path.match_indices('/').map(|(at, _)| at).peekable();
    let mut from = 0;
    while let Some(at) = folders.next() {
        let name = &path[from..at];
        let rest = &path[at + 1..];
        let below = folders.peek().map(|next| &path[at + 1..*next]);
        if let Some(parts) = packages::parts(name)
            && below != Some(name)
            && (below.is_some_and(|below| parts.contains(&below))
                || (in_container(&path[..=at])
                    && !below.is_some_and(|below| CONTAINERS.contains(&below))))
            && !rest.is_empty()
        {
            return Some(&path[..=at]);
        }
        from = at + 1;
    }
    None
}

/// Whether the file at `path` lies in a folder of a checkout that holds the folder around `root`.
fn has_file_around(path: &str, root: &str) -> bool {
    let folder = &path[..before_name(path)];
    let around = &root[..before_name(root)];
    folder.len() < around.len()
        && around.starts_with(folder)
        && group(path).is_some_and(|group| folder.starts_with(&group))
}

/// Whether a package's folder lies where checkouts have it: in `python`, `src` or a folder of its own name.
fn in_container(root: &str) -> bool {
    let mut folders = root.trim_end_matches('/').rsplit('/');
    let (Some(name), Some(around)) = (folders.next(), folders.next()) else { return false };
    CONTAINERS.contains(&around) || around == name
}

/// What files of one checkout have in common at least: `/app/xDiT/`, `/home/me/project/`.
fn group(path: &str) -> Option<String> {
    let mut folders = path.split('/').skip(1);
    let n = if folders.next().is_some_and(|first| HOMES.contains(&first)) { 3 } else { 2 };
    let end = path.match_indices('/').nth(n)?.0;
    Some(path[..=end].to_owned())
}

/// The innermost folder that holds all of some files, if they lie in different parts of it. A name that is a known
/// package's is none: nothing in the folder is that package's.
fn shared_folder(paths: &[&str]) -> Option<String> {
    let (first, last) = (paths.first()?, paths.last()?);
    let same = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let end = first.as_bytes()[..same].iter().rposition(|byte| *byte == b'/')?;
    let root = &first[..=end];
    let parts: BTreeSet<&str> =
        paths.iter().filter_map(|path| path.get(end + 1..)?.split('/').next()).collect();
    let has_folder =
        paths.iter().any(|path| path.get(end + 1..).is_some_and(|rest| rest.contains('/')));
    let name = &root[before_name(root)..root.len() - 1];
    let tells = parts.len() > 1 && has_folder && packages::parts(name).is_none();
    (tells && group(root).is_some_and(|group| root.starts_with(&group))).then(|| root.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(paths: &[&str]) -> Vec<String> {
        let roots = Roots::of(paths.iter().copied());
        paths.iter().map(|path| roots.shown(path).path).collect()
    }

    #[test]
    fn the_outermost_folder_of_the_package() {
        for (path, expected) in [
            (
                "/app/xDiT/xfuser/model_executor/models/transformers/transformer_flux.py",
                "xfuser/model_executor/models/transformers/transformer_flux.py",
            ),
            // A folder that is called like a package is none.
            ("/workspace/transformers/train.py", "/workspace/transformers/train.py"),
            ("/workspace/transformers/examples/run.py", "/workspace/transformers/examples/run.py"),
            ("/app/mine/models/diffusers/blocks/a.py", "/app/mine/models/diffusers/blocks/a.py"),
            // Checkouts.
            ("/workspace/transformers/src/transformers/trainer.py", "transformers/trainer.py"),
            ("/workspace/transformers/src/transformers/models/a.py", "transformers/models/a.py"),
            ("/sgl-workspace/sglang/python/sglang/srt/a.py", "sglang/srt/a.py"),
            ("/sgl-workspace/triton-custom/python/triton/knobs.py", "triton/knobs.py"),
            ("/opt/vllm/vllm/v1/worker/a.py", "vllm/v1/worker/a.py"),
            ("/opt/vllm/vllm/forward_context.py", "vllm/forward_context.py"),
            // As the profiler cut them.
            ("xfuser/models/transformers/models/a.py", "xfuser/models/transformers/models/a.py"),
            ("mine/models/transformers/models/a.py", "mine/models/transformers/models/a.py"),
            ("sgl-workspace/sglang/python/sglang/srt/a.py", "sglang/srt/a.py"),
            ("transformers/trainer.py", "transformers/trainer.py"),
            // Installed.
            (
                "/opt/v/lib/python3.12/site-packages/a/transformers/models/b.py",
                "a/transformers/models/b.py",
            ),
            ("/usr/lib/python3/dist-packages/vllm/v1/b.py", "vllm/v1/b.py"),
            ("/usr/lib/python3.12/json/decoder.py", "json/decoder.py"),
            ("/tmp/torchinductor_me/ab/cab.py", "torchinductor/ab/cab.py"),
            ("/train.py", "/train.py"),
            ("", ""),
        ] {
            assert_eq!(shown(&[path]), [expected], "{path}");
        }
    }

    #[test]
    fn files_of_one_package_share_a_root() {
        let paths = [
            "/app/mine/pkg/engine.py",
            "/app/mine/pkg/models/transformers/models/a.py",
            "/app/xDiT/xfuser/logger.py",
            "/app/xDiT/xfuser/core/distributed/a.py",
            "/home/me/project/train.py",
            "/home/me/project/net/a.py",
            "/workspace/transformers/train.py",
            "/workspace/transformers/net/a.py",
        ];
        let expected = [
            "pkg/engine.py",
            "pkg/models/transformers/models/a.py",
            "xfuser/logger.py",
            "xfuser/core/distributed/a.py",
            "project/train.py",
            "project/net/a.py",
            "/workspace/transformers/train.py",
            "/workspace/transformers/net/a.py",
        ];
        assert_eq!(shown(&paths), expected);
    }
}
