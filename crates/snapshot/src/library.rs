//! Whether a file of a stack is the program's own.

use crate::spelling::has;

pub(crate) fn is_python(file: &str) -> bool {
    has(file, ".py")
}

/// Modules of Python's library that call functions of a program, or allocate for it.
const STANDARD: &[&str] = &[
    "abc",
    "ast",
    "asyncio",
    "bdb",
    "codeop",
    "cProfile",
    "code",
    "collections",
    "concurrent",
    "contextlib",
    "copy",
    "copyreg",
    "ctypes",
    "dataclasses",
    "functools",
    "heapq",
    "http",
    "importlib",
    "inspect",
    "json",
    "logging",
    "multiprocessing",
    "operator",
    "pdb",
    "pickle",
    "pkgutil",
    "profile",
    "queue",
    "random",
    "runpy",
    "sched",
    "selectors",
    "shelve",
    "socketserver",
    "statistics",
    "subprocess",
    "tempfile",
    "threading",
    "timeit",
    "trace",
    "traceback",
    "types",
    "typing",
    "unittest",
    "warnings",
    "weakref",
    "xmlrpc",
    "zipfile",
];

/// Whether a file belongs to an installed package, the standard library or generated code.
pub(crate) fn is_library(file: &str) -> bool {
    let is_windows = file.contains('\\') || file.as_bytes().get(1) == Some(&b':');
    let file = file.replace('\\', "/");
    // Windows has Python's library in Lib or lib, without a version; a program may have a folder of that name, too.
    let is_standard = |rest: &str| {
        let module = rest.split(['/', '.']).next().unwrap_or_default();
        is_windows && STANDARD.contains(&module)
    };
    let behind = |lib: &str, holds: &dyn Fn(&str) -> bool| {
        let mut places = file.match_indices(lib);
        places.any(|(at, lib)| holds(file.get(at + lib.len()..).unwrap_or_default()))
    };
    file.starts_with('<')
        || has(&file, "torchinductor_")
        || has(&file, "/site-packages/")
        || has(&file, "/dist-packages/")
        || has(&file, "/lib/python3")
        || has(&file, "/lib64/python3")
        || behind("/Lib/", &|rest| !rest.starts_with("site-packages"))
        || behind("/lib/", &is_standard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_packages_are_libraries() {
        for file in [
            "/x/site-packages/torch/a.py",
            r"C:\Python\Lib\threading.py",
            "/usr/lib/python3.11/a.py",
            "/usr/lib64/python3.9/a.py",
            r"C:\Users\me\AppData\Roaming\uv\python\cpython-3.10.19-windows-x86_64-none\lib\copy.py",
            r"C:\Users\me\miniconda3\envs\a\lib\concurrent\futures\thread.py",
            "<frozen importlib>",
            "/tmp/torchinductor_me/a.py",
        ] {
            assert!(is_library(file), "{file}");
        }
        for file in [
            "/home/me/train.py",
            r"C:\work\Library\a.py",
            "/x/mysite-packages2/a.py",
            "/home/me/lib/train.py",
            "/home/me/lib/copy.py",
            r"C:\work\lib\train.py",
        ] {
            assert!(!is_library(file), "{file}");
        }
    }
}
