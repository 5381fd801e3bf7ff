//! The page before a file: what to drop, how to record it, an example, and the promise.

use yew::prelude::*;

use super::Icon;
use crate::state::{Action, Dialog};
use crate::tasks::{Tasks, files};

/// How a trace is recorded. Copied as it stands.
const SNIPPET: &str = r#"from torch.profiler import profile, schedule, ProfilerActivity

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],  # CUDA means ROCm, too
    schedule=schedule(wait=1, warmup=2, active=3),
    on_trace_ready=lambda prof: prof.export_chrome_trace("trace.json.gz"),
) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()
"#;

/// Effects.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Effects.
    pub tasks: Tasks,
}

/// The empty page.
#[component]
pub fn EmptyState(props: &Props) -> Html {
    let with = |effect: fn(&Tasks)| {
        let tasks = props.tasks.clone();
        Callback::from(move |_: MouseEvent| effect(&tasks))
    };
    html! {
        <div class="empty" data-testid="empty">
            <section class="hero">
                <h1>{ "See what the GPU did. Fix what Perfetto drops." }</h1>
                <p class="lead">
                    { "Drop a PyTorch profiler trace from training, SGLang or vLLM, on CUDA or ROCm. You get kernel and \
                       category tables, a list of what is wrong with the file, and a repaired copy that Perfetto shows in full." }
                </p>
                <div class="drop-zone">
                    <p class="drop-zone-title">{ "Drop traces anywhere on this page" }</p>
                    <p class="drop-zone-note">{ ".json or .json.gz, several at once, or a folder" }</p>
                    <p class="drop-zone-actions">
                        <button class="primary" data-testid="choose" onclick={Callback::from(|_: MouseEvent| files::pick())}>
                            <Icon name="add" />{ "Choose files" }
                        </button>
                        <button data-testid="example" onclick={with(Tasks::open_example)}>{ "Try an example" }</button>
                    </p>
                </div>
                <p class="promise">
                    <Icon name="lock" />
                    <span>
                        { "The file is read by this tab and goes nowhere else. " }
                        <button class="link" onclick={with(|tasks| tasks.dispatch(Action::DialogSet(Some(Dialog::Privacy))))}>
                            { "How to check that" }
                        </button>
                    </span>
                </p>
            </section>
            <section class="how">
                <h2>{ "How to record a trace" }</h2>
                <div class="snippet">
                    <button class="snippet-copy" data-testid="copy-snippet" onclick={with(|tasks| {
                        tasks.copy(SNIPPET.to_owned(), "Copied the example program".to_owned());
                    })}><Icon name="copy" />{ "Copy" }</button>
                    <pre tabindex="0" aria-label="Program that records a trace"><code>{ SNIPPET }</code></pre>
                </div>
                <ul class="recipes">
                    <li><strong>{ "SGLang" }</strong>{ " start the server with " }<code>{ "SGLANG_TORCH_PROFILER_DIR" }</code>
                        { " set, then POST to " }<code>{ "/start_profile" }</code>{ " and " }<code>{ "/stop_profile" }</code></li>
                    <li><strong>{ "vLLM" }</strong>{ " the same with " }<code>{ "VLLM_TORCH_PROFILER_DIR" }</code></li>
                </ul>
            </section>
        </div>
    }
}
