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
mod facts_form;
mod figures;
mod file_cards;
mod header;
mod icon;
mod kernel_panel;
mod lanes;
mod later;
mod nav;
mod overlap_lanes;
mod stages;
mod status_bar;

pub use app::App;
pub use bar::StackedBar;
pub use cards::{FailureCard, FindingCard, ProblemCards};
pub use companions::Companions;
pub use compare::{GuardBanner, RunPicker};
pub use data_table::DataTable;
pub use facts_form::{FactsForm, TextField};
pub use figures::{Figures, Tile};
pub use icon::Icon;
pub use kernel_panel::KernelPanel;
pub use lanes::PlaceList;
pub use later::Later;
pub use overlap_lanes::OverlapLanes;
pub use stages::{Picker, PickerKind, Rows, StagedTable};
