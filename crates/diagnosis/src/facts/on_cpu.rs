//! What the ops of a file without GPU work ran on, and what takes their time.

use std::collections::BTreeMap;

use catalog::{Category, category_of_cpu_op};
use host::class::Class;
use report::short_name;
use report::units::{percent, plural, time};

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
const SEVERAL: usize = 5;
/// Characters of a name.
const NAME: usize = 60;

/// Where the ops of a file without GPU work ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RanOn {
    /// On the CPU.
    Cpu,
    /// On a GPU, with so many launch calls, of which nothing else was recorded.
    Launched(u64),
    /// On a GPU whose allocator wrote of its memory, and nothing else was recorded.
    Allocated,
    /// On Apple's GPU, which PyTorch's profiler does not record.
    Mps,
}

impl Facts<'_> {
    /// Where its ops ran, as nothing is recorded of a GPU.
    pub(crate) fn ran_on(&self) -> RanOn {
        let calls = self.slices.calls.iter();
        let memory = &self.host.memory;
        match calls.filter(|call| self.slices.class(call) == Class::Launch).count() as u64 {
            0 if memory
                .iter()
                .any(|row| row.device_type.is_some_and(|kind| GPUS.contains(&kind))) =>
            {
                RanOn::Allocated
            }
            0 if self.is_on_mps() => RanOn::Mps,
            0 => RanOn::Cpu,
            n => RanOn::Launched(n),
        }
    }

    /// Whether Apple's GPU ran the ops: some are named after it, and there `aten::linear` computes by itself, where it calls a product on
    /// other devices (`aten/src/ATen/native/native_functions.yaml`).
    fn is_on_mps(&self) -> bool {
        let ops = &self.slices.ops;
        let named = self.slices.names_with("mps_");
        let is_own = |at: usize| named[self.trace.name(ops.slices[at].row).0 as usize];
        if (0..ops.slices.len()).any(is_own) {
            return true;
        }
        let is_linear = |at: usize| self.slices.name(&ops.slices[at]) == "aten::linear";
        let allocates = |at: usize| self.slices.name(&ops.slices[at]).starts_with("aten::empty");
        let calls = |at: usize| ops.parent(at).is_some_and(is_linear) && !allocates(at);
        (0..ops.slices.len()).any(is_linear) && !(0..ops.slices.len()).any(calls)
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
        let (what, (ns, name)) = sums.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
        // (One op is told by its name.)
        let most = ops.ops.iter().find(|op| op.name == name)?.self_ns;
        let is_one = most as f64 >= NEARLY_ALL * ns as f64;
        let (what, ns) = if is_one { (name, most) } else { (what, ns) };
        let share = 100.0 * ns as f64 / ops.sum_self_ns.max(1) as f64;
        (share >= LEAST_PCT && ops.n_names > 1).then(|| {
            let (takes, most) = match what == name {
                true => ("takes", self.one_long_call(name, ns)),
                false => ("take", format!(", most of it in {name}")),
            };
            let all = time(ops.sum_self_ns);
            let (what, share) = (short_name(what, NAME), percent(share));
            format!(
                "{what} {takes} {share} of the CPU time of its ops ({} of {all}){most}.",
                time(ns)
            )
        })
    }

    /// Of several calls of an op the one that takes most of its time; empty where none does.
    fn one_long_call(&self, name: &str, ns: i64) -> String {
        let own = self.slices.ops.slices.iter().filter(|op| self.slices.name(op) == name);
        let times: Vec<i64> = own.map(host::HostSlice::dur_ns).collect();
        let longest = times.iter().copied().max().unwrap_or_default();
        if times.len() < SEVERAL || (longest as f64) < MOST_OF_IT * ns as f64 {
            return String::new();
        }
        let others = plural(times.len() as u64 - 1, "other call", "other calls");
        format!(", {} of it in one call: the {others} are short", time(longest.min(ns)))
    }
}
