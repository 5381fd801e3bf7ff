//! The tables of the host, for the page and for Markdown.

use report::units::{bytes, count, time};
use report::{Cell, Column, Row, RowKey, Section, Table, Unit};
use serde::Serialize;

use crate::calls::CallRow;
use crate::columns::{PREVIEW, columns, or_missing};
use crate::flops::FlopsRow;
use crate::frames::FrameRow;
use crate::modules::ModuleRow;
use crate::report::HostReport;
use crate::threads::ThreadRow;

/// From this part of the GPU time of modules on, what was launched outside them is worth a word.
const OUTSIDE: f64 = 0.05;

/// One row of PyTorch's own table, with the GPU time beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AverageRow {
    /// Name.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Time in no event inside, in ns.
    pub self_cpu_ns: i64,
    /// Sum of durations.
    pub cpu_total_ns: i64,
    /// GPU time of what was launched in an op of this name and in no op inside.
    pub self_device_ns: Option<i64>,
    /// GPU time of what was launched in an op of this name.
    pub device_ns: Option<i64>,
    /// GPU slices of it.
    pub kernels: Option<u64>,
}

impl Row for AverageRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        name "Name" Name "Op or annotation." |row| row.name.as_str().into();
        count "Calls" Count "Calls." |row| Cell::Count(row.count);
        self_cpu_ns "CPU, self" Time "CPU time in no event inside it." |row| Cell::Ns(row.self_cpu_ns);
        cpu_total_ns "CPU, total" Time "Sum of the durations on the CPU." |row| Cell::Ns(row.cpu_total_ns);
        self_device_ns "GPU, self" Time "GPU time of what it launched as the innermost op." |row| or_missing(row.self_device_ns, Cell::Ns);
        device_ns "GPU, total" Time "GPU time of what was launched in it, each GPU slice once." |row| or_missing(row.device_ns, Cell::Ns);
        kernels "GPU slices" Count "Kernels, copies and fills of the GPU time." |row| or_missing(row.kernels, Cell::Count);
    };

    fn key(&self) -> Option<RowKey<'_>> {
        // (Annotations have no namespace, and `torch.ops` finds no op without one.)
        self.name.contains("::").then_some(RowKey::Op(&self.name))
    }
}

impl Row for ThreadRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        name "Thread" Name "Name of the thread, where the file has one." |row| or_missing(row.name.as_deref(), Into::into);
        pid "Process" Text "Process id, as the file spells it." |row| row.pid.as_str().into();
        tid "Thread id" Text "Thread id, as the file spells it." |row| row.tid.as_str().into();
        n "Slices" Count "Slices on the thread." |row| Cell::Count(row.n as u64);
        busy_ns "Busy" Time "Time covered by any slice." |row| Cell::Ns(row.busy_ns);
        n_ops "Ops" Count "Ops on the thread." |row| Cell::Count(row.n_ops as u64);
        op_busy_ns "Busy with ops" Time "Time covered by ops." |row| Cell::Ns(row.op_busy_ns);
    };
}

impl Row for FrameRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        name "Python function" Path "File, line of the definition, and function." |row| row.name.as_str().into();
        calls "Calls" Count "Calls." |row| Cell::Count(row.calls);
        self_ns "Self" Time "Time in no Python function inside it." |row| Cell::Ns(row.self_ns);
        total_ns "Total" Time "Sum of the durations, recursive calls once." |row| Cell::Ns(row.total_ns);
    };
}

impl Row for CallRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        name "Call" Name "Call of a runtime or driver." |row| row.name.as_str().into();
        class "Does" Text "What such calls do." |row| row.class.title().into();
        count "Calls" Count "Calls." |row| Cell::Count(row.count);
        total_ns "Total" Time "Sum of the durations." |row| Cell::Ns(row.total_ns);
    };
}

/// One step, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepTableRow {
    /// Name.
    pub name: String,
    /// Duration on the host, in ns.
    pub dur_ns: i64,
    /// Time in it in which any GPU was busy.
    pub busy_clip_ns: Option<i64>,
    /// GPU slices that it launched.
    pub n_launch: Option<u64>,
    /// Time that these cover, summed over devices.
    pub busy_launch_ns: Option<i64>,
}

impl Row for StepTableRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        name "Step" Text "Name of the step." |row| row.name.as_str().into();
        dur_ns "On the CPU" Time "Duration on the CPU. While the launch queue fills, this is shorter than the step takes." |row| Cell::Ns(row.dur_ns);
        busy_clip_ns "GPU busy in it" Time "Time of the step in which a GPU is busy, with work of any step; summed over devices." |row| or_missing(row.busy_clip_ns, Cell::Ns);
        n_launch "Launched" Count "GPU slices that the step launched." |row| or_missing(row.n_launch, Cell::Count);
        busy_launch_ns "GPU busy with it" Time "Time that the launched GPU slices cover, whenever they run; summed over devices." |row| or_missing(row.busy_launch_ns, Cell::Ns);
    };
}

impl Row for ModuleRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        path "Module" Path "Names from the outermost module on." |row| row.path.as_str().into();
        depth "Depth" Count "Modules around it." |row| Cell::Count(row.depth as u64);
        calls "Calls" Count "Calls." |row| Cell::Count(row.calls);
        total_ns "CPU, total" Time "Sum of the durations on the CPU." |row| Cell::Ns(row.total_ns);
        self_ns "CPU, self" Time "CPU time in no module inside it." |row| Cell::Ns(row.self_ns);
        device_ns "GPU, total" Time "GPU time of what was launched in it; kernels of the backward pass are launched outside." |row| Cell::Ns(row.device_ns);
        self_device_ns "GPU, self" Time "GPU time of what was launched in it and in no module inside." |row| Cell::Ns(row.self_device_ns);
        kernels "GPU slices" Count "Kernels, copies and fills of the GPU time." |row| Cell::Count(row.kernels);
    };
}

/// One op with floating point operations, as the page shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlopsTableRow {
    /// Name.
    pub name: String,
    /// Counted calls.
    pub counted: u64,
    /// Calls whose shapes are missing or make no sense.
    pub uncovered: u64,
    /// Operations, in GFLOP.
    pub gflop: String,
    /// GPU time of counted calls.
    pub device_ns_with_flops: i64,
    /// Achieved rate, in TFLOP/s.
    pub tflops: Option<String>,
}

impl FlopsTableRow {
    fn of(row: &FlopsRow) -> Self {
        Self {
            name: row.name.clone(),
            counted: row.counted,
            uncovered: row.uncovered,
            gflop: format!("{:.3}", row.flops as f64 / 1e9),
            device_ns_with_flops: row.device_ns_with_flops,
            tflops: row.tflops.map(|tflops| format!("{tflops:.1}")),
        }
    }
}

impl Row for FlopsTableRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        name "Op" Name "Innermost op with a formula." |row| row.name.as_str().into();
        counted "Counted calls" Count "Calls whose operations follow from their input sizes." |row| Cell::Count(row.counted);
        uncovered "Without sizes" Count "Calls whose input sizes are not recorded, or do not fit the formula." |row| Cell::Count(row.uncovered);
        gflop "GFLOP" Text "Multiplications and additions in billions; bias additions do not count." |row| row.gflop.as_str().into();
        device_ns_with_flops "GPU time" Time "GPU time of counted calls." |row| Cell::Ns(row.device_ns_with_flops);
        tflops "TFLOP/s" Text "Operations / GPU time." |row| or_missing(row.tflops.as_deref(), Into::into);
    };
}

/// One long gap, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GapRow {
    /// The device.
    pub device: String,
    /// Start, on the clock of the file.
    pub start_ns: Option<i64>,
    /// Length.
    pub dur_ns: i64,
    /// The part in which the next slice had been launched already.
    pub queued_ns: Option<i64>,
    /// What the launching thread did at the end of the part before.
    pub host: Option<String>,
    /// What it did in the middle of the gap.
    pub middle: Option<String>,
    /// The call that launched what ends the gap.
    pub launch: Option<String>,
    /// The GPU slice that ends the gap.
    pub next: Option<String>,
}

impl Row for GapRow {
    const COLUMNS: &'static [Column<Self>] = columns! {
        device "Device" Text "Device id." |row| row.device.as_str().into();
        start_ns "Start" Instant "Start of the gap, on the clock of the file." |row| or_missing(row.start_ns, Cell::Instant);
        dur_ns "Length" Time "Time in which the device was idle." |row| Cell::Ns(row.dur_ns);
        queued_ns "Queued" Time "The part in which the next kernel or copy had already been launched." |row| or_missing(row.queued_ns, Cell::Ns);
        host "CPU before the launch" Path "The innermost op, Python function or call on the launching thread when the launch was over." |row| or_missing(row.host.as_deref(), Into::into);
        middle "CPU in the middle" Path "The innermost op, Python function or call on the launching thread in the middle of the gap." |row| or_missing(row.middle.as_deref(), Into::into);
        launch "Launched by" Name "The call that launched what ends the gap." |row| or_missing(row.launch.as_deref(), Into::into);
        next "Ended by" Name "The GPU slice that ends the gap." |row| or_missing(row.next.as_deref(), Into::into);
    };
}

/// An op whose GPU time is this many times its CPU time returns long before its work has run.
const ASYNCHRONOUS: i64 = 5;

/// That a clock on the CPU does not measure the op with most GPU time, where that shows.
fn asynchronous(rows: &[AverageRow]) -> Option<String> {
    let gpu = |row: &&AverageRow| row.self_device_ns.unwrap_or(0);
    let most = rows.iter().max_by_key(gpu)?;
    let on_gpu = gpu(&most);
    let shows = on_gpu > 0 && on_gpu >= most.cpu_total_ns.max(1).saturating_mul(ASYNCHRONOUS);
    shows.then(|| {
        format!(
            "{} takes {} on the CPU and {} on the GPU: an op returns before its GPU work has run, so a clock on the CPU around it \
             measures its launch.",
            most.name,
            time(most.cpu_total_ns),
            time(on_gpu)
        )
    })
}

impl HostReport {
    /// The tables, in the order in which they are read.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        vec![
            self.ops_section(),
            self.steps_section(),
            self.gaps_section(),
            self.calls_section(),
            self.frames_section(),
            self.modules_section(),
            self.flops_section(),
            crate::copies::section(&self.copies, &self.copy_places),
            self.memory_section(),
        ]
    }

    fn ops_section(&self) -> Section {
        let rows = self.key_averages.iter().map(|(name, row)| {
            let op = self.cpu_ops.ops.iter().find(|op| op.name == *name);
            let on_gpu = op.filter(|_| self.links.gpu > 0);
            AverageRow {
                name: name.clone(),
                count: row.count,
                self_cpu_ns: row.self_cpu_ns,
                cpu_total_ns: row.cpu_total_ns,
                self_device_ns: on_gpu.map(|op| op.self_device_ns),
                device_ns: on_gpu.map(|op| op.device_ns),
                kernels: on_gpu.map(|op| op.kernels),
            }
        });
        let mut rows: Vec<AverageRow> = rows.collect();
        trace::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.self_cpu_ns));
        let mut section = Section::new("cpu", "CPU");
        section.intro.extend(asynchronous(&rows));
        let ops = Table::of("ops", "Ops and annotations", &rows)
            .without_missing(&["self_device_ns", "device_ns", "kernels"])
            .when_empty("The file has no ops and no annotations.");
        section.tables.push(ops.preview(PREVIEW));
        let of_host: Vec<ThreadRow> =
            self.threads.list.iter().filter(|thread| thread.is_of_host()).cloned().collect();
        let threads = Table::of("threads", "Threads", &of_host)
            .when_empty("The file has no slices of CPU threads.");
        section.tables.push(threads.preview(PREVIEW));
        section
    }

    fn steps_section(&self) -> Section {
        let mut section = Section::new("steps", "Steps");
        section.intro.extend(self.steps_sentence());
        let rows: Vec<StepTableRow> = self
            .steps
            .cpu
            .iter()
            .map(|step| {
                let devices = || step.devices.values();
                let launched = || devices().filter_map(|device| device.launched.as_ref());
                let any = !step.devices.is_empty();
                StepTableRow {
                    name: step.name.clone(),
                    dur_ns: step.dur_ns,
                    busy_clip_ns: any.then(|| devices().map(|device| device.busy_clip_ns).sum()),
                    n_launch: any.then(|| launched().map(|one| one.n_launch as u64).sum()),
                    busy_launch_ns: any.then(|| launched().map(|one| one.busy_launch_ns).sum()),
                }
            })
            .collect();
        let table = Table::of("steps", "Steps", &rows)
            .without_missing(&["busy_clip_ns", "n_launch", "busy_launch_ns"])
            .when_empty("The file has no steps of the profiler.")
            .only_on_page(rows.is_empty());
        section.tables.push(table.preview(PREVIEW));
        section
    }

    /// Mean and percentiles, as far as the number of steps carries them.
    fn steps_sentence(&self) -> Option<String> {
        let stats = &self.steps.cpu_dur;
        let figures = stats.figures.as_ref()?;
        let n = stats.n;
        if n == 1 {
            return Some(format!(
                "One step of {}: it shows neither a spread nor a cold first step.",
                time(figures.sum_ns)
            ));
        }
        let mut text = format!(
            "{n} steps on the CPU: mean {}, standard deviation {}, median {}",
            time(figures.mean_ns as i64),
            time(figures.std_sample_ns.unwrap_or(figures.std_pop_ns) as i64),
            time(figures.p50_lin_ns as i64)
        );
        if n >= 10 {
            text.push_str(&format!(", P90 {}", time(figures.p90_ns)));
        }
        if n >= 20 {
            text.push_str(&format!(", P95 {}", time(figures.p95_ns)));
        }
        if n >= 100 {
            text.push_str(&format!(", P99 {}", time(figures.p99_ns)));
        }
        text.push_str(&format!(", {} to {}.", time(figures.min_ns), time(figures.max_ns)));
        Some(text)
    }

    fn gaps_section(&self) -> Section {
        let mut section = Section::new("gaps", "GPU gaps");
        let mut rows = Vec::new();
        for (device, gaps) in &self.gaps {
            let all = &gaps.all;
            if all.n > 0 {
                section.intro.push(format!(
                    "Device {device}: {} gaps of {} in all. In {} the CPU had not launched the next kernel or copy yet; in {} \
                     it had.",
                    count(all.n as u64),
                    time(all.total_ns),
                    time(all.host_ns),
                    time(all.queued_ns),
                ));
                let places = self.idle_places.get(device);
                let edges_ns = places.map_or(0, |places| places.host_ns - all.host_ns);
                if edges_ns > all.host_ns / 20 {
                    section.intro.push(format!(
                        "The tables by line and by op count {} more: what the steps have before the first GPU work and after the last.",
                        time(edges_ns)
                    ));
                }
            }
            rows.extend(all.ten.iter().map(|gap| GapRow {
                device: device.clone(),
                start_ns: gap.start_ns,
                dur_ns: gap.dur_ns,
                queued_ns: gap.launched.as_ref().map(|launch| launch.queued_ns),
                host: gap.host_at_t_star.as_ref().map(|host| host.name.clone()),
                middle: gap.host_at_mid.as_ref().map(|host| host.name.clone()),
                launch: gap.launch.clone(),
                next: gap.next.clone(),
            }));
        }
        let table = Table::of("gaps", "The ten longest gaps of each device", &rows)
            .when_empty("No device is idle between two GPU slices.");
        crate::idle::add(&self.idle_places, self.python.n > 0, &mut section);
        section.tables.push(table.preview(PREVIEW));
        section
    }

    fn calls_section(&self) -> Section {
        let mut section = Section::new("calls", "Runtime calls");
        let table = Table::of("calls", "Calls of runtime and driver", &self.runtime.names)
            .when_empty("The file has no calls of a runtime or driver.");
        section.tables.push(table.preview(PREVIEW));
        section
    }

    fn frames_section(&self) -> Section {
        let mut section = Section::new("frames", "Python functions");
        let table = Table::of("frames", "Python functions by self time", &self.python.frames)
            .when_empty(self.without("frames of Python", "with_stack"));
        section.tables.push(table.preview(PREVIEW));
        section
    }

    /// That the file has nothing of a kind, and how to record it, unless the file says that it was asked for.
    fn without(&self, what: &str, flag: &str) -> String {
        match self.verdicts.flags.get(flag).and_then(serde_json::Value::as_i64) {
            Some(1) => {
                format!("The file has no {what}, although it was recorded with {flag}=True.")
            }
            _ => format!("The file has no {what}: record it with {flag}=True."),
        }
    }

    fn modules_section(&self) -> Section {
        let mut section = Section::new("modules", "Modules");
        let outside_ns = self.modules.linked_gpu_outside_ns as f64;
        let outermost = self.modules.list.iter().filter(|row| row.depth == 0);
        let all_ns: i64 = outermost.map(|row| row.device_ns).sum();
        if outside_ns > 0.0 && outside_ns >= OUTSIDE * all_ns as f64 && self.modules.n_paths > 0 {
            section.intro.push(format!(
                "{} of GPU time was launched outside any module.",
                time(self.modules.linked_gpu_outside_ns)
            ));
        }
        let table = Table::of("modules", "Modules", &self.modules.list)
            .when_empty(self.without("frames of modules", "with_stack"));
        section.tables.push(table.preview(PREVIEW));
        section
    }

    fn flops_section(&self) -> Section {
        let mut section = Section::new("flops", "Floating point operations");
        let flops = &self.flops;
        if flops.counted > 0 {
            let mut text =
                format!("{:.3} TFLOP in {} ops", flops.total as f64 / 1e12, count(flops.counted));
            if let Some(tflops) = flops.tflops {
                text.push_str(&format!(
                    "; {tflops:.1} TFLOP/s over {} of GPU time",
                    time(flops.device_ns)
                ));
            }
            text.push('.');
            section.intro.push(text);
        }
        if flops.uncovered > 0 {
            section.intro.push(format!(
                "{} ops are not counted: their input sizes are missing. Record with record_shapes=True.",
                count(flops.uncovered)
            ));
        }
        let rows: Vec<FlopsTableRow> = flops.ops.iter().map(FlopsTableRow::of).collect();
        let table = Table::of("flops", "Floating point operations by op", &rows)
            .when_empty("The file has no op that a formula covers.");
        section.tables.push(table.preview(PREVIEW));
        self.rates.add_to(&self.custom_ops.exact_rates(), &mut section);
        self.custom_ops.add_to(&mut section);
        crate::misaligned::add_to(&self.misaligned, &mut section);
        self.traffic.add_to(&mut section);
        section
    }

    fn memory_section(&self) -> Section {
        let mut section = Section::new("memory", "Memory");
        // GPUs first: their memory is what runs out.
        let mut rows: Vec<_> = self.memory.iter().collect();
        rows.sort_by_key(|row| row.device_type == Some(0));
        for row in rows {
            let Some(peak) = row.peak_total_allocated else { continue };
            let device = match (row.device_type, row.device_id) {
                (Some(0), _) => "CPU".to_owned(),
                (_, Some(device)) => format!("Device {device}"),
                _ => "Unknown device".to_owned(),
            };
            let mut text = format!("{device}: at most {} allocated", bytes(peak.max(0) as u64));
            if let Some(reserved) = row.peak_total_reserved.filter(|reserved| *reserved > 0) {
                text.push_str(&format!(", {} reserved", bytes(reserved as u64)));
            }
            text.push_str(&format!(
                "; {} allocations, {} frees.",
                count(row.n_alloc as u64),
                count(row.n_free as u64)
            ));
            section.intro.push(text);
        }
        if section.intro.is_empty() {
            section.intro.push(self.without("changes of memory", "profile_memory"));
        }
        section
    }
}
