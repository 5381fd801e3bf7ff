//! How much of the GPU time the tables can tell of, and what they leave out.

use report::units;
use timeline::percent;

use crate::mapping::MappedByName;
use crate::replay::{CaptureUse, Replayed};

/// How much GPU time maps to ops and Python lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// GPU time of all slices that the tables count, in ns.
    pub total_ns: i64,
    /// Part of it that maps to an op.
    pub op_ns: i64,
    /// From the first start to the last end of all slices, also of those that the tables do not count, in ns; the sum over
    /// all devices.
    pub window_ns: i64,
    /// Of `window_ns`, how long a GPU ran any of them.
    pub busy_ns: i64,
    /// Of `busy_ns`, how long a GPU ran nothing but communication.
    pub only_communication_ns: i64,
    /// Of `window_ns`, how long the GPU was idle with work queued.
    pub gpu_blocked_ns: i64,
    /// Whether most launches are those of captures of graphs: what is captured does not run.
    pub only_captures: bool,
    /// Whether the file captures graphs itself, and nobody gave other captures.
    pub has_own_captures: bool,
    /// Part of `total_ns` that graphs launched.
    pub graph_ns: i64,
    /// Whether any op has its inputs (`record_shapes=True`).
    pub has_inputs: bool,
    /// Whether frames of Python are recorded (`with_stack=True`), as slices or as a text of ops.
    pub has_frames: bool,
    /// Whether any op is recorded, whether it launched GPU work or not.
    pub has_ops: bool,
    /// Part of it in collectives that map to no op: the reducer of DDP launches them.
    pub collective_ns: i64,
    /// Part of it in GEMMs that convolutions launch.
    pub convolution_gemm_ns: i64,
    /// Part of it in kernels to which TorchInductor gives no names of their own.
    pub bare_ns: i64,
    /// Part of `total_ns` that maps to a Python line.
    pub python_ns: i64,
    /// Of `python_ns`, what is work of the backward pass and has the line of its op in the forward pass.
    pub forward_ns: i64,
    /// GPU slices that graphs launched.
    pub graph_slices: u64,
    /// Kernels among them.
    pub graph_kernels: u64,
    /// Of these, those whose op a capture or mapping trace told.
    pub graph_mapped: u64,
    /// Graph launches whose kernels are, name by name, those of a capture.
    pub identical_replays: u64,
    /// Graph launches.
    pub replays: u64,
    /// The capture traces that were given, and what each was used for.
    pub captures: Vec<CaptureUse>,
    /// What the mapping trace mapped by kernel name, if one was given.
    pub by_mapping: Option<MappedByName>,
    /// The same of the kernel map.
    pub by_map: Option<MappedByName>,
}

/// What convolutions launch is known where so much of the GPU time maps to ops, in percent.
const MAPPED_PCT: f64 = 95.0;

impl Coverage {
    /// The time of GEMMs that convolutions launch, in ns; 0 where too little maps to ops to know it.
    #[must_use]
    pub fn known_convolution_gemm_ns(&self) -> i64 {
        let mapped_ns = self.op_ns.saturating_add(self.collective_ns);
        let is_mapped = timeline::percent(mapped_ns, self.total_ns) >= MAPPED_PCT;
        if is_mapped { self.convolution_gemm_ns } else { 0 }
    }

    /// Counts what graphs replayed on a device.
    pub(crate) fn add(&mut self, replayed: Replayed) {
        self.replays += replayed.graphs;
        self.identical_replays += replayed.identical;
        if self.captures.is_empty() {
            self.captures = replayed.captures;
            return;
        }
        for (all, of_device) in self.captures.iter_mut().zip(replayed.captures) {
            all.batch_size = of_device.batch_size.or(all.batch_size);
            all.replays += of_device.replays;
            all.tied += of_device.tied;
            all.by_batch += of_device.by_batch;
        }
    }

    /// What maps the kernels of graphs, in words: a capture that this file has already did not.
    #[must_use]
    pub fn maps_graphs(&self) -> &'static str {
        match self.has_own_captures {
            true => {
                "add a trace of the same work without graphs as mapping: the captures in this file do not tell"
            }
            false => {
                "add the capture trace as capture, or a trace of the same work without graphs as mapping"
            }
        }
    }

    /// What graphs launched, in words.
    fn launched_by_graphs(&self) -> String {
        let kernels = units::plural(self.graph_kernels, "kernel", "kernels");
        if self.graph_kernels == self.graph_slices {
            return kernels;
        }
        let slices = units::plural(self.graph_slices, "GPU slice", "GPU slices");
        format!("{slices} ({kernels})")
    }

    /// The sentence about it.
    pub(super) fn sentence(&self) -> Option<String> {
        if self.total_ns == 0 {
            return None;
        }
        let mut said = Vec::new();
        // (Of collectives nobody asks which op they are of.)
        let known_ns = self.collective_ns;
        let lost = |ns: i64| {
            let asked_ns = self.total_ns.saturating_sub(known_ns);
            percent(asked_ns.saturating_sub(ns).max(0), asked_ns)
        };
        let of = if known_ns == 0 { "of GPU time" } else { "of GPU time without collectives" };
        if self.graph_slices > 0 && self.graph_mapped == 0 {
            let own_pct = percent(self.graph_ns, self.total_ns);
            let are = if self.graph_slices == 1 { "maps" } else { "map" };
            if own_pct >= LOST_PCT {
                said.push(format!(
                    "Graphs launched {}, which {are} to the graph launch only ({} of GPU time). To map each of them, {}.",
                    self.launched_by_graphs(),
                    units::percent(own_pct),
                    self.maps_graphs()
                ));
            }
        } else if self.graph_slices > 0 {
            let whole = match self.replays {
                n if n == self.identical_replays => {
                    ", and every replay matches its capture name by name."
                }
                _ => ".",
            };
            said.push(format!(
                "Graphs launched {}; {} of them map to ops or Python functions through a capture or a mapping trace{whole}",
                self.launched_by_graphs(),
                units::count(self.graph_mapped),
            ));
        } else if self.op_ns == 0 {
            said.push(
                "No kernel maps to a PyTorch op: record with ProfilerActivity.CPU to see where kernels come from."
                    .to_owned(),
            );
        } else if lost(self.op_ns) >= LOST_PCT && !self.has_python(lost(self.python_ns)) {
            // (What Python launches itself, as by Triton, has a line and needs no op.)
            said.push(format!(
                "{} {of} does not map to a PyTorch op.",
                units::percent(lost(self.op_ns))
            ));
        }
        if self.python_ns > 0 && self.graph_slices == 0 && lost(self.python_ns) >= LOST_PCT {
            said.push(format!(
                "{} {of} maps to no Python function.",
                units::percent(lost(self.python_ns))
            ));
        }
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// Whether Python is recorded, and nearly all GPU time maps to it: all but this share.
    fn has_python(&self, lost_pct: f64) -> bool {
        self.python_ns > 0 && lost_pct < LOST_PCT
    }

    /// That a mapping trace or a kernel map was given and maps nothing, with the reason.
    pub(super) fn mapping_sentence(&self) -> Option<String> {
        let given = [("mapping trace", self.by_mapping), ("kernel map", self.by_map)];
        let said = given.into_iter().filter_map(|(what, mapped)| {
            let mapped = mapped.filter(|mapped| mapped.mapped == 0)?;
            let why = match mapped.asked {
                0 => "every kernel of this trace already has its op and its Python function",
                _ => "no kernel name that this trace leaves open has an op or a Python function in it",
            };
            Some(format!("The {what} maps no kernel: {why}."))
        });
        let said: Vec<String> = said.collect();
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// Which capture told what, where captures were given.
    pub(super) fn captures_sentence(&self) -> Option<String> {
        let name = |(at, capture): (usize, &CaptureUse)| capture.title(at);
        let all = || self.captures.iter().enumerate();
        let used: Vec<String> = all()
            .filter(|(_, capture)| capture.replays > 0)
            .map(|(at, capture)| {
                let n = units::plural(capture.replays, "graph launch", "graph launches");
                format!("{} for {n}", name((at, capture)))
            })
            .collect();
        let unused: Vec<String> =
            all().filter(|(_, capture)| capture.replays == 0).map(name).collect();
        let mut sentences = Vec::new();
        if !used.is_empty() {
            sentences.push(format!("Captures used: {}.", used.join(", ")));
        }
        let sum = |of: fn(&CaptureUse) -> u64| self.captures.iter().map(of).sum::<u64>();
        match (sum(|of| of.tied), sum(|of| of.by_batch)) {
            (0, _) => {}
            (tied, by_batch) => sentences.push(format!(
                "{} match several captures. The batch size selects the capture of {}; the others use the first capture.",
                units::plural(tied, "launch", "launches"),
                units::count(by_batch),
            )),
        }
        if !unused.is_empty() {
            sentences.push(format!("No graph launch replays {}.", unused.join(", ")));
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// Below this share of GPU time, in percent, what maps to nothing changes no conclusion.
const LOST_PCT: f64 = 5.0;
