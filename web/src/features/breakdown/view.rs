//! GPU time by category and by family.

use yew::prelude::*;

use crate::components::{Later, stacked_bar};
use crate::views::{Props, heading};

pub fn view(props: &Props) -> Option<Html> {
    let report = props.file.report.as_ref()?;
    let chapter = report.chapter("breakdown")?;
    let mut intro = chapter.intro.iter();
    Some(html! {
        <>
            { heading(props.view.title(), intro.next().map_or("", String::as_str)) }
            if !report.parts.is_empty() {
                <section class="panel">{ stacked_bar(&report.parts, "Share of GPU time", "gpu-time", false, None) }</section>
            }
            { for intro.map(|sentence| html! { <p class="hint">{ sentence }</p> }) }
            <Later>{ for chapter.tables.iter().map(|table| props.table(table, Some("total_ns"))) }</Later>
        </>
    })
}
