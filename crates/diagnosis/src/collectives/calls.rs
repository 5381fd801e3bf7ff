//! The collectives of one device or rank, and when its CPU is late.

use host::class::Class;
use host::links::{GpuSide, GpuSlice};
use host::{HostIndex, HostSlice, Slices};
use timeline::intervals::{Interval, union, without};
use trace::{Details, StringId, Trace};

/// Collectives that no rank leaves before all have joined, as parts of PyTorch's names in lower case and without signs.
const ALL_WAIT: [&str; 4] = ["allreduce", "allgather", "reducescatter", "alltoall"];
/// The same as parts of kernels' names: of NCCL and RCCL, and of vLLM, SGLang, FlashInfer, TensorRT-LLM and AITER.
const ALL_WAIT_BY_NAME: [&str; 6] =
    ["allreduce", "allgather", "reducescatter", "alltoall", "crossdevicereduce", "multimemreduce"];
/// Collectives that a rank leaves when it has received and sent on.
const SOME_WAIT: &str = "broadcast";
/// The member of the file that its times are relative to, in ns since 1970 (Kineto since 2024).
const BASE_TIME: &str = "baseTimeNanoseconds";

/// The collectives of one device, or of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankCalls {
    pub(super) name: String,
    pub(super) kinds: Vec<Kind>,
    /// When it runs no kernel but communication.
    pub(super) exposed: Vec<Interval>,
    /// Its kernels by start, with the starts of their launches.
    pub(super) kernels: Vec<Launched>,
    /// When the CPU waits for the GPU, by end.
    pub(super) waits: Vec<Interval>,
    /// What its times have been moved by, in ns; `None` of a device.
    pub(super) shift_ns: Option<i64>,
}

/// Calls of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// What they have in common: name, number format, group and its ranks; or the name of the kernel.
    pub(super) key: String,
    /// Ranks of the group; `None` where it is not recorded, and all that there are may be in it.
    pub(super) group_size: Option<i64>,
    /// Whether a rank may leave before all have joined.
    pub(super) is_broadcast: bool,
    /// When their kernels run, by start.
    pub(super) calls: Vec<Interval>,
}

impl RankCalls {
    /// Those of a trace of one rank, on the clock that `baseTimeNanoseconds` and the times of the file give: that of the machine.
    #[must_use]
    pub fn of(index: &HostIndex<'_>, details: &Details, name: String) -> Self {
        let HostIndex { slices, gpu } = index;
        let trace = slices.trace;
        let base = trace.metadata.int(BASE_TIME).map_or(0, i128::from);
        let shift = i64::try_from(base.saturating_add(trace.origin_ns)).unwrap_or(0);
        let own = Self::within(slices, gpu, details, name, (None, shift));
        Self { shift_ns: Some(shift), ..own }
    }

    /// Those of a device, or of all.
    pub(super) fn within(
        slices: &Slices<'_>,
        gpu: &GpuSide,
        details: &Details,
        name: String,
        (device, shift): (Option<usize>, i64),
    ) -> Self {
        let own = || {
            let all = gpu.slices.iter().filter(|one| one.is_kernel);
            all.filter(|one| device.is_none_or(|device| one.device as usize == device))
        };
        let times = |one: &GpuSlice| moved(one.slice.interval(), shift);
        let all_times = |communicate: bool| {
            let those = own().filter(|one| one.is_communication == communicate);
            union(those.map(times).collect())
        };
        let mut kinds: Vec<Kind> = Vec::new();
        let mut names = Names { trace: slices.trace, details, known: Vec::new() };
        for one in own().filter(|one| one.is_communication) {
            let Some((key, group_size, is_broadcast)) = names.kind(one) else { continue };
            match kinds.iter_mut().find(|kind| kind.key == key) {
                Some(kind) => kind.calls.push(times(one)),
                None => {
                    kinds.push(Kind { key, group_size, is_broadcast, calls: vec![times(one)] });
                }
            }
        }
        kinds.iter_mut().for_each(|kind| kind.calls.sort_unstable());
        let exposed = without(&all_times(true), &all_times(false));
        let mut kernels: Vec<Launched> = own()
            .map(|one| (times(one), one.launch.map(|call| call.start_ns.saturating_add(shift))))
            .collect();
        trace::sort_by_key(&mut kernels, |((start, _), _)| *start);
        let waits = slices.calls.iter().filter(|call| waits_for_gpu(slices, call));
        let mut waits: Vec<Interval> = waits.map(|call| moved(call.interval(), shift)).collect();
        trace::sort_by_key(&mut waits, |(_, to)| *to);
        Self { name, kinds, exposed, kernels, waits, shift_ns: None }
    }
}

pub(super) fn moved((from, to): Interval, by_ns: i64) -> Interval {
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

/// When a kernel runs, and when its launch begins, if that is in the file.
pub(super) type Launched = (Interval, Option<i64>);

impl RankCalls {
    /// How much sooner the last kernel would start without `removed`, times in which the rank waits for others and nothing else runs.
    ///
    /// What follows begins as much earlier, but no kernel before its launch; and the launches come earlier only where the CPU waits for
    /// the GPU, at most by that wait.
    pub(super) fn sooner_ns(&self, removed: &[Interval]) -> i64 {
        let (mut sooner, mut cpu_sooner) = (0_i64, 0_i64);
        let mut removed = removed.iter().peekable();
        let mut waits = self.waits.iter().peekable();
        for ((start, _), launch) in &self.kernels {
            while let Some((from, to)) = removed.next_if(|(_, to)| to <= start) {
                sooner = sooner.saturating_add(to.saturating_sub(*from));
            }
            let Some(launch) = launch else { continue };
            while let Some((from, to)) = waits.next_if(|(_, to)| to <= launch) {
                cpu_sooner = sooner.min(cpu_sooner.saturating_add(to.saturating_sub(*from)));
            }
            let queued = start.saturating_sub(*launch).max(0);
            sooner = sooner.min(queued.saturating_add(cpu_sooner));
        }
        removed.fold(sooner, |sooner, (from, to)| sooner.saturating_add(to.saturating_sub(*from)))
    }
}

/// Reads what kind of collective a kernel is of.
struct Names<'a> {
    trace: &'a Trace,
    details: &'a Details,
    /// Of each name of a kernel, so far: whether all ranks wait for each other in it.
    known: Vec<(StringId, bool)>,
}

impl Names<'_> {
    /// The key, the size of the group, and whether it is a broadcast; `None` for kinds that tell nothing.
    fn kind(&mut self, one: &GpuSlice) -> Option<(String, Option<i64>, bool)> {
        let recorded = self.details.collective(one.slice.row);
        let recorded = recorded.and_then(|at| self.details.collectives.get(at as usize));
        let Some(of) = recorded else {
            let name = self.trace.name(one.slice.row);
            let all_wait = self.all_wait(name);
            return all_wait.then(|| (self.trace.strings.get(name).to_owned(), None, false));
        };
        let name = self.details.texts.get(of.name);
        let plain = plain(name);
        let is_broadcast = plain.contains(SOME_WAIT);
        if !is_broadcast && !ALL_WAIT.iter().any(|part| plain.contains(part)) {
            return None;
        }
        // (Sizes may differ by rank: `all_to_allv`.)
        let kind = self.details.texts.get(of.kind);
        let group = kind.match_indices(';').nth(2).map_or(kind, |(at, _)| &kind[..at]);
        Some((format!("{name};{group}"), Some(of.group_size), is_broadcast))
    }

    fn all_wait(&mut self, name: StringId) -> bool {
        if let Some((_, all_wait)) = self.known.iter().find(|(known, _)| *known == name) {
            return *all_wait;
        }
        let plain = plain(self.trace.strings.get(name));
        let all_wait = ALL_WAIT_BY_NAME.iter().any(|part| plain.contains(part));
        self.known.push((name, all_wait));
        all_wait
    }
}

/// In lower case, without signs between words.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', ' '], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_wait_begins_no_sooner_than_its_launch() {
        let of = |kernels: &[Launched], waits: &[Interval], removed: &[Interval]| {
            let (kernels, waits) = (kernels.to_vec(), waits.to_vec());
            RankCalls { kernels, waits, ..RankCalls::default() }.sooner_ns(removed)
        };
        // A collective waits from 10 to 60; the next kernel was launched at 5, or at 55.
        let ahead = [((10, 65), Some(1)), ((70, 80), Some(5))];
        let behind = [((10, 65), Some(1)), ((70, 80), Some(55))];
        assert_eq!(of(&ahead, &[], &[(10, 60)]), 50);
        assert_eq!(of(&behind, &[], &[(10, 60)]), 15);
        // Twice as late does not save twice: the launches come at their own pace.
        let twice = [&behind[..], &[((80, 145), Some(58)), ((150, 160), Some(135))]].concat();
        assert_eq!(of(&twice, &[], &[(10, 60), (80, 140)]), 15);
        // The CPU that waits for the collective launches sooner, too.
        assert_eq!(of(&behind, &[(20, 52)], &[(10, 60)]), 47);
        assert_eq!(of(&ahead, &[], &[(10, 60), (80, 90)]), 60, "at the end");
    }
}
