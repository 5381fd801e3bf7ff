//! What the reader had to put up with.

use kinetoscope::report::units;
use yew::prelude::*;

use super::{Props, heading};
use crate::components::ProblemCards;

pub fn view(props: &Props) -> Option<Html> {
    let opened = props.file.opened.as_ref()?;
    let n = opened.problems.len() as u64;
    if n == 0 {
        return Some(html! {
            <>
                { heading("Problems", "None: the file is sound.") }
                <p class="hint">{ "The JSON is whole and well-formed, and every event in it could be read. What Perfetto \
                    makes of it is another question: see Repair." }</p>
            </>
        });
    }
    let finding = format!(
        "{} in this file. Whatever could be read was read; nothing was dropped without being counted here.",
        units::plural(n, "kind of problem", "kinds of problems")
    );
    Some(html! {
        <>
            { heading("Problems", &finding) }
            <ProblemCards problems={opened.problems.clone()} />
            { props.table(&opened.problem_table, None) }
        </>
    })
}
