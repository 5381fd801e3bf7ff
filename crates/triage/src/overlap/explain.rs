//! The sentences of a row: what was measured, its neighbours, what could be saved at most.

use catalog::remedies::Remedy;
use report::{short_name, units};

use super::risk::{Evidence, Neighbours, Risk};
use super::verdict::{Lever, Verdict};
use timeline::percent;

/// What the bound of a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saving {
    /// Exposed time that other work could hide.
    Hidden,
    /// Half of the exposed time: half of the bytes.
    Half,
    /// All exposed time of copies of pageable memory: from pinned memory they are faster, too.
    Pinned,
    /// The latency of each collective and the CPU time of its launch.
    Latency,
}

/// What the sentences are made of.
pub(super) struct Figures<'a> {
    pub(super) verdict: Verdict,
    pub(super) lever: Lever,
    pub(super) risk: Risk,
    /// The remedy that is advised.
    pub(super) advised: Option<&'static Remedy>,
    /// Whether the gates of a remedy are open, advised or not.
    pub(super) possible: bool,
    pub(super) total_ns: i64,
    pub(super) busy_ns: i64,
    pub(super) exclusive_ns: i64,
    pub(super) hidden_ns: i64,
    pub(super) hidden_by_compute_ns: i64,
    pub(super) hidden_by: Option<&'a str>,
    pub(super) neighbours: &'a Neighbours,
    /// How event waits are recorded.
    pub(super) waits: Evidence,
    /// The fused kernel that it is already.
    pub(super) fused: Option<&'static str>,
    /// The bound, and the GPU span that it is a part of.
    pub(super) savings: Option<(i64, i64)>,
    /// What the bound leaves out, as it only makes the waits for the workers of a data loader longer, in ns.
    pub(super) paced_ns: i64,
    /// What the GPU span is called.
    pub(super) span: String,
    /// Whether launches are recorded.
    pub(super) linked: bool,
    /// A copy whose host side is pageable memory.
    pub(super) pageable: bool,
    /// What the bound counts.
    pub(super) saving: Saving,
    /// The stage has work on one stream only.
    pub(super) one_stream: bool,
}

/// "4.56 ms, 12.3% of busy, 95.0% exposed, 5.0% hidden".
pub(super) fn signal(figures: &Figures<'_>) -> String {
    let Figures { total_ns, busy_ns, exclusive_ns, hidden_ns, .. } = figures;
    format!(
        "{}, {} of busy, {} exposed, {} hidden",
        units::time(*total_ns),
        units::percent(percent(*total_ns, *busy_ns)),
        units::percent(percent(*exclusive_ns, *total_ns)),
        units::percent(percent(*hidden_ns, *total_ns)),
    )
}

/// What the file shows of a row.
fn observed(figures: &Figures<'_>) -> Vec<String> {
    let mut sentences = vec![exposure(figures)];
    match figures.lever {
        Lever::Overlap if figures.saving == Saving::Hidden && figures.advised.is_some() => {
            sentences.push(dependencies(figures));
        }
        // (Which kernels read it, no file records; near or far, they wait for it.)
        Lever::Copy if figures.advised.is_some() => sentences.push(
            "Work that reads what it copies cannot begin before it ends, so it can only move if the CPU has the data earlier."
                .to_owned(),
        ),
        _ => {}
    }
    if figures.pageable {
        sentences.push("Its host side is pageable memory, so the CPU waits for it.".to_owned());
    }
    sentences
}

/// Why a row is advised, without what to do, the bound itself and how to check, which stand beside it.
pub(super) fn because(figures: &Figures<'_>) -> String {
    let mut sentences = observed(figures);
    sentences.extend(figures.advised.map(|remedy| remedy.why.to_owned()));
    sentences.push(format!("The bound is an estimate: {}", estimate(figures)));
    sentences.join(" ")
}

/// The same with all of these, in one text.
pub(super) fn reason(figures: &Figures<'_>) -> String {
    let mut sentences = observed(figures);
    let without = figures.lever.without_advice();
    let dependent = figures.lever == Lever::Overlap
        && figures.saving == Saving::Hidden
        && figures.risk == Risk::High;
    match (figures.verdict, figures.advised, figures.fused) {
        (_, Some(remedy), _) => {
            sentences.push(remedy.action.to_owned());
            sentences.push(remedy.why.to_owned());
            sentences.extend(savings(figures));
            sentences.push(remedy.check.to_owned());
        }
        (Verdict::LowRoiHidden, ..) => {
            sentences.push("More overlap gains little: most of it is hidden already.".to_owned());
        }
        (_, None, Some(title)) => sentences.push(format!("It is a fused kernel already: {title}.")),
        _ if !without.is_empty() => sentences.push(without.to_owned()),
        (Verdict::Observe, ..) if figures.possible => {
            sentences.push("Most of it is hidden already, so nothing is advised.".to_owned());
        }
        // (Not the bound: instances whose consumer runs next have nothing to run with.)
        _ if figures.possible && dependent => sentences.push(
            "Most of its instances run next to work that looks dependent, so nothing is advised."
                .to_owned(),
        ),
        _ if figures.possible => {
            sentences.extend(savings(figures));
            sentences.push("Below 0.5% of the GPU span, or 10 µs, nothing is advised.".to_owned());
        }
        _ => {}
    }
    sentences.join(" ")
}

/// What could be saved at most, and what the estimate rests on.
fn savings(figures: &Figures<'_>) -> Option<String> {
    let (saved_ns, span_ns) = figures.savings?;
    let span = &figures.span;
    let collective = figures.lever == Lever::Overlap;
    if saved_ns == 0 && figures.paced_ns > 0 {
        return Some("That saves no wall time: it would only turn into waiting for the data loader's workers.".to_owned());
    }
    if saved_ns == 0 {
        return Some(if figures.saving != Saving::Hidden {
            "That saves no wall time: the GPU waits for the CPU.".to_owned()
        } else if collective {
            "Overlap saves no wall time: there is no independent compute to hide it, or the GPU waits for the CPU.".to_owned()
        } else {
            "Moving it saves no wall time: there is no compute to hide it, or the GPU waits for the CPU.".to_owned()
        });
    }
    Some(format!(
        "This saves at most {} ({} of {span}). It is an estimate: {}",
        units::time(saved_ns),
        units::percent(percent(saved_ns, span_ns)),
        estimate(figures)
    ))
}

/// What the bound rests on.
fn estimate(figures: &Figures<'_>) -> String {
    let collective = figures.lever == Lever::Overlap;
    let because = if figures.saving == Saving::Latency {
        "the latency of each collective, as long as the shortest ones take, and the CPU time of its launch; the bytes stay"
    } else if figures.saving == Saving::Half {
        "half of its exposed time, as half of the bytes remain"
    } else if figures.saving == Saving::Pinned && figures.paced_ns > 0 {
        "its exposed time, because copies from pinned memory are faster and run while kernels do, without what would only turn into \
         waiting for the data loader's workers"
    } else if figures.saving == Saving::Pinned {
        "all of its exposed time, because copies from pinned memory are faster and run while kernels do"
    } else if collective {
        "the exposed time of instances whose consumer does not run next, and no more than the exposed compute of the step \
         that does not depend on them"
    } else {
        "its exposed time, and no more than the exposed compute of the step"
    };
    let limit = if figures.saving == Saving::Pinned {
        ""
    } else if figures.linked {
        "; time during which the GPU waits for the CPU counts as 0"
    } else {
        "; no launches are recorded, so it is unknown where the GPU waits for the CPU"
    };
    format!("{because}{limit}.")
}

fn exposure(figures: &Figures<'_>) -> String {
    let Figures { total_ns, exclusive_ns, hidden_ns, hidden_by_compute_ns, hidden_by, .. } =
        figures;
    if figures.one_stream {
        return format!(
            "All of its {} is exposed: the stage runs on one stream.",
            units::time(*total_ns)
        );
    }
    let mut text = format!(
        "Of {}, {} ({}) ran while no other stream was busy",
        units::time(*total_ns),
        units::time(*exclusive_ns),
        units::percent(percent(*exclusive_ns, *total_ns)),
    );
    if *hidden_ns > 0 {
        text.push_str(&format!(
            "; {} ran while another stream was busy, {} of it with compute",
            units::time(*hidden_ns),
            units::time(*hidden_by_compute_ns),
        ));
        if let Some(name) = hidden_by {
            text.push_str(&format!(", most of it with {}", short_name(name, 60)));
        }
    }
    text.push('.');
    text
}

fn dependencies(figures: &Figures<'_>) -> String {
    let of = &figures.neighbours;
    let waited = match figures.waits {
        Evidence::Exact => "linked to work of another stream by an event wait",
        Evidence::ByTime | Evidence::None => "next to an event wait between streams",
    };
    let facts: Vec<String> = [
        (of.before, "directly after work that looks like its input"),
        (of.after, "directly before work that looks like its consumer"),
        (of.waited, waited),
        (of.unclear, "next to work whose dependency is not recorded"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, place)| {
        format!("{} {} {place}", units::count(n), if n == 1 { "runs" } else { "run" })
    })
    .collect();
    let waits = match figures.waits {
        Evidence::None => " (no event waits are recorded)",
        Evidence::Exact | Evidence::ByTime => "",
    };
    let instances = units::plural(of.n, "instance", "instances");
    let stand = if facts.is_empty() {
        format!("None of {instances} has a near neighbour that looks dependent{waits}")
    } else {
        format!("Of {instances}, {}{waits}", list(&facts))
    };
    format!("{stand}: dependency risk {}.", figures.risk.id())
}

fn list(facts: &[String]) -> String {
    match facts {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => facts.concat(),
    }
}
