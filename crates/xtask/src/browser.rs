//! Finds the browser of the browser tests, or installs it where that is allowed.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::shell;

const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
];
const PLACES: &[&str] = &[
    "/usr/lib/chromium/chromium",
    "/snap/bin/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
];

/// The browser's program, or a line that explains how to get it.
pub fn ensure() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("KINETOSCOPE_CHROMIUM").map(PathBuf::from) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err("KINETOSCOPE_CHROMIUM does not name a file".to_owned())
        };
    }
    if let Some(path) = find() {
        return Ok(path);
    }
    apt_install("chromium");
    find().ok_or_else(|| {
        "no Chromium or Chrome: run `sudo apt-get install chromium`, or set KINETOSCOPE_CHROMIUM to one".to_owned()
    })
}

fn find() -> Option<PathBuf> {
    let on_path = NAMES.iter().find_map(|name| shell::which(name));
    on_path.or_else(|| PLACES.iter().map(PathBuf::from).find(|path| path.is_file()))
}

/// Tries to install a Debian package, where that needs no password. The caller checks for the program afterwards.
pub fn apt_install(package: &str) {
    if shell::which("apt-get").is_none() {
        return;
    }
    let is_root = shell::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root && !shell::succeeds(Command::new("sudo").args(["-n", "true"])) {
        return;
    }
    let apt = || {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        if !is_root {
            command.args(["-n", "--", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // A slightly old package list may be enough, so a failure here does not stop the installation.
    let _ = shell::run(apt().args(["update", "--quiet"]));
    let _ =
        shell::run(apt().args(["install", "--yes", "--quiet", "--no-install-recommends", package]));
}
