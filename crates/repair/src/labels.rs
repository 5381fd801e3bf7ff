//! Rule 12, on request: process labels join the process name.
//!
//! Perfetto reads `process_labels` only from its own protobuf format, so Kineto's "GPU 0" is invisible in
//! a JSON trace: every GPU process is just called "python".

use trace::{Phase, ProcessId, Trace};

use crate::types::{RepairPlan, Rule};

/// Plans the new process names.
pub(crate) fn plan(trace: &Trace, plan: &mut RepairPlan) {
    let Some(process_name) = trace.strings.find("process_name") else { return };
    let mut last = vec![None; trace.processes.len()];
    for row in trace.rows() {
        if trace.phase(row) == Phase::Metadata && trace.name(row) == process_name {
            last[trace.track_info(trace.track(row)).process.0 as usize] = Some(row);
        }
    }
    for (index, process) in trace.processes.iter().enumerate() {
        let Some(labels) = process.labels.map(|id| trace.strings.get(id)) else { continue };
        let name = process.name.map(|id| trace.strings.get(id)).unwrap_or_default();
        let suffix = format!(" [{labels}]");
        if labels.is_empty() || name.ends_with(&suffix) {
            continue;
        }
        let folded = format!("{name}{suffix}").trim_start().to_owned();
        match last[index] {
            Some(row) => {
                plan.process_names.insert(row, folded);
                // (The new name is not in the edit; that there is one makes the event be written anew.)
                plan.change(row, Rule::ProcessLabels, None, |_| ());
            }
            None => {
                plan.added_process_names.push((ProcessId(index as u32), folded));
                plan.count(Rule::ProcessLabels, 1);
            }
        }
    }
}
