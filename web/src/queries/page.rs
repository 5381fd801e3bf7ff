//! The content of the page's frame: title, address, badges.

use kinetoscope::report::units;
use yew::AttrValue;

use super::address::Address;
use crate::features::data_table::queries::link;
use crate::features::triage::queries::Narrowed;
use crate::protocol::{Choice, Triage};
use crate::state::{FileEntry, State, View};

/// The title of the page: view and file first, as a row of tabs shows only the beginning.
#[must_use]
pub fn title(state: &State) -> String {
    state.selected_file().map_or_else(
        || "Kinetoscope: find what uses GPU time".to_owned(),
        |file| format!("{} · {} · Kinetoscope", state.view.title(), file.name),
    )
}

/// The address of the state.
#[must_use]
pub fn address(state: &State) -> Address {
    let table = state.view.main_table().and_then(|id| state.tables.get(id));
    Address {
        view: Some(state.view),
        sort: table.and_then(|settings| settings.sort.clone()),
        filter: table.map_or_else(String::new, |settings| link::compared(&settings.filter)),
        range: range(state),
        stage: state.stage.clone(),
        device: state.device.clone(),
        count_before_window: state.count_before_window,
        theme: Some(state.theme),
    }
}

/// The range of the timeline that is shown; until it shows one, that of the address.
fn range(state: &State) -> Option<(i64, i64)> {
    if !state.shows_timeline() {
        return None;
    }
    match state.selected_file().and_then(|file| file.seen.as_deref()) {
        Some(seen) => seen.range,
        None => state.range,
    }
}

/// The state with what an address says.
#[must_use]
pub fn addressed(mut state: State, hash: &str) -> State {
    apply(&mut state, &Address::parse(hash));
    state
}

/// Takes over what an address says.
pub fn apply(state: &mut State, address: &Address) {
    if let Some(view) = address.view {
        state.view = view;
        state.range = address.range;
        // An address without a stage is one of all stages.
        state.stage.clone_from(&address.stage);
        state.device.clone_from(&address.device);
        state.count_before_window = address.count_before_window;
    }
    if let Some(theme) = address.theme {
        state.theme = theme;
    }
    if let (Some(sort), Some(table)) = (&address.sort, state.view.main_table()) {
        let settings = state.tables.entry(table.to_owned()).or_default();
        settings.sort = Some(sort.clone());
    }
    // (An address without comparisons may be one of a filter of words.)
    if let Some(table) = state.view.main_table().filter(|_| !address.filter.is_empty()) {
        let settings = state.tables.entry(table.to_owned()).or_default();
        // (Its own words, which no address has, stay beside the same comparisons.)
        if link::compared(&settings.filter) != address.filter {
            settings.filter.clone_from(&address.filter);
        }
    }
}

/// What is shown of a triage: a stage or device that it does not have counts as none.
#[must_use]
pub fn narrowed(triage: Option<&Triage>, chosen: &Narrowed) -> Narrowed {
    let Some(triage) = triage else { return Narrowed::default() };
    let of = |chosen: &Option<String>, all: &[Choice]| {
        chosen.clone().filter(|id| all.iter().any(|of| of.id == *id))
    };
    Narrowed {
        stage: of(&chosen.stage, &triage.stages),
        device: of(&chosen.device, &triage.devices),
    }
}

/// Numbers beside the names of views; `true` means bad news.
#[must_use]
pub fn badges(file: &FileEntry) -> Vec<(View, AttrValue, bool)> {
    let mut badges = Vec::new();
    if let Some(plan) = &file.plan
        && plan.drops_before > 0
    {
        badges.push((View::Repair, units::count(plan.drops_before).into(), true));
    }
    badges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::data_table::queries::order::Sort;
    use crate::state::Theme;

    #[test]
    fn an_address_gives_the_state_back() {
        let hash = "#v=1&view=triage&sort=launches.desc&filter=.gt.5us&theme=dark";
        let state = addressed(State::default(), hash);
        assert_eq!((state.view, state.theme), (View::Triage, Theme::Dark));
        assert_eq!(state.tables["kernel-table"].sort, Sort::parse("launches.desc"));
        assert_eq!(state.tables["kernel-table"].filter, ">5us");
        assert_eq!(address(&state).to_hash(), hash);
        let mut typed = state.clone();
        let table = typed.tables.get_mut("kernel-table").unwrap();
        "gemm >5us".clone_into(&mut table.filter);
        let back = addressed(typed, hash);
        assert_eq!(back.tables["kernel-table"].filter, "gemm >5us", "words stay");
    }

    #[test]
    fn a_range_is_in_the_address_of_a_timeline_only() {
        let hash = "#v=1&view=timeline&range=5..90";
        let state = addressed(State::default(), hash);
        assert_eq!(state.range, Some((5, 90)));
        assert_eq!(address(&state).to_hash(), hash);
        let elsewhere = State { view: View::Triage, ..state };
        assert_eq!(address(&elsewhere).to_hash(), "#v=1&view=triage");
    }

    #[test]
    fn a_stage_comes_and_goes_with_the_address() {
        let hash = "#v=1&view=triage&stage=decode";
        let state = addressed(State::default(), hash);
        assert_eq!((state.view, state.stage.as_deref()), (View::Triage, Some("decode")));
        assert_eq!(address(&state).to_hash(), hash);
        let state = addressed(state, "#v=2&view=triage");
        assert_eq!(state.stage.as_deref(), Some("decode"));
        assert_eq!(addressed(state, "#v=1&view=triage").stage, None);
    }
}
