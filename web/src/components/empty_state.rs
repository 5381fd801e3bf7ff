//! The page before a file: what it gives, what to open, an example, and how to record a trace.

use yew::prelude::*;

use super::icon;
use super::kept::offer;
use super::record::record_help;
use crate::state::{Action, Dialog, Kept};
use crate::tasks::{Tasks, files};

/// The empty page.
pub fn empty_state(kept: Kept, tasks: &Tasks) -> Html {
    let with = |effect: fn(&Tasks)| {
        let tasks = tasks.clone();
        Callback::from(move |_: MouseEvent| effect(&tasks))
    };
    html! {
        <div class="empty" data-testid="empty">
            <section class="hero">
                <h1>{ "Find the ops and Python lines that use the most GPU time" }</h1>
                <p class="lead">
                    { "Open a PyTorch profiler trace from training, SGLang or vLLM, on CUDA or ROCm. Kinetoscope ranks kernels by \
                       op and line, lists what is wrong with the file, and writes a copy that Perfetto shows without dropped slices." }
                </p>
                <div class="drop-zone">
                    <p class="drop-zone-title">{ "Drop traces anywhere on this page" }</p>
                    <p class="drop-zone-note">{ ".json or .json.gz, one or several, or a folder" }</p>
                    <p class="drop-zone-actions">
                        <button class="primary" data-testid="choose" onclick={Callback::from(|_: MouseEvent| files::pick())}>
                            { icon("add") }{ "Choose files" }
                        </button>
                        <button data-testid="choose-folder" onclick={Callback::from(|_: MouseEvent| files::pick_folder())}>
                            { "Choose a folder" }
                        </button>
                        <button data-testid="example" onclick={with(Tasks::open_example)}>{ "Try an example" }</button>
                    </p>
                </div>
                { offer(kept) }
                <p class="promise">
                    { icon("lock") }
                    <span>
                        { "Files are read in this tab and never uploaded. " }
                        <button class="link" onclick={with(|tasks| tasks.dispatch(Action::DialogOpened(Dialog::Privacy)))}>
                            { "How to verify this" }
                        </button>
                    </span>
                </p>
            </section>
            <section class="how">
                <h2>{ "How to record a trace" }</h2>
                { record_help(tasks) }
            </section>
        </div>
    }
}
