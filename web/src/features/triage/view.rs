//! Where GPU time comes from: the takeaways, the stages, and every kernel with its Python line.

use yew::prelude::*;

use super::kernels as of_file;
use super::queries::{KERNELS, MERGED, Narrowed};
use super::stages::{Rows, StagedTable, kernel_scope};
use crate::components::Later;
use crate::features::several::companions::companions;
use crate::protocol::{Chapter, Triage};
use crate::views::{Props, heading};

/// The kernels of the whole file are there before triage is.
pub fn view(props: &Props) -> Option<Html> {
    triaged(props).or_else(|| of_file::view(props).filter(|_| props.file.step.is_none()))
}

fn triaged(props: &Props) -> Option<Html> {
    let triage = props.file.shown_triage()?;
    let chapter = triage.chapter("triage")?;
    let mut intro = chapter.intro.iter();
    Some(html! {
        <>
            { heading(props.view.title(), intro.next().map_or("", String::as_str)) }
            { companions(&props.file, &props.tasks) }
            { sentences(intro) }
            { props.choices(triage) }
            { stages(props, triage, chapter) }
            <Later>{ kernels(props, triage) }</Later>
        </>
    })
}

/// The one table of kernels: of a stage where one is chosen; of all stages with a row per name, or a row per name and
/// stage.
pub fn kernels(props: &Props, triage: &Triage) -> Html {
    let (Some(by_stage), merged) = (triage.chapter(KERNELS), triage.chapter(MERGED)) else {
        return html! {};
    };
    let settings = props.tables.get(KERNELS).cloned().unwrap_or_default();
    let narrowed = props.narrowed();
    let merged = merged.filter(|_| narrowed.stage.is_none());
    let chapter = merged.filter(|_| !settings.by_stage).unwrap_or(by_stage);
    html! {
        <>
            if merged.is_some() {
                { kernel_scope(&settings, &props.tasks) }
            }
            { staged(props, chapter, &Rows::Kernels(props.file.kernel.ready().cloned()), narrowed, Some("total_ns")) }
            { for by_stage.intro.iter().map(|sentence| html! { <p class="hint">{ sentence }</p> }) }
        </>
    }
}

/// The table of stages shows all of them, of the chosen device.
fn stages(props: &Props, triage: &Triage, chapter: &Chapter) -> Html {
    if triage.devices.len() < 2 {
        return html! { <>{ for chapter.tables.iter().map(|table| props.table(table, None)) }</> };
    }
    let of_device = Narrowed { stage: None, ..props.narrowed() };
    staged(props, chapter, &Rows::Plain, of_device, None)
}

/// A chapter of triage as a view: its finding, its notes, its tables.
pub fn chapter(props: &Props, id: &str, rows: &Rows) -> Option<Html> {
    let triage = props.file.shown_triage()?;
    let chapter = triage.chapter(id)?;
    let mut intro = chapter.intro.iter();
    Some(html! {
        <>
            { heading(props.view.title(), intro.next().map_or("", String::as_str)) }
            { sentences(intro) }
            { props.choices(triage) }
            { staged(props, chapter, rows, props.narrowed(), None) }
        </>
    })
}

/// The id under which the page shows a table.
fn shown_id(id: &str) -> &str {
    if id == MERGED { KERNELS } else { id }
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

/// The tables of a chapter, narrowed to a stage and a device.
fn staged(
    props: &Props,
    chapter: &Chapter,
    rows: &Rows,
    narrowed: Narrowed,
    default_sort: Option<&'static str>,
) -> Html {
    html! {
        <>
            { for chapter.tables.iter().map(|table| html! {
                <StagedTable key={table.id.to_string()} job={props.file.job} table={table.clone()} rows={rows.clone()}
                    narrowed={narrowed.clone()} {default_sort}
                    settings={props.tables.get(shown_id(&table.id)).cloned().unwrap_or_default()} tasks={props.tasks.clone()} />
            }) }
        </>
    }
}
