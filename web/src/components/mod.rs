//! Components of the shell, and those that several features draw. Most have a stylesheet of the same stem in `web/css`.

mod app;
mod bar;
mod cards;
mod chart;
mod dialogs;
mod drawing;
mod drop_target;
mod empty_state;
mod figures;
mod file_picker;
mod header;
mod icon;
mod kept;
mod lanes;
mod later;
mod nav;
mod record;
mod select;
mod status_bar;
mod surface;

pub use app::App;
pub use bar::{stacked_bar, swatch};
pub use cards::{About, failure_card, finding_card, problem_cards};
pub use chart::chart_tools;
pub use drawing::drawing;
pub use figures::{Figure, tiles};
pub use file_picker::file_picker;
pub use icon::icon;
pub use lanes::{lanes_under_ruler, place_list};
pub use later::Later;
pub use record::record_link;
pub use select::Select;
pub use surface::SurfaceView;
