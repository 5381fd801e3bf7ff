//! Work in a trace that no analysis covers: accelerators other than GPUs, traces of other profilers, CPU only.
//!
//! A trace without GPU slices must not look like an idle GPU. Here stands what is in it instead, and what to record.

use std::cell::Cell;

use dialect::accelerators::ASCEND_PROCESS;
use dialect::{Accelerator, Records};
use report::units;
use trace::{Phase, Process, Producer, Row, Trace, each_row};

use timeline::before_kineto::before_kineto;
use timeline::before_window::is_gpu_slice;
use timeline::device;
use timeline::recorded::{Recorded, recorded};

const ONNX_RUNTIME: &str =
    "This is a profile of ONNX Runtime. Kinetoscope does not analyse it yet; Perfetto opens it.";

const XLA: &str = "This is a trace of the XLA profiler (JAX, TensorFlow). Kinetoscope does not analyse it yet; Perfetto opens it, \
                   and XProf (TensorBoard) analyses the .xplane.pb of the same folder.";

/// Numbers of events.
#[derive(Default)]
struct Counts {
    gpu: u64,
    ops: u64,
    frames: u64,
    annotations: u64,
    /// Work on other accelerators, and calls of runtimes, in the order of the file.
    on_device: Vec<(Accelerator, u64)>,
    calls: Vec<(Accelerator, u64)>,
}

/// What no analysis counts, in sentences; `None` for a trace whose work is that of GPUs alone.
#[must_use]
pub fn other_work(trace: &Trace) -> Option<String> {
    if is_gpus_alone(trace) {
        return None;
    }
    let counts = Counts::of(trace);
    let mut said: Vec<String> = counts
        .on_device
        .iter()
        .map(|(device, n)| {
            let name = device.title();
            let (events, them) = match n {
                1 => ("event is", "it"),
                _ => ("events are", "them"),
            };
            format!(
                "{} {name} {events} in this trace; Kinetoscope does not analyse {them}.",
                units::count(*n)
            )
        })
        .collect();
    if counts.gpu == 0 {
        if let Some(text) = before_kineto(trace) {
            said.push(text);
            return Some(said.join(" "));
        }
        match trace.producer {
            Producer::Torch => said.extend(counts.without_gpu(!device::devices(trace).is_empty())),
            Producer::OnnxRuntime => said.insert(0, ONNX_RUNTIME.to_owned()),
            Producer::Xla => said.insert(0, XLA.to_owned()),
        }
    }
    (!said.is_empty()).then(|| said.join(" "))
}

/// Whether there are GPU slices and, as raw categories and processes show, no other accelerator: nearly always, and told without
/// counting all events.
fn is_gpus_alone(trace: &Trace) -> bool {
    let is_other = Cell::new(trace.processes.iter().any(|it| is_of_ascend(trace, it)));
    trace.by_raw_category(|raw_category| {
        let is_work = matches!(dialect::known(raw_category), Some(Records::Work(_)));
        is_other.set(is_other.get() || is_work);
    });
    !is_other.get() && has_gpu_slice(trace)
}

// (A loop inside of a large function has a browser compile all of it twice.)
#[inline(never)]
fn has_gpu_slice(trace: &Trace) -> bool {
    trace.rows().any(|row| is_gpu_slice(trace, row))
}

impl Counts {
    fn of(trace: &Trace) -> Self {
        let records = trace.by_raw_category(dialect::known);
        let recorded = recorded(trace);
        let mut counts = Self::default();
        each_row(trace, |row| {
            if !matches!(trace.phase(row), Phase::Complete | Phase::Begin) {
                return;
            }
            let records = *records.of(trace, row);
            if is_gpu_slice(trace, row) {
                counts.gpu += 1;
            } else if let Some(Records::Work(device)) = records {
                add(&mut counts.on_device, device);
            } else if is_ascend(trace, row) {
                add(&mut counts.on_device, Accelerator::Ascend);
            } else if let Some(Records::Call(device)) = records {
                add(&mut counts.calls, device);
            } else {
                match recorded.of(trace, row) {
                    Recorded::Op => counts.ops += 1,
                    Recorded::Frame => counts.frames += 1,
                    Recorded::Annotation => counts.annotations += 1,
                    _ => {}
                }
            }
        });
        counts
    }

    /// Why there are no figures of a GPU, and what to record. `has_device`: the file lists a GPU of the machine.
    fn without_gpu(&self, has_device: bool) -> Vec<String> {
        let mut parts: Vec<String> = [
            (self.ops, "PyTorch op", "PyTorch ops"),
            (self.frames, "Python frame", "Python frames"),
            (self.annotations, "annotation", "annotations"),
        ]
        .iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| units::plural(*n, one, many))
        .collect();
        parts.extend(self.calls.iter().map(|(device, n)| {
            let call = format!("{} runtime call", device.title());
            units::plural(*n, &call, &format!("{call}s"))
        }));
        let nothing = "This trace contains no GPU slices";
        let Some(last) = parts.pop() else { return vec![format!("{nothing}.")] };
        let held = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
        let mut said = vec![format!("{nothing}; it holds {held}.")];
        if self.calls.iter().any(|(device, _)| *device == Accelerator::Gpu) {
            said.push(
                "A GPU was in use, but what it ran was not recorded. Check that no other tool uses CUPTI or rocprofiler at the \
                 same time, and that no performance counters (range profiling) are requested; then record again."
                    .to_owned(),
            );
        } else if has_device {
            said.push(
                "The machine has a GPU, but the file has no call to it. Record with activities=[ProfilerActivity.CPU, \
                 ProfilerActivity.CUDA]; if another process runs the model (the workers of an engine), open its trace."
                    .to_owned(),
            );
        } else if self.on_device.is_empty() {
            said.push(
                "For GPU figures, profile on a machine with a GPU with activities=[ProfilerActivity.CPU, \
                 ProfilerActivity.CUDA] (CUDA also selects ROCm GPUs)."
                    .to_owned(),
            );
        }
        said
    }
}

fn add(counts: &mut Vec<(Accelerator, u64)>, device: Accelerator) {
    match counts.iter_mut().find(|(known, _)| *known == device) {
        Some((_, n)) => *n += 1,
        None => counts.push((device, 1)),
    }
}

fn is_ascend(trace: &Trace, row: Row) -> bool {
    is_of_ascend(trace, trace.process_of(trace.track(row)))
}

fn is_of_ascend(trace: &Trace, process: &Process) -> bool {
    process.name.is_some_and(|name| trace.strings.get(name) == ASCEND_PROCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel, slice};

    fn of(slices: &[fixture::Slice<'_>]) -> Option<String> {
        let mut fixture = Fixture::default();
        slices.iter().for_each(|slice| fixture.push(*slice));
        other_work(&fixture.finish())
    }

    #[test]
    fn gpus_alone_need_no_word() {
        assert_eq!(of(&[slice("cpu_op", "aten::mm").at(0, 5), kernel("k").at(10, 5)]), None);
    }

    #[test]
    fn other_accelerators_are_named_with_their_count() {
        let op = slice("cpu_op", "aten::mm").at(0, 5);
        let mtia = slice("mtia_ccp_events", "k").at(10, 5);
        let said = of(&[op, mtia, mtia]).unwrap();
        assert!(
            said.starts_with("2 MTIA events are in this trace; Kinetoscope does not analyse them."),
            "{said}"
        );
        assert!(said.contains("it holds 1 PyTorch op.") && !said.contains("CUDA"), "{said}");
        let beside = of(&[mtia, kernel("k").at(20, 5)]).unwrap();
        assert_eq!(beside, "1 MTIA event is in this trace; Kinetoscope does not analyse it.");
        assert!(of(&[slice("HPU_OP", "k").at(1, 2)]).unwrap().starts_with("1 HPU event "));
    }

    #[test]
    fn without_gpu_it_is_said_what_is_there_and_what_to_record() {
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(1, 1);
        let said = of(&[slice("cpu_op", "aten::mm").at(0, 5), call, call]).unwrap();
        assert!(said.contains("it holds 1 PyTorch op and 2 GPU runtime calls."), "{said}");
        assert!(said.contains("what it ran was not recorded"), "{said}");
        let said = of(&[slice("cpu_op", "aten::mm").at(0, 5)]).unwrap();
        assert!(said.contains("ProfilerActivity.CUDA"), "{said}");
        assert!(of(&[]).unwrap().starts_with("This trace contains no GPU slices."));
    }
}
