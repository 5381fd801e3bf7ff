//! A folder for each test, the program run in it, and small traces.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::{Kineto, event};

/// What a run of the program left.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The run, which must have ended well.
    #[track_caller]
    pub fn done(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// An empty folder, gone at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = format!("kinetoscope-cli-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// The names in it, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program in the folder.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.ended(Command::new(env!("CARGO_BIN_EXE_kinetoscope")).args(arguments))
    }

    /// Runs the program where no file may grow past `kib` KiB: a full disk, without filling one. Without the signal that
    /// would end the program, a write past the limit is an error.
    #[cfg(unix)]
    pub fn run_limited(&self, kib: u32, arguments: &str) -> Run {
        let program = env!("CARGO_BIN_EXE_kinetoscope");
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec '{program}' {arguments}");
        self.ended(Command::new("bash").args(["-c", &script]))
    }

    fn ended(&self, command: &mut Command) -> Run {
        let output = command.current_dir(&self.0).output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Writes `run.json`: a million events, large enough that the program is still at it when a signal comes.
    #[cfg(unix)]
    pub fn write_large(&self) {
        let event =
            |at: u32| format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":{at}.25,"dur":0.5,"name":"k"}}"#);
        let events: Vec<String> = (0..1_000_000).map(event).collect();
        self.write("run.json", format!("[{}]", events.join(",")));
    }
}

/// A sound trace whose frame of 3 MB is copied to the output.
#[cfg(unix)]
pub fn sound_and_long() -> String {
    sound().replace("schemaVersion\": 1", &format!("x\": \"{}\"", "y".repeat(3 << 20)))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compares with a file of `tests/golden`.
#[track_caller]
pub fn assert_golden(name: &str, actual: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    // A new version is no new behaviour.
    let actual = actual.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    testkit::assert_golden(format!("{folder}/{name}"), &actual);
}

/// A sound trace: a launch, two kernels, a copy, and their arrow.
pub fn sound() -> String {
    let mut trace = Kineto::new()
        .with("schemaVersion", "1")
        .with("deviceProperties", r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]"#)
        .with_after("traceName", "\"run.json\"");
    let name = |tid: i32, name: &str| event("M", "", "thread_name").on(5, tid).arg("name", name);
    trace.push(name(1, "python"));
    trace.push(name(7, "stream 7"));
    let launch = event("X", "cuda_runtime", "cudaLaunchKernel").on(5, 1).arg("correlation", 3);
    trace.push(launch.at_ns(1_000).lasting_ns(4_000));
    trace.push(event("s", "ac2g", "ac2g").on(5, 1).at_ns(1_000).member("id", 3));
    let kernel = |name: &str, at: i64, ns: i64| {
        let kernel = event("X", "kernel", name).on(5, 7).at_ns(at).lasting_ns(ns);
        kernel.arg("device", 0).arg("stream", 7)
    };
    trace.push(kernel("ampere_sgemm_128x64_tn", 10_000, 12_000).arg("correlation", 3));
    trace.push(event("f", "ac2g", "ac2g").on(5, 7).at_ns(10_000).member("id", 3).member("bp", "e"));
    trace.push(kernel("void at::native::vectorized_elementwise_kernel<4>()", 30_000, 2_500));
    let copy = event("X", "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)").on(5, 7);
    trace.push(copy.at_ns(40_000).lasting_ns(1_000).arg("device", 0).arg("stream", 7));
    trace.text()
}

/// A trace that is wrong in several ways: kernels cross, one of them impossibly, two threads would be
/// merged, arguments hold NaN, a slice has no duration, a process has only labels.
pub fn damaged() -> String {
    damaged_from(0)
}

/// The same, with all times after `origin_ns`.
pub fn damaged_from(origin_ns: i64) -> String {
    let mut trace = Kineto::new().with("schemaVersion", "1");
    trace.push(event("M", "", "process_name").on(5, 0).arg("name", "python"));
    trace.push(event("M", "", "process_labels").on(5, 0).arg("labels", "GPU 0"));
    trace.push(event("M", "", "thread_name").on(5, 7).arg("name", "stream 7"));
    trace.push(event("M", "", "thread_sort_index").on(5, 7).arg("sort_index", 4));
    let kernel = |name: &str, at: i64, ns: i64| {
        event("X", "kernel", name).on(5, 7).at_ns(origin_ns + at).lasting_ns(ns).arg("stream", 7)
    };
    trace.push(kernel("a", 1_000, 12_000));
    trace.push(kernel("b", 11_000, 10_000));
    trace.push(kernel("endless", 30_000, 900_000));
    trace.push(kernel("c", 40_000, 5_000));
    trace.push(kernel("d", 50_000, 5_000));
    trace.push(kernel("e", 925_000, 50_000).raw_arg("ratio", "NaN"));
    trace.push(
        event("X", "cpu_op", "aten::add").on(5, -9).at_ns(origin_ns + 2_000).lasting_ns(5_000),
    );
    trace.push(event("X", "cpu_op", "aten::mul").on(5, -9).at_ns(origin_ns + 9_000));
    trace.push(
        event("X", "cpu_op", "aten::relu").on(5, 5).at_ns(origin_ns + 12_000).lasting_ns(1_000),
    );
    trace.push_text(r#"{"ph": "X", "name": "no time", "pid": 5, "tid": 7, "dur": 1}"#);
    trace.text()
}

/// A gzip file whose data is stored, not compressed: nothing but the frame.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let len = block.len() as u16;
        file.push(u8::from(blocks.peek().is_none()));
        file.extend(len.to_le_bytes());
        file.extend((!len).to_le_bytes());
        file.extend(block);
    }
    file.extend(crc32(bytes).to_le_bytes());
    file.extend((bytes.len() as u32).to_le_bytes());
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}
