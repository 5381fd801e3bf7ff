//! The table of views. The enum [`View`], the navigation, the digit keys, addresses and [`super::FileView`] follow from it: a
//! view is a module and a row here.

use yew::prelude::Html;

use super::Props;
use crate::features::host::view as host;
use crate::features::triage::{fuse, overlap};
use crate::features::{breakdown, compare, downloads, overview, repair, timeline, triage};

/// What the page knows of a view.
pub struct ViewDef {
    /// Name in addresses, in classes and in tests.
    id: &'static str,
    /// Ids that addresses of former versions have: views that are part of this one now.
    former_ids: &'static [&'static str],
    /// The heading.
    title: &'static str,
    /// Where the navigation lists it.
    group: Group,
    /// The digit that leads to it. Digits are few: a view without one is reached by the navigation and by the commands.
    key: Option<char>,
    /// What a file must have for the view to show anything.
    needs: Needs,
    /// The table whose order an address carries.
    main_table: Option<&'static str>,
    /// Draws it; `None` while its data is not there yet.
    pub(super) render: fn(&Props) -> Option<Html>,
}

/// Views that belong together, under one heading of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What comes first.
    Summary,
    /// Where the time of the GPU goes.
    GpuTime,
    /// What the CPU did.
    Cpu,
    /// The file itself.
    File,
}

impl Group {
    /// All, in the order of the navigation.
    pub const ALL: [Self; 4] = [Self::Summary, Self::GpuTime, Self::Cpu, Self::File];

    /// The heading; `None` for no heading.
    #[must_use]
    pub fn title(self) -> Option<&'static str> {
        match self {
            Self::Summary => None,
            Self::GpuTime => Some("GPU time"),
            Self::Cpu => Some("CPU"),
            Self::File => Some("File"),
        }
    }

    /// Its views, in order.
    pub fn views(self) -> impl Iterator<Item = View> {
        View::ALL.iter().copied().filter(move |view| view.def().group == self)
    }
}

/// What a file must have for a view to show anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Events.
    Events,
    /// GPU slices.
    GpuSlices,
}

macro_rules! views {
    ($($(#[$doc:meta])* $view:ident { $($fact:tt)* })*) => {
        /// The views of a file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum View {
            $($(#[$doc])* $view,)*
        }

        impl View {
            /// All, in the order of the navigation.
            pub const ALL: &[Self] = &[$(Self::$view),*];

            /// Its row of the table.
            pub(super) fn def(self) -> &'static ViewDef {
                match self {
                    $(Self::$view => {
                        static DEF: ViewDef = ViewDef { $($fact)* };
                        &DEF
                    })*
                }
            }
        }
    };
}

views! {
    /// What takes the time, and what to do first.
    Overview {
        id: "overview", former_ids: &[], title: "Overview", group: Group::Summary, key: Some('1'),
        needs: Needs::Events, main_table: None, render: overview::view::view,
    }
    /// When everything ran.
    Timeline {
        id: "timeline", former_ids: &[], title: "Timeline", group: Group::Summary, key: None,
        needs: Needs::Events, main_table: None, render: timeline::view::view,
    }
    /// What the rules found, and what to do.
    Diagnosis {
        id: "diagnosis", former_ids: &[], title: "Diagnosis", group: Group::Summary, key: None,
        needs: Needs::Events, main_table: None, render: host::diagnosis,
    }
    /// Every kernel with its op and Python line, by stage.
    Triage {
        id: "triage", former_ids: &["kernels"], title: "Triage", group: Group::GpuTime, key: Some('2'),
        needs: Needs::GpuSlices, main_table: Some("kernel-table"), render: triage::view::view,
    }
    /// Time by category.
    Breakdown {
        id: "breakdown", former_ids: &[], title: "Breakdown", group: Group::GpuTime, key: Some('3'),
        needs: Needs::GpuSlices, main_table: Some("categories"), render: breakdown::view::view,
    }
    /// Exposed and hidden time of kernels.
    Overlap {
        id: "overlap", former_ids: &[], title: "Overlap", group: Group::GpuTime, key: Some('4'),
        needs: Needs::GpuSlices, main_table: Some("overlap"), render: overlap::view,
    }
    /// What is fused, and what could be.
    Fuse {
        id: "fuse", former_ids: &[], title: "Fuse", group: Group::GpuTime, key: Some('5'),
        needs: Needs::GpuSlices, main_table: Some("fuse"), render: fuse::view,
    }
    /// This run and another one.
    Compare {
        id: "compare", former_ids: &[], title: "Compare", group: Group::GpuTime, key: Some('6'),
        needs: Needs::GpuSlices, main_table: Some("compare-kernels"), render: compare::view::view,
    }
    /// When the GPU stood still.
    Gaps {
        id: "gaps", former_ids: &[], title: "Idle gaps", group: Group::GpuTime, key: None,
        needs: Needs::GpuSlices, main_table: Some("gaps"), render: host::gaps,
    }
    /// Ops, threads and calls.
    Cpu {
        id: "cpu", former_ids: &[], title: "Ops and calls", group: Group::Cpu, key: None,
        needs: Needs::Events, main_table: Some("ops"), render: host::cpu,
    }
    /// Functions of Python.
    Python {
        id: "python", former_ids: &[], title: "Python", group: Group::Cpu, key: None,
        needs: Needs::Events, main_table: Some("frames"), render: host::python,
    }
    /// Steps.
    Steps {
        id: "steps", former_ids: &[], title: "Steps", group: Group::Cpu, key: None,
        needs: Needs::Events, main_table: None, render: host::steps,
    }
    /// Modules and floating point operations.
    Modules {
        id: "modules", former_ids: &[], title: "Modules and FLOPs", group: Group::Cpu, key: None,
        needs: Needs::Events, main_table: Some("modules"), render: host::modules,
    }
    /// Copies and memory.
    Memory {
        id: "memory", former_ids: &[], title: "Copies and memory", group: Group::Cpu, key: None,
        needs: Needs::Events, main_table: Some("copy_kinds"), render: host::memory,
    }
    /// What is wrong with the file, and the repaired file.
    Repair {
        id: "repair", former_ids: &["problems"], title: "File health", group: Group::File, key: Some('7'),
        needs: Needs::Events, main_table: Some("log"), render: repair::view::view,
    }
    /// The artifacts, and the run details that are not in the trace.
    Downloads {
        id: "downloads", former_ids: &[], title: "Downloads", group: Group::File, key: Some('8'),
        needs: Needs::Events, main_table: None, render: downloads::view::view,
    }
}

impl View {
    /// Name in addresses, in classes and in tests.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.def().id
    }

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.def().title
    }

    /// The digit that leads to it.
    #[must_use]
    pub fn key(self) -> Option<char> {
        self.def().key
    }

    /// The table whose order an address carries.
    #[must_use]
    pub fn main_table(self) -> Option<&'static str> {
        self.def().main_table
    }

    /// Whether the view is about GPU slices, so that it is empty for a trace without any.
    #[must_use]
    pub fn needs_gpu(self) -> bool {
        self.def().needs == Needs::GpuSlices
    }

    /// The view of an id, former ids included.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Self> {
        let is_meant = |def: &ViewDef| def.id == id || def.former_ids.contains(&id);
        Self::ALL.iter().copied().find(|view| is_meant(view.def()))
    }

    /// The view of a digit.
    #[must_use]
    pub fn by_key(key: &str) -> Option<Self> {
        let mut letters = key.chars();
        let (Some(key), None) = (letters.next(), letters.next()) else { return None };
        Self::ALL.iter().copied().find(|view| view.key() == Some(key))
    }

    /// The digits as help shows them: "1 – 8".
    #[must_use]
    pub fn keys() -> String {
        let mut keys = Self::ALL.iter().filter_map(|view| view.key());
        match (keys.next(), keys.next_back()) {
            (Some(first), Some(last)) => format!("{first} – {last}"),
            (only, _) => only.map_or_else(String::new, String::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_one_view_and_is_a_word_of_an_address() {
        let ids = |view: &View| [&[view.def().id], view.def().former_ids].concat();
        let mut all: Vec<&str> = View::ALL.iter().flat_map(ids).collect();
        for id in &all {
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        }
        let n = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), n, "{all:?}");
    }

    #[test]
    fn the_digits_count_the_views_in_the_order_of_the_navigation() {
        let keys: String = View::ALL.iter().filter_map(|view| view.key()).collect();
        assert!("123456789".starts_with(&keys) && !keys.is_empty(), "{keys}");
        assert_eq!(View::keys(), "1 – 8");
        assert_eq!((View::by_key("7"), View::by_key("9")), (Some(View::Repair), None));
        assert_eq!((View::by_key("77"), View::by_key("")), (None, None));
    }

    #[test]
    fn the_navigation_lists_every_view_once_in_the_order_of_the_table() {
        let listed: Vec<View> = Group::ALL.into_iter().flat_map(Group::views).collect();
        assert_eq!(listed, View::ALL);
    }

    #[test]
    fn a_table_belongs_to_one_view() {
        let mut tables: Vec<&str> = View::ALL.iter().filter_map(|view| view.main_table()).collect();
        let n = tables.len();
        tables.sort_unstable();
        tables.dedup();
        assert_eq!(tables.len(), n, "an address says one order");
    }

    #[test]
    fn addresses_of_former_views_lead_to_where_their_tables_are_now() {
        assert_eq!(View::by_id("kernels"), Some(View::Triage));
        assert_eq!(View::by_id("problems"), Some(View::Repair));
        assert_eq!(View::by_id("repair"), Some(View::Repair));
        assert_eq!(View::by_id("moon"), None);
    }
}
