//! Whether PyTorch's cache of GPU memory is off (`PYTORCH_NO_CUDA_MEMORY_CACHING`): then each tensor is a call of the driver.

use trace::{Phase, StringId, Trace, each_row};

/// Fewer calls are those of a first run.
const LEAST: u64 = 100;
/// Of the ops that make a tensor, so many percent have a call.
const LEAST_PCT: u64 = 80;
/// Libraries allocate workspaces beside them; more than so many times the tensors are something else.
const MOST_TIMES: u64 = 3;
/// Calls that allocate.
const MALLOCS: [&str; 2] = ["cudaMalloc", "hipMalloc"];
/// The ops that allocate a tensor; others call these.
const EMPTY: [&str; 2] = ["aten::empty", "aten::empty_strided"];

/// The calls that allocate memory of the driver, and their name, where there are about as many as ops that make a tensor. (Not all tensors
/// have such an op: convolutions allocate, too.)
#[must_use]
pub fn uncached(trace: &Trace) -> Option<(u64, StringId)> {
    let marked = |names: [&str; 2]| trace.strings.marked(&|name| names.contains(&name));
    let (mallocs, empty) = (marked(MALLOCS), marked(EMPTY));
    let is = |marks: &[bool], StringId(name): StringId| marks.get(name as usize) == Some(&true);
    let (mut n_mallocs, mut n_empty) = (0_u64, 0_u64);
    let mut malloc = None;
    each_row(trace, |row| {
        if trace.phase(row) == Phase::Complete {
            let name = trace.name(row);
            if is(&mallocs, name) {
                n_mallocs += 1;
                malloc = Some(name);
            }
            n_empty += u64::from(is(&empty, name));
        }
    });
    let of_tensors = n_mallocs.saturating_mul(100) >= n_empty.saturating_mul(LEAST_PCT);
    // (Many more are not those of tensors.)
    let is_few = n_mallocs <= n_empty.saturating_mul(MOST_TIMES);
    let is_off = n_empty >= LEAST && n_mallocs >= LEAST && of_tensors && is_few;
    Some((n_mallocs, malloc?)).filter(|_| is_off)
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};

    use super::*;

    #[test]
    fn a_call_for_each_tensor_is_no_first_run() {
        let with = |n_tensors: i64, every: i64| {
            let mut fixture = Fixture::default();
            for n in 0..n_tensors {
                fixture.push(slice("cpu_op", "aten::empty").at(n * 1_000, 900).on(1, 1));
                if n % every == 0 {
                    fixture
                        .push(slice("cuda_runtime", "cudaMalloc").at(n * 1_000 + 1, 800).on(1, 1));
                }
            }
            uncached(&fixture.finish()).map(|(n_mallocs, _)| n_mallocs)
        };
        assert_eq!(with(200, 1), Some(200));
        assert_eq!(with(400, 2), None, "half of them come from the cache");
        assert_eq!(with(50, 1), None);
    }
}
