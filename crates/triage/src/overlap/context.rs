//! The surroundings of the longest instance of each row: its neighbours on the stream, the calls that lead to it, and what
//! follows for overlap.

use catalog::Category;

use super::risk::{Surroundings, near_ns};
use crate::priority::Priority;
use crate::site::{Attribution, Confidence};
use timeline::gpu::Gpu;

/// The surroundings of a row's longest instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlapContext {
    /// Its stream.
    pub stream: String,
    /// Its duration.
    pub dur_ns: i64,
    /// What ran before it on its stream.
    pub before: Option<NextTo>,
    /// What ran after it on its stream.
    pub after: Option<NextTo>,
    /// The op that it came from.
    pub cpu_op: Option<String>,
    /// The call that launched it.
    pub launch: Option<String>,
    /// The lines of Python that lead there, outermost first.
    pub chain: Vec<String>,
    /// How sure that is.
    pub confidence: Confidence,
    /// What follows.
    pub conclusion: String,
}

/// A neighbour on the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextTo {
    /// Its name.
    pub kernel_name: String,
    /// What it does.
    pub category: Category,
    /// Time between the two; negative where they overlap.
    pub gap_ns: i64,
    /// So near that one may have waited for the other.
    pub near: bool,
    /// Whether one looks like the other's input; `None` where it cannot be said, or they are not near.
    pub dependent: Option<bool>,
    /// Its line of Python, else its op or launch.
    pub place: Option<String>,
}

/// The surroundings of `slice`, the longest instance of a row. `advice` are the row's priority and recommendation, `reason`
/// is its reason.
#[inline(never)]
pub(super) fn context(
    gpu: &Gpu<'_>,
    surroundings: &Surroundings<'_>,
    attribution: Option<&Attribution>,
    slice: usize,
    advice: Option<(Priority, &str)>,
    reason: &str,
) -> OverlapContext {
    let of = gpu.slice(slice);
    let [before, after] = [0, 1].map(|side| {
        let other = surroundings.neighbour(slice, side)?;
        let beside = gpu.slice(other);
        let gap_ns = if side == 0 {
            of.start_ns.saturating_sub(beside.end_ns())
        } else {
            beside.start_ns.saturating_sub(of.end_ns())
        };
        let near = gap_ns <= near_ns(of.dur_ns);
        let work = &gpu.works[beside.work];
        Some(NextTo {
            kernel_name: gpu.trace.strings.get(work.name).to_owned(),
            category: work.category,
            gap_ns,
            near,
            dependent: if near { surroundings.depends(slice, other) } else { None },
            place: attribution.and_then(|places| places.site(other).place()),
        })
    });
    let site = attribution.map(|places| places.site(slice));
    let stream = of.stream.and_then(|id| gpu.trace.streams.get(usize::from(id.0)));
    OverlapContext {
        stream: stream.map(|of| of.stream.display(&gpu.trace.strings)).unwrap_or_default(),
        dur_ns: of.dur_ns,
        conclusion: conclusion(advice, reason, before.as_ref(), after.as_ref()),
        before,
        after,
        cpu_op: site.and_then(|site| site.cpu_op.clone()),
        launch: site.and_then(|site| site.launch.clone()),
        chain: site.map(|site| site.stack.clone()).unwrap_or_default(),
        confidence: site.map_or(Confidence::None, |site| site.confidence),
    }
}

fn conclusion(
    advice: Option<(Priority, &str)>,
    reason: &str,
    before: Option<&NextTo>,
    after: Option<&NextTo>,
) -> String {
    let depends = |side: Option<&NextTo>| side.is_some_and(|side| side.dependent == Some(true));
    let unclear =
        |side: Option<&NextTo>| side.is_some_and(|side| side.near && side.dependent.is_none());
    let here = match (depends(before), depends(after)) {
        (true, true) => {
            "Both neighbours look dependent: the one before looks like its input, the one after like its consumer."
        }
        (true, false) => "The neighbour before it looks like its input.",
        (false, true) => "The neighbour after it looks like its consumer.",
        (false, false) if unclear(before) || unclear(after) => {
            "A neighbour is near; whether they depend on each other is not recorded."
        }
        (false, false) => "No near neighbour on its stream looks dependent.",
    };
    let advice = match advice {
        None => "No overlap is advised".to_owned(),
        Some((priority, what)) => format!("{}: {what}", priority.id()),
    };
    format!("{advice}. {here} {reason}")
}
