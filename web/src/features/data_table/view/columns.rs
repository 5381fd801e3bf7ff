//! Widths of columns: what their values need, fitted to the room there is.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kinetoscope::report::{
    Cell, Table, Unit, short_name, short_names,
    units::{Scale, between},
};

use crate::features::data_table::queries::columns::{fitting, shown};

/// Height of the header row, with room for two lines.
pub const HEAD_PX: f64 = 40.0;

/// Rows that are measured; widths need no more.
const MEASURED_ROWS: usize = 120;
/// Width of a digit of the table's font, padding of a cell, and limits of a column.
const CHAR_PX: f64 = 7.4;
const PADDING_PX: f64 = 22.0;
const LEAST_PX: f64 = 56.0;
const MOST_PX: f64 = 440.0;
/// What a column of names, paths, categories or words keeps when others need room.
const NAME_LEAST_PX: u32 = 210;
const PATH_LEAST_PX: u32 = 130;
const TEXT_LEAST_PX: u32 = 100;
/// The same on a narrow screen.
const NARROW_TEXT_PX: u32 = 150;
/// The most that a name or a path asks for.
const NAME_MOST_PX: f64 = 400.0;
const PATH_MOST_PX: f64 = 260.0;
/// Screens narrower than this are narrow.
pub const NARROW_PX: f64 = 600.0;
/// Room for the direction and the sign of a difference.
const CHANGE_PX: f64 = 26.0;
/// Room for the bar beside a share.
const BAR_PX: f64 = 54.0;

/// Longest name shown; the rest is in the title and in the details.
const NAME_CHARS: usize = 110;
/// Tables with more distinct names (a repair log) shorten each name on its own.
const MOST_NAMES: usize = 4000;

/// The short names of a table: names that differ do not read the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// The names in the cells of `table`.
    pub fn of(table: &Table) -> Self {
        let is_name = |at: &usize| table.columns[*at].unit == Unit::Name;
        let columns: Vec<usize> = (0..table.columns.len()).filter(is_name).collect();
        let cells = columns.iter().flat_map(|at| table.cells(*at));
        let texts = cells.filter_map(|cell| match cell {
            Cell::Text(text) => Some(text),
            _ => None,
        });
        // (Collecting would compile a sort for the type.)
        let mut names: BTreeSet<Cow<'_, str>> = BTreeSet::new();
        names.extend(texts.take(MOST_NAMES + 1));
        if names.len() > MOST_NAMES {
            return Self::default();
        }
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let short = short_names(&names, NAME_CHARS).into_iter();
        let mut own = BTreeMap::new();
        own.extend(short.map(|(name, short)| (name.to_owned(), short)));
        Self(own)
    }

    /// The short form of `name`.
    pub fn short(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| short_name(name, NAME_CHARS))
    }
}

/// Which columns are drawn, and how wide.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Their numbers in the table.
    pub columns: Vec<usize>,
    /// Width of each; `None` takes what is left.
    pub widths_px: Vec<Option<u32>>,
    /// Least width of the table.
    pub least_px: u32,
    /// Unit of each.
    pub scales: Vec<Scale>,
    /// How names are shown.
    pub names: Rc<Names>,
}

impl Layout {
    /// The layout of `table` with the columns that a person chose, in a room of `room_px`.
    pub fn of(table: &Table, chosen: Option<&[String]>, room_px: u32, names: Rc<Names>) -> Self {
        let narrow = f64::from(room_px) < NARROW_PX;
        let mut columns = shown(table, chosen);
        let mut wishes = wishes(table, &columns);
        if narrow {
            let slim = |wish: &mut Wish| {
                if wish.is_text {
                    wish.wish_px = wish.wish_px.min(NARROW_TEXT_PX);
                    wish.least_px = wish.least_px.min(wish.wish_px);
                }
            };
            wishes.iter_mut().for_each(slim);
        }
        if chosen.is_none() {
            // What does not fit, next to the details or on a narrow screen, is in the details of each row.
            let width = |wish: &Wish| if narrow { wish.wish_px } else { wish.least_px };
            let widths: Vec<u32> = wishes.iter().map(width).collect();
            columns = fitting(&columns, &widths, room_px);
            wishes.truncate(columns.len());
        }
        let widths = fitted(&wishes, room_px);
        let least_px = widths.iter().sum();
        // The first column of names takes what is left, else the first one of words.
        let is_name = |at: &usize| table.columns[columns[*at]].unit == Unit::Name;
        let flexible = (0..columns.len())
            .find(is_name)
            .or_else(|| (0..columns.len()).find(|at| wishes[*at].is_text));
        let widths_px = widths
            .into_iter()
            .enumerate()
            .map(|(at, width)| (Some(at) != flexible).then_some(width))
            .collect();
        let scales = columns.iter().map(|column| table.scale(*column)).collect();
        Self { columns, widths_px, least_px, scales, names }
    }
}

/// What a column asks for.
struct Wish {
    wish_px: u32,
    least_px: u32,
    is_text: bool,
}

fn wishes(table: &Table, columns: &[usize]) -> Vec<Wish> {
    let wish = |column: &usize| {
        let unit = table.columns[*column].unit;
        let wish_px = width(table, *column, table.scale(*column));
        let least_px = match unit {
            Unit::Name => wish_px.min(NAME_LEAST_PX),
            Unit::Path => wish_px.min(PATH_LEAST_PX),
            Unit::Text | Unit::Category => wish_px.min(TEXT_LEAST_PX),
            _ => wish_px,
        };
        let is_text = matches!(unit, Unit::Name | Unit::Path | Unit::Text);
        Wish { wish_px, least_px, is_text }
    };
    columns.iter().map(wish).collect()
}

/// Widths that fit `room_px`, where the least widths do: what is above the least gives way in proportion.
fn fitted(wishes: &[Wish], room_px: u32) -> Vec<u32> {
    let least: u32 = wishes.iter().map(|wish| wish.least_px).sum();
    let above: u32 = wishes.iter().map(|wish| wish.wish_px.saturating_sub(wish.least_px)).sum();
    let free = room_px.saturating_sub(least).min(above);
    let of = |wish: &Wish| {
        let more = u64::from(wish.wish_px.saturating_sub(wish.least_px)) * u64::from(free);
        wish.least_px + (more / u64::from(above.max(1))) as u32
    };
    wishes.iter().map(of).collect()
}

fn chars(text: &str) -> f64 {
    text.chars().count() as f64
}

/// Characters of the longest value.
fn widest(table: &Table, column: usize, scale: Scale) -> f64 {
    let cells = table.cells(column).take(MEASURED_ROWS);
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
    let most = match unit {
        Unit::Name => NAME_MOST_PX,
        Unit::Path => PATH_MOST_PX,
        _ => MOST_PX,
    };
    between(px, LEAST_PX, most) as u32
}

#[cfg(test)]
mod tests {
    use kinetoscope::{Category, Confidence, KernelLine, KernelTableRow};

    use super::*;

    fn kernels() -> Table {
        let row = KernelTableRow {
            kernel_name: "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>>".into(),
            python_location: "sglang/srt/layers/quantization/unquant.py:123 apply".into(),
            cpu_op: "aten::scaled_dot_product_attention".into(),
            category: Category::SamplingTopk,
            mapping_confidence: Confidence::Exact,
            total_ns: 1_000_000,
            launches: 99_999,
            ..KernelTableRow::default()
        };
        Table::of("kernel-table", "Kernels", &[KernelLine::from(row)])
            .without("stage")
            .without("device")
    }

    #[test]
    fn the_default_columns_fit_a_window_of_1400_px() {
        // Beside the navigation and the padding of the view.
        let layout = Layout::of(&kernels(), None, 1_130, Rc::default());
        assert_eq!(layout.columns.len(), 8);
        assert!(layout.least_px <= 1_130, "{layout:?}");
    }

    #[test]
    fn a_narrow_screen_shows_two_columns_or_more_without_scrolling() {
        let layout = Layout::of(&kernels(), None, 374, Rc::default());
        assert!(layout.columns.len() >= 2 && layout.least_px <= 374, "{layout:?}");
        let chosen = ["kernel_name", "total_ns", "share_pct", "grid"].map(str::to_owned);
        assert_eq!(
            Layout::of(&kernels(), Some(&chosen), 374, Rc::default()).columns.len(),
            4,
            "as chosen"
        );
    }

    #[test]
    fn names_that_differ_do_not_read_the_same() {
        let row = |name: &str| {
            KernelLine::from(KernelTableRow {
                kernel_name: name.into(),
                ..KernelTableRow::default()
            })
        };
        let (a, b) = ("void a::k<N1::Gemm>(int)", "void b::k<N2::Gemm>(int)");
        let names = Names::of(&Table::of("kernel-table", "Kernels", &[row(a), row(b)]));
        assert_ne!(names.short(a), names.short(b));
        assert_eq!(names.short("unheard_of"), "unheard_of");
    }
}
