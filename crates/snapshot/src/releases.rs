//! When cached segments go back to the driver: because the program asks (`empty_cache`), or because an allocation failed and the
//! allocator makes room before it tries again.
//!
//! Source: `malloc` of `c10/cuda/CUDACachingAllocator.cpp` (`release_available_cached_blocks`, `release_cached_blocks`); such retries
//! are `num_alloc_retries` of `torch.cuda.memory_stats`.

use report::units::{count, plural};
use report::{Confidence, Finding};
use serde::Serialize;

use crate::amounts::size;
use crate::claim::put;
use crate::model::{Action, Event, Segment, Snapshot};
use crate::site::Sites;
use crate::stacks::StackId;

/// Calls of `empty_cache` are worth a finding from this number on.
const MOST_CALLS: u64 = 3;

/// The releases of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Releases {
    /// Runs of releases that no call of `empty_cache` made, directly before segments from the driver or a failed allocation.
    pub(crate) retries: u64,
    pub(crate) retry_bytes: i64,
    /// Of each retry the first release, and what follows the releases.
    #[serde(skip)]
    pub(crate) retry_places: Vec<(usize, usize)>,
    /// Of the retries those that gave back as much as they then took from the driver on the stream of the request: in pieces.
    pub(crate) retries_in_pieces: u64,
    /// Those that gave back as much, but not on that stream.
    pub(crate) retries_of_other_streams: u64,
    /// Runs of releases within `empty_cache`.
    pub(crate) empty_cache_calls: u64,
    pub(crate) empty_cache_bytes: i64,
    /// Bytes that came from the driver between the first call of `empty_cache` and the end.
    pub(crate) reserved_again_bytes: i64,
    /// Where `empty_cache` was called first.
    pub(crate) empty_cache_site: Option<String>,
}

/// Finds the releases; `None` where there are none. `reserved` are the levels before the events of the device.
#[inline(never)]
pub(crate) fn releases(
    snapshot: &Snapshot,
    device: i64,
    reserved: &[i64],
    sites: &Sites,
) -> Option<Releases> {
    let trace = snapshot.trace(device);
    let level = |at: usize| reserved.get(at).copied().unwrap_or_default();
    // torch/cuda/graphs.py calls empty_cache before it captures, in C++ frames only.
    let captures = |event: &Event| {
        let mut frames = snapshot.stacks.frames(event.stack).iter();
        let is_of_private = |segment: &Segment| {
            segment.device == device && segment.address == event.address && segment.pool != (0, 0)
        };
        frames.any(|frame| snapshot.stacks.text(frame.name).contains("capture_begin"))
            || snapshot.segments.iter().any(is_of_private)
    };
    let asks = |stack: StackId| {
        let mut frames = snapshot.stacks.frames(stack).iter();
        frames.any(|frame| matches!(snapshot.stacks.text(frame.name), "empty_cache" | "emptyCache"))
    };
    let is_release =
        |event: &Event| matches!(event.action, Action::SegmentFree | Action::SegmentUnmap);
    let mut found = Releases::default();
    let mut at = 0;
    while let Some(event) = trace.get(at) {
        if !is_release(event) {
            let is_new = matches!(event.action, Action::SegmentAlloc | Action::SegmentMap);
            if is_new && found.empty_cache_calls > 0 {
                found.reserved_again_bytes = found.reserved_again_bytes.saturating_add(event.size);
            }
            at += 1;
            continue;
        }
        let run = trace.get(at..).unwrap_or_default();
        let n = run.iter().take_while(|event| is_release(event)).count();
        let bytes = run.iter().take(n).fold(0i64, |sum, event| sum.saturating_add(event.size));
        let request = trace.get(at + n);
        let next = request.map(|event| event.action);
        if asks(event.stack) {
            found.empty_cache_calls += 1;
            found.empty_cache_bytes = found.empty_cache_bytes.saturating_add(bytes);
            found
                .empty_cache_site
                .get_or_insert_with(|| sites.name(sites.site(event.stack)).to_owned());
        } else if let Some(request) = request
            && matches!(next, Some(Action::SegmentAlloc | Action::SegmentMap | Action::Oom))
            // (A failed allocation is one of the program.)
            && (request.action == Action::Oom || !captures(request))
            // What the driver grants later, it did not refuse. (An expandable segment asks for less after its pages went back.)
            && (request.action != Action::SegmentAlloc
                || reserved.get(at + n..).unwrap_or_default().iter().max()
                    < Some(&level(at).saturating_add(request.size)))
        {
            found.retries += 1;
            found.retry_places.push((at, at + n));
            found.retry_bytes = found.retry_bytes.saturating_add(bytes);
            let Event { size, stream, .. } = request;
            let own = run.iter().take(n).filter(|event| event.stream == *stream);
            let own = own.fold(0_i64, |sum, event| sum.saturating_add(event.size));
            found.retries_in_pieces += u64::from(own >= *size);
            found.retries_of_other_streams += u64::from(own < *size && bytes >= *size);
        }
        at += n;
    }
    (found.retries + found.empty_cache_calls > 0).then_some(found)
}

impl Releases {
    /// Retries that gave back less than they then needed: the device was full.
    fn retries_when_full(&self) -> u64 {
        self.retries.saturating_sub(self.retries_in_pieces + self.retries_of_other_streams)
    }

    /// What the cache held at the retries.
    fn why(&self) -> String {
        let of = |n: u64, what: &str| (n > 0).then(|| format!("{} of them {what}", count(n)));
        let parts = [
            of(
                self.retries_in_pieces,
                "the cache held enough on the stream of the request, in pieces",
            ),
            of(self.retries_of_other_streams, "it held enough, but on other streams"),
            of(self.retries_when_full(), "it held less than the request"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match (self.retries, self.retries_in_pieces, self.retries_of_other_streams) {
            (1, 1, _) => {
                "The cache held enough on the stream of the request, in pieces.".to_owned()
            }
            (1, _, 1) => "The cache held enough, but on other streams.".to_owned(),
            (1, ..) => "The cache held less than the request: the device is full.".to_owned(),
            _ => format!("At {}.", parts.join("; at ")),
        }
    }

    /// What helps against most of them.
    fn what_to_do(&self) -> &'static str {
        let (pieces, streams) = (self.retries_in_pieces, self.retries_of_other_streams);
        if pieces >= streams && pieces >= self.retries_when_full() {
            "Keep tensor shapes stable, so that cached memory fits."
        } else if streams >= self.retries_when_full() {
            "Allocate on one stream, or on fewer: what is cached for a stream serves that stream alone."
        } else {
            "Leave more memory free: lower the peak by the largest class or call site, or the share of memory that a server reserves in \
             advance."
        }
    }

    /// What follows from them. `setting` is one of the allocator with fewer retries, as a sentence.
    pub(crate) fn findings(
        &self,
        device: &str,
        has_failed: bool,
        setting: Option<String>,
        to: &mut Vec<Finding>,
    ) {
        let evidence = format!("cache_releases.{device}");
        // A run that failed has a finding that says more.
        if self.retries > 0 && !has_failed {
            let observation = format!(
                "Device {device}: {} the driver refused memory, and the allocator returned cached segments before it tried again ({} in \
                 all).",
                match self.retries {
                    1 => "once".to_owned(),
                    n => plural(n, "time", "times"),
                },
                size(self.retry_bytes)
            );
            let hypothesis = format!("{} Each retry waits for all work on the GPU.", self.why());
            let action = match setting {
                Some(setting) => format!("{setting} {}", self.what_to_do()),
                None => self.what_to_do().to_owned(),
            };
            let validation = "num_alloc_retries of torch.cuda.memory_stats falls.";
            let texts = [&*observation, &hypothesis, &action, validation, &evidence];
            put(to, "allocation-retries", Confidence::Medium, texts);
        }
        // (What a call of `empty_cache` gives back is another matter.)
        let is_needless = self.reserved_again_bytes >= self.empty_cache_bytes / 2;
        if self.empty_cache_calls >= MOST_CALLS && is_needless {
            let site = self.empty_cache_site.as_deref().unwrap_or_default();
            let observation = format!(
                "Device {device}: empty_cache, first called at {site}, returned memory {} ({}), and {} came from the driver afterwards.",
                plural(self.empty_cache_calls, "time", "times"),
                size(self.empty_cache_bytes),
                size(self.reserved_again_bytes)
            );
            let texts = [
                &*observation,
                "The memory is needed again. Each call waits for all work on the GPU, and so does getting memory from the driver.",
                "Call torch.cuda.empty_cache() only where another process or library needs the memory.",
                "No segment_free events in the steady state.",
                &evidence,
            ];
            put(to, "empty-cache", Confidence::High, texts);
        }
    }
}
