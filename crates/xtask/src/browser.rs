//! Finds the browsers of the browser tests, or installs them where that is allowed.

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

const FIREFOX_NAMES: &[&str] = &["firefox", "firefox-esr"];
const FIREFOX_PLACES: &[&str] = &[
    "/Applications/Firefox.app/Contents/MacOS/firefox",
    "C:/Program Files/Mozilla Firefox/firefox.exe",
];

/// Chromium's program, or a line that explains how to get it.
pub fn ensure() -> Result<PathBuf, String> {
    if let Some(path) = named("KINETOSCOPE_CHROMIUM") {
        return path;
    }
    let find = || find(NAMES, PLACES);
    if find().is_none() {
        apt_install("chromium");
    }
    find().ok_or_else(|| {
        "no Chromium or Chrome: run `sudo apt-get install chromium`, or set KINETOSCOPE_CHROMIUM to one".to_owned()
    })
}

/// The same for Firefox.
pub fn ensure_firefox() -> Result<PathBuf, String> {
    if let Some(path) = named("KINETOSCOPE_FIREFOX") {
        return path;
    }
    let find = || find(FIREFOX_NAMES, FIREFOX_PLACES);
    if find().is_none() {
        apt_install("firefox-esr");
    }
    find().ok_or_else(|| {
        "no Firefox: run `sudo apt-get install firefox-esr`, or set KINETOSCOPE_FIREFOX to one"
            .to_owned()
    })
}

/// The program that a variable names, if it is set.
fn named(variable: &str) -> Option<Result<PathBuf, String>> {
    let path = env::var_os(variable).map(PathBuf::from)?;
    Some(if path.is_file() { Ok(path) } else { Err(format!("{variable} does not name a file")) })
}

fn find(names: &[&str], places: &[&str]) -> Option<PathBuf> {
    let on_path = names.iter().find_map(|name| shell::which(name));
    on_path.or_else(|| places.iter().map(PathBuf::from).find(|path| path.is_file()))
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
