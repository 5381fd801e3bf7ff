//! A handful of icons, drawn with the text's colour.

use yew::prelude::*;

/// Paths by the names of the icons.
const PATHS: &[(&str, &str)] = &[
    ("add", "M8 3v10M3 8h10"),
    ("folder", "M1.5 4.5v-2h5l1.5 2h6.5v9h-13zM1.5 6.5h13"),
    ("close", "M4 4l8 8M12 4l-8 8"),
    ("stop", "M4.5 4.5h7v7h-7z"),
    ("retry", "M12.5 6A5 5 0 1 0 13 9M13 2.5V6.2H9.3"),
    ("copy", "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z"),
    ("download", "M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11"),
    ("external", "M6.5 3h-4v10.5H13v-4M9.5 2.5h4v4M13.5 2.5L7.5 8.5"),
    ("search", "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.3 10.3L14 14"),
    ("lock", "M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5"),
    (
        "help",
        "M6 6a2 2 0 1 1 2.8 1.8C8.3 8 8 8.4 8 9v.5M8 12v.2M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13",
    ),
    (
        "sun",
        "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9L13 13M13 3l-1.1 1.1M4.1 11.9L3 13",
    ),
    ("moon", "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5"),
    ("auto", "M8 1.5a6.5 6.5 0 1 0 0 13zM8 1.5a6.5 6.5 0 0 1 0 13"),
    ("check", "M3 8.5l3.2 3.2L13 4.5"),
    ("warning", "M8 2L14.5 13.5H1.5zM8 6.5v3.2M8 11.6v.3"),
    ("error", "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M8 4.8v4M8 11v.3"),
    ("note", "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M8 7.2v4M8 4.8v.3"),
    ("columns", "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10"),
    ("arrow", "M3 8h10M9 4l4 4-4 4"),
];

/// An icon beside text; it says nothing to a screen reader.
pub fn icon(name: &str) -> Html {
    let path = PATHS.iter().find(|(of, _)| *of == name).map_or("", |(_, path)| *path);
    html! {
        <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
            <path d={path} fill="none" stroke="currentColor" stroke-width="1.5"
                stroke-linecap="round" stroke-linejoin="round" />
        </svg>
    }
}
