//! The parts of every report: cells, columns, tables, sections, findings, and their formatting.
//!
//! Constraints of this crate:
//!
//! * it depends on `serde` and `serde_bytes` only: it contains nothing about traces or the page;
//! * a row struct declares its columns once ([`Row::COLUMNS`]); the page, the Markdown and the JSON are three
//!   renderings of that table, and the keys of the JSON *are* the column keys;
//! * [`units`] formats times, sizes, counts and shares;
//! * a [`Table`] contains no trace and no function, so a worker can send it to the page;
//! * the same rows give the same bytes, always: no clock, no locale, no hash map.

#![warn(unreachable_pub)]

mod cell;
mod column;
pub mod drawing;
mod html;
mod key;
mod markdown;
mod name;
pub mod palette;
mod section;
mod table;
mod tsv;
pub mod units;
mod values;
mod view;

pub use cell::{Cell, Word};
pub(crate) use column::MOST_SHOWN;
pub use column::{Align, Column, Row, Unit};
pub use drawing::Drawing;
pub use html::html_document;
pub use key::RowKey;
pub use markdown::{code_span, document, plain_text};
pub use name::{short_name, short_names};
pub use section::{Confidence, Finding, Section};
pub use table::{Table, TableColumn};
pub use view::{SortBy, View};
