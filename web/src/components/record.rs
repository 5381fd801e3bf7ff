//! How to record a trace that has Python lines and shapes: on the empty page, and in a dialog wherever one is missing.

use yew::prelude::*;

use super::icon;
use crate::state::{Action, Dialog};
use crate::tasks::Tasks;

/// A program that records. Copied as it stands.
const PYTORCH: &str = r#"from torch.profiler import profile, schedule, ProfilerActivity

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],  # CUDA also selects ROCm
    schedule=schedule(wait=1, warmup=2, active=3),
    with_stack=True,     # Python lines
    record_shapes=True,  # input shapes
    on_trace_ready=lambda prof: prof.export_chrome_trace("trace.json.gz"),
) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()
"#;

/// Fields of the request: `ProfileReqInput` of sglang/srt/managers/io_struct.py.
const SGLANG: &str = r#"curl -X POST http://localhost:30000/start_profile \
  -H "Content-Type: application/json" \
  -d '{"output_dir": "/tmp/traces", "num_steps": 10, "activities": ["CPU", "GPU"],
       "with_stack": true, "record_shapes": true}'
"#;

/// Fields of `ProfilerConfig` in vllm/config/profiler.py, from v0.13 on.
const VLLM: &str = r#"vllm serve MODEL --profiler-config '{"profiler": "torch",
  "torch_profiler_dir": "/tmp/traces",
  "torch_profiler_with_stack": true, "torch_profiler_record_shapes": true}'

curl -X POST http://localhost:8000/start_profile
curl -X POST http://localhost:8000/stop_profile
"#;

/// The programs, each with a button that copies it.
pub fn record_help(tasks: &Tasks) -> Html {
    let snippet = |name: &'static str, id: &'static str, text: &'static str| {
        let tasks = tasks.clone();
        let copy = Callback::from(move |_: MouseEvent| {
            tasks.copy(text.to_owned(), format!("Copied the {name} example"));
        });
        html! {
            <div class="snippet">
                <button class="snippet-copy" data-testid={format!("copy-{id}")} onclick={copy}
                    aria-label={format!("Copy the {name} example")}>{ icon("copy") }{ "Copy" }</button>
                <pre tabindex="0" aria-label={format!("{name} example")}><code>{ text }</code></pre>
            </div>
        }
    };
    html! {
        <div class="record" data-testid="record-help">
            <h3>{ "PyTorch" }</h3>
            { snippet("PyTorch", "snippet", PYTORCH) }
            <h3>{ "SGLang" }</h3>
            { snippet("SGLang", "sglang", SGLANG) }
            <h3>{ "vLLM" }</h3>
            { snippet("vLLM", "vllm", VLLM) }
            <p class="hint">
                { "vLLM before 0.13: start the server with " }<code>{ "VLLM_TORCH_PROFILER_DIR" }</code>
                { " and " }<code>{ "VLLM_TORCH_PROFILER_RECORD_SHAPES=1" }</code>{ " set." }
            </p>
            <p class="hint">{ "Recording stacks and shapes slows down the CPU. Compare only runs that were recorded with the same settings." }</p>
        </div>
    }
}

/// A link to that dialog.
pub fn record_link(tasks: &Tasks) -> Html {
    let tasks = tasks.clone();
    let onclick =
        Callback::from(move |_: MouseEvent| tasks.dispatch(Action::DialogOpened(Dialog::Record)));
    html! { <button class="link" {onclick} data-testid="how-to-record">{ "How to record it" }</button> }
}
