//! The sentences of a row: what was measured, what stands beside it, what could be saved at most.

use report::{short_name, units};

use super::risk::{Evidence, Neighbours, Risk};
use super::verdict::{Remedy, Verdict};
use crate::percent;

/// What the sentences tell.
pub(super) struct Figures<'a> {
    pub(super) verdict: Verdict,
    pub(super) remedy: Remedy,
    pub(super) risk: Risk,
    pub(super) total_ns: i64,
    pub(super) busy_ns: i64,
    pub(super) exclusive_ns: i64,
    pub(super) hidden_ns: i64,
    pub(super) hidden_by_compute_ns: i64,
    pub(super) hidden_by: Option<&'a str>,
    pub(super) neighbours: &'a Neighbours,
    /// What the file tells of event waits.
    pub(super) waits: Evidence,
    /// The fused kernel that it is already.
    pub(super) fused: Option<&'static str>,
    /// The bound and over how many steps it is the mean; 0 steps: none are recorded.
    pub(super) savings: Option<(i64, i64)>,
    /// A copy whose host side is pageable memory.
    pub(super) pageable: bool,
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

pub(super) fn reason(figures: &Figures<'_>) -> String {
    let mut sentences = vec![exposure(figures)];
    if figures.remedy != Remedy::Tune {
        sentences.push(dependencies(figures));
    }
    match figures.verdict {
        Verdict::LowRoiHidden => {
            sentences.push("More overlap gains little: it is hidden already.".to_owned());
        }
        Verdict::Observe if figures.remedy != Remedy::Tune => {
            sentences.push("It is listed for its size; others have more to gain.".to_owned());
        }
        Verdict::Headroom | Verdict::Observe => sentences.push(match figures.fused {
            Some(title) => format!("It is a fused kernel already: {title}."),
            None => figures.remedy.why().to_owned(),
        }),
    }
    if figures.pageable {
        sentences.push("Its host side is pageable, so today the CPU waits for it.".to_owned());
    }
    if figures.verdict == Verdict::Headroom {
        sentences.extend(savings(figures));
    }
    sentences.join(" ")
}

fn savings(figures: &Figures<'_>) -> Option<String> {
    let (bound_ns, n_steps) = figures.savings?;
    let per = match n_steps {
        0 => "in this stage, where no steps are recorded".to_owned(),
        1 => "in the one step recorded".to_owned(),
        n => format!("per step, as the mean of {n} steps"),
    };
    if bound_ns == 0 {
        return Some(
            "Overlap saves nothing: there is no independent compute to hide it behind.".to_owned(),
        );
    }
    let (what, because) = if figures.remedy == Remedy::Fuse {
        ("Fusion", "its exposed time, of which the fused kernel will keep some")
    } else {
        (
            "Overlap",
            "the smaller of its exposed time and the exposed time of compute that is no dependent neighbour of it",
        )
    };
    let saved = units::time(bound_ns);
    Some(format!("{what} saves up to {saved} {per}. This is an estimate: {because}."))
}

fn exposure(figures: &Figures<'_>) -> String {
    let Figures { total_ns, exclusive_ns, hidden_ns, hidden_by_compute_ns, hidden_by, .. } =
        figures;
    if figures.one_stream {
        return format!(
            "All of its {} is exposed, because there is no second stream.",
            units::time(*total_ns)
        );
    }
    let mut text = format!(
        "Of {}, {} ({}) ran while no other stream did anything",
        units::time(*total_ns),
        units::time(*exclusive_ns),
        units::percent(percent(*exclusive_ns, *total_ns)),
    );
    if *hidden_ns > 0 {
        text.push_str(&format!(
            "; {} ran beside another stream, {} of it beside compute",
            units::time(*hidden_ns),
            units::time(*hidden_by_compute_ns),
        ));
        if let Some(name) = hidden_by {
            text.push_str(&format!(", most beside {}", short_name(name, 60)));
        }
    }
    text.push('.');
    text
}

fn dependencies(figures: &Figures<'_>) -> String {
    let of = &figures.neighbours;
    let waited = match figures.waits {
        Evidence::Exact => "tied by an event wait to work of another stream",
        Evidence::ByTime | Evidence::None => "next to an event wait between streams",
    };
    let facts: Vec<String> = [
        (of.before, "directly after work that looks like its input"),
        (of.after, "directly before work that looks like its consumer"),
        (of.waited, waited),
        (of.unclear, "next to work of which it cannot be said"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, place)| format!("{} {place}", units::count(n)))
    .collect();
    let waits = match figures.waits {
        Evidence::None => " (the file records no event wait)",
        Evidence::Exact | Evidence::ByTime => "",
    };
    let instances = units::plural(of.n, "instance", "instances");
    let stand = if facts.is_empty() {
        format!("None of {instances} has a near neighbour that looks dependent{waits}")
    } else {
        format!("Of {instances} stand {}{waits}", list(&facts))
    };
    format!("{stand}: dependency risk {}.", figures.risk.id())
}

fn list(facts: &[String]) -> String {
    match facts {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => facts.concat(),
    }
}
