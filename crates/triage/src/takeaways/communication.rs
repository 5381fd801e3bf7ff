//! What communication takes, and what of it is exposed.

use catalog::Category;
use report::units;
use timeline::percent;

use super::{COMMUNICATION_PCT, Seen, spans};
use crate::collectives::Waiting;

/// Collectives that can be compared, by size or by place in a graph, stand for all from this share of their time on, in percent.
const COMPARED_PCT: f64 = 50.0;
/// Waiting for other ranks gets a sentence from this share of the compared collectives on, in percent.
const WAITING_PCT: f64 = 10.0;
/// What a collective is compared with.
const OF_SIZE: &str = "the fast ones of its size, or than its group's best bandwidth allows";
const OF_PLACE: &str = "the fast ones of its kernel in launches of an equal graph";
/// Launches of a kernel are few if they are no more than this, and all of communication are so many times as many or more.
const MOST_FEW: u64 = 20;
const FEW_OF: u64 = 5;
/// Characters of a kernel's name in a sentence.
const NAME_LENGTH: usize = 56;

/// Communication with what of it is exposed: that is what overlap could hide.
pub(super) fn communication(seen: &Seen<'_>) -> Option<(i64, String)> {
    let Seen { time, tp, waiting, n_devices, .. } = seen;
    let of = time.by_category.iter().find(|(category, _)| *category == Category::Communication);
    let total_ns = of.map_or(0, |(_, ns)| *ns);
    let exposed_ns = time.exposed_communication_ns;
    if percent(total_ns, time.total_ns) < COMMUNICATION_PCT {
        return None;
    }
    let ranks = match tp {
        Some(tp) if *tp > 1 => format!(" over {tp} tensor-parallel ranks"),
        _ => String::new(),
    };
    let exposed = if exposed_ns == 0 {
        "none of it is exposed".to_owned()
    } else {
        format!(
            "{} of it is exposed ({} of {})",
            units::time(exposed_ns),
            units::percent(percent(exposed_ns, time.span_ns)),
            spans(*n_devices)
        )
    };
    // (What was compared stands for the rest only where it is most of it.)
    let compared = waiting.as_ref().filter(|of| percent(of.total_ns, total_ns) >= COMPARED_PCT);
    let waits = match compared {
        Some(Waiting { n_calls, total_ns, excess_ns, name, of_graphs_ns })
            if percent(*excess_ns, *total_ns) >= WAITING_PCT =>
        {
            let than = match of_graphs_ns {
                0 => OF_SIZE.to_owned(),
                ns if ns == excess_ns => OF_PLACE.to_owned(),
                _ => format!("{OF_SIZE}, or {OF_PLACE}"),
            };
            format!(
                " At least {} of it is probably waiting for other ranks, most of that in {}: an estimate from {}, by how much longer each \
                 takes than {than}.",
                units::time(*excess_ns),
                report::short_name(name, NAME_LENGTH),
                units::plural(*n_calls, "collective", "collectives"),
            )
        }
        Some(_) => String::new(),
        // (Of ranks in one file the diagnosis compares the collectives themselves.)
        None if *n_devices > 1 => String::new(),
        None => {
            " It may include waiting for other ranks: the traces of all ranks show that.".to_owned()
        }
    };
    let shown = time.shown.iter().find(|(category, _)| *category == Category::Communication);
    let early = match total_ns.saturating_sub(shown.map_or(0, |(_, ns)| *ns)) {
        0 => "",
        _ => ", including work launched before profiling",
    };
    // (A share that one of many calls makes is no matter of communication in general.)
    let (n, longest_ns) = (time.n_communication, time.longest_communication_ns);
    let longest = match n > 2 && longest_ns.saturating_mul(2) >= total_ns {
        true => format!(" One of its {} calls takes {}.", units::count(n), units::time(longest_ns)),
        false => few_of_a_kernel(seen, total_ns),
    };
    let text = format!(
        "Communication{ranks} takes {} ({} of GPU time{early}); {exposed}.{longest}{waits}",
        units::time(total_ns),
        units::percent(percent(total_ns, time.total_ns)),
    );
    Some((exposed_ns, text))
}

/// That a few launches of one kernel take most of the time of communication, after a space; empty where none do.
fn few_of_a_kernel(Seen { trace, time, .. }: &Seen<'_>, total_ns: i64) -> String {
    let Some((name, n, ns)) = time.collectives.iter().max_by_key(|(.., ns)| *ns) else {
        return String::new();
    };
    // (As much as their number lets expect says nothing.)
    let few = *n <= MOST_FEW && n.saturating_mul(FEW_OF) <= time.n_communication;
    match few && ns.saturating_mul(2) >= total_ns {
        false => String::new(),
        true => format!(
            " {} of {} take {} of that.",
            units::plural(*n, "launch", "launches"),
            report::short_name(trace.strings.get(*name), NAME_LENGTH),
            units::percent(percent(*ns, total_ns)),
        ),
    }
}
