//! Traces of the autograd profiler before Kineto, which no analysis reads.

use dialect::kineto;
use report::units;
use trace::{Phase, Row, Trace, each_row};

/// That the file is of the profiler before Kineto, which this program does not read.
#[must_use]
pub fn before_kineto(trace: &Trace) -> Option<String> {
    let is = |row: Row, which: usize| {
        let process = trace.process_of(trace.track(row));
        process.pid.display(&trace.strings) == kineto::BEFORE_KINETO[which]
    };
    let names = kineto::BEFORE_KINETO;
    names.iter().find_map(|name| trace.strings.find(name))?;
    let (mut cpu, mut gpu) = (0_u64, 0_u64);
    each_row(trace, |row| {
        if trace.phase(row) == Phase::Complete && trace.raw_category_text(row).is_empty() {
            cpu += u64::from(is(row, 0));
            gpu += u64::from(is(row, 1));
        }
    });
    (cpu + gpu > 0).then(|| {
        format!(
            "This is a trace of the autograd profiler before PyTorch 1.8.1: {} of the CPU and {} of the GPU, without categories. \
             Kinetoscope does not analyse them; Perfetto opens it. Record with torch.profiler.profile.",
            units::plural(cpu, "slice", "slices"),
            units::count(gpu)
        )
    })
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;

    #[test]
    fn slices_of_its_two_processes_are_counted() {
        let mut fixture = Fixture::default();
        fixture.push(slice("", "aten::conv2d").in_process("CPU functions").at(0, 5));
        fixture.push(slice("", "aten::add").in_process("CPU functions").at(9, 5));
        fixture.push(slice("", "aten::conv2d").in_process("CUDA functions").at(3, 9));
        let said = before_kineto(&fixture.finish()).unwrap_or_default();
        assert!(said.contains("2 slices of the CPU and 1 of the GPU"), "{said}");
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::conv2d").at(0, 5));
        assert_eq!(before_kineto(&fixture.finish()), None);
    }
}
