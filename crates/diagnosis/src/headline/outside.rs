//! What lies beside the GPU's work.

use host::verdicts::Window;
use report::units::time;

use super::of_row;
use crate::Facts;

/// Where the work of the GPU spans less than half of the recording: how much.
pub(super) fn outside(facts: &Facts<'_>, device: &str) -> String {
    let figures = &facts.host.verdicts.devices;
    let of_device = figures.get(device).or_else(|| figures.values().next());
    let span = of_device.and_then(|of| Some(of.busy.get(&Window::GpuSpanAll)?.window_ns));
    let range = host::links::recorded_ns(facts.slices, facts.gpu);
    match span {
        Some(span) if span.saturating_mul(2) < range => {
            let beside = beside(facts, device, range.saturating_sub(span));
            format!(" The GPU's work spans {} of the {} recorded{beside}.", time(span), time(range))
        }
        _ => String::new(),
    }
}

/// The op in which the CPU is for half of `rest_ns` or more, the time in which the device has no work yet, or none any more.
fn beside(facts: &Facts<'_>, device: &str, rest_ns: i64) -> String {
    let device = of_row(facts, device);
    let busy = device.as_ref().map_or(&[][..], |device| facts.gpu.busy(device.id()));
    let span = busy.first().zip(busy.last()).map(|(first, last)| (first.0, last.1));
    let Some((from_ns, to_ns)) = span else { return String::new() };
    let ops = facts.slices.ops.slices.iter();
    let own = ops.filter(|op| op.end_ns <= from_ns || op.start_ns >= to_ns);
    // (Of two that are as long, the inner one comes later.)
    let longest = own.max_by_key(|op| op.dur_ns());
    let told = longest.filter(|op| op.dur_ns().saturating_mul(2) >= rest_ns);
    told.map_or_else(String::new, |op| {
        format!("; for {} of the rest the CPU is in {}", time(op.dur_ns()), facts.slices.name(op))
    })
}
