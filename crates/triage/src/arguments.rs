//! Launch config of each GPU slice and inputs of its op, from the second pass over the file. They are found by the
//! same ids that map the slice to its op.

use std::collections::HashMap;

use dialect::rocm;
use report::units;
use trace::{BuildIdHasher, Details, LaunchConfig, Row, SmallIndex, StringId};

use super::attribution::Linker;
use super::kernel_row::KernelTableRow;
use super::shapes::{Call, Gemm};
use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// The arguments of every GPU slice.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Every distinct launch.
    pub configs: Vec<LaunchConfig>,
    /// Every distinct call of an op.
    pub calls: Vec<Call>,
    /// Index into `configs`, by slice.
    config_of: Vec<Option<SmallIndex>>,
    /// Index into `calls`, by slice.
    call_of: Vec<Option<SmallIndex>>,
    /// Whether the capture of a graph told it, by slice.
    captured: Vec<bool>,
    known_configs: HashMap<LaunchConfig, Option<SmallIndex>, BuildIdHasher>,
}

/// The calls of one file that are known already, by op and inputs.
pub(crate) type KnownCalls =
    HashMap<(StringId, StringId, StringId), Option<SmallIndex>, BuildIdHasher>;

impl Arguments {
    /// What the trace itself tells; nothing without its details.
    #[inline(never)]
    pub(crate) fn of(
        gpu: &Gpu<'_>,
        launches: &Launches,
        linker: &Linker<'_>,
        details: Option<&Details>,
    ) -> Self {
        let n = gpu.len();
        let mut found = Self {
            config_of: vec![None; n],
            call_of: vec![None; n],
            captured: vec![false; n],
            ..Self::default()
        };
        let Some(details) = details else { return found };
        let mut known = KnownCalls::default();
        let mut at = 0;
        gpu.each_row(|row| {
            // (Of ranks merged into one file it may not be known which launch it was.)
            let launch = launches.of_slice(at).filter(|_| launches.is_sure(at));
            let by_call = launch.and_then(|launch| details.launch(launch));
            let config = merge(details.launch(row), by_call);
            let call = launch.map_or("", |launch| gpu.trace.name_text(launch));
            let config = config.and_then(|config| found.config(in_blocks(config, call)));
            found.config_of[at] = config;
            let op =
                launch.and_then(|launch| linker.op_of(launch, gpu.trace.external(row), true).0);
            let call = op.and_then(|op| found.call(linker, details, op, &mut known));
            found.call_of[at] = call;
            at += 1;
        });
        found
    }

    /// Takes for `slice`, which a graph launched, what the capture of the graph tells of its launch.
    pub(crate) fn capture(
        &mut self,
        slice: usize,
        linker: &Linker<'_>,
        details: &Details,
        launch: Row,
        known: &mut KnownCalls,
    ) {
        if slice >= self.captured.len() {
            return;
        }
        let own = self.config_index(slice);
        let call = linker.trace.name_text(launch);
        let told = details.launch(launch).map(|config| in_blocks(*config, call));
        let config = merge(own.map(|own| &self.configs[own as usize]), told.as_ref());
        if let Some(config) = config.and_then(|config| self.config(config)) {
            self.captured[slice] |= own != Some(config.get());
            self.config_of[slice] = Some(config);
        }
        let op = linker.op_of(launch, None, true).0;
        if let Some(call) = op.and_then(|op| self.call(linker, details, op, known)) {
            self.captured[slice] = true;
            self.call_of[slice] = Some(call);
        }
    }

    fn config(&mut self, config: LaunchConfig) -> Option<SmallIndex> {
        let configs = &mut self.configs;
        *self.known_configs.entry(config).or_insert_with(|| {
            configs.push(config);
            SmallIndex::new(configs.len() as u32 - 1)
        })
    }

    fn call(
        &mut self,
        linker: &Linker<'_>,
        details: &Details,
        op: Row,
        known: &mut KnownCalls,
    ) -> Option<SmallIndex> {
        let inputs = details.inputs(op)?;
        let calls = &mut self.calls;
        *known.entry((linker.trace.name(op), inputs.dims, inputs.types)).or_insert_with(|| {
            let name = linker.trace.name_text(op);
            let (dims, types) = (details.texts.get(inputs.dims), details.texts.get(inputs.types));
            calls.push(Call::of(name, dims, types)?);
            SmallIndex::new(calls.len() as u32 - 1)
        })
    }

    /// How a slice was launched, as an index of `configs`.
    pub(crate) fn config_index(&self, slice: usize) -> Option<u32> {
        self.config_of.get(slice).copied().flatten().map(SmallIndex::get)
    }

    /// What the op of a slice was called with, as an index of `calls`.
    pub(crate) fn call_index(&self, slice: usize) -> Option<u32> {
        self.call_of.get(slice).copied().flatten().map(SmallIndex::get)
    }

    /// The sizes of the matrix product of a slice's op.
    pub(crate) fn gemm(&self, slice: usize) -> Option<Gemm> {
        self.calls.get(self.call_index(slice)? as usize)?.gemm
    }

    /// The number of elements of the largest tensor that the op of a slice was called with.
    pub(crate) fn elements(&self, slice: usize) -> Option<u64> {
        self.calls.get(self.call_index(slice)? as usize)?.elements
    }

    /// Whether the first tensor that the op of a slice was called with is of 16 bits; `None` for formats other than
    /// floats of 16 and of 32 bits or more.
    pub(crate) fn is_half(&self, slice: usize) -> Option<bool> {
        let shapes = self.calls.get(self.call_index(slice)? as usize)?.shapes.as_str();
        let of = |types: &[&str]| types.iter().any(|word| shapes.starts_with(word));
        match () {
            () if of(&["bf16[", "f16["]) => Some(true),
            () if of(&["f32[", "f64["]) => Some(false),
            () => None,
        }
    }

    /// The sizes of the first tensor that the op of a slice was called with, and the bytes of one element.
    pub(crate) fn first_tensor(&self, slice: usize) -> Option<(Vec<u64>, u64)> {
        let shapes = self.calls.get(self.call_index(slice)? as usize)?.shapes.as_str();
        let (kind, rest) = shapes.split_once('[')?;
        let sizes = rest.split_once(']')?.0;
        let sizes: Option<Vec<u64>> =
            sizes.split(',').map(|size| size.trim().parse().ok()).collect();
        let bytes = match kind {
            "f64" | "i64" => 8,
            "f32" | "i32" => 4,
            "bf16" | "f16" => 2,
            _ => 1,
        };
        Some((sizes?, bytes))
    }

    /// Whether a slice's launch config comes from the capture of its graph.
    pub(crate) fn is_captured(&self, slice: usize) -> bool {
        self.captured.get(slice) == Some(&true)
    }
}

/// Sentences about launch configs and op inputs of these rows, and why some are missing.
pub(crate) fn note(
    details: Option<&Details>,
    arguments: &Arguments,
    rows: &[KernelTableRow],
) -> String {
    let Some(details) = details else {
        return "Grid, block, occupancy and inputs are omitted, because the arguments of the events were not read."
            .to_owned();
    };
    let mut sentences = Vec::new();
    // (Where all launches of each row have the same, nothing has to be said.)
    let have_several = rows.iter().any(|row| row.group_share_pct < 100.0);
    if have_several && (!arguments.configs.is_empty() || !arguments.calls.is_empty()) {
        sentences.push(
            "Op, inputs, grid and block of a row are those of the launches with most of its time."
                .to_owned(),
        );
    }
    let events = |n| units::plural(n, "event", "events");
    if details.n_unread > 0 {
        sentences.push(format!("The arguments of {} could not be read.", events(details.n_unread)));
    }
    if details.n_unkept > 0 {
        sentences
            .push(format!("The inputs of {} were too long to store.", events(details.n_unkept)));
    }
    sentences.join(" ")
}

/// The launch with its grid in blocks.
fn in_blocks(mut config: LaunchConfig, call: &str) -> LaunchConfig {
    (config.grid, config.block) = rocm::grid_and_block(config.grid, config.block, call);
    config
}

/// What either says; the first where both do.
fn merge(own: Option<&LaunchConfig>, other: Option<&LaunchConfig>) -> Option<LaunchConfig> {
    let (own, other) = match (own, other) {
        (Some(own), Some(other)) => (own, other),
        (own, other) => return own.or(other).copied(),
    };
    Some(LaunchConfig {
        grid: own.grid.or(other.grid),
        block: own.block.or(other.block),
        registers: own.registers.or(other.registers),
        shared_bytes: own.shared_bytes.or(other.shared_bytes),
        occupancy_milli_pct: own.occupancy_milli_pct.or(other.occupancy_milli_pct),
        blocks_per_sm_milli: own.blocks_per_sm_milli.or(other.blocks_per_sm_milli),
        warps_per_sm_milli: own.warps_per_sm_milli.or(other.warps_per_sm_milli),
    })
}
