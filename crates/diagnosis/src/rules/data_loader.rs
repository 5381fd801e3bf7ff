//! M9: the data loader. It explains idle time only by the part that it covers; without a GPU, the share of the steps.

use report::units::{percent, time};
use timeline::intervals::{both, length, without};
use triage::{Counts, WallPart};

use crate::facts::Device;
use crate::words::lower;
use crate::{Facts, Finding, Level, Rule};

/// It limits the run from this share on, and is worth a word from the second.
const BOUND_SHARE: f64 = 0.5;
const LEAST_SHARE: f64 = 0.05;
/// Communication while the loader holds the launches up is told from this share of that time on.
const LEAST_MORE: f64 = 0.1;
/// Of the loader's time, what receiving batches takes is told from the first share on. From the second, more workers do not help.
const LEAST_RECEIVED: f64 = 0.25;
const MOST_RECEIVED: f64 = 0.5;
/// What comes earlier without the loader is told from this share of what the device waits for it on.
const LEAST_EARLIER: f64 = 0.05;
/// Why the communication counts.
const LAUNCHES: &str =
    "The CPU launches what comes next when the data is there, however short the communication is. ";

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let verdict =
        |share: f64| if share >= BOUND_SHARE { "dataloader_bound" } else { "significant" };
    if !facts.has_gpu() {
        let (loading, steps) = facts.loading();
        let share = loading as f64 / steps.max(1) as f64;
        if share < LEAST_SHARE {
            return Vec::new();
        }
        let text = format!(
            "The data loader takes {} of the steps ({} of {}).",
            percent(100.0 * share),
            time(loading),
            time(steps)
        );
        return vec![
            Finding::fact(Rule::DataLoader, verdict(share), text)
                .level(Level::of_share(share))
                .bound(loading)
                .with("verdicts.dataloader_named", "in the data loader", time(loading)),
        ];
    }
    facts
        .devices()
        .filter(|device| device.is_told())
        .filter_map(|device| {
            let row = device.wall(WallPart::DataLoading);
            let idle_ns = row.map_or(0, |row| row.total_ns);
            let (_, window_ns) = device.busy_told()?;
            let held = device.held_by_loader();
            let communicates_ns = length(&both(held, &device.exposed()));
            let is_more = communicates_ns > 0
                && communicates_ns as f64 >= LEAST_MORE * length(held) as f64;
            let bound_ns = if is_more { length(held).max(idle_ns) } else { idle_ns };
            let share = bound_ns as f64 / window_ns as f64;
            if share < LEAST_SHARE {
                return None;
            }
            let (of, whole) = (percent(100.0 * share), facts.whole());
            let title = device.title();
            let text = match is_more {
                true => format!(
                    "The data loader is on the critical path for {} ({of} of {whole}): {} is idle for {} of it, and only communicates for \
                     {}.",
                    time(bound_ns),
                    lower(&title),
                    time(length(&without(held, facts.gpu.busy(device.id())))),
                    time(communicates_ns),
                ),
                false => format!(
                    "{title} waits for the data loader for {} ({of} of {whole}).",
                    time(bound_ns),
                ),
            };
            let (saved_ns, hides) = saved(&device, bound_ns);
            let (receives, most_ns) = receives(&device);
            let saved_ns = saved_ns.min(most_ns);
            Some(
                Finding::fact(Rule::DataLoader, verdict(share), text)
                    .level(Level::of_share(share))
                    .on(device.name)
                    .bound(saved_ns)
                    .means(format!("{hides}{receives}{}{}", if is_more { LAUNCHES } else { "" }, next(facts, &device)).trim())
                    .with("wall", "GPU idle while the data loader runs", time(idle_ns)),
            )
        })
        .collect()
}

/// What shortens the run once the workers keep up; empty where that is not known.
fn next(facts: &Facts<'_>, device: &Device<'_>) -> String {
    let plain = facts.triage.plain_products.as_ref();
    let plain = plain.filter(|one| one.counts == Counts::OnceFed && one.device == device.name);
    // (Where launches limit what the workers do not, shorter products change nothing.)
    let plain = plain.filter(|_| device.figures.launches.launch_bound != Some(true));
    plain.map_or_else(String::new, |plain| format!("What comes next: {}", plain.text()))
}

/// That much of the loader's time is taken up by batches that workers have made already, and what is left to save; empty where it is not, or
/// nothing shows it.
fn receives(device: &Device<'_>) -> (String, i64) {
    let (receives_ns, loads_ns) = (device.receives_ns(), device.loads_ns());
    if (receives_ns as f64) < LEAST_RECEIVED * loads_ns as f64 || receives_ns == 0 {
        return (String::new(), i64::MAX);
    }
    let (own, all) = (time(receives_ns), time(loads_ns));
    let text = match device.receives_in_frames() {
        true => format!(
            "For {own} of the {all} that it runs, the batch is already there: the main process unpickles it and receives its tensors one at a time. "
        ),
        false => format!(
            "For about {own} of the {all} that it runs, the batch is already there: the main process receives its tensors one at a time. That is an \
             estimate, by the time from one tensor to the next. "
        ),
    };
    (text, if takes_over(device) { receives_ns } else { loads_ns.saturating_sub(receives_ns) })
}

/// Whether most of the loader's time on the launching threads is the transfer of what workers have loaded.
pub(crate) fn takes_over(device: &Device<'_>) -> bool {
    let receives_ns = device.receives_ns();
    receives_ns > 0 && receives_ns as f64 > MOST_RECEIVED * device.loads_ns() as f64
}

/// How much sooner the run is done without the loader, at most, and why that is more than the device waits for it: the device's work during
/// the loader comes earlier, too, as far as the device stands still elsewhere.
fn saved(device: &Device<'_>, bound_ns: i64) -> (i64, String) {
    let loads_ns = device.loads_ns();
    let earlier_ns = device.earlier_without_loader_ns();
    let saved_ns = bound_ns.max(loads_ns.min(bound_ns.saturating_add(earlier_ns)));
    let more_ns = saved_ns.saturating_sub(bound_ns);
    let hides = match more_ns as f64 > LEAST_EARLIER * bound_ns as f64 {
        true => format!(
            "It runs for {} in all: without it, what comes after the GPU's work during it would come earlier, too. ",
            time(loads_ns)
        ),
        false => String::new(),
    };
    (saved_ns, hides)
}
