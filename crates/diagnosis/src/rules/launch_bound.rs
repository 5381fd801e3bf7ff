//! M2: the GPU waits for the next launch. Busy below 80%, the median delay from launch to start below 25 us, the median kernel
//! below 20 us; ROCm's least delay is 14 to 16 us.

use report::units::{percent, time};
use triage::WallPart;

use host::links::GpuSlice;

use crate::facts::Device;
use crate::{Facts, Finding, Level, Rule};

/// Waiting for launches below this share of the window is not worth a word, in percent.
const LEAST_PCT: f64 = 1.0;

/// The parts of the bar that its bound counts.
const LATE: [WallPart; 3] = [WallPart::Launch, WallPart::HostCompute, WallPart::Start];

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    // (Of a step that the profiler starts in, M3 says what is late.)
    facts.devices().filter(|device| device.first_step().is_none()).filter_map(|device| {
        if !device.is_launch_bound() {
            return super::hidden_launches::check(facts, &device);
        }
        let figures = &device.figures.launches;
        let (delay, kernel) = (figures.median_q_ns?, figures.median_kernel_ns?);
        let of_kernels = median_delay(&device);
        let share = figures.busy_share?;
        let told = device.busy_told().map(|(ns, window)| ns as f64 / window as f64);
        let path = format!("verdicts.devices.{}.M2", device.name);
        let (title, busy) = (device.title(), percent(100.0 * told.unwrap_or(share)));
        let (delay_ns, kernel_ns) =
            (of_kernels.unwrap_or(delay.ns() as i64), time(kernel.ns() as i64));
        // (A kernel that starts before its launch call returns has no delay.)
        let observation = match delay_ns {
            ..=0 => format!(
                "{title} waits for launches: it is busy {busy}, and a kernel takes {kernel_ns} (median)."
            ),
            _ => format!(
                "{title} waits for launches: it is busy {busy}, a kernel starts {} after its launch call returns and takes {kernel_ns} (medians).",
                time(delay_ns)
            ),
        };
        let (bound, late_pct) = device.late_with_start();
        let (bound, late_pct, in_graph) = without_graph_launch(&device, (bound, late_pct));
        // (Where the GPU waits for something else, its launches cost nothing.)
        if late_pct < LEAST_PCT || facts.has_few_launches() {
            return None;
        }
        let places = if in_graph.is_empty() { device.where_it_waits() } else { String::new() };
        Some(
            Finding::fact(Rule::LaunchBound, "launch_bound", observation)
                .level(Level::of_share(late_pct / 100.0))
                .on(device.name)
                .bound(bound)
                .confidence(device.confidence_of_launches())
                .means(
                    format!(
                        "Fewer launches, or cheaper ones, would shorten the wait.{in_graph}{} {places}{}",
                        facts.in_one_iteration(&LATE),
                        device.costs_unrecorded()
                    )
                    .trim_end(),
                )
                .with(if told.is_some() { "wall" } else { &path }, "GPU busy", busy)
                .with(path.clone(), "median delay", time(delay.ns() as i64))
                .with(path, "median kernel", time(kernel.ns() as i64))
                .with("wall", "idle until late launches have started", time(bound)),
        )
    }).collect()
}

/// Late launches without what one launch of a graph has of them, in ns and percent, and the sentence of that.
pub(super) fn without_graph_launch(
    device: &Device<'_>,
    (ns, pct): (i64, f64),
) -> (i64, f64, String) {
    let Some(own) = device.in_graph_launch().filter(|own| own.ns <= ns && ns > 0) else {
        return (ns, pct, String::new());
    };
    let left_ns = ns - own.ns;
    (left_ns, pct * left_ns as f64 / ns as f64, own.sentence())
}

/// The median time from the launch of a kernel to its start: of kernels alone, as that of their durations.
fn median_delay(device: &Device<'_>) -> Option<i64> {
    let own = device.slices().filter(|one| one.is_kernel);
    timeline::median(&mut own.filter_map(GpuSlice::queue_ns).collect::<Vec<i64>>())
}
