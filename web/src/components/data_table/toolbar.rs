//! Above a table: its title, the filter, how much is shown, and copying.

use wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::components::Icon;
use crate::queries::grid::CopyAs;

#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    pub id: String,
    pub title: String,
    pub titled: bool,
    pub filter: String,
    pub filtered: bool,
    pub empty: bool,
    pub summary: String,
    pub on_filter: Callback<String>,
    pub on_copy: Callback<CopyAs>,
}

const HINT: &str = "Words must all occur. cat:gemm or stream:7 look in one column; >100us, total>1ms or \
                    calls<10 compare; a leading - excludes; quotes keep words together.";

#[component]
pub fn Toolbar(props: &Props) -> Html {
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
    let copy = |form: CopyAs| {
        let on_copy = props.on_copy.clone();
        Callback::from(move |_: MouseEvent| on_copy.emit(form))
    };
    html! {
        <div class="table-bar">
            if props.titled {
                <h2>{ &props.title }</h2>
            }
            if props.filtered {
                <label class="table-filter" title={HINT}>
                    <Icon name="search" />
                    <span class="visually-hidden">{ format!("Filter {}", props.title) }</span>
                    <input type="search" value={props.filter.clone()} {oninput} {onkeydown} spellcheck="false"
                        autocomplete="off" placeholder="Filter: gemm  cat:norm  >100us"
                        data-testid={format!("filter-{}", props.id)} />
                </label>
            }
            if !props.empty {
            <p class="table-summary" role="status" data-testid={format!("summary-{}", props.id)}>{ &props.summary }</p>
            <div class="table-copy">
                <button onclick={copy(CopyAs::Tsv)} title="Copy the rows as shown, raw numbers, for a spreadsheet"
                    data-testid={format!("copy-tsv-{}", props.id)} aria-label={format!("Copy {} as TSV", props.title)}>
                    <Icon name="copy" />{ "TSV" }
                </button>
                <button onclick={copy(CopyAs::Markdown)} title="Copy the rows as shown, formatted, for an issue"
                    data-testid={format!("copy-md-{}", props.id)} aria-label={format!("Copy {} as Markdown", props.title)}>
                    <Icon name="copy" />{ "Markdown" }
                </button>
            </div>
            }
        </div>
    }
}
