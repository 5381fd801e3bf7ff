//! The last resort for a kernel whose name tells nothing: what the ops that launched it do.

use std::collections::BTreeMap;

use catalog::{Category, category_of_cpu_op};

use super::attribution::Linker;
use crate::gpu::Gpu;
use crate::launches::Launches;

/// Gives every kernel name that no rule knows the category of its ops: that with most of its time. (Names that tell
/// anything know better, for ops launch helpers, too.)
#[inline(never)]
pub(super) fn classify(gpu: &mut Gpu<'_>, linker: &Linker<'_>) {
    let unknown: Vec<bool> =
        gpu.works.iter().map(|work| work.category == Category::Other).collect();
    if !unknown.contains(&true) {
        return;
    }
    let launches = Launches::of(gpu);
    let mut times: BTreeMap<(usize, Category), i64> = BTreeMap::new();
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        if !unknown[slice.work] {
            continue;
        }
        let launch = launches.of_slice(at);
        let external = gpu.trace.external(gpu.row(at));
        let op = launch
            .and_then(|launch| linker.op_of(launch, external, launches.is_sure(at)).0)
            .and_then(|op| category_of_cpu_op(gpu.trace.name_text(op)));
        if let Some(category) = op {
            let ns = times.entry((slice.work, category)).or_default();
            *ns = ns.saturating_add(slice.dur_ns);
        }
    }
    let mut most: BTreeMap<usize, (i64, Category)> = BTreeMap::new();
    for ((work, category), ns) in times {
        let best = most.entry(work).or_insert((ns, category));
        if ns > best.0 {
            *best = (ns, category);
        }
    }
    for (work, (_, category)) in most {
        gpu.works[work].category = category;
        gpu.works[work].by_op = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Fixture, kernel, slice};
    use crate::triage::{KernelKey, Sources, TriageOptions, triage_kept};

    #[test]
    fn a_name_that_tells_nothing_is_what_its_op_does() {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        let kernels = [
            ("qwertz_v2", "aten::mm", 10),
            ("qwertz_v2", "aten::add", 30),
            ("qwertz_v2", "mylib::thing", 90),
            ("asdf_v3", "mylib::thing", 5),
            // A name that tells anything knows better.
            ("void flash_fwd_kernel<1>()", "aten::mm", 5),
        ];
        for (n, (name, op, dur)) in (1..).zip(kernels) {
            fixture.push(cpu("cpu_op", op).at(100 * n, 50).external(n));
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(100 * n + 9, 2).link(n));
            fixture.push(kernel(name).at(100 * n + 20, dur).link(n).external(n));
        }
        let trace = fixture.finish();
        let (report, slices) = triage_kept(&trace, &TriageOptions::default(), &Sources::default());
        let rows = report.kernels.iter();
        let found: Vec<_> =
            rows.map(|row| (&*row.kernel_name, &*row.category, row.notes.join(";"))).collect();
        let expected = [
            ("qwertz_v2", "elementwise", "category-by-op".to_owned()),
            ("asdf_v3", "other", String::new()),
            ("void flash_fwd_kernel<1>()", "attention", String::new()),
        ];
        assert_eq!(found, expected);
        let key = KernelKey { stage: "all".into(), device: None, kernel_name: "qwertz_v2".into() };
        assert_eq!(slices.kernel(&trace, &key, 1).unwrap().rule, "by-context");
    }
}
