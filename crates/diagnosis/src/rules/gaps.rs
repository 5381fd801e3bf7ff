//! M4: gaps between GPU slices, where a device is busy below 80% of its window, and idle time with work queued.

use report::units::{count, percent, plural, time};
use triage::WallPart;

use crate::facts::Device;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// Gaps that a part of this share explains are explained by it.
const MOST: f64 = 0.5;
/// A call covers a gap from this share of it on.
const COVERS: f64 = 0.9;

/// Idle time with work queued is told from this share of the window on.
const LEAST_QUEUED: f64 = 0.03;
const FEWEST_PAUSES: usize = 3;
const HELD: &str = "The file does not show what holds it back: an event or a host function that its stream waits for, work that was not recorded, \
                    another process on the GPU, or a driver that sends launches in batches, as on Windows and WSL.";

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let (mut all, mut of_gaps) = (Vec::new(), Vec::new());
    for device in facts.devices() {
        let held = held(facts, &device);
        of_gaps.extend(gaps(facts, &device, held.is_some()));
        all.extend(held);
    }
    all.append(&mut of_gaps);
    all
}

/// Idle time of a device whose next work was launched.
fn held(facts: &Facts<'_>, device: &Device<'_>) -> Option<Finding> {
    let (_, window_ns) = device.busy_told()?;
    let ns = device.wall(WallPart::Queued)?.total_ns;
    let share = ns as f64 / window_ns as f64;
    if share < LEAST_QUEUED || !device.is_told() || facts.is_capture() {
        return None;
    }
    let pauses = device.times(WallPart::Queued);
    let longest_ns = pauses.iter().map(|(from, to)| to.saturating_sub(*from)).max()?;
    // (The first sentence says what it can of one or two.)
    if pauses.len() < FEWEST_PAUSES {
        return None;
    }
    let observation = format!(
        "{} is idle for {} ({} of {}) although its next work is launched, in {} of up to {}.",
        device.title(),
        time(ns),
        percent(100.0 * share),
        facts.whole(),
        plural(pauses.len() as u64, "pause", "pauses"),
        time(longest_ns),
    );
    Some(
        Finding::fact(Rule::Gaps, "held", observation)
            .level(Level::of_share(share))
            .confidence(Confidence::Medium)
            .on(device.name)
            .means(HELD)
            .with("wall", "idle time with work queued", time(ns)),
    )
}

/// The gaps of a device that is busy below 80%. `held_is_told`: [`held`] says what may hold its work back.
fn gaps(facts: &Facts<'_>, device: &Device<'_>, held_is_told: bool) -> Option<Finding> {
    if device.busy_share() >= 0.8 || facts.is_capture() {
        return None;
    }
    let gaps = &device.gaps.all;
    let (_, busy) = device.busy()?;
    let Split { host_ns, queued_ns, between_ns } = Split::of(device, gaps);
    let observation = format!(
        "{} has {} gaps of {} in all{}: for {} of it the CPU had not launched the next work, for {} it had.",
        device.title(),
        count(gaps.n as u64),
        time(gaps.total_ns),
        lengths(gaps),
        time(host_ns),
        time(queued_ns),
    );
    let three: Vec<_> = gaps.ten.iter().take(3).collect();
    let in_calls = three.len() == 3
        && three.iter().all(|gap| {
            gap.rt_cover
                .as_ref()
                .is_some_and(|cover| cover.overlap_ns as f64 >= COVERS * gap.dur_ns as f64)
        });
    let path = format!("gaps.{}.all", device.name);
    let part = |ns: i64| ns as f64 >= MOST * gaps.total_ns as f64;
    let finding = |verdict| Finding::fact(Rule::Gaps, verdict, observation.clone()).on(device.name);
    let share = gaps.total_ns as f64 / busy.window_ns.max(1) as f64;
    let finding = if in_calls {
        let names = three
            .iter()
            .filter_map(|gap| gap.rt_cover.as_ref())
            .map(|cover| format!("{} ({})", cover.name, time(cover.overlap_ns)));
        let names: Vec<String> = names.collect();
        finding("in_calls")
            .level(Level::of_share(share))
            .means(format!("The three longest lie in one call each: {}.", names.join(", ")))
    } else if part(host_ns) {
        // (Why, and where, the rules on launches and on the CPU say.)
        finding("host_caused")
    } else if part(queued_ns) && part(between_ns) {
        finding("queued").means("Most of it is pauses between queued kernels: fewer kernels (fusion) leave fewer pauses.")
    } else if part(queued_ns) {
        finding("queued").confidence(Confidence::Medium).means(if held_is_told { "" } else { HELD })
    } else if part(gaps.no_launch_ns) {
        finding("no_launch")
            .confidence(Confidence::Low)
            .means("The launches of the work that ends them are not in the file.")
    } else {
        finding("mixed")
    };
    Some(
        finding
            .with(path.clone(), "gaps", count(gaps.n as u64))
            .with(path.clone(), "before the launch", time(host_ns))
            .with(path, "share of the window", percent(100.0 * share)),
    )
}

/// How the time of gaps divides.
struct Split {
    /// The next work was not launched yet.
    host_ns: i64,
    /// It was.
    queued_ns: i64,
    /// Of that, what the device takes from one kernel to the next.
    between_ns: i64,
}

impl Split {
    /// As the bar of the wall time has it, where that is of the same gaps: a kernel of a graph that runs is launched, whether the call has
    /// returned or not.
    fn of(device: &Device<'_>, gaps: &host::gaps::Gaps) -> Self {
        let ns = |part: WallPart| device.wall(part).map_or(0, |row| row.total_ns);
        let parts = WallPart::ALL.into_iter().filter(|part| part.is_idle());
        let idle_ns: i64 = parts.map(ns).sum();
        if gaps.no_launch_ns > 0 || idle_ns != gaps.total_ns {
            return Self { host_ns: gaps.host_ns, queued_ns: gaps.queued_ns, between_ns: 0 };
        }
        let between_ns = ns(WallPart::Between);
        let queued_ns = between_ns + ns(WallPart::Queued) + ns(WallPart::Start);
        Self { host_ns: idle_ns - queued_ns, queued_ns, between_ns }
    }
}

/// Whether a few long gaps make up the time, or many short ones.
fn lengths(gaps: &host::gaps::Gaps) -> String {
    let Some(longest) = gaps.ten.first().filter(|_| gaps.n > 1) else { return String::new() };
    let long = gaps.bins.gt_100us;
    let above = match long.n {
        0 => "none above 100 µs".to_owned(),
        n if n == gaps.n => "all above 100 µs".to_owned(),
        n => format!("{} above 100 µs with {}", count(n as u64), time(long.ns)),
    };
    format!(" (the longest {}, {above})", time(longest.dur_ns))
}
