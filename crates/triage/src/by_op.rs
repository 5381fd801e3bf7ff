//! What a kernel does when its name does not say: what the ops that launched it do.

use std::collections::BTreeMap;

use catalog::{Category, category_of_cpu_op, is_bare_inductor_name, samples};

use super::attribution::Linker;
use super::facts::Regions;
use timeline::gpu::{DecidedBy, Gpu, Work};
use timeline::launches::Launches;

/// Whether the op may say more than the name: of a name that no rule knows, and of one that sorts, for sorting alone does
/// not tell sampling from the gradient of an embedding.
fn is_open(work: &Work, name: &str) -> bool {
    // (Under one name that says nothing, TorchInductor has kernels of every kind: one op does not tell what the others do.)
    work.category == Category::Other && !is_bare_inductor_name(name)
        || (work.category == Category::ScanSort && name.to_ascii_lowercase().contains("sort"))
        || is_list_arithmetic(work, name)
}

/// Whether the name is arithmetic over lists of tensors, which optimizers are made of, but clipping of gradients, too.
fn is_list_arithmetic(work: &Work, name: &str) -> bool {
    work.category == Category::Elementwise && name.contains("multi_tensor_apply_kernel")
}

/// The category of a kernel that is open, by its op; `None` where the op says no more than the name.
fn by_op(work: &Work, op: &str) -> Option<Category> {
    match work.category {
        Category::ScanSort => samples(op).then_some(Category::SamplingTopk),
        _ => category_of_cpu_op(op),
    }
}

/// Gives every kernel name whose work is open the category of its ops: that with most of its time. (A name that says
/// anything is more reliable, because ops launch helper kernels, too.)
#[inline(never)]
pub(super) fn classify(gpu: &mut Gpu<'_>, linker: &Linker<'_>) {
    let name = |work: &Work| gpu.trace.strings.get(work.name);
    let open: Vec<bool> = gpu.works.iter().map(|work| is_open(work, name(work))).collect();
    if !open.contains(&true) {
        return;
    }
    let launches = Launches::of(gpu);
    let lists: Vec<bool> =
        gpu.works.iter().map(|work| is_list_arithmetic(work, name(work))).collect();
    let steps = match lists.contains(&true) {
        true => Regions::of(gpu.trace, |name| name.starts_with("Optimizer.step#")),
        false => Regions::default(),
    };
    let mut times: BTreeMap<(usize, Category), i64> = BTreeMap::new();
    for at in 0..gpu.len() {
        let slice = gpu.slice(at);
        if !open[slice.work] {
            continue;
        }
        let work = &gpu.works[slice.work];
        let launch = launches.of_slice(at);
        let external = gpu.trace.external(gpu.row(at));
        let op = if lists[slice.work] {
            let updates = launch.is_some_and(|launch| steps.hold(gpu.trace, launch));
            updates.then_some(Category::Optimizer)
        } else {
            launch
                .and_then(|launch| linker.op_of(launch, external, launches.is_sure(at)).0)
                .and_then(|op| by_op(work, gpu.trace.name_text(op)))
        };
        // A sort that no op explains stays one, with its time.
        let category = op.or(Some(work.category).filter(|own| *own != Category::Other));
        if let Some(category) = category {
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
        let work = &mut gpu.works[work];
        if category != work.category {
            work.category = category;
            work.decided_by = DecidedBy::Op;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{CategoryReason, KernelKey, Note, Sources, TriageOptions, triage_kept};
    use catalog::Category;
    use fixture::{Fixture, kernel, slice};

    /// The category of a kernel that an op launches.
    fn of(op: &str, kernel_name: &str) -> Category {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        fixture.push(cpu("cpu_op", op).at(100, 50).external(1));
        fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(109, 2).link(1));
        fixture.push(kernel(kernel_name).at(120, 10).link(1).external(1));
        let trace = fixture.finish();
        let (report, _) = triage_kept(&trace, &TriageOptions::default(), &Sources::default());
        report.kernels[0].category
    }

    #[test]
    fn a_kernel_without_a_name_of_its_own_has_no_category_of_one_op() {
        for (name, expected) in [
            ("triton_", Category::Other),
            ("triton__0d1d2de", Category::Other),
            ("write_back_custom", Category::Copy),
        ] {
            assert_eq!(of("aten::copy_", name), expected, "{name}");
        }
    }

    #[test]
    fn a_sort_is_sampling_only_where_its_op_says_so() {
        let sort = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int>::Policy800>(int)";
        for (op, expected) in [
            ("aten::embedding_dense_backward", Category::ScanSort),
            ("aten::_index_put_impl_", Category::ScanSort),
            ("aten::topk", Category::SamplingTopk),
            ("sgl_kernel::top_p_sampling_from_probs", Category::SamplingTopk),
        ] {
            assert_eq!(of(op, sort), expected, "{op}");
        }
    }

    #[test]
    fn list_arithmetic_is_the_optimizer_s_where_its_step_launches_it() {
        let lists = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(int)";
        for (range, expected) in [
            ("Optimizer.step#AdamW.step", Category::Optimizer),
            ("clip_grad_norm_", Category::Elementwise),
        ] {
            let mut fixture = Fixture::default();
            let cpu = |category, name| slice(category, name).on(1, 1);
            fixture.push(cpu("user_annotation", range).at(90, 100));
            fixture.push(cpu("cpu_op", "aten::_foreach_add_").at(100, 50).external(1));
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel").at(109, 2).link(1));
            fixture.push(kernel(lists).at(120, 10).link(1).external(1));
            let trace = fixture.finish();
            let (report, _) = triage_kept(&trace, &TriageOptions::default(), &Sources::default());
            assert_eq!(report.kernels[0].category, expected, "{range}");
        }
    }

    #[test]
    fn a_name_that_tells_nothing_is_what_its_op_does() {
        let mut fixture = Fixture::default();
        let cpu = |category, name| slice(category, name).on(1, 1);
        let kernels = [
            ("qwertz_v2", "aten::mm", 10),
            ("qwertz_v2", "aten::add", 30),
            ("qwertz_v2", "mylib::thing", 90),
            ("asdf_v3", "mylib::thing", 5),
            // A name that says anything is more reliable.
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
            rows.map(|row| (&*row.kernel_name, row.category, &row.notes[..])).collect();
        let expected = [
            ("qwertz_v2", Category::Elementwise, &[Note::CategoryByOp][..]),
            ("asdf_v3", Category::Other, &[]),
            ("void flash_fwd_kernel<1>()", Category::Attention, &[]),
        ];
        assert_eq!(found, expected);
        let key = KernelKey { stage: "all".into(), device: None, kernel_name: "qwertz_v2".into() };
        assert_eq!(slices.kernel(&trace, &key, 1).unwrap().reason, CategoryReason::Op);
    }
}
