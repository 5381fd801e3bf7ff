//! The origin of each GPU slice: its op, its launch and its Python line.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Confidence that a GPU slice came from the named place.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// By the file's own ids: correlation and `External id`.
    Exact,
    /// The op by the file's own ids; its line is that of the op of the forward pass to which autograd's numbers lead.
    Forward,
    /// By the order of names in the capture of the graph that was replayed.
    Replay,
    /// By the position in the capture of the graph alone: the capture does not name its kernels.
    Position,
    /// By name, from another trace.
    Mapping,
    /// By time: the op that ran on the launching thread; the file links the two by no id.
    Enclosing,
    /// Only the call that launched it is known.
    Launch,
    /// Nothing is known.
    #[default]
    None,
}

impl Confidence {
    /// All of them, the surest first.
    pub const EVERY: [Self; 8] = [
        Self::Exact,
        Self::Forward,
        Self::Replay,
        Self::Position,
        Self::Mapping,
        Self::Enclosing,
        Self::Launch,
        Self::None,
    ];

    /// The confidence with this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|one| one.id() == id)
    }

    /// The words for it in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Exact => "Exact",
            Self::Forward => "Forward op",
            Self::Replay => "Capture, by name",
            Self::Position => "Capture, by position",
            Self::Mapping => "Mapping, by name",
            Self::Enclosing => "By time",
            Self::Launch => "Launch only",
            Self::None => "None",
        }
    }

    /// What it means, in one line.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Exact => "linked by the ids in the file (correlation, External id)",
            Self::Forward => {
                "the op is linked by ids; the line is that of the forward op with the same autograd sequence number"
            }
            Self::Replay => {
                "matched with the launch of the same kernel name in the graph's capture"
            }
            Self::Position => {
                "matched with the launch at the same position in the graph's capture, which records no kernel names"
            }
            Self::Mapping => "matched by kernel name with another trace",
            Self::Enclosing => "the op that was open on the launching thread; no id links the two",
            Self::Launch => "only the launch call is recorded",
            Self::None => "no launch call is recorded",
        }
    }

    /// The word for it in artifacts.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Forward => "forward",
            Self::Replay => "replay",
            Self::Position => "position",
            Self::Mapping => "mapping",
            Self::Enclosing => "enclosing",
            Self::Launch => "launch",
            Self::None => "none",
        }
    }
}

/// A line of Python.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The path from its package on: `vllm/model_executor/models/llama.py`.
    pub path: String,
    /// The path in the file, where it is another.
    #[serde(default)]
    pub full_path: Option<String>,
    /// The line, from 1; 0 if not recorded.
    pub line: u32,
    /// The function.
    pub function: String,
}

impl std::fmt::Display for Location {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{} {}", self.path, self.line, self.function)
    }
}

/// One place that GPU work came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    /// The op. (Text, not an id: it may come from another trace.)
    pub cpu_op: Option<String>,
    /// The runtime call.
    pub launch: Option<String>,
    /// The most informative Python line.
    pub location: Option<Location>,
    /// Classes of the innermost modules around it, outermost first: `Qwen3DecoderLayer > RMSNorm`.
    pub modules: Option<String>,
    /// The calls that lead there, outermost first.
    pub stack: Vec<String>,
    /// For work of the backward pass: the op of the forward pass whose line, modules and calls these are.
    pub forward_op: Option<String>,
    /// The confidence of this place.
    pub confidence: Confidence,
    /// Whether a graph launched it.
    pub graph: bool,
}

impl Site {
    /// The function of Python, and whether it is that of the op of the forward pass. (A frame has the line of its function's definition, not
    /// that of the call.)
    pub(crate) fn line(&self) -> Option<String> {
        let lent = if self.forward_op.is_some() { " (forward op)" } else { "" };
        self.location.as_ref().map(|line| format!("{line}{lent}"))
    }

    /// Whether a convolution launched it.
    pub(crate) fn is_of_convolution(&self) -> bool {
        self.cpu_op.as_deref().is_some_and(is_convolution)
    }

    /// The line of Python, else the op, else the launch.
    pub(crate) fn place(&self) -> Option<String> {
        let op = self.cpu_op.as_ref().or(self.launch.as_ref());
        self.line().or_else(|| op.cloned())
    }
}

/// Whether an op is a convolution or its backward: `aten::cudnn_convolution`, `aten::miopen_convolution_backward_input`.
pub(crate) fn is_convolution(op: &str) -> bool {
    op.contains("convolution") || op.contains("aten::conv")
}

/// The place of every GPU slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attribution {
    /// Every place once.
    pub sites: Vec<Site>,
    /// Index into `sites`, by GPU slice.
    pub site_of: Vec<u32>,
    /// Index of each place in `sites`; filled when places are changed.
    known: HashMap<Site, u32>,
}

impl Attribution {
    /// The places of all GPU slices.
    pub(crate) fn new(sites: Vec<Site>, site_of: Vec<u32>) -> Self {
        Self { sites, site_of, known: HashMap::new() }
    }

    /// The index of a place, a new one if it is not known.
    pub(crate) fn index_of(&mut self, site: Site) -> u32 {
        if self.known.is_empty() {
            let sites = self.sites.iter().enumerate();
            self.known = sites.map(|(index, site)| (site.clone(), index as u32)).collect();
        }
        *self.known.entry(site).or_insert_with_key(|site| {
            self.sites.push(site.clone());
            self.sites.len() as u32 - 1
        })
    }

    /// The place of a GPU slice.
    pub(crate) fn site(&self, slice: usize) -> &Site {
        &self.sites[self.site_of[slice] as usize]
    }
}
