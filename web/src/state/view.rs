//! Small closed choices: views, themes, dialogs.

/// The views of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The verdict and five figures.
    Overview,
    /// Every kernel.
    Kernels,
    /// Time by category.
    Breakdown,
    /// Where GPU time comes from, by stage.
    Triage,
    /// What could run beside something else.
    Overlap,
    /// What is fused, and what could be.
    Fuse,
    /// What is wrong for Perfetto, and the repaired file.
    Repair,
    /// What the reader had to put up with.
    Problems,
    /// This run beside another.
    Compare,
    /// The artifacts, and what only the user knows.
    Downloads,
}

impl View {
    /// All, in the order of the keys 1 to 9 and 0.
    pub const ALL: [Self; 10] = [
        Self::Overview,
        Self::Kernels,
        Self::Breakdown,
        Self::Triage,
        Self::Overlap,
        Self::Fuse,
        Self::Repair,
        Self::Problems,
        Self::Compare,
        Self::Downloads,
    ];

    /// Name in addresses and messages.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Kernels => "kernels",
            Self::Breakdown => "breakdown",
            Self::Triage => "triage",
            Self::Overlap => "overlap",
            Self::Fuse => "fuse",
            Self::Repair => "repair",
            Self::Problems => "problems",
            Self::Compare => "compare",
            Self::Downloads => "downloads",
        }
    }

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Kernels => "Kernels",
            Self::Breakdown => "Breakdown",
            Self::Triage => "Triage",
            Self::Overlap => "Overlap",
            Self::Fuse => "Fuse",
            Self::Repair => "Repair",
            Self::Problems => "Problems",
            Self::Compare => "Compare",
            Self::Downloads => "Downloads",
        }
    }

    /// The view of an id.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.id() == id)
    }
}

/// Light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the system says.
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

/// What can be open above the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// Keys and settings.
    Help,
    /// How to check that nothing leaves the machine.
    Privacy,
}
