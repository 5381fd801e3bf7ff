//! M9: the data loader. It explains idle time only by the part that it covers; without a GPU, the share of the steps.

use report::units::{percent, time};
use triage::WallPart;

use crate::{Facts, Finding, Level, Rule};

/// It limits the run from this share on, and is worth a word from the second.
const BOUND_SHARE: f64 = 0.5;
const LEAST_SHARE: f64 = 0.1;

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
            let row = device.wall(WallPart::DataLoading)?;
            let share = row.share_pct / 100.0;
            if share < LEAST_SHARE {
                return None;
            }
            let text = format!(
                "{} waits for the data loader for {} ({} of {}).",
                device.title(),
                time(row.total_ns),
                percent(row.share_pct),
                facts.whole(),
            );
            let path =
                format!("verdicts.devices.{}.idle.cover_ns.dataloader_annotation", device.name);
            let covered = device.figures.idle.cover_ns.dataloader_annotation;
            Some(
                Finding::fact(Rule::DataLoader, verdict(share), text)
                    .level(Level::of_share(share))
                    .on(device.name)
                    .bound(row.total_ns)
                    .means(device.where_it_waits())
                    .with(path, "GPU idle while the CPU is in the data loader, from the first step to the last", time(covered)),
            )
        })
        .collect()
}
