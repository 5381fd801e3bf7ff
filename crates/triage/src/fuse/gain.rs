//! How much an advised change saves, in words.

use report::units;
use timeline::percent;
use wall::Wall;

use super::advice::{Advice, Rule};

/// How large an estimate is, and what it rests on.
pub(super) struct Gain {
    pub(super) sentence: String,
    pub(super) estimate: String,
}

pub(super) fn gain(advice: &Advice, wall: &Wall) -> Gain {
    let Rule {
        launches,
        is_mostly_launches: _,
        by_frames,
        held_ns,
        gaps_ns: _,
        attention_ns,
        latency_ns,
        interrupted,
        one_pass,
        twins,
        added,
        nodes,
    } = advice.rule;
    let of_gpu = of_gpu(attention_ns, latency_ns, one_pass);
    let twins = twins.map_or_else(String::new, |(ns, of_convolutions_ns)| {
        format!(
            "; not counted: {} of {}, which run other kernels in channels_last, faster or slower",
            units::time(ns),
            match of_convolutions_ns > 0 {
                true => "batch norms, poolings and convolutions (MIOpen's Winograd kernels)",
                false => "batch norms and poolings",
            }
        )
    });
    let added = added.map_or_else(String::new, |(n, ns)| {
        format!(
            "; {} of new gradients (AccumulateGrad, {} of exposed time) go away with the fills and also count",
            units::plural(n, "addition", "additions"),
            units::time(ns)
        )
    });
    let nodes = nodes.map_or_else(String::new, |(n, ns)| {
        format!(
            "; {} of their backward pass ({} of exposed time) {} away with them and also {}",
            units::plural(n, "kernel", "kernels"),
            units::time(ns),
            if n == 1 { "goes" } else { "go" },
            if n == 1 { "counts" } else { "count" },
        )
    });
    let interrupted = interrupted.map_or_else(String::new, |n| {
        format!(
            "; {} that ran over 20 times as long as equal ones {} with the median of those, because another process probably had the GPU",
            units::plural(n, "launch", "launches"),
            if n == 1 { "counts" } else { "count" },
        )
    });
    let limit = of_launches(launches, by_frames, wall);
    let held = held_ns.map_or_else(String::new, |ns| {
        format!(
            ". Another {} of GPU time goes away without shortening the run, because other work or late launches delay what follows",
            units::time(ns)
        )
    });
    let slowed = of_gpu_work(advice).map_or_else(String::new, |ns| {
        format!(
            " Recording Python stacks slows these launches; the kernels themselves are {} of the bound at most.",
            units::time(ns)
        )
    });
    let estimate = format!(
        "This is an estimate: {of_gpu}{interrupted}{twins}{added}{nodes}{limit}{held}.{slowed}"
    );
    let sentence = format!(
        " It saves at most {} ({} of {}). {estimate}",
        units::time(advice.saved_ns),
        units::percent(percent(advice.saved_ns, wall.span_ns)),
        wall.span(),
    );
    Gain { sentence, estimate }
}

/// What the GPU's part of a bound rests on.
fn of_gpu(attention_ns: Option<Option<i64>>, latency_ns: Option<i64>, one_pass: bool) -> String {
    match (attention_ns, latency_ns) {
        (None, Some(ns)) => format!(
            "{} of exposed time for each collective that goes away, as long as the shortest ones take; the bytes stay",
            units::time(ns)
        ),
        (Some(Some(ns)), _) => format!(
            "the exposed time of these kernels less {}, which a fused kernel takes at the GPU's peak rates",
            units::time(ns)
        ),
        (Some(None), _) => "the exposed time of these kernels and of the gaps between them, matrix products included. A fused kernel \
                       computes these, too; how long it takes is not known, because the sizes or the GPU's rates are not"
            .to_owned(),
        (None, None) if one_pass => {
            "the exposed time of these kernels without one pass over each tensor, where its size and the GPU's rates are known; a \
             batch norm that is folded into a convolution takes no time at all"
                .to_owned()
        }
        (None, None) => "the exposed time of these kernels and of the gaps between them, without what a fused kernel still takes".to_owned(),
    }
}

/// The time of kernels in a bound that is mostly the CPU time of launches, where recording stacks slows those.
fn of_gpu_work(advice: &Advice) -> Option<i64> {
    let (ns, rule) = (advice.gone_ns(), &advice.rule);
    let is_slowed = rule.by_frames && rule.launches.is_some();
    (is_slowed && ns.saturating_mul(2) < advice.saved_ns).then_some(ns)
}

/// What launches that go away save, after a semicolon; empty where no launch that goes away shortens the run.
fn of_launches(launches: Option<(u64, i64)>, by_frames: bool, wall: &Wall) -> String {
    match launches {
        Some((n, ns)) => format!(
            "; plus, where the GPU waits for the CPU, the CPU time of {} that {} away ({} in all, each {}; profiler overhead included{})",
            units::plural(n, "launch", "launches"),
            if n == 1 { "goes" } else { "go" },
            units::time(ns),
            match by_frames {
                true =>
                    "as long as the Python function that launches nothing else, or up to the next launch",
                false => "at most up to the next launch",
            },
            if wall.allocates() { ", allocation excluded" } else { "" },
        ),
        // (Then no launch that goes away shortens the run.)
        None if wall.linked => String::new(),
        None => "; no launches are recorded, so it is unknown where the GPU waits for the CPU"
            .to_owned(),
    }
}
