//! Widths of columns, from what stands in them.

use kinetoscope::report::{Table, Unit, units::Scale};

/// Height of the header row, with room for two lines.
pub const HEAD_PX: f64 = 40.0;

/// Rows that are measured; widths need no more.
const MEASURED_ROWS: usize = 120;
/// Width of a digit of the table's font, padding of a cell, and limits of a column.
const CHAR_PX: f64 = 7.4;
const PADDING_PX: f64 = 22.0;
const LEAST_PX: f64 = 56.0;
const MOST_PX: f64 = 440.0;
/// Least and most wish of the column that takes what is left.
const FLEXIBLE_PX: (f64, f64) = (120.0, 340.0);
/// The most of it on a narrow screen.
const FLEXIBLE_NARROW_PX: u32 = 180;
/// Screens narrower than this are narrow.
pub const NARROW_PX: f64 = 600.0;
/// Room for the direction and the sign of a difference.
const CHANGE_PX: f64 = 26.0;
/// Room for the bar beside a share.
const BAR_PX: f64 = 54.0;

/// How a table is laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Width of each column; `None` takes what is left.
    pub widths_px: Vec<Option<u32>>,
    /// Least width of the table.
    pub least_px: u32,
    /// The same on a narrow screen, where a name must leave room for figures.
    pub least_narrow_px: u32,
    /// Unit of each column.
    pub scales: Vec<Scale>,
}

impl Layout {
    /// The layout of `table`.
    pub fn of(table: &Table) -> Self {
        let scales: Vec<Scale> =
            (0..table.columns.len()).map(|column| table.scale(column)).collect();
        // The column of words with the longest ones takes what is left.
        let flexible = (0..table.columns.len())
            .filter(|column| matches!(table.columns[*column].unit, Unit::Name | Unit::Text))
            .max_by(|a, b| {
                widest(table, *a, Scale::None).total_cmp(&widest(table, *b, Scale::None))
            });
        let widths_px: Vec<Option<u32>> = (0..table.columns.len())
            .map(|column| (Some(column) != flexible).then(|| width(table, column, scales[column])))
            .collect();
        let flexible_px = flexible.map_or(0, |column| {
            let wish = widest(table, column, Scale::None) * CHAR_PX + PADDING_PX;
            wish.clamp(FLEXIBLE_PX.0, FLEXIBLE_PX.1) as u32
        });
        let least_px: u32 = widths_px.iter().map(|width| width.unwrap_or(flexible_px)).sum();
        let least_narrow_px = least_px - flexible_px.saturating_sub(FLEXIBLE_NARROW_PX);
        Self { widths_px, least_px, least_narrow_px, scales }
    }
}

fn chars(text: &str) -> f64 {
    text.chars().count() as f64
}

/// Characters of the longest value.
fn widest(table: &Table, column: usize, scale: Scale) -> f64 {
    let cells = table.rows.iter().take(MEASURED_ROWS).filter_map(|row| row.get(column));
    cells.map(|cell| chars(&cell.show_in(scale))).fold(0.0, f64::max)
}

fn width(table: &Table, column: usize, scale: Scale) -> u32 {
    let unit = table.columns[column].unit;
    let widest = widest(table, column, scale);
    // A header may break between words; the sort mark needs two characters.
    let header = table.header(column);
    let word = header.split(' ').map(chars).fold(0.0, f64::max);
    let head = (word + 2.0).max((chars(&header) / 2.0 + 2.0).min(16.0));
    let extra = match unit {
        _ if table.columns[column].key.starts_with("delta_") => CHANGE_PX,
        Unit::Percent => BAR_PX,
        // Letters are wider than digits.
        Unit::Text => widest,
        Unit::Category => 18.0,
        _ => 0.0,
    };
    let px = (widest * CHAR_PX + extra).max(head * CHAR_PX) + PADDING_PX;
    px.clamp(LEAST_PX, MOST_PX) as u32
}
