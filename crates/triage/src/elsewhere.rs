//! GPU slices whose place the ids of their own file do not tell: it follows from a capture, another trace or the forward pass.

use trace::Row;

use crate::instances::{CallSite, TriageSlices};
use crate::site::Confidence;

/// Places, and which GPU slices come from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elsewhere {
    /// The places, by their first slice. Their numbers of launches are those of `of`.
    pub sites: Vec<CallSite>,
    /// Index of the event in the file, from 0; index into `sites`.
    pub of: Vec<(Row, u32)>,
}

impl TriageSlices {
    /// The places of GPU slices that the ids of their own file do not tell. A person who reads only that file does not see them.
    #[must_use]
    pub fn elsewhere(&self) -> Elsewhere {
        let mut found = Elsewhere::default();
        let sites = self.sites();
        // By place: its number here.
        let mut numbers: Vec<Option<u32>> = vec![None; sites.len()];
        for (row, own) in self.numbers_of_sites() {
            let (Some(site), Some(number)) =
                (sites.get(own as usize), numbers.get_mut(own as usize))
            else {
                continue;
            };
            if !is_elsewhere(site.confidence) {
                continue;
            }
            let number = *number.get_or_insert_with(|| {
                found.sites.push(CallSite::of(site));
                found.sites.len() as u32 - 1
            });
            found.sites[number as usize].n += 1;
            found.of.push((row, number));
        }
        found
    }
}

fn is_elsewhere(confidence: Confidence) -> bool {
    match confidence {
        Confidence::Replay | Confidence::Position | Confidence::Mapping | Confidence::Forward => {
            true
        }
        Confidence::Exact | Confidence::Enclosing | Confidence::Launch | Confidence::None => false,
    }
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel, slice};

    use crate::{Confidence, Sources, TriageOptions, triage_kept};

    #[test]
    fn replayed_slices_have_the_places_of_their_capture() {
        let mut captured = Fixture::default();
        let call = |name, at| slice("cuda_runtime", name).at(at, 1).on(1, 1);
        captured.push(slice("python_function", "model.py(7): forward").at(0, 100).on(1, 1));
        captured.push(call("hipStreamBeginCapture", 1));
        captured.push(slice("cpu_op", "aten::mm").at(5, 20).on(1, 1).external(3));
        captured.push(call("hipLaunchKernel", 10).launching("gemm").link(3).external(3));
        captured.push(call("hipStreamEndCapture", 40));
        let captured = captured.finish();
        let mut fixture = Fixture::default();
        fixture.push(slice("cuda_runtime", "hipGraphLaunch").at(0, 2).on(1, 1).link(1));
        fixture.push(kernel("gemm").at(10, 5).link(1));
        fixture.push(slice("cuda_runtime", "hipLaunchKernel").at(20, 2).on(1, 1).link(2));
        fixture.push(kernel("other").at(30, 5).link(2));
        let trace = fixture.finish();
        let sources = Sources { captures: &[&captured], ..Sources::default() };
        let (_, slices) = triage_kept(&trace, &TriageOptions::default(), &sources);
        let found = slices.elsewhere();
        let [site] = &found.sites[..] else { panic!("{found:?}") };
        assert_eq!((site.n, site.confidence), (1, Confidence::Replay));
        assert_eq!(site.cpu_op.as_deref(), Some("aten::mm"));
        assert_eq!(site.location.as_deref(), Some("model.py:7 forward"));
        assert_eq!(found.of, [(1, 0)], "the other kernel's launch is in the file");
    }

    #[test]
    fn a_trace_that_holds_its_captures_maps_its_own_graphs() {
        let with = |kernel_name: &str| {
            let mut fixture = Fixture::default();
            let call = |name, at| slice("cuda_runtime", name).at(at, 1).on(1, 1);
            fixture.push(call("hipStreamBeginCapture", 1));
            fixture.push(slice("cpu_op", "aten::mm").at(5, 20).on(1, 1).external(3));
            fixture.push(call("hipLaunchKernel", 10).launching("gemm").link(3).external(3));
            fixture.push(call("hipStreamEndCapture", 40));
            fixture.push(call("hipGraphLaunch", 50).link(1));
            fixture.push(kernel(kernel_name).at(60, 5).link(1));
            let options =
                TriageOptions { file_name: Some("a/b.json".to_owned()), ..Default::default() };
            triage_kept(&fixture.finish(), &options, &Sources::default()).0
        };
        let report = with("gemm");
        assert_eq!((report.coverage.graph_slices, report.coverage.graph_mapped), (1, 1));
        assert_eq!(report.kernels[0].cpu_op, "aten::mm");
        let said = report.sections(0.0)[0].intro.join(" ");
        assert!(said.contains("Captures used: b.json for 1 graph launch."), "{said}");
        // Without names of kernels nothing shows that a graph of as many is that one.
        let mut fixture = Fixture::default();
        let call = |name, at| slice("cuda_runtime", name).at(at, 1).on(1, 1);
        fixture.push(call("cudaStreamBeginCapture", 1));
        fixture.push(call("cudaLaunchKernel", 10).link(3));
        fixture.push(call("cudaStreamEndCapture", 40));
        fixture.push(call("cudaGraphLaunch", 50).link(1));
        fixture.push(kernel("softmax").at(60, 5).link(1));
        let options = TriageOptions::default();
        let cuda = triage_kept(&fixture.finish(), &options, &Sources::default()).0;
        assert_eq!((cuda.coverage.graph_slices, cuda.coverage.graph_mapped), (1, 0));
        // Nobody gave a capture: where it does not fit, it is not named.
        let other = with("softmax");
        let said = other.sections(0.0)[0].intro.join(" ");
        assert!(!said.contains("b.json") && other.coverage.graph_mapped == 0, "{said}");
    }
}
