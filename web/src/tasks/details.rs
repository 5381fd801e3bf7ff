//! Asking the worker about single rows.

use super::Tasks;
use crate::protocol::{JobId, KernelKey, Request};

impl Tasks {
    /// Asks for a kernel's launches and places.
    pub fn ask_kernel(&self, job: JobId, key: KernelKey) {
        let count_before_window = self.0.count_before_window.get();
        self.ask(job, vec![Request::Kernel { job, key, count_before_window }]);
    }

    /// Asks for what ran around an event.
    pub fn ask_window(&self, job: JobId, event: u32) {
        self.ask(job, vec![Request::Window { job, event }]);
    }
}
