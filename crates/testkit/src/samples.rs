//! The samples that tests run on: always those of this repository, and those of the corpus where it is next to the checkout.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::nasty::{COUNTEREXAMPLES, NASTY, Nasty};
use crate::scenes::scenes;
use crate::shared::{real_traces, shared};
use crate::tally;

/// A file, and what is known of it.
pub struct Sample {
    /// The name of the file.
    pub name: String,
    /// Whether it belongs to this repository.
    pub own: bool,
    content: Content,
    truth: Option<Truth>,
}

enum Content {
    Made(Vec<u8>),
    At(PathBuf),
}

enum Truth {
    Made(Value),
    At(PathBuf),
}

impl Sample {
    fn made(name: &str, bytes: Vec<u8>) -> Self {
        Self { name: name.to_owned(), own: true, content: Content::Made(bytes), truth: None }
    }

    /// A file, which must be there.
    fn at(path: PathBuf, own: bool, truth: Option<PathBuf>) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, own, content: Content::At(path), truth: truth.map(Truth::At) }
    }

    /// The name without `.json` and `.gz`.
    #[must_use]
    pub fn stem(&self) -> &str {
        let name = self.name.strip_suffix(".gz").unwrap_or(&self.name);
        name.strip_suffix(".json").unwrap_or(name)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match &self.content {
            Content::Made(bytes) => bytes.clone(),
            Content::At(path) => read(path),
        }
    }

    /// A path for a program: the file's own, or one in `folder`, where it is written.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    #[allow(clippy::panic, reason = "a failed test")]
    pub fn file_in(&self, folder: &Path) -> PathBuf {
        match &self.content {
            Content::At(path) => path.clone(),
            Content::Made(bytes) => {
                let path = folder.join(&self.name);
                if let Err(error) = std::fs::write(&path, bytes) {
                    panic!("cannot write {}: {error}", path.display());
                }
                path
            }
        }
    }

    /// The reference figures (of trace samples only; for others null).
    ///
    /// # Panics
    /// When their file is not JSON.
    #[must_use]
    #[allow(clippy::panic, reason = "a failed test")]
    pub fn truth(&self) -> Value {
        match &self.truth {
            None => Value::Null,
            Some(Truth::Made(truth)) => truth.clone(),
            Some(Truth::At(path)) => match serde_json::from_slice(&read(path)) {
                Ok(truth) => truth,
                Err(error) => panic!("{}: {error}", path.display()),
            },
        }
    }
}

/// The content of a sample.
///
/// # Panics
/// When it is missing: a checkout has all of its samples, and a listed file of the corpus exists.
#[allow(clippy::panic, reason = "a failed test")]
fn read(path: &Path) -> Vec<u8> {
    match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => panic!("the sample {} cannot be read: {error}", path.display()),
    }
}

/// Small traces that are wrong in one way each.
#[must_use]
pub fn nasty_samples() -> Vec<Sample> {
    let mut samples = of_table(NASTY);
    samples.extend(of_corpus("corpus/nasty"));
    samples
}

/// What the model of Perfetto's importer, or the repair, once got wrong.
#[must_use]
pub fn counterexamples() -> Vec<Sample> {
    let mut samples = of_table(COUNTEREXAMPLES);
    samples.extend(of_corpus("corpus/counterexamples"));
    samples
}

/// Traces with reference figures: simulated, recorded for this project, and real ones.
#[must_use]
pub fn trace_samples() -> Vec<Sample> {
    let mut samples = own_trace_samples();
    let truths = shared("corpus/truth");
    samples.extend(real_traces().into_iter().map(|path| {
        let mut sample = Sample::at(path, false, None);
        sample.truth = truths
            .as_ref()
            .map(|folder| Truth::At(folder.join(format!("{}.truth.json", sample.stem()))));
        sample
    }));
    samples
}

/// Those of them that belong to this repository.
#[must_use]
pub fn own_trace_samples() -> Vec<Sample> {
    tally::note(tally::OWN);
    let made = scenes().into_iter().map(|scene| {
        let mut sample = Sample::made(&format!("{}.json.gz", scene.name), scene.json_gz());
        sample.truth = Some(Truth::Made(scene.truth()));
        sample
    });
    made.chain(recordings()).collect()
}

/// The simulated trace called `name`.
///
/// # Panics
/// When there is none.
#[must_use]
#[allow(clippy::panic, reason = "a failed test")]
pub fn scene_gz(name: &str) -> Vec<u8> {
    tally::note(tally::OWN);
    match scenes().into_iter().find(|scene| scene.name == name) {
        Some(scene) => scene.json_gz(),
        None => panic!("no scene is called {name}"),
    }
}

/// Recorded with torch.profiler for this project; `samples/README.md` describes them.
const RECORDINGS: &[&str] = &[
    "cpu_item_syncs",
    "cpu_leak",
    "cpu_loader_workers",
    "cpu_mlp_train",
    "cpu_threads",
    "gloo_rank0",
    "gloo_rank1",
];

/// The same, recorded on a GPU.
const GPU_RECORDINGS: &[&str] = &[
    "attention_naive",
    "branches_graph",
    "cold",
    "conv_nchw",
    "copy_pageable",
    "decode_capture",
    "decode_eager",
    "decode_replay",
    "fuse_eager",
    "gpu_gloo_rank0",
    "gpu_gloo_rank1",
    "loader",
    "oom",
    "pdl",
    "pdl_graph",
    "reduce_overhead",
    "same_run",
    "streams",
    "train",
];

fn recordings() -> impl Iterator<Item = Sample> {
    let on_cpu = RECORDINGS.iter().map(|name| recorded("recordings", name));
    on_cpu.chain(GPU_RECORDINGS.iter().map(|name| recorded("gpu", name)))
}

/// Memory snapshots that were recorded on a GPU for this project, with what the allocator itself counted; `samples/README.md`
/// describes them.
const SNAPSHOTS: &[&str] = &[
    "memory_cpp_stacks",
    "memory_graph_pools",
    "memory_leak",
    "memory_oom_expandable",
    "memory_oom_gaps",
    "memory_oom_profiled",
    "memory_same_run",
    "memory_train",
    "memory_two_streams",
    "whatif_random",
    "whatif_random_round4",
    "whatif_random_round8",
    "whatif_random_split32",
    "whatif_train",
    "whatif_train_expandable",
    "whatif_train_round4",
    "whatif_train_round8",
];

/// The memory snapshots of this repository that were recorded on a GPU.
#[must_use]
pub fn recorded_snapshots() -> Vec<Sample> {
    tally::note(tally::OWN);
    SNAPSHOTS.iter().map(|name| recorded("gpu", name)).collect()
}

fn recorded(folder: &str, name: &str) -> Sample {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(folder);
    let truth = folder.join(format!("{name}.truth.json"));
    Sample::at(folder.join(format!("{name}.json.gz")), true, Some(truth))
}

fn of_table(table: &[Nasty]) -> Vec<Sample> {
    tally::note(tally::OWN);
    table.iter().map(|nasty| Sample::made(nasty.name, nasty.bytes())).collect()
}

/// The traces of a folder of the corpus, by name.
fn of_corpus(folder: &str) -> Vec<Sample> {
    let Some(folder) = shared(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.path().canonicalize().ok())
        .filter(|path| !path.ends_with("index.tsv"))
        .collect();
    files.sort();
    files.into_iter().map(|path| Sample::at(path, false, None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recording_is_listed_and_every_listed_one_is_there() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
        for (folder, lists) in
            [("recordings", [RECORDINGS, &[]]), ("gpu", [GPU_RECORDINGS, SNAPSHOTS])]
        {
            let mut found: Vec<String> = std::fs::read_dir(samples.join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            let mut expected: Vec<String> = lists
                .concat()
                .iter()
                .flat_map(|name| [format!("{name}.json.gz"), format!("{name}.truth.json")])
                .collect();
            expected.sort();
            assert_eq!(found, expected);
        }
        for sample in recordings() {
            assert!(sample.bytes().len() < 300_000, "{}", sample.name);
            assert!(sample.truth()["n_events"].as_u64().unwrap() > 50, "{}", sample.name);
        }
    }

    #[test]
    fn every_defect_of_the_corpus_has_a_sample_here() {
        let Some(folder) = shared("corpus/nasty") else { return };
        let index = std::fs::read_to_string(folder.join("index.tsv")).unwrap();
        let theirs: Vec<&str> =
            index.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
        let ours: Vec<&str> = NASTY.iter().map(|nasty| nasty.name).collect();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn scenes_are_the_same_every_time_and_have_their_defect() {
        let truths: Vec<(String, Value)> =
            scenes().iter().map(|scene| (scene.name.to_owned(), scene.truth())).collect();
        for (sample, (name, truth)) in own_trace_samples().iter().zip(&truths) {
            assert_eq!((sample.stem(), &sample.truth()), (&**name, truth));
            let again = scenes().into_iter().find(|scene| scene.name == name).unwrap();
            assert!(sample.bytes() == again.json_gz(), "{name}");
            let kernels = truth["gpu"]["n_kernels"].as_u64().unwrap();
            assert_eq!(kernels == 0, name == "graph_capture", "{name}: {kernels} kernels");
        }
        let crossing = |name: &str| {
            let (_, truth) = truths.iter().find(|(of, _)| of == name).unwrap();
            truth["tracks"]["crossing_pairs"].as_u64().unwrap()
        };
        assert!(crossing("dependent_launch") > 20, "{}", crossing("dependent_launch"));
        // One duration crosses every kernel behind it that it ends within.
        assert!(crossing("rocm_overrun") > 0);
        // What Perfetto makes of these is not in the trace itself.
        for name in ["epoch_times", "folded_tids"] {
            assert_eq!(crossing(name), 0, "{name}");
        }
    }
}
