//! Files that are something else, each with what to do about it.

use std::fmt;

use crate::excerpt::excerpt;

/// Declares the kinds, and with them the table.
macro_rules! kinds {
    ($($kind:ident $id:literal $title:literal $advice:literal;)*) => {
        /// What a file is when it is no trace.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FileKind {
            $(#[doc = $title] $kind,)*
        }

        impl FileKind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            const ROWS: &'static [(&'static str, &'static str, &'static str)] =
                &[$(($id, $title, $advice),)*];
        }
    };
}

kinds! {
    Empty "empty" "An empty file"
        "There is nothing in it. The profiler was probably stopped before it wrote, or the copy failed: check the size at the source, and let the profiler finish (prof.stop() or the end of its with block) before the process exits.";
    DamagedGzip "damaged-gzip" "A damaged gzip file"
        "Not a single byte of it could be decompressed. Copy it again from its source, in binary mode.";
    NestedGzip "nested-gzip" "A gzip file inside a gzip file"
        "It was compressed twice. Decompress it once (gunzip) and drop the result here.";
    MemorySnapshot "memory-snapshot" "A memory snapshot of PyTorch as JSON"
        "It holds allocations, not GPU activity. Drop a trace of torch.profiler here (export_chrome_trace, or the .pt.trace.json.gz of tensorboard_trace_handler). The snapshot itself can be looked at on pytorch.org/memory_viz.";
    Pickle "pickle" "A Python pickle"
        "Most likely a memory snapshot (torch.cuda.memory._dump_snapshot). A pickle can run any code when it is opened, so it is never opened here. Where you trust it, write it as JSON: s = torch.cuda.memory._snapshot(); json.dump(s, gzip.open(\"snapshot.json.gz\", \"wt\")). For GPU activity drop a trace of torch.profiler.";
    TorchSave "torch-save" "A file of torch.save"
        "A zip with a pickle inside: weights or tensors, no trace. It is never opened here, as a pickle can run any code. Drop the .json or .json.gz which torch.profiler wrote.";
    Zip "zip" "A zip archive"
        "Unpack it and drop the trace inside (.json or .json.gz).";
    ExecutionTrace "execution-trace" "A PyTorch execution trace"
        "The graph of operators of ExecutionTraceObserver (also Chakra): it has no times of the GPU. Drop the Kineto trace of the same run, which torch.profiler writes beside it.";
    ExecutionDetails "execution-details" "A list of records that are no events"
        "For example the execution_details.json which lies beside SGLang's traces and names them. Drop one of the .json.gz files that it lists.";
    KernelMap "kernel-map" "A kernel map"
        "It says where kernels come from, not what ran. Use it beside a trace (on the command line: --map).";
    MemoryTimeline "memory-timeline" "A memory timeline of torch.profiler"
        "The output of export_memory_timeline: sizes over time, no events. Drop the trace of the same profiler (export_chrome_trace).";
    MemoryTimelineHtml "memory-timeline-html" "A memory timeline of torch.profiler as a web page"
        "The picture that export_memory_timeline draws. Drop the trace of the same profiler (export_chrome_trace).";
    Html "html" "A web page"
        "Often a login or error page that was saved in place of the file. Open it in a text editor to see which; then download the trace again while logged in, or with the right token.";
    Rocprofiler "rocprofiler" "A JSON file of rocprofiler-sdk"
        "The raw records of rocprofv3, in a format of its own. Run rocprofv3 with --output-format pftrace to look at it in Perfetto, or profile with torch.profiler to get a Kineto trace.";
    Sqlite "sqlite" "A SQLite database"
        "Probably an export of Nsight Systems or of rocpd. Open it with the tool that wrote it; for this page profile with torch.profiler.";
    Nsys "nsys-rep" "A report of Nsight Systems"
        "Open it in Nsight Systems; for this page profile with torch.profiler.";
    PerfettoTrace "perfetto-protobuf" "A Perfetto trace in its binary form"
        "Perfetto opens it as it is (ui.perfetto.dev). This page reads the JSON traces of torch.profiler.";
    Zstd "zstd" "A file compressed with zstd"
        "Decompress it (zstd -d) and drop the result.";
    Xz "xz" "A file compressed with xz"
        "Decompress it (xz -d) and drop the result.";
    Bzip2 "bzip2" "A file compressed with bzip2"
        "Decompress it (bzip2 -d) and drop the result.";
    Lz4 "lz4" "A file compressed with lz4"
        "Decompress it (lz4 -d) and drop the result.";
    Tar "tar" "A tar archive"
        "Unpack it (tar -xf) and drop the trace inside (.json or .json.gz).";
    Utf16 "utf-16" "Text in UTF-16"
        "Windows PowerShell writes this with > redirection. Save it as UTF-8 without a byte order mark, or write the file from Python.";
    PythonRepr "python-repr" "A printed Python object"
        "It has single quotes, as print() or str() writes a dict; that is no JSON. Write it with json.dump.";
    Speedscope "speedscope" "A speedscope profile"
        "Open it on speedscope.app. This page reads the JSON traces of torch.profiler.";
    CpuProfile "cpuprofile" "A CPU profile of a JavaScript engine or of Firefox"
        "Open it in the browser's own tools. This page reads the JSON traces of torch.profiler.";
    JsonWithoutEvents "json-without-events" "JSON without traceEvents"
        "It is readable, but has no traceEvents array, so there is nothing to show. Is this the file that torch.profiler wrote (export_chrome_trace, *.pt.trace.json)?";
    CutBeforeEvents "cut-before-events" "The beginning of a JSON file"
        "It ends before any event. Copy it again from its source, or let the profiler finish before the process exits.";
    Text "text" "Text, but no JSON"
        "A trace starts with { or [. Is this a log or an error message? Drop the .json or .json.gz which torch.profiler wrote.";
    Binary "binary" "An unknown binary file"
        "It is neither JSON nor gzip. Drop the .json or .json.gz which torch.profiler wrote.";
}

impl FileKind {
    /// A short name that stays, for files and tests.
    #[must_use]
    pub fn id(self) -> &'static str {
        Self::ROWS[self as usize].0
    }
}

/// The file is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATrace {
    /// What it is.
    pub kind: FileKind,
    /// Where that was seen, in the decompressed file.
    pub offset: u64,
    /// The text there, printable, at most 120 characters.
    pub excerpt: String,
}

impl NotATrace {
    pub(crate) fn new(kind: FileKind, offset: u64, text: &[u8]) -> Self {
        Self { kind, offset, excerpt: excerpt(text) }
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn title(&self) -> &'static str {
        FileKind::ROWS[self.kind as usize].1
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        FileKind::ROWS[self.kind as usize].2
    }
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, not a trace. {}", self.title(), self.advice())
    }
}

impl std::error::Error for NotATrace {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut ids: Vec<_> = FileKind::ALL.iter().map(|kind| kind.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), FileKind::ALL.len(), "ids are unique");
        for (index, kind) in FileKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            let error = NotATrace::new(*kind, 0, b"");
            assert!(!error.title().ends_with('.'), "{error}");
            assert!(error.advice().ends_with(['.', '?']), "{error}");
        }
    }
}
