//! What another program has found out about a trace: it has read the arguments of events and the traces beside this one.

use serde::{Deserialize, Serialize};
use trace::Row;

use crate::bands;
use crate::damage::Damage;
use crate::levels;

/// What goes from other programs to the one that draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// Of the program of triage.
    Told(Told),
    /// Of the program that plans the repair.
    Damage(Damage),
    /// Of the program that reads snapshots.
    Alone(Alone),
}

/// The memory of devices without a trace. Times are ns from the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// When the first event is, since 1970.
    pub starts_ns: i64,
    /// From there to the last one.
    pub span_ns: i64,
    /// The memory of each device over time.
    pub memory: Vec<levels::Recorded>,
    /// The steps of the profiler: their names, and when each begins.
    pub steps: Vec<(String, i64)>,
}

/// All of it, as it goes from one program to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Why each device stands still.
    pub bands: Vec<bands::Recorded>,
    /// The memory of each device over time.
    pub memory: Vec<levels::Recorded>,
    /// Where GPU slices come from that the ids of the file lead to no op of.
    pub places: RecordedPlaces,
}

/// Where a GPU slice comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The op.
    pub op: Option<String>,
    /// The op of the forward pass whose line this is, if not that of the op itself.
    pub forward_op: Option<String>,
    /// The line of Python: `model.py:7 forward`.
    pub line: Option<String>,
    /// Classes of the innermost modules around it, outermost first.
    pub modules: Option<String>,
    /// The calls that lead there, innermost first.
    pub stack: Vec<String>,
    /// How it was found, as the part of a sentence: "matched by ...".
    pub how: String,
}

/// Places of GPU slices as they go from one program to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPlaces {
    places: Vec<Place>,
    /// By event: how far it is from the one before, and the number of its place. Small numbers take few bytes.
    of: Vec<(Row, u32)>,
}

impl RecordedPlaces {
    /// Places, and events with the numbers of theirs.
    #[must_use]
    pub fn new(places: Vec<Place>, mut of: Vec<(Row, u32)>) -> Self {
        trace::sort(&mut of);
        let mut last = 0;
        for (row, _) in &mut of {
            let own = *row;
            *row = own - last;
            last = own;
        }
        Self { places, of }
    }
}

/// Where GPU slices come from that the ids of the file lead to no op of.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: Vec<Place>,
    /// By event.
    of: Vec<(Row, u32)>,
}

impl Places {
    /// Reads them.
    #[must_use]
    pub fn of(recorded: RecordedPlaces) -> Self {
        let RecordedPlaces { places, mut of } = recorded;
        let mut last: Row = 0;
        for (row, _) in &mut of {
            last = last.saturating_add(*row);
            *row = last;
        }
        Self { places, of }
    }

    /// The place of an event.
    #[must_use]
    pub fn place(&self, row: Row) -> Option<&Place> {
        let at = self.of.binary_search_by_key(&row, |(row, _)| *row).ok()?;
        self.places.get(self.of[at].1 as usize)
    }
}

impl Place {
    /// Where it is, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let op = match (&self.op, &self.forward_op) {
            (Some(op), None) => format!("Op {op}"),
            (Some(op), Some(forward)) => format!("Op {op}, backward of {forward}"),
            (None, _) => "No op".to_owned(),
        };
        let line = self.line.as_ref().map(|line| format!(", line {line}")).unwrap_or_default();
        let modules = self.modules.as_ref().map(|modules| format!(", in {modules}"));
        format!("{op}{line}{} ({}).", modules.unwrap_or_default(), self.how)
    }

    /// The line, else the op: what a person reads beside the pointer.
    #[must_use]
    pub fn short(&self) -> Option<&str> {
        self.line.as_deref().or(self.op.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_by_its_event() {
        let place = |op: &str| Place { op: Some(op.to_owned()), ..Place::default() };
        let of = vec![(9, 0), (4, 1), (700, 0)];
        let recorded = RecordedPlaces::new(vec![place("aten::mm"), place("aten::add")], of);
        let places = Places::of(recorded);
        let op = |row| places.place(row).and_then(|place| place.op.as_deref());
        assert_eq!(
            [4, 9, 700, 0, 5, 701].map(op),
            [Some("aten::add"), Some("aten::mm"), Some("aten::mm"), None, None, None]
        );
    }

    #[test]
    fn a_sentence_has_what_is_known() {
        let mut place = Place {
            op: Some("aten::mm".into()),
            line: Some("model.py:7 forward".into()),
            modules: Some("Layer > Mlp".into()),
            how: "matched by kernel name".into(),
            ..Place::default()
        };
        assert_eq!(
            place.sentence(),
            "Op aten::mm, line model.py:7 forward, in Layer > Mlp (matched by kernel name)."
        );
        (place.modules, place.forward_op) = (None, Some("aten::linear".into()));
        assert_eq!(
            place.sentence(),
            "Op aten::mm, backward of aten::linear, line model.py:7 forward (matched by kernel name)."
        );
    }
}
