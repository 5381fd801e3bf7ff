//! What the layers of the chart stand for: call sites, what allocations are for, or phases.

use std::collections::HashMap;

use report::palette;

use crate::chart::{Chart, Layer, Stack};
use crate::classes::{Class, Life, Marks, lives};
use crate::model::{Action, Snapshot};
use crate::site::{Phase, Sites};

/// What the layers of a chart stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stacking {
    /// The call sites with most bytes at the peak.
    #[default]
    Site,
    /// What allocations are for (an estimate).
    Class,
    /// The phase of the stack that allocated.
    Phase,
}

impl Stacking {
    /// The next one, in a round.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Site => Self::Class,
            Self::Class => Self::Phase,
            Self::Phase => Self::Site,
        }
    }

    /// In words, after "by".
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Site => "call site",
            Self::Class => "purpose (an estimate)",
            Self::Phase => "phase of the stack that allocated",
        }
    }
}

const CLASSES: [Class; 8] = [
    Class::Parameter,
    Class::OptimizerState,
    Class::Gradient,
    Class::Activation,
    Class::Cast,
    Class::Temporary,
    Class::Workspace,
    Class::Unknown,
];
const PHASES: [Phase; 7] = [
    Phase::Forward,
    Phase::Backward,
    Phase::Optimizer,
    Phase::Other,
    Phase::Unknown,
    Phase::Moved,
    Phase::Method,
];

/// The layer of every block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// Per event: of an allocation or a free, the layer of the block.
    of_event: Vec<u8>,
    /// Of blocks that were there before the first event, by address.
    before: HashMap<u64, u8>,
}

impl Layers {
    /// The layer of the block that an event allocated, or of the block at an address before the first event.
    pub(crate) fn of_block(&self, birth: Option<usize>, address: u64) -> Option<usize> {
        let layer = match birth {
            Some(birth) => self.of_event.get(birth),
            None => self.before.get(&address),
        };
        layer.map(|layer| usize::from(*layer))
    }
}

/// Stacks a chart by class or by phase; its device's events must agree with its segments.
pub(crate) fn restack(
    chart: &mut Chart,
    snapshot: &Snapshot,
    device: i64,
    sites: &Sites,
    stacking: Stacking,
) -> Layers {
    let trace = snapshot.trace(device);
    let marks = Marks::all(&snapshot.stacks, sites);
    let mut layers = Layers { of_event: vec![0; trace.len()], before: HashMap::new() };
    let mut steps = vec![(0u8, 0i64); trace.len()];
    let mut start: Stack = Stack::default();
    lives(snapshot, device, &marks, |life: &Life, class| {
        let layer = match stacking {
            Stacking::Phase => {
                let phase = life.birth_phase();
                PHASES.iter().position(|known| *known == phase)
            }
            Stacking::Site | Stacking::Class => CLASSES.iter().position(|known| *known == class),
        };
        let layer = layer.unwrap_or_default() as u8;
        let mut set = |at: usize, bytes: i64| {
            if let (Some(of), Some(step)) = (layers.of_event.get_mut(at), steps.get_mut(at)) {
                *of = layer;
                *step = (layer, bytes);
            }
        };
        if let Some(ended) = life.ended {
            set(ended, life.size.saturating_neg());
        }
        match life.born {
            Some(born) => set(born, life.size),
            None => {
                layers.before.insert(life.address, layer);
                if let Some(sum) = start.get_mut(usize::from(layer)) {
                    *sum = sum.saturating_add(life.size);
                }
            }
        }
    });
    debug_assert!(
        trace.len() == steps.len()
            && !trace.iter().zip(&steps).any(|(event, step)| {
                step.1 != 0 && !matches!(event.action, Action::Alloc | Action::FreeCompleted)
            })
    );
    let named = |(at, label): (usize, &'static str)| Layer {
        label: label.to_owned(),
        category: palette::series(at),
    };
    let names: Vec<&'static str> = match stacking {
        Stacking::Phase => PHASES.iter().map(|phase| phase.label()).collect(),
        Stacking::Site | Stacking::Class => CLASSES.iter().map(|class| class.label()).collect(),
    };
    chart.stack_by(names.into_iter().enumerate().map(named).collect(), steps, start);
    layers
}
