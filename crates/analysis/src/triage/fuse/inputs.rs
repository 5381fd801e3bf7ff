//! Whether matrix products that follow each other may have one input: by the sizes that their ops were called with.

use super::find::{Candidate, Sought};
use crate::triage::arguments::Arguments;
use crate::triage::shapes::Gemm;

/// Of chains whose products must have one input, leaves out the finds whose products have not, and marks those whose
/// sizes are known to be the same. (Which tensor it was, no file tells.)
pub(super) fn judge(candidate: &mut Candidate, arguments: &Arguments) {
    let Candidate { sought: Sought::Chain(chain), split, slices, .. } = candidate else { return };
    if !chain.same_input {
        return;
    }
    split.retain_mut(|find| {
        let slices = slices.get(find.from as usize..find.to as usize).unwrap_or_default();
        let sizes: Vec<Option<(i64, i64, i64)>> = slices
            .iter()
            .map(|at| arguments.gemm(*at as usize).map(|Gemm { batch, m, n: _, k }| (batch, m, k)))
            .collect();
        let mut known = sizes.iter().flatten();
        let first = known.next();
        let same = known.all(|sizes| Some(sizes) == first);
        find.sized = same && !sizes.contains(&None);
        same
    });
}

#[cfg(test)]
mod tests {
    use trace::{Details, OpInputs, Row};

    use crate::fixture::{Fixture, kernel, slice};
    use crate::{Sources, TriageOptions, triage};

    const GEMM: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_ISA942";

    /// Whether K10 is found in three products of one kernel whose ops were called with these sizes, and whether it says
    /// that the sizes are the same.
    fn same_sizes(dims: [&str; 3]) -> Option<bool> {
        let mut fixture = Fixture::default();
        let mut details = Details::default();
        for (n, dims) in (1..).zip(dims) {
            let cpu = |category, name| slice(category, name).on(1, 1);
            let row = 3 * (n as Row - 1);
            fixture.push(cpu("cpu_op", "aten::mm").at(n * 100, 50).external(n));
            fixture.push(cpu("cuda_runtime", "hipLaunchKernel").at(n * 100 + 5, 2).link(n));
            fixture.push(kernel(GEMM).at(n * 100 + 20, 50).link(n).external(n));
            if !dims.is_empty() {
                let (dims, types) = (details.texts.intern(dims), details.texts.intern("[]"));
                details.ops.push((row, details.inputs.len() as u32));
                details.inputs.push(OpInputs { dims, types });
            }
        }
        let sources = Sources { details: Some(&details), ..Sources::default() };
        let report = triage(&fixture.finish(), &TriageOptions::default(), &sources);
        let row = report.fuse.into_iter().find(|row| row.pattern_id == "K10");
        row.map(|row| {
            assert_eq!(row.confidence, "Candidate", "no file tells which tensor it was");
            row.rationale.contains("All of them have the same rows and inner size")
        })
    }

    #[test]
    fn products_of_other_sizes_have_no_input_in_common() {
        let (q, k) = ("[[8,64],[64,64]]", "[[8,64],[64,16]]");
        assert_eq!(same_sizes([q, k, k]), Some(true));
        assert_eq!(same_sizes([q, k, ""]), Some(false));
        assert_eq!(same_sizes([q, k, "[[8,32],[32,64]]"]), None);
        assert_eq!(same_sizes([q, k, "[[16,64],[64,64]]"]), None);
        assert_eq!(same_sizes(["", "", ""]), Some(false));
    }
}
