//! What the ops of a file without GPU work ran on, and what takes their time.

use std::collections::BTreeMap;

use catalog::{Category, category_of_cpu_op};
use report::short_name;
use report::units::{count, percent, time};

use super::Facts;

/// Types of devices that are GPUs, as PyTorch numbers them (`c10/core/DeviceType.h`): CUDA and HIP.
const GPUS: [i64; 2] = [1, 6];
/// Work is named from this share of the time of ops on, in percent.
const LEAST_PCT: f64 = 10.0;
/// An op that takes this part of a kind of work is all of it.
const NEARLY_ALL: f64 = 0.95;
/// One call that takes this part of an op's time is no pace of the op.
const MOST_OF_IT: f64 = 0.5;
/// From this many calls on.
const SEVERAL: u64 = 5;
/// Characters of a name.
const NAME: usize = 60;

/// Where the ops of a file without GPU work ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RanOn {
    /// On the CPU.
    Cpu,
    /// On a GPU, with so many launch calls, of which nothing else was recorded.
    Launched(u64),
    /// The same with so many calls that copy or fill, and no launch.
    Copied(u64),
    /// On a GPU whose allocator wrote of its memory, and nothing else was recorded.
    Allocated,
    /// On Apple's GPU, which PyTorch's profiler does not record, as ops are called.
    Mps,
    /// On one that it does not record, as `aten::linear` computes by itself.
    Unrecorded,
}

impl Facts<'_> {
    /// Where its ops ran, as nothing is recorded of a GPU.
    pub(crate) fn ran_on(&self) -> RanOn {
        let calls = || self.slices.calls.iter();
        let (launches, all) = (
            calls().filter(|call| self.starts_kernels(call)).count(),
            calls().filter(|call| self.gives_work(call)).count(),
        );
        let is_of_gpu = |kind: Option<i64>| kind.is_some_and(|kind| GPUS.contains(&kind));
        match (launches as u64, all as u64) {
            (0, 0) if self.host.memory.iter().any(|row| is_of_gpu(row.device_type)) => {
                RanOn::Allocated
            }
            (0, 0) if self.has_mps_ops() => RanOn::Mps,
            (0, 0) if self.has_own_linear() => RanOn::Unrecorded,
            (0, 0) => RanOn::Cpu,
            (0, n) => RanOn::Copied(n),
            (n, _) => RanOn::Launched(n),
        }
    }

    /// Whether ops are named after Apple's GPU (`aten::_mps_convolution`).
    fn has_mps_ops(&self) -> bool {
        let mut names = self.host.cpu_ops.ops.iter().filter_map(|op| op.name.rsplit_once("::"));
        names.any(|(_, name)| name.starts_with("mps_") || name.starts_with("_mps_"))
    }

    /// Whether `aten::linear` computes by itself, several times, and no op multiplies matrices for it, as on the CPU and on CUDA
    /// (`aten/src/ATen/native/native_functions.yaml`: MPS has a kernel of its own).
    fn has_own_linear(&self) -> bool {
        let ops = &self.slices.ops;
        let named = |name: &str| self.host.cpu_ops.ops.iter().find(|op| op.name == name);
        let is_linear = |at: usize| self.slices.name(&ops.slices[at]) == "aten::linear";
        let allocates = |at: usize| self.slices.name(&ops.slices[at]).starts_with("aten::empty");
        let calls = |at: usize| ops.parent(at).is_some_and(is_linear) && !allocates(at);
        named("aten::linear").is_some_and(|op| op.count >= SEVERAL)
            && ["aten::mm", "aten::addmm"].iter().all(|name| named(name).is_none())
            && !(0..ops.slices.len()).any(calls)
    }

    /// What takes most of the time of the ops on the CPU, where that is much: products and convolutions each as one, of whatever op.
    pub(crate) fn largest_op(&self) -> Option<String> {
        let ops = &self.host.cpu_ops;
        let mut sums: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        // (Annotations are among them, and have no namespace.)
        for op in ops.ops.iter().filter(|op| op.name.contains("::")) {
            let what = match category_of_cpu_op(&op.name) {
                Some(Category::Gemm) => "Matrix products",
                Some(Category::Conv) => "Convolutions",
                _ => &op.name,
            };
            // (The rows are sorted by time.)
            let (ns, _) = sums.entry(what).or_insert((0, &op.name));
            *ns = ns.saturating_add(op.self_ns);
        }
        // (Of equal ones the first by name.)
        let (what, (ns, name)) = sums.into_iter().rev().max_by_key(|(_, (ns, _))| *ns)?;
        // (One op is told by its name.)
        let most = ops.ops.iter().find(|op| op.name == name)?.self_ns;
        let is_one = most as f64 >= NEARLY_ALL * ns as f64;
        let (what, ns) = if is_one { (name, most) } else { (what, ns) };
        let share = 100.0 * ns as f64 / ops.sum_self_ns.max(1) as f64;
        (share >= LEAST_PCT && ops.n_names > 1).then(|| {
            let is_most = most as f64 >= MOST_OF_IT * ns as f64;
            let takes = if is_one { "takes" } else { "take" };
            let most = match is_one {
                true => self.one_long_call(name, ns),
                false if is_most => format!(", most of it in {name}"),
                false => String::new(),
            };
            let all = time(ops.sum_self_ns);
            let (what, share) = (short_name(what, NAME), percent(share));
            format!(
                "{what} {takes} {share} of the CPU time of the ops ({} of {all}){most}.",
                time(ns)
            )
        })
    }

    /// Of several calls of an op the one that takes most of its own time; empty where none does.
    fn one_long_call(&self, name: &str, ns: i64) -> String {
        let ops = &self.slices.ops;
        let own_ns = ops.self_ns();
        let own = ops.slices.iter().zip(own_ns).filter(|(op, _)| self.slices.name(op) == name);
        let times: Vec<i64> = own.map(|(_, ns)| ns).collect();
        let longest = times.iter().copied().max().unwrap_or_default();
        let n = times.len() as u64;
        if n < SEVERAL || (longest as f64) < MOST_OF_IT * ns as f64 {
            return String::new();
        }
        format!(", {} of it in one of {} calls", time(longest), count(n))
    }
}
