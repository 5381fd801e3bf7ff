//! The tables of a triage: of one device, and of all devices together.

use crate::arch::ObservedArch;
use crate::displaced::Displaced;
use crate::framework::FrameworkVote;
use crate::fuse::{FuseRow, say_once};
use crate::iterations::Warm;
use crate::kernel_row::KernelTableRow;
use crate::overlap::{Concurrency, OverlapRow};
use crate::precision::PlainProducts;
use crate::report::{BeforeWindowSum, Coverage, TriageReport};
use crate::stages::StageRow;
use crate::unrecorded::{Cut, LostCalls};
use crate::wall_stages::StageWall;
use crate::wall_time::{WallRow, WallTimes};
use catalog::remedies::RunFacts;

/// The tables of one device. What runs on one device neither hides what runs on another nor stands next to it.
#[derive(Default)]
pub(crate) struct DeviceTables {
    pub(crate) wall: Vec<WallRow>,
    pub(crate) wall_times: Vec<WallTimes>,
    pub(crate) wall_stages: Vec<StageWall>,
    pub(crate) stages: Vec<StageRow>,
    pub(crate) kernels: Vec<KernelTableRow>,
    pub(crate) merged: Vec<KernelTableRow>,
    pub(crate) launch_note: Option<String>,
    pub(crate) overlap: Vec<OverlapRow>,
    pub(crate) overlap_note: Option<String>,
    pub(crate) concurrency: Concurrency,
    pub(crate) fuse: Vec<FuseRow>,
    pub(crate) fuse_note: Option<String>,
    pub(crate) fuse_held: Option<String>,
    /// Graphs whose kernel names do not belong to their times.
    pub(crate) displaced: Option<Displaced>,
    /// What the number format of the matrix products costs.
    pub(crate) plain_products: Option<PlainProducts>,
    /// What shares of advice are of, if not of the GPU span.
    pub(crate) span: Option<String>,
    /// The warm iterations, if advice is of these alone, and how long that is in ns.
    pub(crate) warm: Option<(Warm, i64)>,
}

impl DeviceTables {
    /// The rows of all devices, each table with the id of its device.
    pub(crate) fn together(devices: Vec<(&str, Self)>) -> Self {
        let several = devices.len() > 1;
        let same_launches =
            devices.windows(2).all(|pair| pair[0].1.launch_note == pair[1].1.launch_note);
        let mut all = Self::default();
        for (device, of) in devices {
            all.wall.extend(of.wall);
            all.wall_times.extend(of.wall_times);
            all.wall_stages.extend(of.wall_stages);
            all.stages.extend(of.stages);
            all.kernels.extend(of.kernels);
            all.merged.extend(of.merged);
            all.overlap.extend(of.overlap);
            all.concurrency.add(of.concurrency);
            all.fuse.extend(of.fuse);
            if let Some(displaced) = of.displaced {
                match &mut all.displaced {
                    Some(known) => known.add(displaced),
                    None if several => all.displaced = Some(displaced.of_several()),
                    None => all.displaced = Some(displaced),
                }
            }
            // (Of several GPUs the first one with a finding speaks: they run the same program.)
            all.plain_products = all.plain_products.or(of.plain_products);
            all.span = all.span.or(of.span);
            all.warm = all.warm.or(of.warm);
            for (note, of_device, several) in [
                (&mut all.launch_note, of.launch_note, several && !same_launches),
                (&mut all.overlap_note, of.overlap_note, several),
                (&mut all.fuse_note, of.fuse_note, several),
                (&mut all.fuse_held, of.fuse_held, several),
            ] {
                let Some(text) = of_device.filter(|text| !text.is_empty()) else { continue };
                let text = if several { format!("Device {device}: {text}") } else { text };
                *note = Some(match note.take() {
                    Some(before) if before == text => before,
                    Some(before) => format!("{before} {text}"),
                    None => text,
                });
            }
        }
        say_once(&mut all.fuse);
        all
    }

    /// The report of these tables and of what holds for the whole run.
    pub(crate) fn report(self, run: Run) -> TriageReport {
        let Run {
            coverage,
            before_window,
            lost_calls,
            cut,
            takeaways,
            idle_takeaways,
            arch,
            framework,
            facts,
            step,
        } = run;
        TriageReport {
            step,
            wall: self.wall,
            wall_times: self.wall_times,
            wall_stages: self.wall_stages,
            stages: self.stages,
            kernels: self.kernels,
            merged: self.merged,
            launch_note: self.launch_note.unwrap_or_default(),
            overlap: self.overlap,
            overlap_note: self.overlap_note.unwrap_or_default(),
            concurrency: self.concurrency,
            fuse: self.fuse,
            fuse_note: self.fuse_note,
            fuse_held: self.fuse_held,
            warm: self.warm.map(|(warm, _)| warm),
            displaced: self.displaced,
            plain_products: self.plain_products,
            coverage,
            before_window,
            lost_calls,
            cut,
            takeaways,
            idle_takeaways,
            arch,
            framework,
            run_facts: facts,
        }
    }
}

/// What a report says of the whole run.
pub(crate) struct Run {
    pub(crate) coverage: Coverage,
    pub(crate) before_window: BeforeWindowSum,
    pub(crate) lost_calls: Vec<LostCalls>,
    pub(crate) cut: Option<Cut>,
    pub(crate) takeaways: Vec<String>,
    pub(crate) idle_takeaways: Vec<String>,
    pub(crate) arch: ObservedArch,
    pub(crate) framework: FrameworkVote,
    pub(crate) facts: RunFacts,
    /// The step that it is of.
    pub(crate) step: Option<String>,
}
