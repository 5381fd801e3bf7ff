//! The decisions as tables: thresholds, priorities and what to recommend. No trace in here.

use catalog::{Category, CopyRoute, OverlapClass};

use super::risk::Risk;

/// Below this total nothing is worth a row.
pub(super) const LEAST_NS: i64 = 5_000;

/// From this share of exposed time on there is headroom.
pub(super) const HEADROOM_PCT: i64 = 45;

/// From this share of hidden time on more overlap gains little.
pub(super) const HIDDEN_PCT: i64 = 65;

/// How many rows each verdict gets in a stage.
pub(super) const MOST_ROWS: usize = 5;

/// Why a row is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Much of it is exposed.
    Headroom,
    /// Most of it is hidden, and it is of a class that costs little while it is.
    LowRoiHidden,
    /// Neither; listed because it takes much time.
    Observe,
}

impl Verdict {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Headroom => "headroom",
            Self::LowRoiHidden => "low-roi-hidden",
            Self::Observe => "observe",
        }
    }
}

/// What shortens the exposed time of work, by what the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Run it beside compute on another stream.
    Overlap,
    /// Copy on a side stream, to or from pinned memory.
    AsyncCopy,
    /// Let another kernel do it on the way.
    Fuse,
    /// Do less of it, or more of it at once: no neighbour can do it on the way.
    Lessen,
    /// Make the kernel itself faster.
    Tune,
    /// Find out what it is first.
    Inspect,
}

impl Remedy {
    /// Never fusion for compute: it is what others hide behind or fuse into.
    pub(super) fn of(category: Category, route: CopyRoute) -> Self {
        match (category.overlap_class(), category) {
            (OverlapClass::Compute, _) => Self::Tune,
            (OverlapClass::Communication, _) => Self::Overlap,
            // Transpositions, random access, sorting, pooling and an optimizer's step are passes over memory of their own.
            (
                _,
                Category::Layout
                | Category::Index
                | Category::ScanSort
                | Category::PoolResize
                | Category::Optimizer
                | Category::Memset,
            ) => Self::Lessen,
            (OverlapClass::Elementwise, _) => Self::Fuse,
            (OverlapClass::Memory, Category::Memcpy) => match route {
                CopyRoute::HostToDevice | CopyRoute::DeviceToHost => Self::AsyncCopy,
                CopyRoute::PeerToPeer => Self::Overlap,
                CopyRoute::DeviceToDevice => Self::Lessen,
                CopyRoute::Unknown => Self::Inspect,
            },
            (OverlapClass::Memory, _) => Self::Fuse,
            (OverlapClass::Other, _) => Self::Inspect,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Overlap => "overlap with compute",
            Self::AsyncCopy => "async copy on a side stream, pinned memory",
            Self::Fuse => "fusion",
            Self::Lessen => "fewer bytes or calls",
            Self::Tune => "tune",
            Self::Inspect => "inspect",
        }
    }

    /// The sentence that explains the remedy.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Overlap => {
                "Communication needs few compute units and can run beside independent compute. Its time holds the \
                 wait for the slowest rank, which one rank's trace cannot tell apart."
            }
            Self::AsyncCopy => {
                "A copy between host and device uses the copy engine; from pinned memory and on a stream of its \
                 own it runs beside kernels."
            }
            Self::Fuse => {
                "The bytes that it moves take its time. In one kernel with a neighbour that makes or takes them they \
                 are moved once less; a second stream would share the same bandwidth."
            }
            Self::Lessen => {
                "No neighbour can do it on the way: fewer bytes, many in one call, or a faster kernel shorten it."
            }
            Self::Tune => {
                "Compute is what other work hides behind: only a faster kernel shortens it."
            }
            Self::Inspect => "Its name does not say what it does, so find out before acting.",
        }
    }
}

/// Weight of exposed time in the order of candidates, in hundredths: what hides well comes first.
pub(super) fn weight(class: OverlapClass) -> i128 {
    match class {
        OverlapClass::Communication => 130,
        OverlapClass::Memory => 115,
        OverlapClass::Elementwise => 100,
        OverlapClass::Other => 80,
        OverlapClass::Compute => 35,
    }
}

/// Whether work of this class costs little while it is hidden.
pub(super) fn is_light(class: OverlapClass) -> bool {
    matches!(class, OverlapClass::Elementwise | OverlapClass::Memory)
}

/// `part` is at least `pct` percent of `whole`, exactly.
pub(super) fn at_least(part: i64, pct: i64, whole: i64) -> bool {
    i128::from(part) * 100 >= i128::from(whole) * i128::from(pct)
}

/// What the decision rests on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) verdict: Verdict,
    pub(super) remedy: Remedy,
    pub(super) risk: Risk,
    /// It is a fused kernel already.
    pub(super) fused: bool,
    /// What overlap could save at most, where overlap is the remedy.
    pub(super) bound_ns: Option<i64>,
    /// Sum of durations, of it exposed and hidden, and the stage's busy time.
    pub(super) total_ns: i64,
    pub(super) exclusive_ns: i64,
    pub(super) hidden_ns: i64,
    pub(super) busy_ns: i64,
}

/// Priority 1 to 5, and what to do: the first line that holds.
pub(super) fn decide(case: &Case) -> (u8, String) {
    let Case { verdict, remedy, risk, fused, bound_ns, total_ns, exclusive_ns, hidden_ns, busy_ns } =
        *case;
    let exposed = at_least(exclusive_ns, 85, total_ns);
    let headroom = verdict == Verdict::Headroom;
    if !at_least(total_ns, 1, busy_ns) {
        (5, "skip".to_owned())
    } else if remedy == Remedy::Tune
        || (remedy == Remedy::Lessen && verdict != Verdict::LowRoiHidden)
    {
        // Overlap cannot shorten it, whatever stands beside it.
        match (headroom || exposed, at_least(hidden_ns, 70, total_ns)) {
            (true, _) => (3, remedy.text().to_owned()),
            (false, true) => (5, "skip".to_owned()),
            (false, false) => (4, remedy.text().to_owned()),
        }
    } else if headroom && remedy == Remedy::Inspect {
        (2, "inspect".to_owned())
    } else if fused && verdict != Verdict::LowRoiHidden {
        (4, "fused already".to_owned())
    } else if headroom && bound_ns == Some(0) {
        // Nothing is there to hide it behind.
        (3, remedy.text().to_owned())
    } else if headroom && risk == Risk::Low {
        (1, remedy.text().to_owned())
    } else if headroom {
        (2, format!("check dependencies, then {}", remedy.text()))
    } else if verdict == Verdict::LowRoiHidden {
        (4, "skip".to_owned())
    } else if exposed && risk == Risk::Low {
        (3, "defer".to_owned())
    } else if at_least(hidden_ns, 70, total_ns) {
        (5, "skip".to_owned())
    } else {
        let recommendation = match risk {
            Risk::High => "check dependencies",
            Risk::Unclear => "inspect",
            Risk::Low => "defer",
        };
        (4, recommendation.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(verdict: Verdict, remedy: Remedy, risk: Risk, exclusive_ns: i64) -> Case {
        let total_ns = 100;
        let hidden_ns = total_ns - exclusive_ns;
        Case {
            verdict,
            remedy,
            risk,
            fused: false,
            bound_ns: None,
            total_ns,
            exclusive_ns,
            hidden_ns,
            busy_ns: 10_000,
        }
    }

    #[test]
    fn the_first_line_that_holds_decides() {
        use Remedy::{AsyncCopy, Fuse, Inspect, Lessen, Overlap, Tune};
        use Verdict::{Headroom, LowRoiHidden, Observe};
        for (verdict, remedy, risk, exclusive_ns, priority, recommendation) in [
            (Headroom, Overlap, Risk::Low, 100, 1, "overlap with compute"),
            (Headroom, AsyncCopy, Risk::Low, 45, 1, "async copy on a side stream, pinned memory"),
            (Headroom, Fuse, Risk::Low, 100, 1, "fusion"),
            (
                Headroom,
                Overlap,
                Risk::High,
                100,
                2,
                "check dependencies, then overlap with compute",
            ),
            (Headroom, Fuse, Risk::Unclear, 100, 2, "check dependencies, then fusion"),
            (Headroom, Inspect, Risk::Low, 100, 2, "inspect"),
            (Headroom, Tune, Risk::Low, 100, 3, "tune"),
            (Headroom, Lessen, Risk::High, 100, 3, "fewer bytes or calls"),
            (Observe, Tune, Risk::High, 20, 5, "skip"),
            (Observe, Tune, Risk::High, 40, 4, "tune"),
            (LowRoiHidden, Fuse, Risk::Low, 10, 4, "skip"),
            (Observe, Overlap, Risk::Low, 85, 3, "defer"),
            (Observe, Overlap, Risk::High, 30, 5, "skip"),
            (Observe, Overlap, Risk::High, 31, 4, "check dependencies"),
            (Observe, Overlap, Risk::Unclear, 40, 4, "inspect"),
            (Observe, Overlap, Risk::Low, 40, 4, "defer"),
        ] {
            let case = case(verdict, remedy, risk, exclusive_ns);
            assert_eq!(decide(&case), (priority, recommendation.to_owned()), "{case:?}");
            let small = Case { busy_ns: 10_001, ..case };
            assert_eq!(decide(&small), (5, "skip".to_owned()), "less than 1%: {small:?}");
        }
    }

    #[test]
    fn what_is_fused_already_or_has_nothing_to_hide_behind_is_not_urgent() {
        let fuse = case(Verdict::Headroom, Remedy::Fuse, Risk::High, 100);
        assert_eq!(decide(&Case { fused: true, ..fuse }), (4, "fused already".to_owned()));
        let copy = case(Verdict::Headroom, Remedy::Overlap, Risk::Low, 100);
        assert_eq!(decide(&Case { bound_ns: Some(0), ..copy }).0, 3);
        assert_eq!(decide(&Case { bound_ns: Some(1), ..copy }).0, 1);
    }

    #[test]
    fn compute_is_never_fused_and_every_class_has_its_remedy() {
        for category in Category::ALL {
            for route in [CopyRoute::Unknown, CopyRoute::HostToDevice, CopyRoute::DeviceToDevice] {
                let remedy = Remedy::of(*category, route);
                let computes = category.overlap_class() == OverlapClass::Compute;
                assert_eq!(computes, remedy == Remedy::Tune, "{category:?}");
            }
        }
        assert_eq!(Remedy::of(Category::Communication, CopyRoute::Unknown), Remedy::Overlap);
        assert_eq!(Remedy::of(Category::Norm, CopyRoute::Unknown), Remedy::Fuse);
        assert_eq!(Remedy::of(Category::Copy, CopyRoute::Unknown), Remedy::Fuse);
        assert_eq!(Remedy::of(Category::Memcpy, CopyRoute::DeviceToHost), Remedy::AsyncCopy);
        assert_eq!(Remedy::of(Category::Memcpy, CopyRoute::DeviceToDevice), Remedy::Lessen);
        assert_eq!(Remedy::of(Category::Index, CopyRoute::Unknown), Remedy::Lessen);
        assert_eq!(Remedy::of(Category::Memcpy, CopyRoute::Unknown), Remedy::Inspect);
        assert_eq!(Remedy::of(Category::Other, CopyRoute::Unknown), Remedy::Inspect);
    }
}
