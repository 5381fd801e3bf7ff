//! M1: how busy each device is in the time that its work spans.

use host::verdicts::Window;
use report::units::{self, percent, time};
use timeline::before_kineto::before_kineto;

use crate::facts::on_cpu::RanOn;
use crate::facts::unseen::left_out;
use crate::{Confidence, Facts, Finding, Level, Rule};

/// What helps where the profiler got no records.
const AGAIN: &str = "Record again where CUPTI may record kernels: no other profiler attached, and a driver and a container that permit it.";
/// What times are, and what records them, of a GPU that the profiler knows nothing of.
const UNRECORDED: &str = "Op times are those of the CPU's calls, and calls that read a value (aten::item) wait for the GPU. \
                          torch.mps.profiler records Apple's GPU for Instruments.";

/// A file without GPU work: of a run on the CPU, or one whose work the profiler did not get.
fn no_gpu(facts: &Facts<'_>) -> Finding {
    if let Some(text) = before_kineto(facts.trace) {
        return Finding::fact(Rule::Busy, "not_recorded", text);
    }
    let lost = |text: String, meaning: &str| {
        Finding::fact(Rule::Busy, "not_recorded", text).means(meaning)
    };
    match facts.ran_on() {
        RanOn::Cpu => {
            let text = "The file has no GPU work: only the CPU's figures are meaningful.";
            Finding::fact(Rule::Busy, "no_gpu", text.to_owned())
        }
        RanOn::Allocated => lost(
            "Memory events show that a GPU was used, but nothing that ran on it was recorded."
                .to_owned(),
            "Record again with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]: ops that wait for the GPU look like CPU work.",
        ),
        RanOn::Launched(n) => lost(
            format!(
                "The file has {} and no GPU work: the profiler got no records of what ran on the GPU.",
                units::plural(n, "launch call", "launch calls")
            ),
            AGAIN,
        ),
        RanOn::Copied(n) => lost(
            format!(
                "The file has {} and no GPU work: the profiler got no records of what ran on the GPU.",
                units::plural(n, "call that copies or fills", "calls that copy or fill")
            ),
            AGAIN,
        ),
        RanOn::Mps => lost(
            "The ops ran on Apple's GPU (MPS), which PyTorch's profiler does not record.".to_owned(),
            UNRECORDED,
        ),
        RanOn::Unrecorded => lost(
            "The ops probably ran on a GPU that PyTorch's profiler does not record, such as Apple's (MPS): aten::linear computes by \
             itself, unlike on the CPU."
                .to_owned(),
            UNRECORDED,
        ),
    }
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    if !facts.has_gpu() {
        return vec![no_gpu(facts)];
    }
    facts.devices().filter_map(|device| {
        let (window, busy) = device.busy()?;
        let share = busy.share?;
        let path = format!("verdicts.devices.{}.M1", device.name);
        let of = match window {
            Window::LaunchStepsLinked => "the span of the work that the steps launched",
            Window::GpuSpanLinked => "the span of the work that the recording launched",
            _ => "its span",
        };
        // (Gaps between steps are in no step's span, and work of an earlier step is in the bar alone.)
        let told = device.busy_told();
        let (told_ns, window_ns) = told.unwrap_or((busy.busy_ns, busy.window_ns));
        let told_share = told_ns as f64 / window_ns.max(1) as f64;
        let mut observation = format!(
            "{} is busy {} of {} ({} of {})",
            device.title(),
            percent(100.0 * told_share),
            if told.is_some() { facts.whole() } else { of },
            time(told_ns),
            time(window_ns)
        );
        let is_whole = device.lost_calls().is_empty();
        // (Nor is the work in a step's span whose launches are missing.)
        let is_whole = is_whole && left_out(facts).is_none();
        let differs = told.is_some() && is_whole && (told_share - share).abs() > DIFFER;
        if differs {
            observation.push_str(&format!(", and {} of {of}", percent(100.0 * share)));
        }
        observation.push('.');
        if device.missing_ns().is_some() {
            let missing = device.gaps.all.queued_ns;
            return Some(
                Finding::fact(Rule::Busy, "unknown", observation)
                    .confidence(Confidence::Low)
                    .on(device.name)
                    .means(format!(
                        "This means little: for {} of its idle time the next kernel or copy had been launched already. What it waited for \
                         is not in the file: an earlier batch, another process on the GPU, or another device.",
                        time(missing)
                    ))
                    .with(format!("gaps.{}.all.queued_ns", device.name), "launched but not started", time(missing)),
            );
        }
        if facts.is_capture() {
            return Some(
                Finding::fact(Rule::Busy, "unknown", observation)
                    .confidence(Confidence::Low)
                    .on(device.name)
                    .means(if facts.triage.coverage.only_captures {
                        "This is not meaningful: most launches have no GPU work in the file, as in the capture of a graph."
                    } else {
                        "This is not meaningful: most launches have no GPU work in the file. Unless a graph was captured, or the \
                         recording ended before it ran, the profiler lost it: record fewer steps."
                    })
                    .with("links.runtime_calls_without_gpu_slice.launch", "GPU slices with a launch", facts.host.links.linked),
            );
        }
        let idle = busy.window_ns - busy.busy_ns;
        let (verdict, level) = match share {
            share if share >= 0.95 => ("saturated", Level::Info),
            share if share >= 0.8 => ("ok", Level::Info),
            share if share >= 0.5 => ("under_used", Level::Medium),
            _ => ("starved", Level::High),
        };
        let finding = Finding::fact(Rule::Busy, verdict, observation)
            .level(level)
            .on(device.name)
            // (The wall time has it.)
            .aside(true)
            .with(path, "busy share", percent(100.0 * share));
        Some(if share < 0.8 { finding.bound(idle) } else { finding })
    }).collect()
}

/// Shares that differ by more are told both.
const DIFFER: f64 = 0.05;
