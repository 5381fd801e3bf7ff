//! What the rules read about one device.

use std::collections::BTreeSet;

use host::gaps::DeviceGaps;
use host::links::DeviceId;
use host::slices::ThreadId;
use host::verdicts::{Busy, DeviceFigures, Window};
use timeline::intervals::{Interval, both, length, without};
use triage::{WallPart, WallRow};

use super::{COLD_LAUNCH_NS, Facts, Sets};

/// From this share of the idle time on, first calls are what the recording shows.
const COLD_SHARE: f64 = 0.3;
/// Of first calls this part at least loads or compiles code.
const LOADS_PART: i64 = 20;

/// The next work was launched this long before it ran: it waits for work that the file does not hold.
const LONG_QUEUE_NS: i64 = 1_000_000;

/// From this share of the window on, such waits make the busy share meaningless.
const MISSING_SHARE: f64 = 0.2;
/// One pause is nearly all of it from this part on.
const ONE_PAUSE: f64 = 0.9;

/// A device, with its figures.
pub struct Device<'f> {
    pub(super) facts: &'f Facts<'f>,
    pub(super) id: DeviceId,
    /// As the file spells it.
    pub name: &'f str,
    /// The figures that rules read.
    pub figures: &'f DeviceFigures,
    /// Its gaps.
    pub gaps: &'f DeviceGaps,
}

impl Device<'_> {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// `Device 2`; `The GPU` where there is one.
    #[must_use]
    pub fn title(&self) -> String {
        if self.facts.has_one_device() { "The GPU".into() } else { format!("Device {}", self.name) }
    }

    /// The same within a sentence: `Device 2`; `the GPU` where there is one.
    #[must_use]
    pub(crate) fn name_within(&self) -> String {
        if self.facts.has_one_device() { "the GPU".into() } else { self.title() }
    }

    /// The window that its busy share is told of: what the steps launched, else the span of work with a launch, else of all.
    #[must_use]
    pub fn busy(&self) -> Option<(Window, Busy)> {
        [Window::LaunchStepsLinked, Window::GpuSpanLinked, Window::GpuSpanAll]
            .into_iter()
            .find_map(|window| Some((window, *self.figures.busy.get(&window)?)))
    }

    /// When the profiler lost the calls of its rank: it may have worked then.
    #[must_use]
    pub fn lost_calls(&self) -> &[Interval] {
        let mut all = self.facts.triage.lost_calls.iter();
        let own =
            all.find(|of| of.devices.is_empty() || of.devices.iter().any(|id| id == self.name));
        own.map_or(&[], |own| &own.times)
    }

    /// Its busy share; 1 where there is none. (Where calls were lost, that of the bar, which leaves idle time of then out.)
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        if !self.lost_calls().is_empty()
            && let Some((busy_ns, window_ns)) = self.busy_told()
        {
            return busy_ns as f64 / window_ns as f64;
        }
        self.busy().and_then(|(_, busy)| busy.share).unwrap_or(1.0)
    }

    /// Its busy time and the window of it, as the bar of the wall time has them: one share in all sentences. `None` without a bar.
    #[must_use]
    pub(crate) fn busy_told(&self) -> Option<(i64, i64)> {
        let own = || WallPart::ALL.into_iter().filter_map(|part| self.wall(part));
        let sum = |busy: bool| -> i64 {
            own().filter(|row| !busy || !row.part.is_idle()).map(|row| row.total_ns).sum()
        };
        Some((sum(true), sum(false))).filter(|(_, window_ns)| *window_ns > 0)
    }

    /// The time in which the next work had been launched long before it ran, if that is so much of the window that the busy share
    /// says nothing: the work in between is not in the file.
    #[must_use]
    pub(crate) fn missing_ns(&self) -> Option<i64> {
        let ns = self.queued_ns().sum();
        let (_, busy) = self.busy()?;
        (ns as f64 >= MISSING_SHARE * busy.window_ns as f64 && ns > 0).then_some(ns)
    }

    /// By gap: how long the next work had been launched, where that is long.
    fn queued_ns(&self) -> impl Iterator<Item = i64> {
        let launched = self.gaps.all.ten.iter().filter_map(|gap| gap.launched.as_ref());
        launched.map(|launch| launch.queued_ns).filter(|ns| *ns >= LONG_QUEUE_NS)
    }

    /// Whether nearly all of the time that is missing is one pause: what runs before and after it is as in any run.
    #[must_use]
    pub(crate) fn misses_one_pause(&self) -> bool {
        let longest = self.queued_ns().max().unwrap_or_default();
        let missing_ns = self.missing_ns().unwrap_or(i64::MAX);
        longest as f64 >= ONE_PAUSE * missing_ns as f64
    }

    /// Its gaps, those of warm iterations where only these count, and without time of which the calls were lost.
    #[must_use]
    pub(crate) fn gaps_told(&self) -> Vec<Interval> {
        let gaps = without(&host::gaps::between(self.facts.gpu.busy(self.id)), self.lost_calls());
        self.facts.warm.as_ref().map_or_else(|| gaps.clone(), |warm| both(&gaps, warm))
    }

    /// When first calls run in its gaps.
    #[must_use]
    pub fn first_calls(&self) -> Vec<Interval> {
        both(&self.gaps_told(), &self.facts.cold)
    }

    /// The time in its gaps that first calls cover, and all of it, if these are what the recording shows.
    #[must_use]
    pub fn cold(&self) -> Option<(i64, i64)> {
        let mut gaps = self.gaps_told();
        // (Captures that come again and again are no start.)
        if self.captures_again().is_some() {
            gaps = without(&gaps, self.facts.set_up.get(Sets::Captures));
        }
        let of = |times: &[Interval]| length(&both(&gaps, times));
        let (covered, loads, all) = (of(&self.facts.cold), of(&self.facts.loads), length(&gaps));
        // (Memory alone is allocated again where it is full.)
        let is_first = loads.saturating_mul(LOADS_PART) >= covered;
        (is_first && covered as f64 >= COLD_SHARE * all as f64 && covered >= COLD_LAUNCH_NS)
            .then_some((covered, all))
    }

    /// Its GPU slices.
    pub fn slices(&self) -> impl Iterator<Item = &host::links::GpuSlice> {
        self.facts.gpu.on(self.id)
    }

    /// The threads that launch its work.
    #[must_use]
    pub(crate) fn launching_threads(&self) -> BTreeSet<ThreadId> {
        let launches = self.slices().filter_map(|one| one.launch);
        launches.map(|launch| self.facts.slices.thread(launch.row)).collect()
    }

    /// From its first GPU slice to the last.
    #[must_use]
    pub fn span_ns(&self) -> i64 {
        let busy = self.facts.gpu.busy(self.id);
        busy.first().zip(busy.last()).map_or(0, |(first, last)| last.1 - first.0)
    }

    /// A part of its wall time: the row of the bar.
    #[must_use]
    pub fn wall(&self, part: WallPart) -> Option<&WallRow> {
        let wall = &self.facts.wall;
        let one = self.facts.gpu.devices.len() == 1;
        wall.iter().find(|row| row.part == part && (one || row.device == self.name))
    }

    /// When it is in a part of its bar.
    #[must_use]
    pub fn times(&self, part: WallPart) -> Vec<Interval> {
        self.facts.times(self.name, &[part])
    }

    /// The window of its bar.
    #[must_use]
    pub fn window(&self) -> Vec<Interval> {
        self.facts.times(self.name, &WallPart::ALL)
    }

    /// When the bar has it idle in or after waits for it.
    pub(crate) fn waits_told(&self) -> Vec<Interval> {
        self.facts.times(self.name, &[WallPart::HostWaits])
    }

    /// The time of the bar in which the CPU's launches, or its work before them, keep the device waiting, and its share of the
    /// bar's window in percent. No other cause has that time; what the launching threads wait for others is not the CPU's work.
    #[must_use]
    pub fn late(&self) -> (i64, f64) {
        let parts = [WallPart::Launch, WallPart::HostCompute];
        let rows = parts.into_iter().filter_map(|part| self.wall(part));
        let (ns, pct) =
            rows.fold((0_i64, 0.0), |(ns, pct), row| (ns + row.total_ns, pct + row.share_pct));
        let others_ns = self.waits_for_others().map_or(0, |place| place.total_ns.min(ns));
        let own_ns = ns - others_ns;
        (own_ns, if ns > 0 { pct * own_ns as f64 / ns as f64 } else { pct })
    }

    /// When that is.
    #[must_use]
    pub(crate) fn late_times(&self) -> Vec<Interval> {
        self.facts.times(self.name, &[WallPart::Launch, WallPart::HostCompute])
    }

    /// The window of its bar without the time in which code is loaded and libraries are set up, in ns.
    #[must_use]
    pub(crate) fn without_set_up_ns(&self) -> i64 {
        let told = WallPart::ALL.into_iter().filter(|part| *part != WallPart::Loading);
        told.filter_map(|part| self.wall(part)).map(|row| row.total_ns).sum()
    }

    /// The same with the way of the late launches to the device, which goes away with the launches.
    #[must_use]
    pub(crate) fn late_with_start(&self) -> (i64, f64) {
        let (ns, pct) = self.late();
        self.wall(WallPart::Start).map_or((ns, pct), |row| (ns + row.total_ns, pct + row.share_pct))
    }

    /// Communication that no other kernel hides, and the span of the device.
    #[must_use]
    pub(crate) fn exposed_communication(&self) -> (i64, i64) {
        (length(&self.exposed()), self.span_ns())
    }

    /// How much sooner it would be done without that, at most: its own launches come no earlier. Of the time that its bar is of.
    #[must_use]
    pub fn sooner_without_communication_ns(&self) -> i64 {
        let facts = self.facts;
        let of_device = |device: usize| {
            let index = (facts.slices, facts.gpu);
            let warm = facts.warm.as_deref();
            ranks::sooner_without_communication_ns(index, facts.details, device, warm)
        };
        let all = || (0..facts.gpu.devices.len()).map(of_device).collect();
        facts.sooner.get_or_init(all).get(self.id as usize).copied().unwrap_or_default()
    }

    /// The same if its communication were removed but in these times.
    pub(crate) fn sooner_without_communication_outside_ns(&self, times: &[Interval]) -> i64 {
        if times.is_empty() {
            return self.sooner_without_communication_ns();
        }
        let facts = self.facts;
        let window = facts.warm.as_deref().unwrap_or(&[(i64::MIN, i64::MAX)]);
        let (index, within) = ((facts.slices, facts.gpu), without(window, times));
        let device = self.id as usize;
        ranks::sooner_without_communication_ns(index, facts.details, device, Some(&within))
    }

    /// Communication that no other kernel hides, in the time that its bar is of, and the length of that.
    #[must_use]
    pub(crate) fn exposed_told(&self) -> (i64, i64) {
        let exposed = self.exposed();
        let told_ns = self
            .facts
            .warm
            .as_ref()
            .map_or_else(|| length(&exposed), |warm| length(&both(&exposed, warm)));
        let parts = WallPart::ALL.into_iter().filter_map(|part| self.wall(part));
        (told_ns, parts.map(|row| row.total_ns).sum())
    }

    /// When communication runs that no other kernel hides.
    #[must_use]
    pub fn exposed(&self) -> Vec<Interval> {
        let (communication, others) = self.communication();
        without(&communication, &others)
    }

    /// When its kernels communicate, and when others work.
    pub(super) fn communication(&self) -> (Vec<Interval>, Vec<Interval>) {
        self.facts.gpu.communication(self.facts.trace, Some(self.id))
    }

    /// The time in which other kernels run and no communication: all that communication can hide behind.
    #[must_use]
    pub(crate) fn exposed_compute(&self) -> i64 {
        let (communication, others) = self.communication();
        length(&without(&others, &communication))
    }

    /// Whether its busy share says something: the work that the file's calls launched is in the file.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.missing_ns().is_none() && !self.facts.is_capture()
    }

    /// Whether the host may be what limits it: it is not busy, no work is missing and no first calls run.
    #[must_use]
    pub(crate) fn is_starved(&self) -> bool {
        self.busy_share() < 0.8 && self.is_told() && self.cold().is_none()
    }

    /// Whether launches limit it: not where it waits longer for other work of the CPU than in the gaps between launches. (Where most of its
    /// work is launched by calls that are not in the file, the others tell nothing of them.)
    #[must_use]
    pub fn is_launch_bound(&self) -> bool {
        let ns = |part| self.wall(part).map_or(0, |row| row.total_ns);
        self.figures.launches.launch_bound == Some(true)
            && self.is_starved()
            && self.facts.launched_elsewhere().is_none()
            && ns(WallPart::HostCompute) <= ns(WallPart::Launch)
    }
}
