//! Graphs whose kernel names do not belong to their times: ROCm's profiler may write the names of a graph some places off.
//!
//! A model's layers launch the same kernels in the same order, so that names and times both repeat with a period. Where names are displaced
//! from some layer on, two kernels that are one period apart have different names and yet take the same time. A kernel more or less in a
//! layer moves names and times together, and a name that the period holds twice is the same one period later: neither looks like that.
//! (Measured: 94% of such pairs take the same time in a displaced graph of an MI300X, at most 10% in 16 files with sound ones.)

use catalog::{Category, Platform};
use report::units::{percent, plural, time};
use timeline::gpu::Gpu;
use timeline::launches::Launches;

use crate::replay::replays;
use crate::site::Attribution;

/// A layer of fewer kernels repeats by accident, and one of more was not seen.
const PERIODS: std::ops::RangeInclusive<usize> = 4..=128;
/// Periods in a graph, for times at one place to be compared.
const LEAST_REPEATS: usize = 4;
/// Pairs of kernels one period apart with other names whose names should take other times.
const LEAST_PAIRS: usize = 8;
/// Of these so many of three take the same time.
const SAME_OF_THREE: usize = 2;
/// Times that differ by less than this are the same, and usual times that differ by more are not, in percent of the longer one.
const SAME_PCT: i64 = 20;
const OTHER_PCT: i64 = 33;
/// Of ten kernels so many are this close to the usual time at their place, in percent: else times do not repeat.
const MOST_OF_TEN: usize = 9;
const CLOSE_PCT: i64 = 30;
/// Letters of a kernel's name in the sentence.
const NAME: usize = 60;

/// From this share of a device's GPU time on, figures by category and name are wrong for the device, in percent.
const MUCH_PCT: f64 = 10.0;

/// What is known of such graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// Graph launches.
    n_graphs: u64,
    /// Their kernels.
    pub n_kernels: u64,
    /// The devices that run them.
    devices: Vec<OnDevice>,
    /// Whether the file has work of other devices, too.
    is_of_several: bool,
    /// The name of a norm with the widest range of times, or that of any kernel.
    kernel: String,
    /// The shortest of its launches in ns.
    least_ns: i64,
    /// The longest of its launches in ns.
    most_ns: i64,
    /// Kernels until names and times repeat.
    period: u64,
    /// Nine of ten kernels are so close to the median time at their place in the period, in percent.
    within_pct: i64,
}

/// Such graphs of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnDevice {
    device: String,
    /// The time of their kernels.
    ns: i64,
    /// The time of all GPU slices.
    gpu_ns: i64,
}

impl OnDevice {
    fn is_much(&self) -> bool {
        timeline::percent(self.ns, self.gpu_ns) >= MUCH_PCT
    }
}

impl Displaced {
    /// Counts those of another device.
    pub(crate) fn add(&mut self, other: Self) {
        self.n_graphs += other.n_graphs;
        self.n_kernels += other.n_kernels;
        self.devices.extend(other.devices);
    }

    /// Marks it as that of a file with several devices, so that its own are named.
    pub(crate) fn of_several(self) -> Self {
        Self { is_of_several: true, ..self }
    }

    /// Whether they take so much of a device's time that its figures by category are not usable; of any device where none is named.
    #[must_use]
    pub fn is_much(&self, device: Option<&str>) -> bool {
        let is_it = |one: &&OnDevice| {
            !self.is_of_several || device.is_none_or(|device| one.device == device)
        };
        self.devices.iter().filter(is_it).any(OnDevice::is_much)
    }

    /// "2 graph launches on devices 0 and 1".
    fn graphs(&self) -> String {
        let graphs = plural(self.n_graphs, "graph launch", "graph launches");
        let names: Vec<&str> = self.devices.iter().map(|one| one.device.as_str()).collect();
        match &names[..] {
            [one] if self.is_of_several => format!("{graphs} on device {one}"),
            [first @ .., last] if self.is_of_several => {
                format!("{graphs} on devices {} and {last}", first.join(", "))
            }
            _ => graphs,
        }
    }

    /// What the file shows.
    #[must_use]
    pub fn observation(&self) -> String {
        let Self { kernel, least_ns, most_ns, period, within_pct, .. } = self;
        format!(
            "The profiler recorded the kernel names of {} with the wrong times: by name, {kernel} takes {} to {}; by place in the order \
             that repeats every {period} kernels, 9 of 10 kernels are within {} of the median.",
            self.graphs(),
            time(*least_ns),
            time(*most_ns),
            percent(*within_pct as f64),
        )
    }

    /// What follows.
    #[must_use]
    pub fn meaning(&self) -> String {
        format!(
            "Figures by kernel name and category are not usable for these {}. The times of each graph as a whole are right.",
            plural(self.n_kernels, "kernel", "kernels")
        )
    }

    /// Both.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {}", self.observation(), self.meaning())
    }

    /// Both in one sentence, above a table.
    pub(crate) fn note(&self) -> String {
        format!(
            "The profiler recorded the kernel names of {} with the wrong times: figures by kernel name and category are not usable for \
             their {}.",
            self.graphs(),
            plural(self.n_kernels, "kernel", "kernels")
        )
    }
}

/// Such graphs of a device, and by GPU slice whether one of them launched it; empty where there are none.
#[inline(never)]
pub(crate) fn displaced(
    gpu: &Gpu<'_>,
    platform: Platform,
    launches: &Launches,
    places: &Attribution,
) -> (Option<Displaced>, Vec<bool>) {
    let mut is_displaced = Vec::new();
    // (CUPTI writes each kernel's name with its times.)
    if platform != Platform::Rocm {
        return (None, is_displaced);
    }
    let mut found: Option<Displaced> = None;
    let mut known: (Vec<usize>, Option<usize>) = (Vec::new(), None);
    for replay in &replays(gpu, launches, places) {
        let slices: Vec<_> = replay.iter().map(|at| gpu.slice(*at)).collect();
        let works: Vec<usize> = slices.iter().map(|one| one.work).collect();
        // (A server replays one graph a thousand times.)
        if works != known.0 {
            known = (works.clone(), period(&works));
        }
        let Some(period) = known.1 else { continue };
        let times = Times { works, ns: slices.iter().map(|one| one.dur_ns).collect(), period };
        let Some(within_pct) = times.displaced_within() else { continue };
        is_displaced.resize(gpu.len(), false);
        for at in replay {
            is_displaced[*at] = true;
        }
        // (Products of one name may have several sizes; norms of one pass are alike.)
        let is_norm = |work: usize| gpu.works[work].category == Category::Norm;
        let (work, least_ns, most_ns) = times.widest(&is_norm);
        let all = found.get_or_insert_with(|| Displaced {
            n_graphs: 0,
            n_kernels: 0,
            devices: vec![OnDevice { device: gpu.device().to_owned(), ns: 0, gpu_ns: gpu_ns(gpu) }],
            is_of_several: false,
            kernel: report::short_name(gpu.trace.strings.get(gpu.works[work].name), NAME),
            least_ns,
            most_ns,
            period: period as u64,
            within_pct,
        });
        all.n_graphs += 1;
        all.n_kernels += replay.len() as u64;
        let ns = times.ns.iter().fold(0, |sum: i64, ns| sum.saturating_add(*ns));
        all.devices.iter_mut().for_each(|one| one.ns = one.ns.saturating_add(ns));
    }
    (found, is_displaced)
}

/// The time of all GPU slices of a device.
fn gpu_ns(gpu: &Gpu<'_>) -> i64 {
    (0..gpu.len()).fold(0, |sum: i64, at| sum.saturating_add(gpu.slice(at).dur_ns))
}

/// The smallest of the periods with which most names repeat, in a graph that repeats often enough.
fn period(works: &[usize]) -> Option<usize> {
    let mut best: Option<(usize, usize, usize)> = None;
    for period in PERIODS.take_while(|period| period * LEAST_REPEATS <= works.len()) {
        let pairs = works.len() - period;
        let same = works.iter().zip(&works[period..]).filter(|(a, b)| a == b).count();
        // (Shares as fractions, so that no rounding decides.)
        if same > 0 && best.is_none_or(|(_, most, of)| same * of > most * pairs) {
            best = Some((period, same, pairs));
        }
    }
    best.filter(|(_, same, pairs)| 2 * same > *pairs).map(|(period, ..)| period)
}

/// Kernels of one graph launch in order.
struct Times {
    works: Vec<usize>,
    ns: Vec<i64>,
    period: usize,
}

/// How much two times differ, in percent of the longer one.
fn differ_pct(a: i64, b: i64) -> i64 {
    (100 * (i128::from(a) - i128::from(b)).abs() / i128::from(a.max(b).max(1))) as i64
}

impl Times {
    /// The median time of the kernels with each key, by kernel.
    fn usual(&self, key: impl Fn(usize) -> usize) -> Vec<i64> {
        let mut order: Vec<(usize, usize)> = (0..self.ns.len()).map(|at| (key(at), at)).collect();
        trace::sort(&mut order);
        let mut usual = vec![0; self.ns.len()];
        for same in order.chunk_by(|a, b| a.0 == b.0) {
            let mut ns: Vec<i64> = same.iter().map(|(_, at)| self.ns[*at]).collect();
            let median = timeline::median(&mut ns).unwrap_or_default();
            for (_, at) in same {
                usual[*at] = median;
            }
        }
        usual
    }

    /// How close nine of ten kernels are to the usual time at their place, in percent, if names are displaced.
    fn displaced_within(&self) -> Option<i64> {
        let by_name = self.usual(|at| self.works[at]);
        let pairs = (0..self.ns.len().saturating_sub(self.period)).map(|at| (at, at + self.period));
        let telling: Vec<(usize, usize)> = pairs
            .filter(|(a, b)| self.works[*a] != self.works[*b])
            .filter(|(a, b)| differ_pct(by_name[*a], by_name[*b]) > OTHER_PCT)
            .collect();
        let is_same = |(a, b): &&(usize, usize)| differ_pct(self.ns[*a], self.ns[*b]) < SAME_PCT;
        let n_same = telling.iter().filter(is_same).count();
        if telling.len() < LEAST_PAIRS || 3 * n_same < SAME_OF_THREE * telling.len() {
            return None;
        }
        let by_place = self.usual(|at| at % self.period);
        let differ = self.ns.iter().zip(by_place).map(|(ns, usual)| differ_pct(*ns, usual));
        let mut differ: Vec<i64> = differ.collect();
        trace::sort(&mut differ);
        // (Rounded down above.)
        let within = differ.get(differ.len() * MOST_OF_TEN / 10)? + 1;
        (within <= CLOSE_PCT).then_some(within)
    }

    /// The name with the widest range of times, a norm's where there are norms, and its shortest and longest.
    fn widest(&self, is_norm: &dyn Fn(usize) -> bool) -> (usize, i64, i64) {
        let mut all: Vec<(usize, i64)> =
            self.works.iter().copied().zip(self.ns.iter().copied()).collect();
        trace::sort(&mut all);
        let ranges = all.chunk_by(|a, b| a.0 == b.0).filter_map(|same| {
            let (first, last) = (same.first()?, same.last()?);
            Some((first.0, first.1, last.1))
        });
        let ratio = |(work, least, most): &(usize, i64, i64)| {
            (is_norm(*work) && *most > 2 * least, most / (*least).max(1))
        };
        ranges.max_by_key(ratio).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use crate::{FuseRow, Note, Sources, TriageOptions, TriageReport, triage};
    use fixture::{Fixture, LAYER_OF_MI300, kernel, slice};

    const US: i64 = 1_000;
    const DEVICE: &str = r#"[{"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64}]"#;

    /// Twelve layers in a graph of ROCm: the names of the kernels from `from` on are those of `by` kernels before, and later those of twice as many; with `more` a layer has
    /// a kernel more, in names and times.
    fn run(from: usize, by: usize, more: bool) -> TriageReport {
        let mut kernels: Vec<(&str, i64)> =
            LAYER_OF_MI300.iter().copied().cycle().take(96).collect();
        if more {
            kernels.insert(35, ("void at::native::copy(int)", 12));
        }
        let mut fixture = Fixture::default();
        fixture.metadata("deviceProperties", DEVICE);
        graph(&mut fixture, &kernels, (from, by), 0);
        report(fixture)
    }

    fn report(fixture: Fixture) -> TriageReport {
        triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
    }

    /// One launch of a graph of these kernels on a device; when its last kernel ends.
    fn graph(
        fixture: &mut Fixture,
        kernels: &[(&str, i64)],
        (from, by): (usize, usize),
        device: i64,
    ) -> i64 {
        let call = slice("cuda_runtime", "hipGraphLaunch").on(1, 1 + device).link(1 + device);
        fixture.push(call.at(0, 9 * US));
        let mut at_ns = 20 * US;
        for (at, (_, us)) in kernels.iter().enumerate() {
            // (Names are lost once more in a later layer.)
            let moved = by * (usize::from(at >= from) + usize::from(at >= from + 32));
            let (name, _) = kernels[at - moved];
            let run = kernel(name).at(at_ns, us * US + at as i64 * 7);
            fixture.push(run.on(device, 7).link(1 + device));
            at_ns += us * US + US;
        }
        at_ns
    }

    fn layers() -> Vec<(&'static str, i64)> {
        LAYER_OF_MI300.iter().copied().cycle().take(96).collect()
    }

    /// A displaced graph, then so many times a product of 100 us and a copy of pageable memory of 60 us, on device 0.
    fn and_others(by: usize, n: i64) -> TriageReport {
        let mut fixture = Fixture::default();
        fixture.metadata("deviceProperties", DEVICE);
        let mut at_ns = graph(&mut fixture, &layers(), (20, by), 0) + 50 * US;
        for link in 0..n {
            let (product, copied) = (100 + 2 * link, 101 + 2 * link);
            let call = slice("cuda_runtime", "hipLaunchKernel").on(1, 1);
            fixture.push(call.at(at_ns, 4 * US).link(product));
            let name = "Cijk_Alik_Bljk_BBS_BH_MT64x64";
            fixture.push(kernel(name).at(at_ns + 10 * US, 100 * US).on(0, 7).link(product));
            let call = slice("cuda_runtime", "hipMemcpyWithStream").on(1, 1);
            fixture.push(call.at(at_ns + 6 * US, 168 * US).link(copied));
            let copy = slice("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)");
            fixture.push(copy.at(at_ns + 112 * US, 60 * US).on(0, 7).link(copied));
            at_ns += 175 * US;
        }
        report(fixture)
    }

    fn intro(report: &TriageReport) -> Vec<String> {
        report.sections(1.0).into_iter().flat_map(|section| section.intro).collect()
    }

    #[test]
    fn work_that_no_such_graph_launches_keeps_its_advice() {
        let (sound, displaced) = (and_others(0, 100), and_others(3, 100));
        let found = displaced.displaced.as_ref().unwrap();
        assert!(found.is_much(None), "{found:?}");
        let copies = |report: &TriageReport| {
            let rows = report.overlap.iter().filter(|row| row.is_advice());
            let rows = rows.map(|row| (row.kernel_name.clone(), row.savings_bound_ns));
            rows.collect::<Vec<_>>()
        };
        assert_eq!(copies(&sound).len(), 1, "{:?}", sound.overlap);
        assert_eq!(copies(&sound), copies(&displaced));
        assert!(
            displaced
                .overlap
                .iter()
                .all(|row| !LAYER_OF_MI300.iter().any(|(name, _)| *name == row.kernel_name))
        );
    }

    #[test]
    fn a_little_of_the_gpu_time_is_a_note() {
        let found = and_others(3, 1_000);
        assert!(warns(&found));
        let of_names = |text: &&String| text.contains("kernel names");
        assert_eq!(found.takeaways.iter().find(of_names), None);
        let of_category = |said: &String| said.contains("GPU time goes to");
        assert!(found.takeaways.iter().any(of_category), "{:?}", found.takeaways);
        let said: Vec<String> = intro(&found).iter().filter(of_names).cloned().collect();
        let note = "The profiler recorded the kernel names of 1 graph launch with the wrong times: figures by kernel name and category \
                    are not usable for their 96 kernels.";
        assert_eq!(said, [note]);
    }

    #[test]
    fn several_devices_are_counted_and_named() {
        let on = |first: usize, second: usize| {
            let mut fixture = Fixture::default();
            let device =
                |id| format!(r#"{{"id": {id}, "name": "AMD Instinct MI300X", "warpSize": 64}}"#);
            fixture.metadata("deviceProperties", &format!("[{}, {}]", device(0), device(1)));
            for (by, device) in [(first, 0), (second, 1)] {
                graph(&mut fixture, &layers(), (20, by), device);
            }
            let report = report(fixture);
            (report.takeaways[0].clone(), report.displaced.unwrap())
        };
        let (both, found) = on(3, 3);
        assert!(both.contains("of 2 graph launches on devices 0 and 1 with"), "{both}");
        assert!(both.contains("not usable for these 192 kernels"), "{both}");
        assert!(found.is_much(Some("0")) && found.is_much(Some("1")));
        let (one, found) = on(0, 3);
        assert!(one.contains("of 1 graph launch on device 1 with"), "{one}");
        assert!(one.contains("not usable for these 96 kernels"), "{one}");
        assert!(!found.is_much(Some("0")) && found.is_much(Some("1")));
    }

    fn warns(report: &TriageReport) -> bool {
        report.kernels.iter().any(|row| row.notes.contains(&Note::NamesDisplaced))
    }

    #[test]
    fn names_that_move_while_times_repeat_are_displaced() {
        let found = run(20, 3, false);
        let first = &found.takeaways[0];
        let said = "The profiler recorded the kernel names of 1 graph launch with the wrong times: by name, ";
        assert!(first.starts_with(said), "{first}");
        assert!(first.contains("repeats every 8 kernels"), "{first}");
        assert!(first.contains("not usable for these 96 kernels"), "{first}");
        assert!(warns(&found));
        let of_category = |said: &String| said.contains("GPU time goes to");
        assert!(!found.takeaways.iter().any(of_category), "{:?}", found.takeaways);
        assert_eq!(found.fuse, Vec::<FuseRow>::new(), "no place is known");
    }

    #[test]
    fn sound_graphs_are_not() {
        for report in [
            // One name twice a layer with two times.
            run(96, 0, false),
            // Names and times move together.
            run(97, 0, true),
        ] {
            assert_eq!(report.displaced, None, "{:?}", report.takeaways);
            assert!(!warns(&report));
            assert!(report.takeaways[0].contains("GPU time goes to"), "{:?}", report.takeaways);
        }
    }
}
