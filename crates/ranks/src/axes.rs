//! What a group of ranks is for, by the names of their files.
//!
//! Engines write a rank's place on each axis of parallelism into the name of its file: vLLM `dp0_pp0_tp3_dcp0_ep3_rank3`, SGLang `TP-3` or
//! `TP3`. Ranks that differ on one axis alone are a group of that axis. PyTorch's own name of a group (`pg_desc`) is "undefined" for the
//! groups of both engines.

/// Axes as file names have them, and what ranks that differ on them are.
const AXES: [(&str, &str); 5] = [
    ("tp", "tensor-parallel"),
    ("pp", "pipeline-parallel"),
    ("dp", "data-parallel"),
    ("cp", "context-parallel"),
    ("ep", "expert-parallel"),
];

/// What ranks with files of these names differ on: one axis, or experts only where they differ on no other. `None` where that is not one, or
/// the names do not say.
pub(crate) fn axis(files: &[&str]) -> Option<&'static str> {
    let differs = |name: &str| {
        let mut places = files.iter().map(|file| place(file, name));
        let first = places.next()??;
        let mut others = places.collect::<Option<Vec<u32>>>()?.into_iter();
        Some(others.any(|other| other != first))
    };
    let mut found = AXES.iter().filter(|(name, _)| differs(name) == Some(true));
    let (_, axis) = found.next()?;
    // (Experts are spread over the ranks of another axis.)
    found.all(|(name, _)| *name == "ep").then_some(*axis)
}

/// The number after the name of an axis: `tp3`, `TP-3`, `tp_3`.
fn place(file: &str, axis: &str) -> Option<u32> {
    let lower = file.to_ascii_lowercase();
    let mut words = lower.split(|one: char| !one.is_ascii_alphanumeric());
    while let Some(word) = words.next() {
        match word.strip_prefix(axis) {
            Some("") => return words.next()?.parse().ok(),
            Some(number) if number.bytes().all(|one| one.is_ascii_digit()) => {
                return number.parse().ok();
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_differ_on_one_axis_are_a_group_of_it() {
        let of = |files: [&str; 2]| axis(&files);
        let vllm = |dp: u8, pp: u8, tp: u8, ep: u8| {
            format!("dp{dp}_pp{pp}_tp{tp}_dcp0_ep{ep}_rank{tp}.17.pt.trace.json.gz")
        };
        let (first, tensor) = (vllm(0, 0, 0, 0), vllm(0, 0, 1, 1));
        let (pipeline, data, both) = (vllm(0, 1, 0, 0), vllm(1, 0, 0, 8), vllm(1, 0, 1, 9));
        assert_eq!(of([&first, &tensor]), Some("tensor-parallel"));
        assert_eq!(of([&first, &pipeline]), Some("pipeline-parallel"));
        assert_eq!(of([&first, &data]), Some("data-parallel"));
        assert_eq!(of([&first, &both]), None, "on two axes");
        assert_eq!(of(["run-TP-0.json", "run-TP-1-DECODE.json"]), Some("tensor-parallel"));
        assert_eq!(
            of(["bs16_TP0.trace.json.gz", "bs16_TP3.trace.json.gz"]),
            Some("tensor-parallel")
        );
        assert_eq!(of(["a_ep0.json", "a_ep1.json"]), Some("expert-parallel"));
        assert_eq!(of(["rank0.json", "rank1.json"]), None);
        assert_eq!(of(["http1_tp0.json", "http2_tp0.json"]), None, "a word that only ends so");
        assert_eq!(of(["a_tp0.json", "rank1.json"]), None, "one name says nothing");
    }
}
