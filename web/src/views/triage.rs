//! Where GPU time comes from: the takeaways, the stages, and every kernel with its line of Python.

use yew::prelude::*;

use super::{Props, heading};
use crate::components::{Companions, Later, Rows, StagedTable};
use crate::protocol::{Chapter, Triage};
use crate::queries::stages::Narrowed;

/// The columns that answer "which kernel, how long, from where".
const LEAD: &[&str] = &[
    "kernel_name",
    "total_ns",
    "share_pct",
    "python_location",
    "cpu_op",
    "mapping_confidence",
    "category",
    "launches",
];

pub fn view(props: &Props) -> Option<Html> {
    let triage = props.file.triage.as_ref()?;
    let chapter = triage.chapter("triage")?;
    let mut intro = chapter.intro.iter();
    Some(html! {
        <>
            { heading("Triage", intro.next().map_or("", String::as_str)) }
            <Companions job={props.file.job} companions={props.file.companions.clone()} tasks={props.tasks.clone()} />
            { sentences(intro) }
            { props.choices(triage) }
            { stages(props, triage, chapter) }
            <Later>
                if let Some(kernels) = triage.chapter("kernel-table") {
                    { staged(props, kernels, &Rows::Kernels(props.file.kernel.clone()), props.narrowed(), Some("total_ns"), LEAD) }
                    { for kernels.intro.iter().map(|sentence| html! { <p class="hint">{ sentence }</p> }) }
                }
            </Later>
        </>
    })
}

/// The table of stages shows all of them, of the chosen device.
fn stages(props: &Props, triage: &Triage, chapter: &Chapter) -> Html {
    if triage.devices.len() < 2 {
        return html! { <>{ for chapter.tables.iter().map(|table| props.table(table, None)) }</> };
    }
    let of_device = Narrowed { stage: None, ..props.narrowed() };
    staged(props, chapter, &Rows::Plain, of_device, None, &["stage"])
}

/// A chapter of triage as a view of its own: its finding, its notes, its tables as the report orders them.
pub fn chapter(
    props: &Props,
    id: &str,
    rows: &Rows,
    lead: &'static [&'static str],
) -> Option<Html> {
    let triage = props.file.triage.as_ref()?;
    let chapter = triage.chapter(id)?;
    let mut intro = chapter.intro.iter();
    Some(html! {
        <>
            { heading(props.view.title(), intro.next().map_or("", String::as_str)) }
            { sentences(intro) }
            { props.choices(triage) }
            { staged(props, chapter, rows, props.narrowed(), None, lead) }
        </>
    })
}

/// Sentences as a short list.
fn sentences<'a>(sentences: impl Iterator<Item = &'a String>) -> Html {
    let sentences: Vec<&String> = sentences.collect();
    match &sentences[..] {
        [] => return html! {},
        [sentence] => {
            return html! { <p class="takeaways" data-testid="takeaways">{ sentence }</p> };
        }
        _ => {}
    }
    let items = sentences.into_iter().map(|sentence| html! { <li>{ sentence }</li> });
    html! { <ul class="takeaways" data-testid="takeaways">{ for items }</ul> }
}

/// The tables of a chapter, narrowed to what was chosen.
fn staged(
    props: &Props,
    chapter: &Chapter,
    rows: &Rows,
    narrowed: Narrowed,
    default_sort: Option<&'static str>,
    lead: &'static [&'static str],
) -> Html {
    html! {
        <>
            { for chapter.tables.iter().map(|table| html! {
                <StagedTable key={table.id.to_string()} job={props.file.job} table={table.clone()} rows={rows.clone()}
                    narrowed={narrowed.clone()} {lead} {default_sort}
                    settings={props.tables.get(&*table.id).cloned().unwrap_or_default()} tasks={props.tasks.clone()} />
            }) }
        </>
    }
}
