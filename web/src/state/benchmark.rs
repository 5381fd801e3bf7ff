//! A script that times one op alone: its worker writes it, the page copies it.

use std::rc::Rc;

use super::effect::Effect;
use super::next::Next;
use super::workers;
use crate::protocol::{Failure, Request};

/// Asks for the benchmark of an op of the file that is shown.
pub(super) fn ask(next: &mut Next, op: String) {
    if let Some(job) = next.state.selected {
        next.state.announcement = "Writing the benchmark…".into();
        workers::ask(next, Request::Benchmark { job, op });
    }
}

/// Copies the script, or says why there is none.
pub(super) fn written(next: &mut Next, op: &str, script: Result<String, String>) {
    match script {
        Ok(script) => {
            next.effects.push(Effect::CopyText(script, format!("Copied a benchmark of {op}")));
        }
        Err(reason) => next.state.notices.push(Rc::new(Failure {
            title: "No benchmark of this op".into(),
            what: format!("{op}: {reason}."),
            ..Failure::default()
        })),
    }
}
