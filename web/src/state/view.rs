//! Small closed choices: views, themes, dialogs.

/// The views of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// What takes the time, and what to do first.
    Overview,
    /// Every kernel with its op and Python line, by stage.
    Triage,
    /// Time by category.
    Breakdown,
    /// Exposed and hidden time of kernels.
    Overlap,
    /// What is fused, and what could be.
    Fuse,
    /// This run and another one.
    Compare,
    /// What is wrong with the file, and the repaired file.
    Repair,
    /// The artifacts, and the run details that are not in the trace.
    Downloads,
}

/// Views that belong together, under one heading of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewGroup {
    /// The heading; empty for none.
    pub title: &'static str,
    /// The views, in order.
    pub views: &'static [View],
}

impl View {
    /// The navigation.
    pub const GROUPS: [ViewGroup; 3] = [
        ViewGroup { title: "", views: &[Self::Overview] },
        ViewGroup {
            title: "GPU time",
            views: &[Self::Triage, Self::Breakdown, Self::Overlap, Self::Fuse, Self::Compare],
        },
        ViewGroup { title: "File", views: &[Self::Repair, Self::Downloads] },
    ];

    /// All, in the order of the digit keys.
    pub const ALL: [Self; 8] = [
        Self::Overview,
        Self::Triage,
        Self::Breakdown,
        Self::Overlap,
        Self::Fuse,
        Self::Compare,
        Self::Repair,
        Self::Downloads,
    ];

    /// Addresses of former versions: a view that is part of another one now.
    const FORMER: [(&'static str, Self); 2] =
        [("kernels", Self::Triage), ("problems", Self::Repair)];

    /// Name in addresses and messages.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Triage => "triage",
            Self::Breakdown => "breakdown",
            Self::Overlap => "overlap",
            Self::Fuse => "fuse",
            Self::Compare => "compare",
            Self::Repair => "repair",
            Self::Downloads => "downloads",
        }
    }

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Triage => "Triage",
            Self::Breakdown => "Breakdown",
            Self::Overlap => "Overlap",
            Self::Fuse => "Fuse",
            Self::Compare => "Compare",
            Self::Repair => "File health",
            Self::Downloads => "Downloads",
        }
    }

    /// Whether the view is about GPU slices, so that it is empty for a trace without any.
    #[must_use]
    pub fn needs_gpu(self) -> bool {
        match self {
            Self::Triage | Self::Breakdown | Self::Overlap | Self::Fuse | Self::Compare => true,
            Self::Overview | Self::Repair | Self::Downloads => false,
        }
    }

    /// The view of an id, former ids included.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Self> {
        let former = || Self::FORMER.into_iter().find(|(of, _)| *of == id).map(|(_, view)| view);
        Self::ALL.into_iter().find(|view| view.id() == id).or_else(former)
    }
}

/// Light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the system is set.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// Name in addresses, in the store and in the stylesheet.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// What a person reads.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::System => "System theme",
            Self::Light => "Light theme",
            Self::Dark => "Dark theme",
        }
    }

    /// The theme of an id.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Self> {
        [Self::System, Self::Light, Self::Dark].into_iter().find(|theme| theme.id() == id)
    }

    /// The next one of the switch.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }
}

/// The dialogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// Keys and settings.
    Help,
    /// How to check that nothing leaves the machine.
    Privacy,
    /// How to record a trace that has lines and shapes.
    Record,
}

#[cfg(test)]
mod tests {
    use super::View;

    #[test]
    fn the_navigation_lists_every_view_once_in_the_order_of_the_keys() {
        let listed: Vec<View> =
            View::GROUPS.iter().flat_map(|group| group.views).copied().collect();
        assert_eq!(listed, View::ALL);
    }

    #[test]
    fn addresses_of_former_views_lead_to_where_their_tables_are_now() {
        assert_eq!(View::by_id("kernels"), Some(View::Triage));
        assert_eq!(View::by_id("problems"), Some(View::Repair));
        assert_eq!(View::by_id("repair"), Some(View::Repair));
        assert_eq!(View::by_id("moon"), None);
    }
}
