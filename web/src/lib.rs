//! The page and its worker.
//!
//! Constraints of this package, the only one that uses the browser:
//!
//! * the page holds no trace and runs no analysis: it shows `protocol` values that a worker sends;
//! * what one feature owns is in its folder of `features`; what several share is in the layers;
//! * `state` changes in one pure reducer, `queries` derive from it, `tasks` run effects;
//! * no `style` attribute, and nothing from another origin: the page's Content-Security-Policy forbids both;
//! * `protocol`, `state`, `queries`, also those of a feature, and the worker's core run in native tests.
// (Only the programs for wasm call all of it; natively tests call what decides something.)
#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code, unused_imports))]
#![allow(
    missing_docs,
    reason = "nobody outside of this package uses it; a line that repeats a name helps nobody"
)]

mod components;
mod features;
mod protocol;
mod queries;
mod shared;
mod state;
mod tasks;
mod views;
mod wire;
mod worker;

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Digest of the sources of this build, as `build.rs` takes it. Page and worker must be of the same build.
pub const BUILD: &str = env!("KINETOSCOPE_BUILD");

/// Shows the page. Only a browser can; elsewhere the two programs exist to be checked by the compiler.
pub fn start_page() {
    #[cfg(target_arch = "wasm32")]
    {
        console_error_panic_hook::set_once();
        if let Some(root) = gloo::utils::document().get_element_by_id("app") {
            yew::Renderer::<components::App>::with_root(root).render();
        }
    }
}

/// Starts the worker of the first screen, which handles requests from then on.
pub fn start_worker() {
    #[cfg(target_arch = "wasm32")]
    worker::start::<worker::FirstSession>();
}

/// Starts the worker of triage, which handles requests from then on.
pub fn start_triage() {
    #[cfg(target_arch = "wasm32")]
    worker::start::<worker::TriageSession>();
}

/// Starts the worker of memory snapshots, which handles requests from then on.
pub fn start_snapshot() {
    #[cfg(target_arch = "wasm32")]
    worker::start_drawing::<worker::SnapshotSession>();
}

/// Starts the worker of the lanes of a trace, which handles requests from then on.
pub fn start_lanes() {
    #[cfg(target_arch = "wasm32")]
    worker::start_drawing::<worker::LanesSession>();
}
