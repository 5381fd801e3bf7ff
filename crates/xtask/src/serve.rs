//! Serves the page on the loopback interface, and builds it again when a source changes.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::page::{self, Profile};
use crate::watch::Sources;
use crate::workspace::Workspace;

/// How long a change goes unnoticed. Asking for the times of a thousand files takes some milliseconds.
const EVERY: Duration = Duration::from_secs(1);
/// A browser that reads one file slowly does not stop the others.
const N_THREADS: usize = 4;

/// Builds the page, serves it, and builds again when a file changes. Ends with the process.
pub fn serve(workspace: &Workspace, port: u16, profile: Profile) -> Result<()> {
    // Before the build, which takes minutes the first time. Until it is over, requests wait.
    let server = listen(port)?;
    println!("The page will be at http://127.0.0.1:{port}/ once it is built. Ctrl+C ends it.");
    let folder = workspace.dist();
    let mut sources = Sources::of(workspace);
    page::build_as(workspace, &folder, profile)?;
    for _ in 0..N_THREADS {
        let (server, folder) = (Arc::clone(&server), folder.clone());
        thread::spawn(move || {
            for request in server.incoming_requests() {
                // The browser went away: nobody is left to be told.
                let _ = answer(&folder, request);
            }
        });
    }
    println!("The page is at http://127.0.0.1:{port}/");
    loop {
        thread::sleep(EVERY);
        if !sources.changed(workspace) {
            continue;
        }
        // Editors and git write several files: a build begins when they are done.
        while {
            thread::sleep(EVERY / 4);
            sources.changed(workspace)
        } {}
        match page::build_as(workspace, &folder, profile) {
            Ok(()) => println!("The page is built again."),
            Err(error) => eprintln!("xtask: {error:#}; the page of before is still served"),
        }
    }
}

/// Port 0 is any free one.
fn listen(port: u16) -> Result<Arc<Server>> {
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(listener) => listener,
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            bail!("port {port} is in use: choose another with --port N")
        }
        Err(error) => bail!("cannot listen on 127.0.0.1:{port}: {error}"),
    };
    let server = Server::from_listener(listener, None);
    Ok(Arc::new(server.map_err(|error| anyhow!("cannot serve on 127.0.0.1:{port}: {error}"))?))
}

fn answer(folder: &Path, request: Request) -> std::io::Result<()> {
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(Response::empty(405));
    }
    let path = file_of(folder, request.url());
    let file = path.and_then(|path| Some((File::open(&path).ok()?, content_type(&path))));
    let Some((file, content_type)) = file else {
        return request.respond(Response::from_string("not found\n").with_status_code(404));
    };
    let mut response = Response::from_file(file);
    // The page changes with every build, under the same address.
    for (name, value) in [("Content-Type", content_type), ("Cache-Control", "no-cache")] {
        response.add_header(Header::from_bytes(name, value).map_err(|()| ErrorKind::InvalidInput)?);
    }
    request.respond(response)
}

/// The file below `folder` that an address names. None of the page's names needs an escape.
fn file_of(folder: &Path, url: &str) -> Option<PathBuf> {
    let path = url.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = if path.is_empty() { "index.html" } else { path };
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.starts_with('.') && !name.is_empty() && name.bytes().all(is_plain)
    };
    let file = folder.join(path);
    (path.split('/').all(is_name) && fs::metadata(&file).ok()?.is_file()).then_some(file)
}

/// Browsers compile wasm while it arrives only if it has its type, and run no module of another type than JavaScript's.
fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("wasm") => "application/wasm",
        Some("gz") => "application/gzip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{answer, content_type, file_of, listen};
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::path::{Path, PathBuf};

    /// A folder with a page, next to a file that is no part of it.
    fn folder(name: &str) -> (PathBuf, PathBuf) {
        let root =
            std::env::temp_dir().join(format!("kinetoscope-serve-{name}-{}", std::process::id()));
        let page = root.join("page");
        fs::create_dir_all(page.join("assets")).unwrap();
        fs::write(root.join("secret.js"), "s").unwrap();
        fs::write(page.join("index.html"), "page").unwrap();
        fs::write(page.join("app-0f_bg.wasm"), "wasm").unwrap();
        fs::write(page.join("assets/icon.svg"), "icon").unwrap();
        (root, page)
    }

    #[test]
    fn an_address_names_a_file_of_the_page_or_nothing() {
        let (root, page) = folder("names");
        let named = |url: &str| {
            file_of(&page, url).map(|file| file.strip_prefix(&page).unwrap().to_owned())
        };
        for (url, file) in [
            ("/", "index.html"),
            ("/?a=../b#c", "index.html"),
            ("/app-0f_bg.wasm", "app-0f_bg.wasm"),
            ("/assets/icon.svg", "assets/icon.svg"),
        ] {
            assert_eq!(named(url).as_deref(), Some(Path::new(file)), "{url}");
        }
        let outside = format!("/{}", root.join("secret.js").display());
        for url in [
            "/../secret.js",
            "/assets/../../secret.js",
            "/%2e%2e/secret.js",
            "/..\\secret.js",
            "/assets",
            "/assets/",
            "//index.html",
            "/missing.js",
            "index.html",
            "",
            &outside,
        ] {
            assert_eq!(named(url), None, "{url}");
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn an_answer_has_its_type_and_its_bytes() {
        let (root, page) = folder("answers");
        let server = listen(0).unwrap();
        let port = server.server_addr().to_ip().unwrap();
        let ask = |line: &str| {
            let mut stream = TcpStream::connect(port).unwrap();
            write!(stream, "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .unwrap();
            answer(&page, server.recv().unwrap()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let program = ask("GET /app-0f_bg.wasm");
        assert!(program.starts_with("HTTP/1.1 200 "), "{program}");
        assert!(program.contains("Content-Type: application/wasm\r\n"), "{program}");
        assert!(program.ends_with("\r\n\r\nwasm"), "{program}");
        assert!(ask("HEAD /app-0f_bg.wasm").ends_with("\r\n\r\n"));
        assert!(ask("GET /../secret.js").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /").starts_with("HTTP/1.1 405 "));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_port_in_use_is_said_in_a_line() {
        let server = listen(0).unwrap();
        let port = server.server_addr().to_ip().unwrap().port();
        let error = listen(port).err().unwrap().to_string();
        assert_eq!(error, format!("port {port} is in use: choose another with --port N"));
    }

    #[test]
    fn the_files_of_the_page_have_types() {
        for (name, of) in
            [("a.js", "text/javascript; charset=utf-8"), ("b", "application/octet-stream")]
        {
            assert_eq!(content_type(Path::new(name)), of);
        }
    }
}
