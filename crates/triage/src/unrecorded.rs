//! Launches whose kernels are not in the file: the recording of the GPU ended before that of the CPU, or lost events.

use dialect::calls;
use report::units;
use trace::{Row, StringId, Trace};

use timeline::before_window::{BeforeWindowSlices, duration_ns, each_launch};
use timeline::intervals::{Interval, length};
use timeline::percent;

/// Fewer launches without a kernel change no figure: in percent of all.
const LEAST_PCT: f64 = 5.0;
/// As many may be lost at the end of any recording.
const LEAST: i64 = 10;

/// What the recording lost: calls, and kernels.
pub(super) fn sentences(
    trace: &Trace,
    before: &BeforeWindowSlices,
    lost_calls: &[LostCalls],
    cut: Option<&Cut>,
) -> impl Iterator<Item = String> {
    let both = [calls_sentence(lost_calls), sentence(trace, before, cut)];
    both.into_iter().flatten()
}

/// How many launches of kernels have no kernel, in a sentence. `None` where they are few, and where graphs are captured: what is
/// captured does not run.
#[inline(never)]
fn sentence(trace: &Trace, before: &BeforeWindowSlices, cut: Option<&Cut>) -> Option<String> {
    if captures(trace) {
        return None;
    }
    if let Some(cut) = cut {
        return Some(cut.sentence());
    }
    let (n, lost) = lost(trace, before)?;
    (lost >= LEAST && percent(lost, n) >= LEAST_PCT).then(|| {
        format!(
            "{} of {} kernel launches have no kernel in this file: the GPU was not recorded to the end, or events were lost. All \
             figures are of the kernels that are recorded.",
            units::count(lost as u64),
            units::count(n as u64)
        )
    })
}

/// A recording of the GPU that ends with work queued: all launches without a kernel come after the last one that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When the last recorded work of the GPU ends, in ns after the begin of the file.
    pub end_ns: i64,
    /// When the first launch without a kernel begins, likewise.
    pub from_ns: i64,
    /// The launches without a kernel.
    pub n_lost: i64,
    /// All launches of kernels.
    pub n: i64,
}

impl Cut {
    /// The cut of a recording. `None` where launches without a kernel lie among those with one, where they are few, and where the GPU had
    /// nothing left to do when the first of them began: so it is before a capture.
    #[inline(never)]
    pub(super) fn of(trace: &Trace, before: &BeforeWindowSlices, zero_ns: i64) -> Option<Self> {
        if captures(trace) {
            return None;
        }
        let mut with: Vec<i64> = Vec::new();
        let mut without: Vec<i64> = Vec::new();
        each_kernel_launch(trace, before, |row, is_recorded| {
            let of = if is_recorded { &mut with } else { &mut without };
            of.push(trace.ts_ns(row));
        });
        let (n_lost, n) = (without.len() as i64, (with.len() + without.len()) as i64);
        let (last_with_ns, from_ns) = (with.into_iter().max()?, without.into_iter().min()?);
        let ends = before.gpu_rows.iter().map(|row| trace.ts_ns(*row) + duration_ns(trace, *row));
        let end_ns = ends.max()?;
        let is_much = n_lost >= LEAST && percent(n_lost, n) >= LEAST_PCT;
        (is_much && last_with_ns <= from_ns && from_ns < end_ns).then_some(Self {
            end_ns: end_ns - zero_ns,
            from_ns: from_ns - zero_ns,
            n_lost,
            n,
        })
    }

    /// That the recording is cut, and what that means.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "The recording of the GPU ends at {} with work queued: the last {} of {} kernel launches, from {} on, have no kernel in this \
             file. All figures are of what ran until then.",
            units::time(self.end_ns),
            units::count(self.n_lost as u64),
            units::count(self.n as u64),
            units::time(self.from_ns)
        )
    }
}

/// Calls of the runtime that the profiler lost in the middle of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostCalls {
    /// The devices of the rank that lost them; empty in a file of one rank.
    pub devices: Vec<String>,
    /// When no call is recorded: sorted and disjoint, and not empty.
    pub times: Vec<Interval>,
}

impl LostCalls {
    /// How long calls are missing, and on which ranks, as a clause; `None` where none are.
    #[must_use]
    pub fn clause(all: &[Self]) -> Option<String> {
        let most = all.iter().max_by_key(|lost| length(&lost.times))?;
        let (time, devices) = (units::time(length(&most.times)), most.devices.join(", "));
        let when = match (devices.is_empty(), all.len()) {
            (true, _) => format!("for {time}"),
            (false, 1) => format!("for {time} on the rank of GPU {devices}"),
            (false, n) => format!("on {n} ranks, for up to {time} (GPU {devices})"),
        };
        Some(format!(
            "No runtime call is recorded {when}, although ops run that launch kernels elsewhere"
        ))
    }
}

/// That calls were lost in the middle of the recording, in a sentence; `None` where none were.
fn calls_sentence(lost_calls: &[LostCalls]) -> Option<String> {
    let clause = LostCalls::clause(lost_calls)?;
    Some(format!(
        "{clause}: the profiler lost the calls and what they launched. Idle time then is left out."
    ))
}

/// Whether a graph is captured.
fn captures(trace: &Trace) -> bool {
    let mut names = (0..trace.strings.len() as u32).map(|id| trace.strings.get(StringId(id)));
    names.any(calls::begins_capture)
}

/// Whether most launches are those of a capture: what they launch does not run.
#[inline(never)]
pub(super) fn are_captured(trace: &Trace, before: &BeforeWindowSlices) -> bool {
    captures(trace) && lost(trace, before).is_some_and(|(n, lost)| lost.saturating_mul(2) > n)
}

/// The launches of kernels, and those among them without a kernel; `None` where the file has no GPU work with a correlation.
#[inline(never)]
fn lost(trace: &Trace, before: &BeforeWindowSlices) -> Option<(i64, i64)> {
    let (mut n, mut lost) = (0_i64, 0_i64);
    let has_known = each_kernel_launch(trace, before, |_, is_recorded| {
        n += 1;
        lost += i64::from(!is_recorded);
    });
    has_known.then_some((n, lost))
}

/// Calls `each` with every launch of a kernel, and whether its work is in the file. Whether any GPU work has a correlation.
fn each_kernel_launch(
    trace: &Trace,
    before: &BeforeWindowSlices,
    mut each: impl FnMut(Row, bool),
) -> bool {
    let launches = trace.strings.marked(&calls::launches_kernel);
    let mut known: Vec<i64> = before.gpu_rows.iter().filter_map(|row| trace.link(*row)).collect();
    trace::sort(&mut known);
    each_launch(trace, |row, correlation| {
        if launches[trace.name(row).0 as usize] {
            each(row, known.binary_search(&correlation).is_ok());
        }
    });
    !known.is_empty()
}

#[cfg(test)]
mod tests {
    use crate::{Sources, TriageOptions, triage};
    use fixture::{Fixture, kernel, slice};

    /// Forty launches, of which the first ones have kernels.
    fn told(n_kernels: i64, capture: bool) -> bool {
        let mut fixture = Fixture::default();
        if capture {
            fixture.push(slice("cuda_runtime", "cudaStreamBeginCapture").on(1, 1).at(0, 1));
        }
        for at in 0..40_i64 {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
            fixture.push(launch.at(at * 1000, 100));
            if at < n_kernels {
                fixture.push(kernel("k").at(at * 1000 + 200, 500).link(at + 1));
            }
        }
        let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
        report.takeaways.iter().any(|text| text.contains("of 40 kernel launches have no kernel"))
    }

    /// Thirty launches 100 us apart of kernels of 200 us: the recording of the GPU has those that `is_recorded` names.
    fn queued(is_recorded: impl Fn(i64) -> bool) -> String {
        let mut fixture = Fixture::default();
        for at in 0..30_i64 {
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
            fixture.push(launch.at(at * 100_000, 5_000));
            if is_recorded(at) {
                fixture.push(kernel("k").at(at * 200_000 + 10_000, 200_000).link(at + 1));
            }
        }
        triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
            .takeaways
            .join(" ")
    }

    #[test]
    fn a_recording_that_ends_with_work_queued_is_cut() {
        let cut = "The recording of the GPU ends at 2.01 ms with work queued: the last 20 of 30 kernel launches, from 1.00 ms on,";
        let text = queued(|at| at < 10);
        assert!(text.contains(cut), "{text}");
        let lost = queued(|at| at < 10 && at != 3);
        assert!(
            !lost.contains("with work queued: the last")
                && lost.contains("21 of 30 kernel launches"),
            "{lost}"
        );
        assert!(!queued(|_| true).contains("kernel launches"));
    }

    #[test]
    fn a_recording_that_ends_early_is_told() {
        assert!(told(20, false));
        assert!(!told(40, false));
        assert!(!told(35, false), "a few are lost at the end of any recording");
        assert!(!told(20, true), "what is captured does not run");
    }
}
