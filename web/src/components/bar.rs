//! One bar of 100%: time by category. A legend names every part, so colour is never alone.

use kinetoscope::report::units;
use yew::prelude::*;

use super::chart::chart_tools;
use crate::protocol::Part;
use crate::queries::palette::paint;

/// Parts of the legend that the overview names.
const COMPACT_PARTS: usize = 6;

/// Narrower parts have no room for a name.
const LABEL_FROM_PCT: f64 = 7.0;
/// What a letter of the name takes.
const LETTER_PCT: f64 = 0.85;
/// Narrower parts have none on a narrow screen.
const WIDE_FROM_PCT: f64 = 30.0;

/// What leads from a part to its evidence.
pub type Evidence<'a> = &'a dyn Fn(&Part) -> Callback<MouseEvent>;

/// The bar of the parts, and its legend: with fewer words for the overview (`compact`). `of` is what they are shares of; its picture is
/// called `name`. With `evidence`, each part leads to what it is made of.
pub fn stacked_bar(
    parts: &[Part],
    of: &str,
    name: &'static str,
    compact: bool,
    evidence: Option<Evidence<'_>>,
) -> Html {
    let mut left = 0.0;
    let drawn = parts.iter().map(|part| {
        let x = left;
        left += part.share_pct;
        segment(part, x, evidence)
    });
    let title = |part: &Part| match evidence {
        None => html! { &part.title },
        Some(evidence) => {
            html! { <button class="link" onclick={evidence(part)}>{ &part.title }</button> }
        }
    };
    let summary: Vec<String> = parts
        .iter()
        .map(|part| format!("{} {}", part.title, units::percent(part.share_pct)))
        .collect();
    let shown = if compact { COMPACT_PARTS } else { usize::MAX };
    let rest = parts.len().saturating_sub(shown);
    html! {
        <figure class="stacked-bar" data-chart={name} data-testid="stacked-bar">
            <svg width="100%" height="44" role="img" aria-label={format!("{of}: {}", summary.join(", "))}>
                { for drawn }
            </svg>
            <ul class="legend">
                { for parts.iter().take(shown).map(|part| html! {
                    <li title={hint(part)}>
                        { swatch(&part.category) }
                        <span>{ title(part) }</span>
                        <span class="legend-share">{ units::percent(part.share_pct) }</span>
                    </li>
                }) }
                if rest > 0 {
                    <li class="legend-rest">{ format!("and {rest} more") }</li>
                }
            </ul>
            { chart_tools() }
        </figure>
    }
}

/// The exact time, and what the part is.
fn hint(part: &Part) -> String {
    let ns = units::signed(part.total_ns);
    if part.meaning.is_empty() { format!("{ns} ns") } else { format!("{ns} ns: {}", part.meaning) }
}

fn segment(part: &Part, x: f64, evidence: Option<Evidence<'_>>) -> Html {
    let paint = paint(&part.category);
    let text = format!(
        "{}: {}, {}",
        part.title,
        units::percent(part.share_pct),
        units::time(part.total_ns)
    );
    html! {
        // An inner svg clips its text. (The way to the evidence by keyboard is in the legend.)
        <svg x={format!("{}%", units::fixed(x, 4))} width={format!("{}%", units::fixed(part.share_pct, 4))} height="44"
            class={evidence.map(|_| "leads")} onclick={evidence.map(|evidence| evidence(part))}>
            <title>{ text }</title>
            <rect width="100%" height="100%" class={classes!("segment", paint.class())} />
            if let Some(fill) = paint.hatch_fill() {
                <rect width="100%" height="100%" fill={fill} />
            }
            if part.share_pct >= LABEL_FROM_PCT.max(LETTER_PCT * part.title.len() as f64) {
                <text x="8" y="27" class={classes!("segment-label", (part.share_pct < WIDE_FROM_PCT).then_some("narrow"), format!("on-{}", paint.hue.id()))}>
                    { &part.title }
                </text>
            }
        </svg>
    }
}

/// The small square of a category.
pub fn swatch(category: &str) -> Html {
    let paint = paint(category);
    html! {
        <svg class="swatch" width="12" height="12" aria-hidden="true">
            <rect width="12" height="12" rx="2" class={classes!("segment", paint.class())} />
            if let Some(fill) = paint.hatch_fill() {
                <rect width="12" height="12" rx="2" fill={fill} />
            }
        </svg>
    }
}

/// The hatches that shapes anywhere on the page refer to.
pub fn hatches() -> Html {
    html! {
        <svg class="visually-hidden" width="0" height="0" aria-hidden="true">
            <defs>
                <pattern id="hatch-lines" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                    <rect width="2" height="6" class="hatch" />
                </pattern>
                <pattern id="hatch-dots" width="5" height="5" patternUnits="userSpaceOnUse">
                    <circle cx="2" cy="2" r="1.1" class="hatch" />
                </pattern>
                <pattern id="hatch-cross" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                    <rect width="1.3" height="6" class="hatch" /><rect width="6" height="1.3" class="hatch" />
                </pattern>
                <pattern id="hatch-dropped" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
                    <rect width="2.5" height="7" class="hatch-dropped" />
                </pattern>
            </defs>
        </svg>
    }
}
