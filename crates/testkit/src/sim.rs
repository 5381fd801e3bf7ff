//! A simulation of a CPU thread that launches, and of GPU streams that run: behind the example and the samples.

use crate::prng::Prng;
use crate::{KinetoEvent, event};

/// What runs the simulation.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    /// The process, and its main thread.
    pub(crate) pid: i64,
    /// The device, and the pid of its tracks.
    pub(crate) device: i64,
    pub(crate) rocm: bool,
    pub(crate) start_ns: i64,
    /// Of the kernels that may start early, how many do.
    pub(crate) early_pct: i64,
    pub(crate) seed: u64,
}

/// Stream of the model.
pub(crate) const COMPUTE: usize = 0;
/// Stream of copies.
pub(crate) const COPY: usize = 1;
/// Stream of collectives.
pub(crate) const COMM: usize = 2;
const STREAMS: [i64; 3] = [7, 20, 28];

/// What to launch.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) dur_ns: i64,
    pub(crate) blocks: i64,
    pub(crate) threads: i64,
    pub(crate) stream: usize,
    /// Starts before the kernel ahead of it ends (programmatic dependent launch).
    pub(crate) early: bool,
    /// Its recorded duration is so many times the real one, as ROCm records some.
    pub(crate) overrun: i64,
}

/// How work reaches the GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One call per kernel.
    Eager,
    /// One call for all kernels: they share its correlation.
    Graph(i64),
    /// The call was made before profiling started.
    Unrecorded,
    /// The call adds the kernel to a graph; nothing runs.
    Capture,
}

pub(crate) struct Sim {
    machine: Machine,
    pub(crate) rng: Prng,
    /// The CPU's clock.
    pub(crate) cpu_ns: i64,
    events: Vec<(i64, i64, KinetoEvent)>,
    free_ns: [i64; 3],
    correlation: i64,
    external: i64,
    operator: i64,
    python: i64,
    parents: Vec<i64>,
    mode: Mode,
    /// Start of the first and end of the last kernel since the last call of [`Sim::gpu_window`].
    window: Option<(i64, i64)>,
}

impl Sim {
    pub(crate) fn new(machine: Machine) -> Self {
        let start_ns = machine.start_ns;
        Self {
            machine,
            rng: Prng(machine.seed),
            cpu_ns: start_ns,
            events: Vec::new(),
            free_ns: [start_ns; 3],
            correlation: 100,
            external: 1,
            operator: 0,
            python: 0,
            parents: Vec::new(),
            mode: Mode::Eager,
            window: None,
        }
    }

    /// All events by start, enclosing slices first.
    pub(crate) fn finish(mut self) -> Vec<KinetoEvent> {
        self.events.sort_by_key(|(ts, dur, _)| (*ts, -*dur));
        self.events.into_iter().map(|(_, _, event)| event).collect()
    }

    pub(crate) fn slice(&mut self, event: KinetoEvent, start_ns: i64, end_ns: i64) {
        let dur = end_ns - start_ns;
        self.events.push((start_ns, dur, event.at_ns(start_ns).lasting_ns(dur)));
    }

    pub(crate) fn point(&mut self, event: KinetoEvent, at_ns: i64) {
        self.events.push((at_ns, -1, event.at_ns(at_ns)));
    }

    pub(crate) fn untimed(&mut self, event: KinetoEvent) {
        self.events.push((i64::MIN, 0, event));
    }

    pub(crate) fn spend(&mut self, about_ns: i64) {
        self.cpu_ns += self.rng.about(about_ns, 40);
    }

    /// Often a slice and its last child end at the same nanosecond: the profiler uses one timestamp.
    fn leave(&mut self, about_ns: i64) {
        if !self.rng.chance(40) {
            self.spend(about_ns);
        }
    }

    /// A Python frame around `body`.
    pub(crate) fn frame(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        let start = self.cpu_ns;
        self.python += 1;
        let id = self.python;
        let parent = self.parents.last().copied();
        self.spend(1_300);
        self.parents.push(id);
        body(self);
        self.parents.pop();
        self.leave(400);
        let mut frame = event("X", "python_function", name).on(self.machine.pid, self.machine.pid);
        if let Some(parent) = parent {
            frame = frame.arg("Python parent id", parent);
        }
        let frame = frame.arg("Python id", id).arg("Ev Idx", self.events.len() as i64);
        self.slice(frame, start, self.cpu_ns);
    }

    /// An operator around `body`.
    pub(crate) fn op(&mut self, name: &str, dims: &str, body: impl FnOnce(&mut Self)) {
        let start = self.cpu_ns;
        self.operator += 1;
        let outer = std::mem::replace(&mut self.external, self.operator);
        self.spend(5_200);
        body(self);
        self.leave(900);
        let op = event("X", "cpu_op", name)
            .on(self.machine.pid, self.machine.pid)
            .arg("External id", self.external)
            .raw_arg("Input Dims", dims);
        self.external = outer;
        self.slice(op, start, self.cpu_ns);
    }

    /// An annotation around `body`.
    pub(crate) fn annotation(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        let start = self.cpu_ns;
        self.spend(500);
        body(self);
        self.spend(500);
        self.slice(
            event("X", "user_annotation", name).on(self.machine.pid, self.machine.pid),
            start,
            self.cpu_ns,
        );
    }

    /// The call that launches one kernel. ROCm writes the kernel's name into it.
    fn launch_call(&mut self, kernel: &'static str) -> i64 {
        if self.machine.rocm {
            self.call_with("hipLaunchKernel", 211, 4_400, |call| call.arg("kernel", kernel))
        } else {
            self.call("cudaLaunchKernel", 211, 4_400)
        }
    }

    /// Launches a kernel in the current mode.
    pub(crate) fn launch(&mut self, kernel: Kernel) {
        let correlation = match self.mode {
            Mode::Eager => self.launch_call(kernel.name),
            Mode::Capture => {
                self.launch_call(kernel.name);
                return;
            }
            Mode::Graph(correlation) => correlation,
            Mode::Unrecorded => {
                self.correlation += 1;
                self.correlation
            }
        };
        let dur = self.rng.about(kernel.dur_ns, 6);
        let (start, end) = self.run(kernel.stream, dur, kernel.early);
        let warps = kernel.threads / 32 * kernel.blocks;
        let mut slice =
            event("X", "kernel", kernel.name).on(self.machine.device, STREAMS[kernel.stream]);
        if self.mode == Mode::Eager {
            slice = slice.arg("External id", self.external);
        }
        let slice = slice
            .arg("device", self.machine.device)
            .arg("context", 1)
            .arg("stream", STREAMS[kernel.stream])
            .arg("correlation", correlation)
            .arg("registers per thread", 32 + kernel.threads / 8)
            .raw_arg("warps per SM", &format!("{}.{:02}", warps / 132, warps % 132 * 100 / 132))
            .raw_arg("grid", &format!("[{}, 1, 1]", kernel.blocks))
            .raw_arg("block", &format!("[{}, 1, 1]", kernel.threads));
        self.slice(slice, start, start + (end - start) * kernel.overrun);
        self.arrow_end(correlation, kernel.stream, start);
    }

    /// Copies or memsets; `name` is as the driver reports it.
    pub(crate) fn memory(&mut self, raw_category: &str, name: &str, call: &str, bytes: i64) {
        let correlation = self.call(call, 41, 4_500);
        let dur = 1_100 + bytes / 20;
        let (start, end) = self.run(COPY, dur, false);
        let slice = event("X", raw_category, name)
            .on(self.machine.device, STREAMS[COPY])
            .arg("External id", self.external)
            .arg("device", self.machine.device)
            .arg("context", 1)
            .arg("stream", STREAMS[COPY])
            .arg("correlation", correlation)
            .arg("bytes", bytes);
        self.slice(slice, start, end);
        self.arrow_end(correlation, COPY, start);
    }

    /// Everything that `body` launches comes from one graph launch.
    pub(crate) fn graph(&mut self, body: impl FnOnce(&mut Self)) {
        let correlation = self.call(self.named("cudaGraphLaunch", "hipGraphLaunch"), 311, 21_000);
        self.mode = Mode::Graph(correlation);
        body(self);
        self.mode = Mode::Eager;
    }

    /// Everything that `body` launches goes into a graph, and does not run.
    pub(crate) fn capture(&mut self, body: impl FnOnce(&mut Self)) {
        self.call(self.named("cudaStreamBeginCapture", "hipStreamBeginCapture"), 320, 2_000);
        self.mode = Mode::Capture;
        body(self);
        self.mode = Mode::Eager;
        self.call(self.named("cudaStreamEndCapture", "hipStreamEndCapture"), 321, 2_000);
    }

    /// Kernels of `body` were launched before profiling started; they cost no CPU time here.
    pub(crate) fn unrecorded(&mut self, body: impl FnOnce(&mut Self)) {
        self.mode = Mode::Unrecorded;
        body(self);
        self.mode = Mode::Eager;
    }

    /// Waits until the streams are empty.
    pub(crate) fn synchronize(&mut self) {
        let start = self.cpu_ns;
        let idle = self.free_ns.iter().copied().max().unwrap_or(start);
        self.cpu_ns = idle.max(start) + self.rng.between(1_500, 3_000);
        self.correlation += 1;
        let name = self.named("cudaStreamSynchronize", "hipStreamSynchronize");
        let call = event("X", "cuda_runtime", name)
            .on(self.machine.pid, self.machine.pid)
            .arg("cbid", 131)
            .arg("correlation", self.correlation);
        self.slice(call, start, self.cpu_ns);
    }

    /// The GPU's view of an annotation: from the first start to the last end on the compute stream since
    /// the last call.
    pub(crate) fn gpu_annotation(&mut self, name: &str) {
        if let Some((start, end)) = self.window.take() {
            let slice =
                event("X", "gpu_user_annotation", name).on(self.machine.device, STREAMS[COMPUTE]);
            self.slice(slice, start, end);
        }
    }

    fn named(&self, cuda: &'static str, rocm: &'static str) -> &'static str {
        if self.machine.rocm { rocm } else { cuda }
    }

    /// A runtime call with the start of its arrow.
    fn call(&mut self, name: &str, cbid: i64, about_ns: i64) -> i64 {
        self.call_with(name, cbid, about_ns, |call| call)
    }

    fn call_with(
        &mut self,
        name: &str,
        cbid: i64,
        about_ns: i64,
        with: impl FnOnce(KinetoEvent) -> KinetoEvent,
    ) -> i64 {
        self.correlation += 1;
        let start = self.cpu_ns + self.rng.between(100, 400);
        self.cpu_ns = start;
        self.spend(about_ns);
        let call = event("X", "cuda_runtime", name)
            .on(self.machine.pid, self.machine.pid)
            .arg("External id", self.external)
            .arg("cbid", cbid)
            .arg("correlation", self.correlation);
        self.slice(with(call), start, self.cpu_ns);
        let arrow = event("s", "ac2g", "ac2g")
            .member("id", self.correlation)
            .on(self.machine.pid, self.machine.pid);
        self.point(arrow, start);
        self.correlation
    }

    fn arrow_end(&mut self, correlation: i64, stream: usize, at_ns: i64) {
        if self.mode == Mode::Unrecorded {
            return;
        }
        let arrow = event("f", "ac2g", "ac2g").member("id", correlation).member("bp", "e");
        self.point(arrow.on(self.machine.device, STREAMS[stream]), at_ns);
    }

    /// Queues `dur_ns` of work on a stream, and returns when it ran.
    fn run(&mut self, stream: usize, dur_ns: i64, early: bool) -> (i64, i64) {
        let launched = self.cpu_ns + self.rng.between(2_500, 4_000);
        let free = self.free_ns[stream];
        let mut start = launched.max(free + self.rng.between(600, 1_100));
        if early && launched < free && self.rng.chance(self.machine.early_pct) {
            // It may wait on the SM for what it depends on, while that still writes its last results.
            start = free - self.rng.between(150, 1_300).min(dur_ns / 2);
        }
        let end = start + dur_ns;
        self.free_ns[stream] = end;
        if stream == COMPUTE {
            let (first, last) = self.window.unwrap_or((start, end));
            self.window = Some((first.min(start), last.max(end)));
        }
        (start, end)
    }

    /// Makes `stream` wait for the work launched on `other`, except for its last `but_ns`.
    pub(crate) fn wait_for(&mut self, stream: usize, other: usize, but_ns: i64) {
        self.free_ns[stream] = self.free_ns[stream].max(self.free_ns[other] - but_ns);
    }
}
