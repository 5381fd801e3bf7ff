//! Forward passes in training mode, in a file without a backward pass.

use report::units::plural;

use crate::{Confidence, Facts, Finding, Rule};

/// What a backward pass and an optimizer have in the names of ops and ranges.
const TRAINS: [&str; 3] = ["autograd::engine::evaluate_function", "Backward", "Optimizer.step"];
/// Of the batch norms: so many count their batches.
const MOST: f64 = 0.9;

pub fn check(facts: &Facts<'_>) -> Option<Finding> {
    let slices = facts.slices;
    if TRAINS.iter().any(|part| slices.names_with(part).contains(&true)) {
        return None;
    }
    let ops = &slices.ops;
    let is = |at: usize, name: &str| slices.name(&ops.slices[at]) == name;
    let all = |name: &'static str| (0..ops.slices.len()).filter(move |at| is(*at, name));
    let norms = all("aten::batch_norm").count();
    // (`torch/nn/modules/batchnorm.py` counts its batches in training alone, right before it.)
    let counts = |at: usize| before(facts, at).is_some_and(|own| adds_one(facts, own));
    let tracked = all("aten::batch_norm").filter(|at| counts(*at)).count();
    let tracked = if tracked as f64 >= MOST * norms as f64 { tracked } else { 0 };
    // (In evaluation it returns its input, and calls nothing.)
    let mut dropouts: Vec<usize> = (0..ops.slices.len()).filter_map(|at| ops.parent(at)).collect();
    dropouts.retain(|at| is(*at, "aten::dropout"));
    trace::sort(&mut dropouts);
    dropouts.dedup();
    let mut said = Vec::new();
    if tracked > 0 {
        let norms = plural(tracked as u64, "batch norm computes", "batch norms compute");
        said.push(format!("{norms} the statistics of the batch"));
    }
    if !dropouts.is_empty() {
        let n = plural(dropouts.len() as u64, "dropout drops", "dropouts drop");
        said.push(format!("{n} values"));
    }
    // (Without sizes, a sum before each norm may be the network's own.)
    let is_certain =
        tracked == 0 || ops.slices.iter().any(|op| facts.details.inputs(op.row).is_some());
    (!said.is_empty()).then(|| {
        let text = format!(
            "The model runs in training mode, and the file has no backward pass: {}.",
            said.join(", and ")
        );
        Finding::fact(Rule::KnownCode, "training_mode", text)
            .confidence(if is_certain { Confidence::High } else { Confidence::Medium })
            .means(
                "For inference call model.eval(), and run under torch.inference_mode(): this work goes away, and results are those that the \
                 model was trained for. In the forward pass of a training step it is right.",
            )
            .with("cpu_ops", "such ops", tracked + dropouts.len())
    })
}

/// Whether an op is `num_batches_tracked.add_(1)`: of tensors without dimensions, where sizes are recorded.
fn adds_one(facts: &Facts<'_>, at: usize) -> bool {
    let op = &facts.slices.ops.slices[at];
    let dims = facts.details.inputs(op.row).map(|inputs| facts.details.texts.get(inputs.dims));
    facts.slices.name(op) == "aten::add_" && dims.is_none_or(|dims| dims.starts_with("[[]"))
}

/// The op before another one of its thread within the same op.
fn before(facts: &Facts<'_>, at: usize) -> Option<usize> {
    let ops = &facts.slices.ops;
    let last = at.checked_sub(1)?;
    let thread = |at: usize| facts.slices.thread(ops.slices[at].row);
    let own = ops.chain(last).find(|own| ops.parent(*own) == ops.parent(at));
    own.filter(|own| thread(*own) == thread(at))
}
