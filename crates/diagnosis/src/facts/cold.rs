//! What of the bar cold iterations are.

use triage::WallRow;

use super::Facts;

/// A share that differs by less is the same, in percent of the window.
const SAME_PCT: f64 = 1.0;

impl Facts<'_> {
    /// How many iterations are left out as cold, and how many there are, if the bar is of the others.
    #[must_use]
    pub fn left_out(&self) -> Option<(usize, usize)> {
        self.warm.as_ref()?;
        self.iterations.as_ref().map(|of| (of.n_cold(), of.list.len()))
    }

    /// Whether the bar of all iterations has other shares than that of the warm ones.
    #[must_use]
    pub(crate) fn cold_changes_bar(&self) -> bool {
        let differs = |own: &[WallRow], other: &[WallRow]| {
            own.iter().any(|row| {
                let same = |one: &&WallRow| one.device == row.device && one.part == row.part;
                let share_pct = other.iter().find(same).map_or(0.0, |one| one.share_pct);
                (row.share_pct - share_pct).abs() >= SAME_PCT
            })
        };
        differs(&self.wall, &self.triage.wall) || differs(&self.triage.wall, &self.wall)
    }
}
