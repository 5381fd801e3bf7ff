//! Above a table: its title, the filter, how much is shown, which columns, and copying.

use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::menu::Menu;
use crate::components::icon;
use crate::features::data_table::queries::grid::CopyAs;

/// A column in the chooser.
#[derive(Clone, PartialEq)]
pub struct Choice {
    pub key: String,
    pub title: String,
    pub help: String,
    pub shown: bool,
}

/// What the chooser asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Shows or hides the column of this key.
    Toggled(String),
    /// Every column.
    All,
    /// The default ones.
    Default,
}

pub struct Toolbar {
    pub id: String,
    pub title: String,
    pub titled: bool,
    pub filter: String,
    pub filtered: bool,
    pub n_rows: usize,
    pub summary: String,
    /// Every column, in the order of the table.
    pub columns: Vec<Choice>,
    /// Whether a person chose columns.
    pub chosen: bool,
    pub on_filter: Callback<String>,
    pub on_columns: Callback<Wanted>,
    pub on_copy: Callback<CopyAs>,
}

const HINT: &str = "All words must match. cat:gemm or stream:7 search one column; >100us, total>1ms or calls<10 \
                    compare; a leading - excludes; quotes keep words together.";

pub fn toolbar(props: &Toolbar) -> Html {
    let oninput = {
        let on_filter = props.on_filter.clone();
        Callback::from(move |event: InputEvent| {
            let field =
                event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
            if let Some(field) = field {
                on_filter.emit(field.value());
            }
        })
    };
    let onkeydown = {
        let on_filter = props.on_filter.clone();
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Escape" {
                on_filter.emit(String::new());
            }
        })
    };
    html! {
        <div class="table-bar">
            if props.titled {
                <h2>{ &props.title }</h2>
            }
            if props.filtered {
                <label class="table-filter" title={HINT}>
                    { icon("search") }
                    <span class="visually-hidden">{ format!("Filter {}", props.title) }</span>
                    <input type="search" value={props.filter.clone()} {oninput} {onkeydown} spellcheck="false"
                        autocomplete="off" placeholder="Filter: gemm  cat:norm  >100us"
                        data-testid={format!("filter-{}", props.id)} />
                </label>
            }
            if props.n_rows > 0 {
                <p class="table-summary" role="status" data-testid={format!("summary-{}", props.id)}>{ &props.summary }</p>
                <div class="table-copy">
                    if props.n_rows == 1 {
                        <Menu label="Copy" name={format!("Copy {}", props.title)} icon="copy" testid={format!("copy-{}", props.id)}>
                            { copies(props) }
                        </Menu>
                    } else {
                        { copies(props) }
                    }
                    if props.columns.len() > 2 {
                        <Menu label="Columns" name={format!("Columns of {}", props.title)} icon="columns"
                            testid={format!("columns-{}", props.id)}>
                            { chooser(props) }
                        </Menu>
                    }
                </div>
            }
        </div>
    }
}

fn copies(props: &Toolbar) -> Html {
    let copy = |form: CopyAs| {
        let on_copy = props.on_copy.clone();
        Callback::from(move |_: MouseEvent| on_copy.emit(form))
    };
    html! {
        <>
            <button onclick={copy(CopyAs::Tsv)} title="Copy the rows shown, with all columns and raw numbers, for a spreadsheet"
                data-testid={format!("copy-tsv-{}", props.id)} aria-label={format!("Copy {} as TSV", props.title)}>
                { icon("copy") }{ "TSV" }
            </button>
            <button onclick={copy(CopyAs::Markdown)} title="Copy the rows shown, with all columns, formatted for an issue"
                data-testid={format!("copy-md-{}", props.id)} aria-label={format!("Copy {} as Markdown", props.title)}>
                { icon("copy") }{ "Markdown" }
            </button>
        </>
    }
}

fn chooser(props: &Toolbar) -> Html {
    let want = |wanted: Wanted| {
        let on_columns = props.on_columns.clone();
        Callback::from(move |_: MouseEvent| on_columns.emit(wanted.clone()))
    };
    let n_shown = props.columns.iter().filter(|column| column.shown).count();
    html! {
        <>
            <p class="menu-actions">
                <button onclick={want(Wanted::All)} disabled={n_shown == props.columns.len()}
                    data-testid={format!("columns-all-{}", props.id)}>{ "All" }</button>
                <button onclick={want(Wanted::Default)} disabled={!props.chosen}
                    data-testid={format!("columns-default-{}", props.id)}>{ "Default" }</button>
            </p>
            <ul>
                { for props.columns.iter().map(|column| {
                    let onchange = {
                        let (on_columns, key) = (props.on_columns.clone(), column.key.clone());
                        Callback::from(move |_: Event| on_columns.emit(Wanted::Toggled(key.clone())))
                    };
                    html! {
                        <li key={column.key.clone()}>
                            <label class="check" title={column.help.clone()}>
                                <input type="checkbox" checked={column.shown} disabled={column.shown && n_shown == 1} {onchange}
                                    data-testid={format!("column-{}-{}", props.id, column.key)} />
                                <span>{ &column.title }</span>
                            </label>
                        </li>
                    }
                }) }
            </ul>
        </>
    }
}
