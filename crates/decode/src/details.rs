//! The second reading: arguments that the columns do not hold, of the few events whose arguments somebody asks for.
//!
//! Decoding keeps the place of every event and few of its arguments. What a kernel was launched with, and an op called
//! with, is wanted for one event in ten and only by triage; so it is read again at those places, and all other bytes of
//! the file pass by unread. (Measured: docs/performance.md.)

mod args;

use std::collections::HashMap;

use dialect::processes::is_cpu_collective;
use dialect::{Records, kineto};
use ingest::Unpacker;
use scan::{Cursor, Value, string::unescape};
use trace::{
    BuildIdHasher, ByRawCategory, Collective, Details, Flags, LaunchConfig, MemoryEvent, OpInputs,
    Phase, Row, Sequence, StreamWait, StringId, Trace,
};

use crate::Decoded;
use crate::pieces::{Cut, Pieces};
use args::{Args, Field, KnownKeys};

/// Longest list of inputs that is kept, and bytes of all that are kept.
const MOST_INPUTS: usize = 4 << 10;
const ALL_INPUTS: usize = 16 << 20;

/// Reads the [`Details`] of a trace out of the file that it was decoded from.
///
/// Sans-I/O: [`DetailsReader::push`] the file (compressed or not, as it was decoded) in any pieces, then
/// [`DetailsReader::finish`]. The result does not depend on the pieces.
pub struct DetailsReader<'a> {
    unpacker: Unpacker,
    reader: Reader<'a>,
}

impl<'a> DetailsReader<'a> {
    /// A reader for the file that `decoded` was read from.
    #[must_use]
    pub fn new(decoded: &'a Decoded) -> Self {
        let unpacker = Unpacker::again(decoded.source.gzip);
        Self { unpacker, reader: Reader::new(&decoded.trace, HostWants::default()) }
    }

    /// A reader that also reads what the analyses of the host need: copied bytes, changes of memory, names of threads, sizes
    /// of calls of gloo, and strides and concrete inputs of the ops that `wants_inputs` chooses by name.
    #[must_use]
    pub fn with_host(decoded: &'a Decoded, wants_inputs: impl Fn(&str) -> bool) -> Self {
        let trace = &decoded.trace;
        let names = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
        let wants = HostWants {
            inputs_of: names.map(wants_inputs).collect(),
            cpu_collectives: trace.strings.marked(&is_cpu_collective),
            memory: trace.strings.find(kineto::MEMORY),
            thread_name: trace.strings.find(kineto::THREAD_NAME),
            all: true,
        };
        Self { unpacker: Unpacker::again(decoded.source.gzip), reader: Reader::new(trace, wants) }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, file_bytes: &[u8]) {
        let Self { unpacker, reader } = self;
        unpacker.push(file_bytes, &mut |plain| reader.push(plain));
    }

    /// Whether the rest of the file has nothing that is wanted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.reader.next.is_none()
    }

    /// The file is over.
    #[must_use]
    pub fn finish(self) -> Details {
        self.reader.finish()
    }
}

/// What an event is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A kernel, or a call that names the kernel that it launches.
    Launch,
    Op,
    /// A range, which somebody named: wanted where it is a call of gloo.
    Annotation,
    Wait,
    Copy,
    Memory,
    ThreadName,
    /// The first frame of Python: it tells for all of them.
    Frame,
}

/// What the analyses of the host want beside what triage wants; nothing by default.
#[derive(Default)]
struct HostWants {
    /// By name: whether strides and concrete inputs of its ops are wanted.
    inputs_of: Vec<bool>,
    /// By name: whether its annotations are calls in which CPUs wait for those of other ranks.
    cpu_collectives: Vec<bool>,
    /// The name of changes of memory, where the trace has one.
    memory: Option<StringId>,
    thread_name: Option<StringId>,
    /// Whether anything is wanted.
    all: bool,
}

/// The decompressed side.
struct Reader<'a> {
    trace: &'a Trace,
    host: HostWants,
    seen_frame: bool,
    /// By raw category: what its events are wanted for.
    kinds: ByRawCategory<Option<Kind>>,
    /// Launches that name their kernel, the ones before the next wanted event taken off.
    launches: &'a [(Row, StringId)],
    next: Option<(Row, Kind)>,
    pieces: Pieces,
    keys: KnownKeys,
    known_configs: HashMap<LaunchConfig, u32, BuildIdHasher>,
    known_inputs: HashMap<OpInputs, u32, BuildIdHasher>,
    known_collectives: HashMap<Collective, u32, BuildIdHasher>,
    inputs_len: usize,
    compact: Vec<u8>,
    details: Details,
}

impl<'a> Reader<'a> {
    fn new(trace: &'a Trace, host: HostWants) -> Self {
        let kind = |raw_category: &str| match dialect::known(raw_category)? {
            Records::Op => Some(Kind::Op),
            Records::Sync => Some(Kind::Wait),
            Records::GpuCopy if host.all => Some(Kind::Copy),
            Records::Frame if host.all => Some(Kind::Frame),
            Records::Annotation if host.all => Some(Kind::Annotation),
            _ => None,
        };
        let mut reader = Self {
            kinds: trace.by_raw_category(kind),
            trace,
            host,
            seen_frame: false,
            launches: trace.launched_kernels(),
            next: None,
            pieces: Pieces::default(),
            keys: KnownKeys::default(),
            known_configs: HashMap::default(),
            known_inputs: HashMap::default(),
            known_collectives: HashMap::default(),
            inputs_len: 0,
            compact: Vec::new(),
            details: Details::default(),
        };
        reader.advance(0);
        reader
    }

    /// Finds the next wanted event from `row` on.
    #[inline(never)]
    fn advance(&mut self, row: Row) {
        let end = self.trace.len() as Row;
        self.next = (row..end).find_map(|row| Some((row, self.kind(row)?)));
    }

    #[inline]
    fn kind(&mut self, row: Row) -> Option<Kind> {
        let Self { trace, launches, .. } = self;
        if let [(launch, _), rest @ ..] = launches
            && *launch <= row
        {
            let found = *launch == row;
            *launches = rest;
            if found {
                return Some(Kind::Launch);
            }
        }
        if trace.flags(row).has(Flags::KERNEL) {
            return Some(Kind::Launch);
        }
        match trace.phase(row) {
            Phase::Complete => {
                let name = trace.name(row).0 as usize;
                let kind = *self.kinds.of(trace, row);
                kind.filter(|kind| match kind {
                    Kind::Frame => !self.seen_frame,
                    Kind::Annotation => self.host.cpu_collectives.get(name) == Some(&true),
                    _ => true,
                })
            }
            Phase::Instant => {
                self.host.memory.filter(|name| *name == trace.name(row)).map(|_| Kind::Memory)
            }
            Phase::Metadata => {
                let name = self.host.thread_name.filter(|name| *name == trace.name(row));
                name.map(|_| Kind::ThreadName)
            }
            _ => None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        while let Some((row, kind)) = self.next {
            match self.pieces.text(self.trace.span(row), bytes) {
                Cut::Later => break,
                Cut::TooLong => self.details.n_unread += 1,
                Cut::Whole(text) => self.read(row, kind, &text),
            }
            self.advance(row + 1);
        }
        self.pieces.pass(bytes);
    }

    fn finish(mut self) -> Details {
        while let Some((row, _)) = self.next {
            self.details.n_unread += 1;
            self.advance(row + 1);
        }
        self.details
    }

    #[inline(never)]
    fn read(&mut self, row: Row, kind: Kind, text: &[u8]) {
        let mut args = Args::default();
        let mut cursor = Cursor::whole(text);
        // A file that changed in between may have anything at this place.
        if cursor.peek() != Ok(b'{') || args.read(&mut cursor, &mut self.keys).is_err() {
            self.details.n_unread += 1;
            return;
        }
        self.details.n_read += 1;
        match kind {
            Kind::Launch => self.launch(row, &args),
            Kind::Op | Kind::Annotation => self.op(row, &args),
            Kind::Wait => {
                let wait = StreamWait {
                    device: args.integer(Field::Device),
                    stream: args.integer(Field::Stream),
                    on_stream: args.integer(Field::WaitOnStream),
                    record: args.integer(Field::WaitOnRecord),
                };
                if wait.on_stream.is_some() {
                    self.details.waits.push((row, wait));
                }
            }
            Kind::Copy => {
                if let Some(Value::Number(_)) = args.0[Field::CopiedBytes as usize]
                    && let Some(bytes) = args.integer(Field::CopiedBytes)
                {
                    self.details.copied_bytes.push((row, bytes));
                }
            }
            Kind::Memory => {
                let event = MemoryEvent {
                    device_type: args.integer(Field::DeviceType),
                    device: args.integer(Field::DeviceId),
                    address: args.integer(Field::Address),
                    bytes: args.integer(Field::MemoryBytes).unwrap_or_default(),
                    allocated_bytes: args.integer(Field::TotalAllocated),
                    reserved_bytes: args.integer(Field::TotalReserved),
                };
                self.details.memory.push((row, event));
            }
            Kind::ThreadName => {
                if let Some(Value::String(name)) = args.0[Field::Name as usize]
                    && let Some(id) = self.details.texts.intern_utf8(unescape(name.raw).as_bytes())
                {
                    self.details.thread_names.push((row, id));
                }
            }
            Kind::Frame => {
                self.seen_frame = true;
                self.details.frames_have_call_sites = args.text(Field::CallFrom).is_some();
            }
        }
    }

    /// What a kernel of a collective was called with; calls of unknown sizes are left out.
    #[inline(never)]
    fn collective(&mut self, row: Row, args: &Args<'_>) {
        let (Some(name), Some(in_elements), Some(out_elements), Some(group_size)) = (
            args.text(Field::CollectiveName),
            args.integer(Field::InElements),
            args.integer(Field::OutElements),
            args.integer(Field::GroupSize),
        ) else {
            return;
        };
        let mut kind = Vec::new();
        for field in
            [Field::Dtype, Field::GroupName, Field::GroupRanks, Field::InSplit, Field::OutSplit]
        {
            kind.extend_from_slice(args.text(field).unwrap_or_default());
            kind.push(b';');
        }
        let (name, kind) = (self.keep(name), self.keep(&kind));
        if name == StringId::EMPTY || kind == StringId::EMPTY {
            return;
        }
        let collective = Collective { name, kind, in_elements, out_elements, group_size };
        let all = &mut self.details.collectives;
        let index = *self.known_collectives.entry(collective).or_insert_with(|| {
            all.push(collective);
            all.len() as u32 - 1
        });
        self.details.collective_of.push((row, index));
    }

    #[inline(never)]
    fn launch(&mut self, row: Row, args: &Args<'_>) {
        self.collective(row, args);
        let config = LaunchConfig {
            grid: args.three(Field::Grid),
            block: args.three(Field::Block),
            registers: args.small(Field::Registers),
            shared_bytes: args.small(Field::SharedMemory),
            occupancy_milli_pct: args.milli(Field::Occupancy),
            blocks_per_sm_milli: args.milli(Field::BlocksPerSm),
            warps_per_sm_milli: args.milli(Field::WarpsPerSm),
        };
        if config == LaunchConfig::default() {
            return;
        }
        let configs = &mut self.details.configs;
        let index = *self.known_configs.entry(config).or_insert_with(|| {
            configs.push(config);
            configs.len() as u32 - 1
        });
        self.details.launches.push((row, index));
    }

    #[inline(never)]
    fn op(&mut self, row: Row, args: &Args<'_>) {
        self.details.ops_have_stacks |=
            args.text(Field::CallStack).is_some_and(|frames| !frames.is_empty());
        if let Some(number) = args.integer(Field::SequenceNumber)
            && let Some(forward_thread) = args.integer(Field::ForwardThread)
        {
            self.details.sequences.push((row, Sequence { number, forward_thread }));
        }
        let (Some(dims), types) = (args.array(Field::InputDims), args.array(Field::InputType))
        else {
            return;
        };
        let inputs = OpInputs { dims: self.keep(dims), types: self.keep(types.unwrap_or(b"[]")) };
        if inputs.dims == StringId::EMPTY {
            self.details.n_unkept += 1;
            return;
        }
        let all = &mut self.details.inputs;
        let index = *self.known_inputs.entry(inputs).or_insert_with(|| {
            all.push(inputs);
            all.len() as u32 - 1
        });
        self.details.ops.push((row, index));
        if self.host.inputs_of.get(self.trace.name(row).0 as usize) == Some(&true) {
            if let Some(json) = args.array(Field::ConcreteInputs) {
                let id = self.keep(json);
                self.details.concrete_inputs.push((row, id));
            }
            if let Some(json) = args.array(Field::InputStrides) {
                let id = self.keep(json);
                self.details.strides.push((row, id));
            }
        }
    }

    /// Keeps a JSON text without its blanks; the empty text where it is too long.
    fn keep(&mut self, json: &[u8]) -> StringId {
        if json.len() > MOST_INPUTS {
            return StringId::EMPTY;
        }
        self.compact.clear();
        self.compact.extend(json.iter().filter(|byte| !byte.is_ascii_whitespace()));
        let texts = &mut self.details.texts;
        let n = texts.len();
        if self.inputs_len + self.compact.len() > ALL_INPUTS {
            let known = std::str::from_utf8(&self.compact).ok().and_then(|text| texts.find(text));
            return known.unwrap_or(StringId::EMPTY);
        }
        let id = texts.intern_utf8(&self.compact).unwrap_or(StringId::EMPTY);
        if texts.len() > n {
            self.inputs_len += self.compact.len();
        }
        id
    }
}
