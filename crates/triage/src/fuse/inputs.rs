//! Whether kernels that follow each other belong together, by the sizes that their ops were called with: GEMMs that may share
//! an input, elementwise kernels that a compiler may merge.

use super::find::{Candidate, Find, Sought};
use crate::arguments::Arguments;
use crate::shapes::Gemm;

/// Of chains whose GEMMs must share an input, keeps the finds whose input sizes are recorded and equal. (No file records
/// whether it is the same tensor.)
pub(super) fn judge(candidate: &mut Candidate, arguments: Option<&Arguments>) {
    let Candidate { sought: Sought::Chain(chain), split, slices, .. } = candidate else { return };
    if !chain.same_input {
        return;
    }
    let Some(arguments) = arguments else {
        split.clear();
        return;
    };
    split.retain(|find| {
        let slices = slices.get(find.from as usize..find.to as usize).unwrap_or_default();
        let sizes: Vec<Option<(i64, i64, i64)>> = slices
            .iter()
            .map(|at| arguments.gemm(*at as usize).map(|Gemm { batch, m, n: _, k }| (batch, m, k)))
            .collect();
        let first = sizes.first().copied().flatten();
        first.is_some() && sizes.iter().all(|sizes| *sizes == first)
    });
}

/// Of chains in which fills must belong to a matrix product, keeps the finds whose fills are launched by an op of one.
pub(super) fn of_product(candidate: &mut Candidate, is_other_fill: impl Fn(u32) -> bool) {
    let Candidate { sought: Sought::Chain(chain), split, slices, .. } = candidate else { return };
    if !chain.fills_of_product {
        return;
    }
    split.retain(|find| {
        let parts = slices.get(find.from as usize..find.to as usize).unwrap_or_default();
        !parts.iter().any(|at| is_other_fill(*at))
    });
}

/// Of chains whose kernels must work on equally many elements, keeps the rows in which they do: PyTorch's compiler merges
/// elementwise kernels of one size. A row ends at a kernel of another or unknown size, and at one for which `is_apart`.
pub(super) fn split_by_elements(
    candidate: &mut Candidate,
    arguments: Option<&Arguments>,
    is_apart: impl Fn(u32) -> bool,
) {
    let Sought::Chain(chain) = candidate.sought else { return };
    if !chain.same_elements {
        return;
    }
    let least = chain.least();
    let elements = |at: u32| {
        let of = arguments.and_then(|arguments| arguments.elements(at as usize));
        of.filter(|_| !is_apart(at))
    };
    let (mut slices, mut split) = (Vec::new(), Vec::new());
    for find in &candidate.split {
        let all = candidate.slices.get(find.from as usize..find.to as usize).unwrap_or_default();
        for row in all.chunk_by(|at, next| elements(*at) == elements(*next)) {
            let is_known = row.first().is_some_and(|at| elements(*at).is_some());
            if is_known && row.len() >= least {
                let from = slices.len() as u32;
                slices.extend_from_slice(row);
                split.push(Find { from, to: slices.len() as u32 });
            }
        }
    }
    (candidate.slices, candidate.split) = (slices, split);
}

#[cfg(test)]
mod tests {
    use trace::{Details, OpInputs, Row};

    use crate::{Sources, TriageOptions, triage};
    use fixture::{Fixture, kernel, slice};

    const GEMM: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_ISA942";

    const MS: i64 = 1_000_000;

    /// Whether three GEMMs of one kernel, whose ops were called with these sizes, are found as K10, and that they are not
    /// advised.
    fn same_sizes(dims: [&str; 3]) -> bool {
        let mut fixture = Fixture::default();
        let mut details = Details::default();
        for (n, dims) in (1..).zip(dims) {
            let cpu = |category, name| slice(category, name).on(1, 1);
            let row = 3 * (n as Row - 1);
            fixture.push(cpu("cpu_op", "aten::mm").at(n * 100, 50).external(n));
            fixture.push(cpu("cuda_runtime", "hipLaunchKernel").at(n * 100 + 5, 2).link(n));
            fixture.push(kernel(GEMM).at(n * MS, MS).link(n).external(n));
            if !dims.is_empty() {
                let (dims, types) = (details.texts.intern(dims), details.texts.intern("[]"));
                details.ops.push((row, details.inputs.len() as u32));
                details.inputs.push(OpInputs { dims, types });
            }
        }
        let sources = Sources { details: Some(&details), ..Sources::default() };
        let report = triage(&fixture.finish(), &TriageOptions::default(), &sources);
        assert!(report.fuse.iter().all(|row| row.pattern_id != "K10"), "no file records tensors");
        assert!(!report.takeaways.iter().any(|text| text.contains("GEMMs sharing one input")));
        report.fuse_note.is_some_and(|note| note.contains("GEMMs sharing one input (K10)"))
    }

    #[test]
    fn gemms_of_other_or_unknown_sizes_share_no_input() {
        let (q, k) = ("[[8,64],[64,64]]", "[[8,64],[64,16]]");
        assert!(same_sizes([q, k, k]));
        assert!(!same_sizes([q, k, ""]));
        assert!(!same_sizes([q, k, "[[8,32],[32,64]]"]));
        assert!(!same_sizes([q, k, "[[16,64],[64,64]]"]));
        assert!(!same_sizes(["", "", ""]));
    }

    /// Rows of the fuse table for fills, each before a GEMM; `op` launches the fills.
    fn fills_of(op: &str) -> usize {
        let mut fixture = Fixture::default();
        fixture.metadata("deviceProperties", r#"[{"id": 0, "name": "AMD Instinct MI300X"}]"#);
        for n in 1..20_i64 {
            let (fill, gemm) = (n * 2, n * 2 + 1);
            fixture.push(slice("cpu_op", op).on(1, 1).at(n * MS, 5));
            fixture.push(slice("cpu_op", "aten::mm").on(1, 1).at(n * MS + 10, 100));
            let call = |id: i64| slice("cuda_runtime", "hipLaunchKernel").on(1, 1).link(id);
            fixture.push(call(fill).at(n * MS + 1, 2));
            fixture.push(call(gemm).at(n * MS + 20, 2));
            let memset = slice("gpu_memset", "Memset (Device)").on(0, 7);
            fixture.push(memset.at(n * MS + 100, MS / 4).link(fill));
            fixture.push(kernel(GEMM).on(0, 7).at(n * MS + MS / 2, MS / 4).link(gemm));
        }
        let trace = fixture.finish();
        let report = triage(&trace, &TriageOptions::default(), &Sources::default());
        report.fuse.iter().filter(|row| row.pattern_id == "K14").count()
    }

    #[test]
    fn a_fill_of_another_op_is_not_the_gemms() {
        assert_eq!((fills_of("aten::mm"), fills_of("aten::zeros")), (1, 0));
    }
}
