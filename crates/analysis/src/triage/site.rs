//! Where GPU work came from: the op, the launch and the line of Python of each GPU slice.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// How sure it is that a GPU slice came from the place that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// What it rests on, in words.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Exact => "by the file's ids",
            Self::Forward => {
                "the op by the file's ids; the line is that of its op in the forward pass, by autograd's numbers"
            }
            Self::Replay => "by the order of a graph's capture, name by name",
            Self::Position => "by its place in a graph's capture, which names no kernels",
            Self::Mapping => "by name, from another trace",
            Self::Enclosing => "by time: the op that ran on the launching thread",
            Self::Launch => "only the call that launched it is known",
            Self::None => "nothing is known",
        }
    }

    /// The word for it in tables and artifacts.
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
    /// The path, from the first known package on: `vllm/model_executor/models/llama.py`.
    pub path: String,
    /// The line, from 1; 0 when the frame does not tell.
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
    /// The line of Python that says most.
    pub location: Option<Location>,
    /// Classes of the innermost modules around it, outermost first: `Qwen3DecoderLayer > RMSNorm`.
    pub modules: Option<String>,
    /// The calls that lead there, outermost first.
    pub stack: Vec<String>,
    /// For work of the backward pass: the op of the forward pass whose line, modules and calls these are.
    pub forward_op: Option<String>,
    /// How sure this is.
    pub confidence: Confidence,
    /// Whether a graph launched it.
    pub graph: bool,
}

impl Site {
    /// The line of Python, and whether it is that of the op of the forward pass.
    pub fn line(&self) -> Option<String> {
        let lent = if self.forward_op.is_some() { " (line of the forward op)" } else { "" };
        self.location.as_ref().map(|line| format!("{line}{lent}"))
    }

    /// The line of Python, else the op, else the launch.
    pub fn place(&self) -> Option<String> {
        let op = self.cpu_op.as_ref().or(self.launch.as_ref());
        self.line().or_else(|| op.cloned())
    }
}

/// The place of every GPU slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attribution {
    /// Every place once.
    pub sites: Vec<Site>,
    /// Index into `sites`, by GPU slice.
    pub site_of: Vec<u32>,
    /// Where each place stands in `sites`; filled when places are changed.
    known: HashMap<Site, u32>,
}

impl Attribution {
    /// The places of all GPU slices.
    pub fn new(sites: Vec<Site>, site_of: Vec<u32>) -> Self {
        Self { sites, site_of, known: HashMap::new() }
    }

    /// The index of a place, a new one if it is not known.
    pub fn index_of(&mut self, site: Site) -> u32 {
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
    pub fn site(&self, slice: usize) -> &Site {
        &self.sites[self.site_of[slice] as usize]
    }
}
