//! Every kernel name with its figures.

use yew::prelude::*;

use crate::components::finding_card;
use crate::views::{Props, heading};

pub fn view(props: &Props) -> Option<Html> {
    let chapter = props.file.report.as_ref()?.chapter("kernels")?;
    Some(html! {
        <>
            { heading("Kernels", chapter.intro.first().map_or("", String::as_str)) }
            { for chapter.findings.iter().map(|finding| finding_card(finding, None)) }
            { props.counted_here() }
            { for chapter.tables.iter().map(|table| props.table_with(table, Some("total_ns"), false, false)) }
        </>
    })
}
