//! The decisions as tables: thresholds, what could shorten exposed time, priorities. No trace in here.

use catalog::remedies::Remedy;
use catalog::{Category, CopyRoute, OverlapClass};

use super::risk::Risk;
use crate::priority::Priority;

/// Below this total a kernel gets no row, in ns.
pub(super) const LEAST_NS: i64 = 5_000;

/// From this share of exposed time on there is headroom, in percent.
pub(super) const HEADROOM_PCT: i64 = 45;

/// From this share of hidden time on more overlap gains little, in percent.
pub(super) const HIDDEN_PCT: i64 = 65;

/// How many rows each verdict gets in a stage.
pub(super) const MOST_ROWS: usize = 5;

/// Why a row is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Much of it is exposed.
    Headroom,
    /// Most of it is hidden, and it is of a class that costs little while it is.
    LowRoiHidden,
    /// Neither; listed because it takes much time.
    Observe,
}

impl Verdict {
    /// The word for it in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Headroom => "headroom",
            Self::LowRoiHidden => "low-roi-hidden",
            Self::Observe => "observe",
        }
    }
}

/// What could shorten the exposed time of work, by what the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lever {
    /// Run it beside compute on another stream.
    Overlap,
    /// Copy from pinned memory, on a stream of its own.
    Copy,
    /// Make the kernel itself faster.
    Tune,
    /// None: another stream would share the same bandwidth.
    None,
}

impl Lever {
    /// What moves bytes within the device competes with every kernel for its bandwidth; what copies to and from the host or
    /// between devices does not.
    pub(super) fn of(category: Category, route: CopyRoute) -> Self {
        match category.overlap_class() {
            OverlapClass::Compute => Self::Tune,
            OverlapClass::Communication => Self::Overlap,
            OverlapClass::Memory if category == Category::Memcpy => match route {
                CopyRoute::HostToDevice | CopyRoute::DeviceToHost => Self::Copy,
                CopyRoute::PeerToPeer => Self::Overlap,
                CopyRoute::DeviceToDevice | CopyRoute::Unknown => Self::None,
            },
            OverlapClass::Elementwise | OverlapClass::Memory | OverlapClass::Other => Self::None,
        }
    }

    /// Ids of the remedies that may apply: rows of [`catalog::remedies::REMEDIES`].
    pub(super) fn remedies(self) -> &'static [&'static str] {
        match self {
            Self::Overlap => &["overlap-collective", "ddp-compress"],
            Self::Copy => &["pin-host-memory", "copy-stream"],
            Self::Tune | Self::None => &[],
        }
    }

    /// What is said of work that nothing is advised for.
    pub(super) fn without_advice(self) -> &'static str {
        match self {
            Self::None => {
                "It moves data within the GPU's memory, whose bandwidth work of a second stream would share."
            }
            // (What limits a kernel of class compute, its name does not tell.)
            Self::Tune | Self::Overlap | Self::Copy => "",
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
    pub(super) lever: Lever,
    pub(super) risk: Risk,
    /// The remedy whose gates are open and that saves enough wall time, with its priority.
    pub(super) advised: Option<(&'static Remedy, Priority)>,
    /// Sum of durations, and the stage's busy time.
    pub(super) total_ns: i64,
    pub(super) busy_ns: i64,
}

/// What to do, with its priority; `None` where nothing is advised.
pub(super) fn decide(case: &Case) -> Option<(Priority, String)> {
    let Case { lever, risk, advised, total_ns, busy_ns } = *case;
    let large = at_least(total_ns, 1, busy_ns);
    // A collective that most of its neighbours depend on has nothing to run beside.
    let advised = advised.filter(|_| lever != Lever::Overlap || risk != Risk::High);
    let (remedy, priority) = advised.filter(|_| large)?;
    let what = match risk {
        Risk::Low => remedy.what.to_owned(),
        Risk::High | Risk::Unclear => format!("{}; check the dependencies first", remedy.what),
    };
    Some((priority, what))
}

#[cfg(test)]
mod tests {
    use catalog::remedies::remedy;

    use super::*;

    fn case(lever: Lever, risk: Risk, advised: Option<(&'static str, Priority)>) -> Case {
        Case {
            lever,
            risk,
            advised: advised.and_then(|(id, priority)| Some((remedy(id)?, priority))),
            total_ns: 100,
            busy_ns: 10_000,
        }
    }

    #[test]
    fn the_bound_decides_the_priority_and_the_risk_the_words() {
        let advised = Some(("overlap-collective", Priority::P2));
        for (case, recommendation) in [
            (case(Lever::Overlap, Risk::Low, advised), Some("overlap with independent compute")),
            (
                case(Lever::Overlap, Risk::Unclear, advised),
                Some("overlap with independent compute; check the dependencies first"),
            ),
            (case(Lever::Overlap, Risk::High, advised), None),
            (case(Lever::Overlap, Risk::Low, None), None),
            (case(Lever::Tune, Risk::High, None), None),
        ] {
            let expected = recommendation.map(|what| (Priority::P2, what.to_owned()));
            assert_eq!(decide(&case), expected, "{case:?}");
            let small = Case { busy_ns: 10_001, ..case };
            assert_eq!(decide(&small), None, "less than 1%: {small:?}");
        }
    }

    #[test]
    fn no_kernel_is_fused_or_moved_by_its_class_alone() {
        for category in Category::ALL {
            for route in [CopyRoute::Unknown, CopyRoute::HostToDevice, CopyRoute::DeviceToDevice] {
                let lever = Lever::of(*category, route);
                let computes = category.overlap_class() == OverlapClass::Compute;
                assert_eq!(computes, lever == Lever::Tune, "{category:?}");
            }
        }
        assert_eq!(Lever::of(Category::Communication, CopyRoute::Unknown), Lever::Overlap);
        // A radix sort is no part of a fused kernel.
        for category in [Category::SamplingTopk, Category::ScanSort, Category::Norm, Category::Copy]
        {
            assert_eq!(Lever::of(category, CopyRoute::Unknown), Lever::None, "{category:?}");
        }
        assert_eq!(Lever::of(Category::Memcpy, CopyRoute::DeviceToHost), Lever::Copy);
        assert_eq!(Lever::of(Category::Memcpy, CopyRoute::DeviceToDevice), Lever::None);
        for lever in [Lever::Overlap, Lever::Copy, Lever::Tune, Lever::None] {
            assert!(lever.remedies().iter().all(|id| remedy(id).is_some()), "{lever:?}");
        }
    }
}
