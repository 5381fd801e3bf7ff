//! What Perfetto makes of the slices of a file, and where the repair puts them: another program has planned it.

use report::units;
use serde::{Deserialize, Serialize};
use trace::Row;

/// What becomes of a slice in the repaired file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Becomes {
    /// It stays on its track.
    #[default]
    Kept,
    /// It moves to a lane, by its place in [`Damage::lanes`].
    OnLane(u32),
    /// It becomes an instant.
    Instant,
    /// It leaves the events.
    SetAside,
}

/// A slice that Perfetto does not show as it is, or that the repair changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// Its event.
    pub row: Row,
    /// Whether Perfetto v51 to v56 drop it, because it crosses another one.
    pub is_dropped: bool,
    /// What becomes of it.
    pub becomes: Becomes,
    /// Its duration in the repaired file, where that is another one.
    pub dur_ns: Option<i64>,
    /// The slice that makes the change necessary.
    pub because_of: Option<Row>,
    /// Slices that cross each other are one place.
    pub place: u32,
}

impl Damaged {
    /// Whether Perfetto v51 to v56 do not show it as a slice.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_dropped || self.is_unreadable()
    }

    /// Whether it is another slice, or none, after the repair.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.becomes != Becomes::Kept || self.dur_ns.is_some()
    }

    /// Whether no version of Perfetto shows it as a slice.
    fn is_unreadable(&self) -> bool {
        matches!(self.becomes, Becomes::Instant | Becomes::SetAside)
    }

    /// What a person reads beside the pointer.
    #[must_use]
    pub fn short(&self) -> &'static str {
        match self.becomes {
            _ if self.is_dropped => "Dropped by Perfetto v51 to v56",
            Becomes::Instant | Becomes::SetAside => "Not shown by Perfetto",
            Becomes::OnLane(_) => "Moved to a lane by the repair",
            Becomes::Kept => "Shortened by the repair",
        }
    }
}

/// All damage of a trace, as it goes from one program to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The slices, by event.
    pub slices: Vec<Damaged>,
    /// Names of the lanes that the repair adds.
    pub lanes: Vec<String>,
    /// Why Perfetto shows nothing of the file, or only a part.
    pub stops: Option<String>,
}

impl Damage {
    /// What is known about a slice.
    #[must_use]
    pub fn of(&self, row: Row) -> Option<&Damaged> {
        find(&self.slices, row)
    }

    /// Whether Perfetto shows all slices, and the repair changes none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.slices.is_empty() && self.stops.is_none()
    }

    /// What Perfetto and the repair do with a slice, in sentences. `name` has the names of others.
    #[must_use]
    pub fn sentences(&self, row: Row, name: &dyn Fn(Row) -> String) -> Vec<String> {
        let Some(of) = self.of(row) else { return Vec::new() };
        let mut said = Vec::new();
        if of.is_dropped {
            said.push("Perfetto v51 to v56 drop this slice, and v57 and later show it on another track with an error: it crosses a slice of its track.".to_owned());
        }
        let because = of.because_of.map(|row| format!(": it crosses {}", name(row)));
        let because = because.unwrap_or_default();
        said.push(match of.becomes {
            Becomes::OnLane(lane) => {
                let lane = self.lanes.get(lane as usize).map_or("", String::as_str);
                format!("The repair moves it to the lane \u{201c}{lane}\u{201d}{because}.")
            }
            Becomes::Instant => {
                "No version of Perfetto shows it: it has no usable duration. The repair makes it an instant.".to_owned()
            }
            Becomes::SetAside => {
                "No version of Perfetto can read it. The repair sets it aside in the file.".to_owned()
            }
            Becomes::Kept => match of.dur_ns {
                Some(ns) => format!("The repair shortens it to {}: the next kernel of its stream starts then.", units::time(ns)),
                None => "The repair keeps it in its place: slices that it crosses move to another lane.".to_owned(),
            },
        });
        said
    }
}

/// The entry of an event, of entries that are sorted by event.
#[inline(never)]
pub(crate) fn find(slices: &[Damaged], row: Row) -> Option<&Damaged> {
    let at = slices.binary_search_by_key(&row, |damaged| damaged.row).ok()?;
    slices.get(at)
}
