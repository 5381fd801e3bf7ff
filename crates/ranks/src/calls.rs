//! The collectives of one device or rank, and when its CPU is late.

use crate::listed::groups_of;
use dialect::kineto;
use dialect::processes::{is_all_to_all, is_cpu_collective};
use host::class::Class;
use host::links::{DeviceId, GpuSide, GpuSlice};
use host::slices::{Family, Nested};
use host::{HostIndex, HostSlice, Slices};
use timeline::device::distributed;
use timeline::intervals::{Interval, union, without};
use trace::{Collective, Details, OpInputs, TrackId};

/// Collectives that no rank leaves before all have joined, as parts of PyTorch's names in lower case and without signs.
const ALL_WAIT: [&str; 4] = ["allreduce", "allgather", "reducescatter", "alltoall"];
/// The same as parts of kernels' names: of NCCL and RCCL, and of vLLM, SGLang, FlashInfer, TensorRT-LLM and AITER.
/// NCCL's kernels that send and receive may be those of an all-to-all ([`Kind::is_send_recv`]).
const ALL_WAIT_BY_NAME: [&str; 7] = [
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    "crossdevicereduce",
    "multimemreduce",
    "kernelsendrecv",
];
/// A part of the names of DeepEP's kernels, and the two that exchange data. In low-latency mode (`internode_ll`) a call is one kernel that
/// sends and receives, or two of one name, of which the first sends (DeepEP, `csrc/kernels/internode_ll.cu`). Which of those a kernel is,
/// is not recorded, and a rank may be done before another one begins: of eight H200, seven end their second dispatch 220 to 232 us before the
/// last one begins its own, because that one has sent.
pub(crate) const DEEP_EP: &str = "deep_ep::";
const DEEP_EP_EXCHANGES: [&str; 2] = ["::dispatch", "::combine"];
/// What NCCL's kernels that send and receive are called where their launch lies in a call of an all-to-all: as PyTorch annotates that call.
const ALL_TO_ALL: &str = "nccl:all_to_all";
/// Collectives that a rank leaves when it has received and sent on.
const SOME_WAIT: &str = "broadcast";
/// The member of the file that its times are relative to, in ns since 1970 (Kineto since 2024).
const BASE_TIME: &str = "baseTimeNanoseconds";

/// The collectives of one device, or of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankCalls {
    /// The device, or the rank.
    pub(crate) name: String,
    /// The rank, of a file of its own.
    pub(crate) rank: i64,
    /// The name of that file, without folders; empty of a device.
    pub(crate) file: String,
    /// Ranks of the run, where that is recorded.
    pub(crate) world_size: Option<i64>,
    /// When the file was recorded: from its first slice to the end of its last; `None` without any.
    pub(crate) recorded: Option<Interval>,
    /// When the profiler begins to record, where the file has its span. (The first op may begin long after that.)
    pub(crate) begins_ns: Option<i64>,
    /// The first annotations of its program: the name of each, and when it begins.
    pub(crate) marks: Vec<(String, i64)>,
    pub(crate) kinds: Vec<Kind>,
    /// When it runs no kernel but communication.
    pub(crate) exposed: Vec<Interval>,
    /// Kernels of broadcasts of which nothing but the name is recorded, by start.
    pub(crate) broadcasts: Vec<Interval>,
    /// Its kernels by start, with the starts of their launches.
    pub(crate) kernels: Vec<Launched>,
    /// When the CPU waits for the GPU, by end.
    pub(crate) waits: Vec<Interval>,
    /// Calls in which its CPU waits for those of other ranks: then its launches would come earlier, too, and nothing is known of what
    /// that saves.
    pub(crate) on_cpu: Vec<CpuKind>,
    /// The groups of several ranks that it is in, where the file lists them.
    pub(crate) groups: Vec<Vec<i64>>,
    /// What its times have been moved by, in ns; `None` of a device.
    pub(crate) shift_ns: Option<i64>,
}

/// Calls of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// What they have in common: name, number format, group and its ranks; or the name of the kernel.
    pub(crate) key: String,
    /// Ranks of the group; `None` where it is not recorded, and all that there are may be in it.
    pub(crate) group_size: Option<i64>,
    /// Whether a rank may leave before all have joined.
    pub(crate) is_broadcast: bool,
    /// When their kernels run, by start.
    pub(crate) calls: Vec<Interval>,
}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    /// When it runs.
    pub(crate) times: Interval,
    /// When its launch begins, if that is in the file.
    pub(crate) launch_ns: Option<i64>,
    /// Its stream.
    pub(crate) stream: TrackId,
}

/// Calls of one function, with messages of one size, in which CPUs wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuKind {
    /// The function, without its file, or the name of the annotation.
    pub(crate) name: String,
    /// Dimensions and types of what it sends, as they are recorded; empty where they are not.
    pub(crate) size: String,
    /// The calls, by start.
    pub(crate) calls: Vec<Interval>,
}

impl RankCalls {
    /// Those of a trace of one rank, on the clock that `baseTimeNanoseconds` and the times of the file give: that of the machine.
    #[must_use]
    pub fn of(index: &HostIndex<'_>, details: &Details, rank: i64, file: &str) -> Self {
        let HostIndex { slices, gpu } = index;
        let trace = slices.trace;
        let base = trace.metadata.int(BASE_TIME).map_or(0, i128::from);
        let shift = i64::try_from(base.saturating_add(trace.origin_ns)).unwrap_or(0);
        let on_all = OnCpu::of(slices, details, shift);
        let own = Self::within(slices, gpu, details, rank.to_string(), (None, shift), &on_all);
        let times = || slices.all.iter().map(|(slice, _)| slice.interval());
        let (first, last) = (times().map(|(from, _)| from).min(), times().map(|(_, to)| to).max());
        let begins = recordings(slices).map(|slice| slice.start_ns).min();
        Self {
            rank,
            begins_ns: begins.map(|at| at.saturating_add(shift)),
            marks: marks(slices, shift),
            file: file.to_owned(),
            world_size: distributed(trace).1,
            groups: groups_of(trace, rank),
            recorded: first.zip(last).map(|window| moved(window, shift)),
            shift_ns: Some(shift),
            ..own
        }
    }

    /// From the start of its first kernel to the end of its last.
    pub(crate) fn span_ns(&self) -> i64 {
        let first = self.kernels.first().map(|kernel| kernel.times.0);
        let last = self.kernels.iter().map(|kernel| kernel.times.1).max();
        last.zip(first).map_or(0, |(last, first)| last.saturating_sub(first))
    }

    /// When the launch of the kernel with these times begins, if that is in the file.
    pub(crate) fn launch_ns(&self, times: Interval) -> Option<i64> {
        let at = self.kernels.partition_point(|kernel| kernel.times.0 < times.0);
        let own = self.kernels[at..].iter().take_while(|kernel| kernel.times.0 == times.0);
        own.filter(|kernel| kernel.times == times).find_map(|kernel| kernel.launch_ns)
    }

    /// Their order among others: by rank, and of one rank by the name of the file.
    #[must_use]
    pub fn order(&self) -> (i64, &str) {
        (self.rank, &self.file)
    }

    /// The same with all times moved.
    pub(crate) fn moved(&self, by_ns: i64) -> Self {
        let mut own = self.clone();
        let all = own.kinds.iter_mut().flat_map(|kind| &mut kind.calls);
        let all = all.chain(own.on_cpu.iter_mut().flat_map(|kind| &mut kind.calls));
        let all = all
            .chain(&mut own.broadcasts)
            .chain(&mut own.exposed)
            .chain(&mut own.waits)
            .chain(&mut own.recorded);
        all.for_each(|times| *times = moved(*times, by_ns));
        for kernel in &mut own.kernels {
            kernel.times = moved(kernel.times, by_ns);
            kernel.launch_ns = kernel.launch_ns.map(|at| at.saturating_add(by_ns));
        }
        own.begins_ns = own.begins_ns.map(|at| at.saturating_add(by_ns));
        own.marks.iter_mut().for_each(|(_, at)| *at = at.saturating_add(by_ns));
        own.shift_ns = own.shift_ns.map(|shift| shift.saturating_add(by_ns));
        own
    }

    /// Those of a device, or of all.
    pub(crate) fn within(
        slices: &Slices<'_>,
        gpu: &GpuSide,
        details: &Details,
        name: String,
        (device, shift): (Option<usize>, i64),
        on_all: &OnCpu,
    ) -> Self {
        let own = || {
            let all = gpu.slices.iter().filter(|one| one.is_kernel);
            all.filter(|one| device.is_none_or(|device| one.device as usize == device))
        };
        let times = |one: &GpuSlice| moved(one.slice.interval(), shift);
        let (mut kinds, mut broadcasts): (Vec<Kind>, Vec<Interval>) = Default::default();
        let mut names = Names::of(slices, details);
        for one in own().filter(|one| one.is_communication) {
            match names.kind(one, &mut kinds) {
                Some(at) => kinds[at].calls.push(times(one)),
                None if names.is_broadcast(one) => broadcasts.push(times(one)),
                None => {}
            }
        }
        trace::sort(&mut broadcasts);
        // (Those of which all kernels turned out to be of an all-to-all.)
        kinds.retain(|kind| !kind.calls.is_empty());
        kinds.iter_mut().for_each(|kind| trace::sort(&mut kind.calls));
        let device_id = device.and_then(|device| DeviceId::try_from(device).ok());
        let (communication, others) = gpu.communication(slices.trace, device_id);
        let mut exposed = without(&communication, &others);
        exposed.iter_mut().for_each(|times| *times = moved(*times, shift));
        let launched = |one: &GpuSlice| Launched {
            times: times(one),
            launch_ns: one.launch.map(|call| call.start_ns.saturating_add(shift)),
            stream: slices.trace.track(one.slice.row),
        };
        let mut kernels: Vec<Launched> = own().map(launched).collect();
        trace::sort_by_key(&mut kernels, |kernel| kernel.times.0);
        let OnCpu { waits, calls } = on_all.clone();
        Self { name, kinds, broadcasts, exposed, kernels, waits, on_cpu: calls, ..Self::default() }
    }
}

/// What the CPU of all devices of a file waits for.
#[derive(Clone, Default)]
pub(crate) struct OnCpu {
    /// For the GPU, by end.
    waits: Vec<Interval>,
    /// For the CPUs of other ranks.
    calls: Vec<CpuKind>,
}

impl OnCpu {
    pub(crate) fn of(slices: &Slices<'_>, details: &Details, shift: i64) -> Self {
        let waits = slices.calls.iter().filter(|call| waits_for_gpu(slices, call));
        let mut waits: Vec<Interval> = waits.map(|call| moved(call.interval(), shift)).collect();
        trace::sort_by_key(&mut waits, |(_, to)| *to);
        Self { waits, calls: cpu_calls(slices, details, shift) }
    }

    /// Whether it waits for other ranks at all.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls.iter().any(|kind| !kind.calls.is_empty())
    }
}

/// The spans in which the profiler records.
fn recordings<'a>(slices: &'a Slices<'_>) -> impl Iterator<Item = HostSlice> + 'a {
    let trace = slices.trace;
    let is_one = |slice: &HostSlice| {
        kineto::is_recording(trace.raw_category_text(slice.row), trace.name_text(slice.row))
    };
    let others = slices.all.iter().filter(|(_, family)| *family == Family::Other);
    others.map(|(slice, _)| *slice).filter(is_one)
}

/// So many annotations come before the first collective of a recording, or tell where the program is then.
const MOST_MARKS: usize = 200;

/// The first annotations of a program, by begin: those of names of which no more follow.
fn marks(slices: &Slices<'_>, shift: i64) -> Vec<(String, i64)> {
    let mut all: Vec<HostSlice> = slices.annotations.clone();
    trace::sort_by_key(&mut all, |slice| slice.start_ns);
    let (first, later) = all.split_at(all.len().min(MOST_MARKS));
    let name = |slice: &HostSlice| slices.trace.name(slice.row).0 as usize;
    let mut follows = vec![false; slices.trace.strings.len()];
    later.iter().for_each(|slice| follows[name(slice)] = true);
    let whole = first.iter().filter(|slice| !follows[name(slice)]);
    whole
        .map(|slice| (slices.name(slice).to_owned(), slice.start_ns.saturating_add(shift)))
        .collect()
}

/// A call, and what is recorded of its message.
type Call = (Interval, Option<OpInputs>);

/// The ops, functions and annotations of the CPU with such a name.
fn calls_named<'a>(
    slices: &'a Slices<'_>,
    is_so: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = HostSlice> + 'a {
    let is_one = slices.trace.strings.marked(is_so);
    // (The profiler's copy of an annotation around work on the GPU has its name, and is no call.)
    let on_cpu = |family: Family| matches!(family, Family::Op | Family::Frame | Family::Annotation);
    let all = slices.all.iter().filter(move |(_, family)| on_cpu(*family)).map(|(slice, _)| *slice);
    all.filter(move |slice| is_one.get(slices.trace.name(slice.row).0 as usize) == Some(&true))
}

/// The calls in which the CPU waits for those of other ranks, by function and size; of calls in each other the outermost.
fn cpu_calls(slices: &Slices<'_>, details: &Details, shift: i64) -> Vec<CpuKind> {
    let nested = slices.nest(calls_named(slices, &is_cpu_collective).collect());
    let mut functions: Vec<(&str, Vec<Call>)> = Vec::new();
    for (at, slice) in nested.slices.iter().enumerate() {
        if nested.parent(at).is_some() {
            continue;
        }
        // (A frame of Python is called "file.py(12): function".)
        let name = slices.name(slice);
        let name = name.rsplit_once("): ").map_or(name, |(_, function)| function);
        let call = (moved(slice.interval(), shift), details.inputs(slice.row));
        match functions.iter_mut().find(|known| known.0 == name) {
            Some((_, calls)) => calls.push(call),
            None => functions.push((name, vec![call])),
        }
    }
    // (Several threads may call it.)
    functions.iter_mut().for_each(|(_, calls)| trace::sort_by_key(calls, |(times, _)| *times));
    // (What a function calls on another thread is the same waiting.)
    let times = functions.iter().map(|(_, calls)| union(calls.iter().map(|call| call.0).collect()));
    let times: Vec<Vec<Interval>> = times.collect();
    let is_in = |a: usize, b: usize| without(&times[a], &times[b]).is_empty();
    let is_own = |at: &usize| {
        !(0..times.len()).any(|by| by != *at && is_in(*at, by) && (by < *at || !is_in(by, *at)))
    };
    let own = (0..times.len()).filter(is_own).map(|at| &functions[at]);
    own.flat_map(|(name, calls)| by_size(name, calls, details)).collect()
}

/// Of more sizes than this each has few calls, and their order tells as much.
const MOST_SIZES: usize = 64;

/// The calls of a function, by size; of very many sizes all in one.
fn by_size(name: &str, calls: &[Call], details: &Details) -> Vec<CpuKind> {
    let mut sizes: Vec<Option<OpInputs>> = Vec::new();
    let mut kinds: Vec<CpuKind> = Vec::new();
    for (times, inputs) in calls {
        if sizes.len() > MOST_SIZES {
            let calls = calls.iter().map(|(times, _)| *times).collect();
            return vec![CpuKind { name: name.to_owned(), size: String::new(), calls }];
        }
        let at = sizes.iter().position(|size| size == inputs).unwrap_or_else(|| {
            let text = |of: OpInputs| [of.dims, of.types].map(|id| details.texts.get(id)).concat();
            let size = inputs.map(text).unwrap_or_default();
            kinds.push(CpuKind { name: name.to_owned(), size, calls: Vec::new() });
            sizes.push(*inputs);
            sizes.len() - 1
        });
        kinds[at].calls.push(*times);
    }
    kinds
}

pub(crate) fn moved((from, to): Interval, by_ns: i64) -> Interval {
    (from.saturating_add(by_ns), to.saturating_add(by_ns))
}

/// A call that copies and takes this long waits, whatever its name says: the copy goes to pageable memory of the CPU.
const LONG_COPY_NS: i64 = 50_000;

/// Whether the CPU waits for the GPU in a call.
fn waits_for_gpu(slices: &Slices<'_>, call: &HostSlice) -> bool {
    match slices.class(call) {
        Class::Sync => true,
        Class::Memcpy => slices.blocks(call) || call.dur_ns() >= LONG_COPY_NS,
        _ => false,
    }
}

/// Finds the kind of a kernel of communication, each kind once.
struct Names<'a> {
    slices: &'a Slices<'a>,
    details: &'a Details,
    /// The calls of all-to-alls.
    all_to_all: Nested,
    /// By recorded collective, and by name of a kernel: its kind; `None` for one that tells nothing.
    of_collective: Vec<Option<Option<usize>>>,
    of_name: Vec<Option<Option<usize>>>,
}

impl<'a> Names<'a> {
    fn of(slices: &'a Slices<'a>, details: &'a Details) -> Self {
        let of_collective = vec![None; details.collectives.len()];
        let of_name = vec![None; slices.trace.strings.len()];
        let all_to_all = slices.nest(calls_named(slices, &is_all_to_all).collect());
        Self { slices, details, all_to_all, of_collective, of_name }
    }

    /// The kind's place in `kinds`, to which it is added; `None` for a kernel that tells nothing.
    fn kind(&mut self, one: &GpuSlice, kinds: &mut Vec<Kind>) -> Option<usize> {
        let recorded = self.details.collective(one.slice.row).map(|at| at as usize);
        let of = recorded.and_then(|at| Some((at, self.details.collectives.get(at)?)));
        let Some((at, of)) = of else {
            let trace = self.slices.trace;
            let name = trace.name(one.slice.row);
            let known = self.of_name.get_mut(name.0 as usize)?;
            let named = *known.get_or_insert_with(|| by_name(trace.strings.get(name), kinds));
            return match named.filter(|at| kinds[*at].is_send_recv() && self.is_all_to_all(one)) {
                Some(_) => Some(place_of(Kind::by_name(ALL_TO_ALL), kinds)),
                None => named,
            };
        };
        let known = self.of_collective.get_mut(at)?;
        *known.get_or_insert_with(|| recorded_kind(self.details, of, kinds))
    }

    /// Whether the name of a kernel is that of a broadcast, and nothing else is recorded of it.
    fn is_broadcast(&self, one: &GpuSlice) -> bool {
        self.details.collective(one.slice.row).is_none()
            && plain(self.slices.name(&one.slice)).contains(SOME_WAIT)
    }

    /// Whether the launch of a kernel lies in a call of an all-to-all.
    fn is_all_to_all(&self, one: &GpuSlice) -> bool {
        one.launch.is_some_and(|call| {
            let calls = self.all_to_all.on(self.slices.thread(call.row));
            let own = &self.all_to_all.slices[calls.clone()];
            let n = own.partition_point(|one| one.start_ns <= call.start_ns);
            let last = n.checked_sub(1).map(|before| calls.start + before);
            let is_in = |at: usize| {
                let mut around = self.all_to_all.chain(at);
                around.any(|at| self.all_to_all.slices[at].holds(call.start_ns))
            };
            last.is_some_and(is_in)
        })
    }
}

impl Kind {
    /// Of kernels of which only the name is recorded.
    fn by_name(key: &str) -> Self {
        Self { key: key.to_owned(), group_size: None, is_broadcast: false, calls: Vec::new() }
    }
}

/// The kind of a kernel of which only the name is recorded.
fn by_name(name: &str, kinds: &mut Vec<Kind>) -> Option<usize> {
    let plain = plain(name);
    let exchanges = || DEEP_EP_EXCHANGES.iter().any(|part| name.contains(part));
    if name.contains(DEEP_EP) && exchanges() {
        // (One kind for all of them: it is named, and its calls are not compared.)
        return Some(place_of(Kind::by_name(DEEP_EP), kinds));
    }
    let all_wait = ALL_WAIT_BY_NAME.iter().any(|part| plain.contains(part));
    all_wait.then(|| place_of(Kind::by_name(name), kinds))
}

fn recorded_kind(details: &Details, of: &Collective, kinds: &mut Vec<Kind>) -> Option<usize> {
    let name = details.texts.get(of.name);
    let plain = plain(name);
    let is_broadcast = plain.contains(SOME_WAIT);
    if !is_broadcast && !ALL_WAIT.iter().any(|part| plain.contains(part)) {
        return None;
    }
    // (Sizes may differ by rank: `all_to_allv`.)
    let kind = details.texts.get(of.kind);
    let group = kind.match_indices(';').nth(2).map_or(kind, |(at, _)| &kind[..at]);
    let (key, group_size) = (format!("{name};{group}"), Some(of.group_size));
    Some(place_of(Kind { key, group_size, is_broadcast, calls: Vec::new() }, kinds))
}

fn place_of(kind: Kind, kinds: &mut Vec<Kind>) -> usize {
    kinds.iter().position(|known| known.key == kind.key).unwrap_or_else(|| {
        kinds.push(kind);
        kinds.len() - 1
    })
}

/// In lower case, without signs between words.
fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', ' '], "")
}
