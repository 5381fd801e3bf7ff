//! The part of the address after `#`: which view, order, filters, range of time and theme, and what counts. State only, never data:
//! of a trace it has numbers; a stage is one of a few words that are the same for every trace.

use crate::features::data_table::queries::link;
use crate::features::data_table::queries::order::Sort;
use crate::state::{Theme, View};

/// Version of this format; an address of another version is ignored, not guessed at.
const VERSION: &str = "1";

/// Says what becomes of what was launched before the window; by default it is left out.
const BEFORE: &str = "before-window";
const COUNTED: &str = "counted";

/// What an address can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The view to show.
    pub view: Option<View>,
    /// The order of that view's main table.
    pub sort: Option<Sort>,
    /// What the filter of that table compares with numbers; words may be names of the trace.
    pub filter: String,
    /// The range that is selected in the timeline, in ns from the first slice.
    pub range: Option<(i64, i64)>,
    /// The stage that tables show; without one they show all.
    pub stage: Option<String>,
    /// The device that tables show, by the file's own number of it; without one they show all.
    pub device: Option<String>,
    /// Whether what was launched before the window counts.
    pub count_before_window: bool,
    /// The theme, where it is not the system's.
    pub theme: Option<Theme>,
}

impl Address {
    /// The address of the page as it first opens.
    #[must_use]
    pub fn home() -> Self {
        let (view, theme) = (Some(View::Overview), Some(Theme::System));
        Self { view, theme, ..Self::default() }
    }

    /// The address after a step back or forth in the browser's history: one without a view shows the first.
    #[must_use]
    pub fn of_step(hash: &str) -> Self {
        let address = Self::parse(hash);
        Self { view: address.view.or(Some(View::Overview)), ..address }
    }

    /// Whether going from the address `shown` to this one is a step of its own in the browser's history.
    #[must_use]
    pub fn is_step_from(&self, shown: &str) -> bool {
        Self::of_step(shown).view != self.view
    }

    /// Reads `#v=1&view=...`. Unknown keys are skipped, so that a newer page's links still open.
    #[must_use]
    pub fn parse(hash: &str) -> Self {
        let mut address = Self::default();
        let pairs = hash.trim_start_matches('#').split('&').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<(&str, &str)> = pairs.collect();
        if !pairs.contains(&("v", VERSION)) {
            return address;
        }
        for (key, value) in pairs {
            match key {
                "view" => address.view = View::by_id(value),
                "sort" => address.sort = Sort::parse(value),
                "filter" => address.filter = link::read(value),
                "range" => address.range = range(value),
                "stage" => address.stage = is_word(value).then(|| value.to_owned()),
                "device" => address.device = is_word(value).then(|| value.to_owned()),
                BEFORE => address.count_before_window = value == COUNTED,
                "theme" => address.theme = Theme::by_id(value),
                _ => {}
            }
        }
        address
    }

    /// The text after `#`, `#` included.
    #[must_use]
    pub fn to_hash(&self) -> String {
        let mut hash = format!("#v={VERSION}");
        if let Some(view) = self.view {
            hash.push_str("&view=");
            hash.push_str(view.id());
        }
        if let Some(sort) = &self.sort {
            hash.push_str("&sort=");
            hash.push_str(&sort.to_text());
        }
        if !self.filter.is_empty() {
            hash.push_str("&filter=");
            hash.push_str(&link::written(&self.filter));
        }
        if let Some((from, to)) = self.range {
            hash.push_str(&format!("&range={from}..{to}"));
        }
        if let Some(stage) = &self.stage {
            hash.push_str("&stage=");
            hash.push_str(stage);
        }
        if let Some(device) = self.device.as_ref().filter(|device| is_word(device)) {
            hash.push_str("&device=");
            hash.push_str(device);
        }
        if self.count_before_window {
            hash.push_str(&format!("&{BEFORE}={COUNTED}"));
        }
        if let Some(theme) = self.theme.filter(|theme| *theme != Theme::System) {
            hash.push_str("&theme=");
            hash.push_str(theme.id());
        }
        hash
    }
}

/// A range, from its start to a later end.
fn range(value: &str) -> Option<(i64, i64)> {
    let (from, to) = value.split_once("..")?;
    Some((from.parse().ok()?, to.parse().ok()?)).filter(|(from, to)| from < to)
}

/// Whether a value is a word that needs no escaping.
fn is_word(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&value.len()) && value.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back() {
        let address = Address {
            view: Some(View::Triage),
            sort: Sort::parse("total_ns.desc,name.asc"),
            filter: ">100us stream:7".into(),
            range: Some((-5, 2_000_000)),
            stage: Some("decode".into()),
            device: Some("1".into()),
            count_before_window: true,
            theme: Some(Theme::Dark),
        };
        let hash = "#v=1&view=triage&sort=total_ns.desc,name.asc&filter=.gt.100us,stream.is.7&range=-5..2000000&stage=decode&device=1&before-window=counted&theme=dark";
        assert_eq!(address.to_hash(), hash);
        assert_eq!(Address::parse(&address.to_hash()), address);
    }

    #[test]
    fn a_step_back_to_an_address_without_state_is_a_step_to_the_first_view() {
        assert_eq!(Address::of_step("").view, Some(View::Overview));
        assert_eq!(Address::of_step("").theme, None, "the theme stays");
        assert_eq!(Address::of_step("#v=1&view=problems").view, Some(View::Repair));
    }

    #[test]
    fn another_view_is_a_step_of_the_history_and_another_order_is_not() {
        let address = |hash| Address::parse(hash);
        assert!(address("#v=1&view=fuse").is_step_from(""));
        assert!(address("#v=1&view=fuse").is_step_from("#v=1&view=triage"));
        assert!(!address("#v=1&view=overview&theme=dark").is_step_from(""));
        assert!(!address("#v=1&view=triage&stage=decode").is_step_from("#v=1&view=triage"));
        assert!(!address("#v=1&view=triage").is_step_from("#v=1&view=kernels"), "its former name");
    }

    #[test]
    fn another_version_and_nonsense_are_ignored() {
        assert_eq!(Address::parse("#v=2&view=kernels"), Address::default());
        assert_eq!(Address::parse("#view=kernels"), Address::default());
        assert_eq!(Address::parse("#v=1&view=moon&sort=&x"), Address::default());
        assert_eq!(Address::parse("#v=1&stage=<b>&stage="), Address::default());
        assert_eq!(Address::parse("#v=1&before-window=moon"), Address::default());
        assert_eq!(Address::parse("#v=1&range=5..5&filter=gemm"), Address::default());
        assert_eq!(Address::parse("#v=1&range=moon..5"), Address::default());
    }
}
