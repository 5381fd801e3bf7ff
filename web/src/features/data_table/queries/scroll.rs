//! The rows of a long table that are visible, and their positions.

use kinetoscope::report::units::between;

/// Height of a row. Fixed, so that no row has to be measured.
pub const ROW_PX: f64 = 28.0;

/// Tallest scroll area. Browsers clip element heights somewhere past 17 million px (Firefox) and lose
/// precision before, so longer tables map the scroll ratio to a row number instead.
const TALLEST_PX: f64 = 10_000_000.0;

/// Rows kept beyond each edge, so that a small scroll shows no gap.
const OVERSCAN: usize = 8;

/// A stretch of rows and the empty space above and below it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// First row drawn.
    pub first: usize,
    /// Row after the last one drawn.
    pub end: usize,
    /// Height of the space above.
    pub above_px: f64,
    /// Height of the space below.
    pub below_px: f64,
}

/// The rows to draw when `viewport_px` of a table of `n_rows` is visible from `scroll_px` on.
#[must_use]
pub fn window(n_rows: usize, scroll_px: f64, viewport_px: f64) -> Window {
    let whole = n_rows as f64 * ROW_PX;
    let visible = (viewport_px / ROW_PX).ceil() as usize + 1;
    if whole <= TALLEST_PX {
        let top = (scroll_px.max(0.0) / ROW_PX) as usize;
        let first = top.saturating_sub(OVERSCAN).min(n_rows.saturating_sub(1));
        let end = (top + visible + OVERSCAN).min(n_rows);
        return Window {
            first,
            end,
            above_px: first as f64 * ROW_PX,
            below_px: (n_rows - end) as f64 * ROW_PX,
        };
    }
    let travel = (TALLEST_PX - viewport_px).max(1.0);
    let ratio = between(scroll_px / travel, 0.0, 1.0);
    let last_top = n_rows.saturating_sub(visible - 1);
    let first = (ratio * last_top as f64).round() as usize;
    let end = (first + visible).min(n_rows);
    let drawn = (end - first) as f64 * ROW_PX;
    let above_px = between(scroll_px, 0.0, TALLEST_PX - drawn);
    Window { first, end, above_px, below_px: TALLEST_PX - drawn - above_px }
}

/// Where to scroll so that `row` is visible, or `None` when it already is.
#[must_use]
pub fn reveal(row: usize, n_rows: usize, scroll_px: f64, viewport_px: f64) -> Option<f64> {
    let whole = n_rows as f64 * ROW_PX;
    if whole <= TALLEST_PX {
        let top = row as f64 * ROW_PX;
        return if top < scroll_px {
            Some(top)
        } else if top + ROW_PX > scroll_px + viewport_px {
            Some(top + ROW_PX - viewport_px)
        } else {
            None
        };
    }
    let seen = window(n_rows, scroll_px, viewport_px);
    let whole_rows = (viewport_px / ROW_PX) as usize;
    if row >= seen.first && row < seen.first + whole_rows {
        return None;
    }
    let visible = (viewport_px / ROW_PX).ceil() as usize;
    let last_top = n_rows.saturating_sub(visible).max(1);
    let first = if row < seen.first { row } else { (row + 1).saturating_sub(whole_rows) };
    Some(first as f64 / last_top as f64 * (TALLEST_PX - viewport_px))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_table_draws_all_its_rows() {
        assert_eq!(
            window(3, 0.0, 500.0),
            Window { first: 0, end: 3, above_px: 0.0, below_px: 0.0 }
        );
        assert_eq!(window(0, 0.0, 500.0), Window::default());
    }

    #[test]
    fn the_height_never_changes_while_scrolling() {
        for n_rows in [1_000_usize, 2_000_000] {
            let all = (n_rows as f64 * ROW_PX).min(TALLEST_PX);
            for step in 0..=50 {
                let scroll = (all - 560.0) * f64::from(step) / 50.0;
                let seen = window(n_rows, scroll, 560.0);
                let rows = (seen.end - seen.first) as f64 * ROW_PX;
                assert!((seen.above_px + rows + seen.below_px - all).abs() < 1e-6, "{seen:?}");
                assert!(
                    seen.above_px <= scroll + 1e-6
                        && seen.above_px + rows + 1e-6 >= (scroll + 560.0).min(all)
                );
            }
            assert_eq!(window(n_rows, 0.0, 560.0).first, 0);
            assert_eq!(window(n_rows, all - 560.0, 560.0).end, n_rows);
        }
    }

    #[test]
    fn revealing_a_row_shows_it() {
        for n_rows in [1_000_usize, 2_000_000] {
            for row in [0, 1, 500, n_rows / 2, n_rows - 1] {
                for from in [0.0, 14_000.0] {
                    let scroll = reveal(row, n_rows, from, 560.0).unwrap_or(from);
                    let seen = window(n_rows, scroll, 560.0);
                    assert!(seen.first <= row && row < seen.end, "{row} of {n_rows}: {seen:?}");
                }
            }
        }
    }
}
