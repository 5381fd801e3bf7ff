//! The figures of a generated trace, from what its events were made of and not from its text.
//!
//! The keys and definitions are those of the reference for the real traces (`*.truth.json`), so that one test checks both:
//! a GPU slice is an `X` event of the raw categories `kernel`, `gpu_memcpy`, `gpu_memset`, `memcpy` and `memset`; busy time
//! is the length of the union of their intervals; two slices of one track cross if they overlap and do not nest. The
//! computation is the plainest possible, and shares nothing with the product.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What an event was made of; ids as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) phase: String,
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) pid: String,
    pub(crate) tid: String,
    pub(crate) start_ns: Option<i64>,
    pub(crate) dur_ns: Option<i64>,
    pub(crate) device: Option<String>,
    pub(crate) stream: Option<String>,
}

impl Facts {
    /// Start and end; a missing or negative duration counts as 0.
    fn interval(&self) -> (i64, i64) {
        let start = self.start_ns.unwrap_or(0);
        (start, start + self.dur_ns.unwrap_or(0).max(0))
    }

    fn dur(&self) -> i64 {
        let (start, end) = self.interval();
        end - start
    }

    fn is_gpu(&self, kind: &str) -> bool {
        let lower = self.category.to_lowercase();
        ["kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"].contains(&&*lower)
            && lower.contains(kind)
    }

    fn device(&self) -> &str {
        self.device.as_deref().unwrap_or(&self.pid)
    }

    fn stream(&self) -> &str {
        self.stream.as_deref().unwrap_or(&self.tid)
    }
}

/// The figures of all these events.
pub(crate) fn truth(events: &[Facts]) -> Value {
    let slices: Vec<&Facts> =
        events.iter().filter(|event| event.phase == "X" && event.start_ns.is_some()).collect();
    let mut steps: Vec<&Facts> =
        slices.iter().copied().filter(|slice| slice.name.starts_with("ProfilerStep")).collect();
    steps.sort_by_key(|step| (step.start_ns, &step.category));
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            json!({
                "name": step.name, "cat": step.category, "pid": step.pid, "tid": step.tid,
                "ts_ns": step.start_ns, "dur_ns": step.dur(),
            })
        })
        .collect();
    let (pairs, crossing) = crossings(&slices);
    json!({
        "n_events": events.len(),
        "by_ph": count(events, |event| &event.phase),
        "by_cat": count(events, |event| &event.category),
        "x_without_dur": slices.iter().filter(|slice| slice.dur_ns.is_none()).count(),
        "events_with_sub_ns_digits": 0,
        "x_first_ts_ns": slices.iter().map(|slice| slice.interval().0).min(),
        "x_last_end_ns": slices.iter().map(|slice| slice.interval().1).max(),
        "gpu": gpu(&slices),
        "tracks": {"crossing_pairs": pairs, "crossing_events": crossing},
        "profiler_steps": steps,
    })
}

fn count<'a>(events: &'a [Facts], key: impl Fn(&'a Facts) -> &'a str) -> Map<String, Value> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        *counts.entry(key(event)).or_default() += 1;
    }
    counts.remove("");
    counts.into_iter().map(|(key, n)| (key.to_owned(), n.into())).collect()
}

fn gpu(slices: &[&Facts]) -> Value {
    let of_kind = |kind| slices.iter().copied().filter(move |slice| slice.is_gpu(kind));
    let all: Vec<&Facts> = of_kind("").collect();
    let kernels: Vec<&Facts> = of_kind("kernel").collect();
    let mut by_name: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for kernel in &kernels {
        by_name.entry(&kernel.name).or_default().push(kernel.dur());
    }
    let mut figures = json!({
        "n_gpu_events": all.len(),
        "n_kernels": kernels.len(),
        "n_memcpy": of_kind("memcpy").count(),
        "n_memset": of_kind("memset").count(),
        "n_kernel_names": by_name.len(),
        "sum_kernel_ns": sum(&kernels),
        "sum_memcpy_ns": sum(&of_kind("memcpy").collect::<Vec<_>>()),
        "sum_memset_ns": sum(&of_kind("memset").collect::<Vec<_>>()),
        "zero_dur_gpu_events": all.iter().filter(|slice| slice.dur() == 0).count(),
    });
    if all.is_empty() {
        return figures;
    }
    let mut rows: Vec<(&str, Vec<i64>)> = by_name.into_iter().collect();
    rows.sort_by_key(|(name, durations)| (-durations.iter().sum::<i64>(), *name));
    let top = rows.iter().take(20).map(|(name, durations)| {
        json!({
            "name": name,
            "count": durations.len(),
            "sum_ns": durations.iter().sum::<i64>(),
            "min_ns": durations.iter().min(),
            "max_ns": durations.iter().max(),
        })
    });
    let rows_of = |(name, durations): &(&str, Vec<i64>)| {
        json!([name, durations.len(), durations.iter().sum::<i64>()])
    };
    let (first, last, busy) = extent(&all);
    let more = json!({
        "first_ns": first,
        "last_ns": last,
        "span_ns": last - first,
        "busy_ns": busy,
        "idle_ns": last - first - busy,
        "kernel_busy_ns": extent(&kernels).2,
        "devices": devices(&all),
        "kernels_top20": top.collect::<Vec<_>>(),
        "kernels_all": rows.iter().map(rows_of).collect::<Vec<_>>(),
    });
    if let (Value::Object(figures), Value::Object(more)) = (&mut figures, more) {
        figures.extend(more);
    }
    figures
}

fn devices(slices: &[&Facts]) -> Map<String, Value> {
    let figures = |(device, slices): (&str, Vec<&Facts>)| {
        let (first, last, busy) = extent(&slices);
        let streams: Map<String, Value> = grouped(&slices, Facts::stream)
            .into_iter()
            .map(|(stream, slices)| {
                let figures =
                    json!({"n": slices.len(), "sum_ns": sum(&slices), "busy_ns": extent(&slices).2});
                (stream.to_owned(), figures)
            })
            .collect();
        let figures = json!({
            "n": slices.len(),
            "span_ns": last - first,
            "busy_ns": busy,
            "idle_ns": last - first - busy,
            "streams": streams,
        });
        (device.to_owned(), figures)
    };
    grouped(slices, Facts::device).into_iter().map(figures).collect()
}

fn grouped<'a>(
    slices: &[&'a Facts],
    key: impl Fn(&'a Facts) -> &'a str,
) -> BTreeMap<&'a str, Vec<&'a Facts>> {
    let mut groups: BTreeMap<&str, Vec<&Facts>> = BTreeMap::new();
    for slice in slices {
        groups.entry(key(slice)).or_default().push(slice);
    }
    groups
}

fn sum(slices: &[&Facts]) -> i64 {
    slices.iter().map(|slice| slice.dur()).sum()
}

/// First start, last end, and the length of the union of the intervals.
fn extent(slices: &[&Facts]) -> (i64, i64, i64) {
    let mut intervals: Vec<(i64, i64)> = slices.iter().map(|slice| slice.interval()).collect();
    intervals.sort_unstable();
    let first = intervals.first().map_or(0, |(start, _)| *start);
    let (mut covered, mut busy) = (first, 0);
    for (start, end) in intervals {
        busy += (end - covered.max(start)).max(0);
        covered = covered.max(end);
    }
    (first, covered, busy)
}

/// Pairs of slices of one track that cross, and the number of slices in such pairs. Every pair is compared.
fn crossings(slices: &[&Facts]) -> (u64, u64) {
    let (mut pairs, mut crossing) = (0, 0);
    let mut tracks: BTreeMap<(&str, &str), Vec<(i64, i64)>> = BTreeMap::new();
    for slice in slices {
        tracks.entry((&slice.pid, &slice.tid)).or_default().push(slice.interval());
    }
    for intervals in tracks.values() {
        let mut crosses = vec![false; intervals.len()];
        for (at, a) in intervals.iter().enumerate() {
            for (other, b) in intervals.iter().enumerate() {
                if a.0 < b.0 && b.0 < a.1 && a.1 < b.1 {
                    pairs += 1;
                    (crosses[at], crosses[other]) = (true, true);
                }
            }
        }
        crossing += crosses.iter().filter(|crosses| **crosses).count() as u64;
    }
    (pairs, crossing)
}

#[cfg(test)]
mod tests {
    use crate::{Kineto, event};

    /// Worked out by hand: `a` [0, 10) and `b` [6, 14) cross, a copy lies in a gap that ends at 30.
    #[test]
    fn figures_are_those_worked_out_by_hand() {
        let mut trace = Kineto::new();
        let on = |cat: &str, name: &str, at: i64, ns: i64| {
            event("X", cat, name)
                .on(0, 7)
                .at_ns(at)
                .lasting_ns(ns)
                .arg("device", 0)
                .arg("stream", 7)
        };
        trace.push(on("kernel", "a", 0, 10));
        trace.push(on("kernel", "b", 6, 8));
        trace.push(on("kernel", "inner", 7, 2));
        trace.push(on("gpu_memcpy", "Memcpy HtoD", 20, 10));
        trace.push(event("X", "cpu_op", "aten::mm").on(1, 1).at_ns(0));
        trace.push(event("M", "", "process_name").on("p", 0).arg("name", "x"));
        let truth = trace.truth();
        let gpu = &truth["gpu"];
        for (key, value) in [
            ("n_kernels", 3),
            ("n_memcpy", 1),
            ("sum_kernel_ns", 20),
            ("busy_ns", 24),
            ("kernel_busy_ns", 14),
            ("span_ns", 30),
            ("idle_ns", 6),
        ] {
            assert_eq!(gpu[key], value, "{key}");
        }
        assert_eq!(
            gpu["kernels_all"],
            serde_json::json!([["a", 1, 10], ["b", 1, 8], ["inner", 1, 2]])
        );
        assert_eq!(gpu["devices"]["0"]["streams"]["7"]["n"], 4);
        assert_eq!(
            (&truth["tracks"]["crossing_pairs"], &truth["n_events"]),
            (&1.into(), &6.into())
        );
        assert_eq!((&truth["by_ph"]["X"], &truth["x_without_dur"]), (&5.into(), &1.into()));
        assert_eq!(truth["by_cat"].get(""), None);
    }
}
