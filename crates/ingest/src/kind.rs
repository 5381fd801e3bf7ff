//! What a file is.

use trace::Producer;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON that may hold trace events; what its beginning shows of the program that wrote it.
    Trace(Producer),
    /// Another format.
    Other(FileKind),
}

/// What reads a file of some kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The decoder of trace events.
    Trace,
    /// The reader of kernel maps.
    KernelMap,
    /// The reader of lists of captures.
    Captures,
    /// What takes the launch flags of a server.
    ServerFlags,
    /// The decoder of memory snapshots.
    Snapshot,
}

impl Kind {
    /// What reads a file of this kind; `None` where nothing does yet.
    #[must_use]
    pub fn reader(self) -> Option<Reader> {
        match self {
            Self::Trace(_) => Some(Reader::Trace),
            Self::Other(kind) => kind.reader(),
        }
    }
}

/// Declares the kinds, and with them the table: id, title, advice.
macro_rules! kinds {
    ($($kind:ident $id:literal $title:literal $advice:literal;)*) => {
        /// What a file is when it is no trace.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        "The profiler was probably stopped before it wrote, or the copy failed. Check the size at the source, and let the profiler finish (prof.stop() or the end of its with block) before the process exits.";
    DamagedGzip "damaged-gzip" "A damaged gzip file"
        "Not a single byte of it could be decompressed. Copy it again from its source, in binary mode.";
    NestedGzip "nested-gzip" "A gzip file inside a gzip file"
        "It was compressed twice. Decompress it once (gunzip) and open the result.";
    MemorySnapshot "memory-snapshot" "A PyTorch memory snapshot as JSON"
        "It contains allocations, not GPU activity: drop it on the page, or load it as a memory snapshot. For GPU activity, record a trace with torch.profiler (export_chrome_trace, or the .pt.trace.json.gz of tensorboard_trace_handler).";
    Pickle "pickle" "A Python pickle"
        "Most likely a memory snapshot (torch.cuda.memory._dump_snapshot). Opening a pickle can execute arbitrary code, so Kinetoscope never opens one. If you trust it, write it as JSON: s = torch.cuda.memory._snapshot(); json.dump(s, gzip.open(\"snapshot.json.gz\", \"wt\")). For GPU activity, record a trace with torch.profiler.";
    TorchSave "torch-save" "A torch.save file"
        "A zip archive with a pickle inside: weights or tensors. Opening a pickle can execute arbitrary code, so Kinetoscope never opens one. If it holds a memory snapshot that you trust, write that as JSON: s = torch.load(FILE, weights_only=False); json.dump(s, gzip.open(\"snapshot.json.gz\", \"wt\")). For GPU activity, record a trace with torch.profiler.";
    Zip "zip" "A zip archive"
        "Unpack it and open the trace inside (.json or .json.gz).";
    ZipOfJson "zip-of-json" "A zip archive of JSON files"
        "Kinetoscope does not read archives yet. Unpack it, and open the folder: the traces of several ranks are found by their content.";
    ExecutionTrace "execution-trace" "A PyTorch execution trace"
        "The operator graph that ExecutionTraceObserver writes (Chakra schema). It contains no GPU times. Open the Kineto trace of the same run, which torch.profiler writes.";
    ExecutionDetails "execution-details" "A list of records that are not events"
        "For example the execution_details.json that SGLang writes next to its traces. Open one of the .json.gz files that it lists.";
    KernelMap "kernel-map" "A kernel map"
        "It records where kernels were launched, not when they ran. Load it together with a trace.";
    ServerFlags "server-flags" "Launch flags of an SGLang server"
        "The server_args.json that SGLang writes next to its traces: flags, no events. Load it together with a trace, under that name.";
    MemoryTimeline "memory-timeline" "A memory timeline of torch.profiler"
        "The output of export_memory_timeline: sizes by category over time, no GPU activity. Drop it on the page, or read it with kinetoscope memory. For GPU activity, open the trace of the same profiler (export_chrome_trace).";
    MemoryTimelineHtml "memory-timeline-html" "A memory timeline of torch.profiler as a web page"
        "The chart that export_memory_timeline draws. Open the trace of the same profiler (export_chrome_trace).";
    Html "html" "A web page"
        "This is often a login or error page that was saved instead of the file. Open it in a text editor to check. Then download the trace again while logged in, or with the right token.";
    Rocprofiler "rocprofiler" "A JSON file of rocprofv3 (rocprofiler-sdk)"
        "Kinetoscope does not read this format yet. Run rocprofv3 with --output-format pftrace to see the run in Perfetto, or record it with torch.profiler to analyse it here.";
    RocprofCsv "rocprofv3-csv" "A CSV table of rocprofv3"
        "Kinetoscope does not read these tables yet. Open it in a spreadsheet, run rocprofv3 with --output-format pftrace to see the run in Perfetto, or record it with torch.profiler to analyse it here.";
    RocprofList "rocprofv3-list" "A list of counters from rocprofv3"
        "The output of rocprofv3 --list-avail: the counters that a GPU supports, not the work that ran. Record the run with torch.profiler to analyse it here.";
    RocprofCompute "rocprof-compute" "A CSV table of rocprof-compute (Omniperf)"
        "Hardware counters per kernel dispatch. Kinetoscope does not read them yet. Analyse the folder with rocprof-compute analyze; for a timeline, record the run with torch.profiler.";
    Rocpd "rocpd" "A rocpd database (rocprofv3)"
        "Kinetoscope does not read this format yet. Convert it with rocpd convert --output-format pftrace to see the run in Perfetto, or record it with torch.profiler to analyse it here.";
    NsysSqlite "nsys-sqlite" "A SQLite export of Nsight Systems"
        "Kinetoscope does not read this format yet. Open the .nsys-rep in Nsight Systems, print tables with nsys stats, or record the run with torch.profiler to analyse it here.";
    NsysJson "nsys-json" "A JSON Lines export of Nsight Systems"
        "Kinetoscope does not read this format yet. Open the .nsys-rep in Nsight Systems, or record the run with torch.profiler to analyse it here.";
    Sqlite "sqlite" "A SQLite database"
        "Its tables match neither Nsight Systems nor rocpd. Open it with the tool that wrote it; to analyse a run here, record it with torch.profiler.";
    Nsys "nsys-rep" "A report of Nsight Systems"
        "Open it in Nsight Systems; to analyse the run here, record it with torch.profiler.";
    TensorRtProfile "tensorrt-profile" "A layer profile of TensorRT (trtexec --exportProfile)"
        "It contains times per layer but no timeline. Kinetoscope does not read it yet. TREx (trt-engine-explorer) shows it; for a timeline, profile trtexec with Nsight Systems.";
    TensorRtTimes "tensorrt-times" "Query times of TensorRT (trtexec --exportTimes)"
        "It contains latencies per query but no timeline. Kinetoscope does not read them yet. TREx (trt-engine-explorer) shows them; for a timeline, profile trtexec with Nsight Systems.";
    TensorRtLayers "tensorrt-layers" "Layer information of TensorRT (trtexec --exportLayerInfo)"
        "It lists the layers of an engine, without times. Kinetoscope does not read it yet. TREx (trt-engine-explorer) shows it; for times, run trtexec with --exportProfile or Nsight Systems.";
    TensorRtSide "tensorrt-metadata" "Metadata of TensorRT Engine Explorer (TREx)"
        "It contains options, devices or summaries of a trtexec run, but no timeline. Open it with TREx (trt-engine-explorer); for a timeline, profile trtexec with Nsight Systems.";
    OnnxModel "onnx-model" "An ONNX model"
        "It contains a network and its weights, but no times. To analyse a run here, record it with torch.profiler. A profile of ONNX Runtime (SessionOptions.enable_profiling) opens in Perfetto.";
    Xplane "xplane" "An XSpace protobuf of the XLA profiler (xplane.pb)"
        "JAX and TensorFlow write this format. Neither Kinetoscope nor Perfetto reads it yet. Open it in XProf (TensorBoard), or open the .trace.json.gz of the same folder in Perfetto.";
    PerfettoTrace "perfetto-protobuf" "A Perfetto trace in its binary form"
        "Open it in Perfetto (ui.perfetto.dev). Kinetoscope reads the JSON traces of torch.profiler.";
    Zstd "zstd" "A file compressed with zstd"
        "Decompress it (zstd -d) and open the result.";
    Xz "xz" "A file compressed with xz"
        "Decompress it (xz -d) and open the result.";
    Bzip2 "bzip2" "A file compressed with bzip2"
        "Decompress it (bzip2 -d) and open the result.";
    Lz4 "lz4" "A file compressed with lz4"
        "Decompress it (lz4 -d) and open the result.";
    Tar "tar" "A tar archive"
        "Unpack it (tar -xf) and open the trace inside (.json or .json.gz).";
    Utf16 "utf-16" "Text in UTF-16"
        "Windows PowerShell writes this with > redirection. Save it as UTF-8 without a byte order mark, or write the file from Python.";
    PythonRepr "python-repr" "A printed Python object"
        "It has single quotes, as print() or str() writes them for a dict, which is not JSON. Write the file with json.dump.";
    Speedscope "speedscope" "A speedscope profile"
        "Open it on speedscope.app. Kinetoscope reads the JSON traces of torch.profiler.";
    CpuProfile "cpuprofile" "A CPU profile of a JavaScript engine or of Firefox"
        "Open it in the browser's own tools. Kinetoscope reads the JSON traces of torch.profiler.";
    JsonSchema "json-schema" "A JSON schema"
        "It describes a format and contains no data. Open the .json or .json.gz that torch.profiler wrote.";
    JsonWithoutEvents "json-without-events" "JSON without traceEvents"
        "It is readable JSON, but has no traceEvents array. Is this the file that torch.profiler wrote (export_chrome_trace, *.pt.trace.json)?";
    CutBeforeEvents "cut-before-events" "The beginning of a JSON file"
        "It ends before any event. Copy it again from its source, or let the profiler finish before the process exits.";
    Csv "csv" "A CSV table"
        "A table from another tool. Kinetoscope reads the .json or .json.gz that torch.profiler wrote.";
    Text "text" "Text that is not JSON"
        "A trace starts with { or [. This may be a log or an error message. Open the .json or .json.gz that torch.profiler wrote.";
    Binary "binary" "An unknown binary file"
        "It is neither JSON nor gzip. Open the .json or .json.gz that torch.profiler wrote.";
}

impl FileKind {
    /// A short name that stays, for files and tests.
    #[must_use]
    pub fn id(self) -> &'static str {
        Self::ROWS[self as usize].0
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn title(self) -> &'static str {
        Self::ROWS[self as usize].1
    }

    /// What to do about it, when a trace was expected.
    #[must_use]
    pub fn advice(self) -> &'static str {
        Self::ROWS[self as usize].2
    }

    /// What reads a file of this kind; `None` where nothing does yet. (Any list of records is taken
    /// for a list of captures: its reader has the last word.)
    #[must_use]
    pub fn reader(self) -> Option<Reader> {
        match self {
            Self::KernelMap => Some(Reader::KernelMap),
            Self::ExecutionDetails => Some(Reader::Captures),
            Self::ServerFlags => Some(Reader::ServerFlags),
            Self::MemorySnapshot | Self::MemoryTimeline => Some(Reader::Snapshot),
            Self::Empty
            | Self::DamagedGzip
            | Self::NestedGzip
            | Self::Pickle
            | Self::TorchSave
            | Self::Zip
            | Self::ZipOfJson
            | Self::ExecutionTrace
            | Self::MemoryTimelineHtml
            | Self::Html
            | Self::Rocprofiler
            | Self::RocprofCsv
            | Self::RocprofList
            | Self::RocprofCompute
            | Self::Rocpd
            | Self::NsysSqlite
            | Self::NsysJson
            | Self::Sqlite
            | Self::Nsys
            | Self::TensorRtProfile
            | Self::TensorRtTimes
            | Self::TensorRtLayers
            | Self::TensorRtSide
            | Self::OnnxModel
            | Self::Xplane
            | Self::PerfettoTrace
            | Self::Zstd
            | Self::Xz
            | Self::Bzip2
            | Self::Lz4
            | Self::Tar
            | Self::Utf16
            | Self::PythonRepr
            | Self::Speedscope
            | Self::CpuProfile
            | Self::JsonSchema
            | Self::JsonWithoutEvents
            | Self::CutBeforeEvents
            | Self::Csv
            | Self::Text
            | Self::Binary => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut ids: Vec<_> = FileKind::ALL.iter().map(|kind| kind.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), FileKind::ALL.len(), "ids are unique");
        let formats = include_str!("../../../docs/formats.md");
        for kind in FileKind::ALL {
            let row = format!("| `{}` | {}", kind.id(), kind.title());
            assert!(formats.contains(&row), "docs/formats.md lacks {row}");
        }
        for (index, kind) in FileKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert!(!kind.title().ends_with('.'), "{kind:?}");
            assert!(kind.advice().ends_with(['.', '?']), "{kind:?}");
        }
    }
}
