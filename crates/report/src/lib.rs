//! What every report is made of: cells, columns, tables, sections, findings, and how they read.
//!
//! Constraints of this crate:
//!
//! * it depends on `serde` alone: it knows neither traces nor Markdown libraries nor the page;
//! * a row struct says its columns once ([`Row::COLUMNS`]); the page, the Markdown and the JSON are three
//!   renderings of that one table, and the keys of the JSON *are* the column keys;
//! * a number becomes text in [`units`] and nowhere else;
//! * a [`Table`] holds no trace and no function, so it crosses from worker to page as it is;
//! * the same rows give the same bytes, always: no clock, no locale, no hash map.

mod cell;
mod column;
mod markdown;
mod name;
mod section;
mod table;
mod tsv;
pub mod units;
mod view;

pub use cell::Cell;
pub use column::{Align, Column, Row, Unit};
pub use markdown::{code_span, document, plain_text};
pub use name::short_name;
pub use section::{Confidence, Finding, Section};
pub use table::{Table, TableColumn};
pub use view::{SortBy, View};
