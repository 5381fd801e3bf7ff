//! Pieces of the page. Each has a stylesheet of the same stem in `web/css`.

mod app;
mod bar;
mod cards;
mod companions;
mod compare;
mod data_table;
mod dialogs;
mod drop_target;
mod empty_state;
mod figures;
mod file_cards;
mod header;
mod icon;
mod lanes;
mod later;
mod nav;
mod stages;
mod status_bar;

pub use app::App;
pub use bar::StackedBar;
pub use cards::{FailureCard, FindingCard, ProblemCards};
pub use companions::Companions;
pub use compare::{GuardBanner, RunPicker};
pub use data_table::DataTable;
pub use figures::{Figures, Tile};
pub use icon::Icon;
pub use lanes::PlaceList;
pub use later::Later;
pub use stages::{StagePicker, StagedTable};
