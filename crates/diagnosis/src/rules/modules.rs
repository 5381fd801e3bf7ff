//! M15: which GPU time belongs to modules.

use report::units::{percent, time};
use timeline::intervals::{Interval, holds, union};

use crate::{Facts, Finding, Rule};

/// Time outside modules from this share on is worth a word.
const LEAST_SHARE: f64 = 0.2;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let modules = &facts.host.modules;
    let all = modules.in_module_ns + modules.linked_gpu_outside_ns;
    if modules.n_paths == 0 || all == 0 || facts.is_capture() {
        return Vec::new();
    }
    let share = modules.linked_gpu_outside_ns as f64 / all as f64;
    if share < LEAST_SHARE {
        return Vec::new();
    }
    // (Of a graph the file has one launch, and no frame around each kernel.)
    let modules_ns = module_times(facts);
    let of_graphs = facts.gpu.linked().filter(|one| {
        one.launch.is_some_and(|launch| {
            dialect::calls::launches_graph(facts.slices.name(&launch))
                && !holds(&modules_ns, launch.start_ns)
        })
    });
    let of_graphs: i64 = of_graphs.map(|one| one.slice.dur_ns()).sum();
    let graphs = of_graphs.saturating_mul(2) >= modules.linked_gpu_outside_ns;
    let text = format!(
        "{} of GPU time ({}) was launched outside the frames of modules.",
        time(modules.linked_gpu_outside_ns),
        percent(100.0 * share)
    );
    let (verdict, mut meaning) = if graphs {
        let text = "Graphs launched most of it: a trace of their capture has the modules.";
        ("not_coverable", text.to_owned())
    } else {
        ("outside_modules", outside(facts))
    };
    // What the tree of modules has by autograd's links.
    let outermost = facts.modules.iter().flat_map(|tree| &tree.rows).filter(|row| row.depth == 0);
    let backward: i64 = outermost.map(|row| row.backward_ns).sum();
    if backward > 0 {
        meaning.push_str(&format!(
            " {} of it is the backward pass of modules, which their table has.",
            time(backward)
        ));
    }
    vec![Finding::fact(Rule::Modules, verdict, text).means(meaning).with(
        "modules.linked_gpu_outside_ns",
        "outside",
        time(modules.linked_gpu_outside_ns),
    )]
}

/// When frames of modules run.
fn module_times(facts: &Facts<'_>) -> Vec<Interval> {
    let is_module = |frame: &&host::HostSlice| facts.slices.name(frame).starts_with("nn.Module: ");
    let frames = facts.slices.frames.slices.iter().filter(is_module);
    union(frames.map(host::HostSlice::interval).collect())
}

/// What runs outside the frames of modules: communication apart from the rest.
fn outside(facts: &Facts<'_>) -> String {
    let modules = module_times(facts);
    let communication = facts.gpu.linked().filter(|one| {
        let launched = one.launch.map(|launch| launch.start_ns);
        one.is_communication && launched.is_some_and(|at_ns| !holds(&modules, at_ns))
    });
    match communication.map(|one| one.slice.dur_ns()).sum::<i64>() {
        0 if !trains(facts) => String::new(),
        0 => "The backward pass and the optimizer run outside the modules' frames.".to_owned(),
        ns if !trains(facts) => format!("{} of it is communication.", time(ns)),
        ns => format!(
            "{} of it is communication; the backward pass and the optimizer run outside the modules' frames, too.",
            time(ns)
        ),
    }
}

/// Whether the file has a backward pass or an optimizer's step.
fn trains(facts: &Facts<'_>) -> bool {
    let is = |part: &str| facts.slices.names_with(part).contains(&true);
    is("autograd::engine::evaluate_function") || is("Optimizer.step")
}
