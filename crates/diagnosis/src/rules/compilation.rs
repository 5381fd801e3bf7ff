//! M18: compilation, and loading of code, in the recording.

use report::units::{count, plural, time};

use super::between_graphs::captured_again;
use crate::facts::Sets;
use crate::{Confidence, Facts, Finding, Level, Rule};
use host::class::Class;

/// Imports of less say nothing, in ns.
const LONG_IMPORT_NS: i64 = 1_000_000;

/// The verdict of each.
fn verdict(sets: Sets) -> &'static str {
    match sets {
        Sets::TorchCompile => "compiling",
        Sets::Captures => "captures",
        Sets::TorchScript => "torchscript",
        Sets::Extensions => "extensions",
        Sets::Imports => "imports",
    }
}

/// What works in a finding of this verdict; `None` for those on loading.
pub(crate) fn clause_of(named: &str) -> Option<&'static str> {
    Sets::ALL.into_iter().find(|sets| verdict(*sets) == named).map(Sets::clause)
}

/// Where the slices of each are told of.
fn evidence(sets: Sets) -> &'static str {
    match sets {
        Sets::TorchScript => "cpu_ops",
        Sets::Captures => "runtime",
        Sets::TorchCompile | Sets::Extensions | Sets::Imports => "python",
    }
}

/// Launches that load code first, after a comma; empty where none does.
fn first_launches(facts: &Facts<'_>) -> String {
    match facts.first_launches {
        (0, _) => String::new(),
        (n, ns) => {
            let launches = plural(n, "launch loads its kernel", "launches load their kernels");
            format!(", {launches} first ({})", time(ns))
        }
    }
}

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for sets in Sets::ALL {
        let ns = facts.set_up_ns(sets);
        // (An import of a fraction of a millisecond is no matter.)
        if ns == 0 || sets == Sets::Imports && ns < LONG_IMPORT_NS {
            continue;
        }
        // (Where that happens again and again, it has a finding of its own.)
        let is_again = || {
            let mut again = facts.devices().map(|device| captured_again(facts, &device));
            again.any(|found| found.is_some())
        };
        // (In a trace of captures, triage says it.)
        if sets == Sets::Captures && (facts.is_capture() || is_again()) {
            continue;
        }
        found.push(
            Finding::fact(
                Rule::Compilation,
                verdict(sets),
                format!("{} for {} of the recording.", sets.sentence(), time(ns)),
            )
            .level(match sets {
                Sets::Imports => Level::of_share(ns as f64 / facts.wall_ns().max(1) as f64),
                _ => Level::Medium,
            })
            // (No event says that TorchScript compiles, or that a capture is prepared.)
            .confidence(match sets {
                Sets::TorchScript | Sets::Captures => Confidence::Medium,
                _ => Confidence::High,
            })
            .means(match sets {
                Sets::TorchCompile => "Iterations in which it compiles are not steady state: compile in a warm-up before the recording.",
                Sets::Captures => "A graph is captured once for its sizes and then replayed: record replays.",
                // (Its first runs collect the types, one of the next compiles for them.)
                Sets::TorchScript => "Later calls with the same types and shapes do not compile: run at least three iterations before the \
                     recording. If they still do, torch._C._jit_set_texpr_fuser_enabled(False) shows what its fuser costs.",
                Sets::Extensions => "An extension is built once, and loaded once per process: call its functions before the recording.",
                Sets::Imports => "A module is imported once: let the iteration run before the recording, or import it at the top of the program.",
            })
            .with(evidence(sets), sets.clause(), time(ns)),
        );
    }
    if let Some(loads) = facts.host.runtime.classes.get(&Class::ModuleLoad) {
        let allocations =
            facts.host.runtime.classes.get(&Class::Malloc).copied().unwrap_or_default();
        let text = format!(
            "{} calls load code ({}){} and {} allocate memory from the driver ({}) in the recording.",
            count(loads.count),
            time(loads.total_ns),
            first_launches(facts),
            count(allocations.count),
            time(allocations.total_ns)
        );
        found.push(Finding::fact(Rule::Compilation, "module_loads", text).level(Level::Low).with(
            "runtime.classes.module-load",
            "calls",
            count(loads.count),
        ));
    }
    found
}
