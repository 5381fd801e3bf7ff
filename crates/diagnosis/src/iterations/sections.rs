//! Iterations as tables, sentences and a picture.

use host::numbers::Stats;
use report::drawing::{Anchor, Entry, Shape, fits};
use report::units::{percent, plural, time};
use report::{Cell, Column, Drawing, Row, Section, Table, Unit};
use triage::WallPart;

use super::{Class, Cold, Iteration, Iterations, Kind, OnlyWaits};

/// Iterations that are drawn; a sentence counts the others.
const DRAWN: usize = 48;
/// Letters of a name in a sentence.
const NAME: usize = 64;
/// What of an iteration has no GPU work around it.
const OUTSIDE: &str = "Before the first or after the last GPU work";
/// Iterations that differ by less, as a ratio, take the same time.
const EVEN: f64 = 1.1;
/// Rows that a document prints.
const PREVIEW: u32 = 25;

impl Row for Class {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Class",
            unit: Unit::Text,
            help: "Stage of an engine's passes; else the name without numbers.",
            cell: |row| row.name.as_str().into(),
        },
        Column {
            key: "n",
            title: "Iterations",
            unit: Unit::Count,
            help: "Iterations of the class.",
            cell: |row| Cell::Count(row.n as u64),
        },
        Column {
            key: "cold",
            title: "Cold",
            unit: Unit::Count,
            help: "Leading iterations that take more than 1.5 times the median of later ones, without waits for earlier work, or spend 10% of their time on set-up. The figures exclude them.",
            cell: |row| Cell::Count(row.cold as u64),
        },
        Column {
            key: "gpu_p50_ns",
            title: "GPU span, P50",
            unit: Unit::Time,
            help: "Median time from the first to the last GPU work that an iteration launched.",
            cell: |row| of(&row.gpu_span, 1, |figures| figures.p50_ns),
        },
        Column {
            key: "gpu_p90_ns",
            title: "GPU span, P90",
            unit: Unit::Time,
            help: "The same, 90th percentile (nearest rank); ten iterations are needed.",
            cell: |row| of(&row.gpu_span, 10, |figures| figures.p90_ns),
        },
        Column {
            key: "gpu_p95_ns",
            title: "GPU span, P95",
            unit: Unit::Time,
            help: "The same, 95th percentile; twenty iterations are needed.",
            cell: |row| of(&row.gpu_span, 20, |figures| figures.p95_ns),
        },
        Column {
            key: "gpu_p99_ns",
            title: "GPU span, P99",
            unit: Unit::Time,
            help: "The same, 99th percentile; a hundred iterations are needed.",
            cell: |row| of(&row.gpu_span, 100, |figures| figures.p99_ns),
        },
        Column {
            key: "mean_ns",
            title: "CPU, mean",
            unit: Unit::Time,
            help: "Mean duration on the CPU.",
            cell: |row| of(&row.cpu, 1, |figures| figures.mean_ns as i64),
        },
        Column {
            key: "std_ns",
            title: "CPU, standard deviation",
            unit: Unit::Time,
            help: "Standard deviation of the duration on the CPU (of the sample); two iterations are needed.",
            cell: |row| of(&row.cpu, 2, |figures| figures.std_sample_ns.unwrap_or(0.0) as i64),
        },
        Column {
            key: "p50_ns",
            title: "CPU, P50",
            unit: Unit::Time,
            help: "Median duration on the CPU (nearest rank).",
            cell: |row| of(&row.cpu, 1, |figures| figures.p50_ns),
        },
        Column {
            key: "p90_ns",
            title: "CPU, P90",
            unit: Unit::Time,
            help: "90th percentile; ten iterations are needed.",
            cell: |row| of(&row.cpu, 10, |figures| figures.p90_ns),
        },
        Column {
            key: "p95_ns",
            title: "CPU, P95",
            unit: Unit::Time,
            help: "95th percentile; twenty iterations are needed.",
            cell: |row| of(&row.cpu, 20, |figures| figures.p95_ns),
        },
        Column {
            key: "p99_ns",
            title: "CPU, P99",
            unit: Unit::Time,
            help: "99th percentile; a hundred iterations are needed.",
            cell: |row| of(&row.cpu, 100, |figures| figures.p99_ns),
        },
        Column {
            key: "min_ns",
            title: "CPU, shortest",
            unit: Unit::Time,
            help: "Shortest duration on the CPU.",
            cell: |row| of(&row.cpu, 1, |figures| figures.min_ns),
        },
        Column {
            key: "max_ns",
            title: "CPU, longest",
            unit: Unit::Time,
            help: "Longest duration on the CPU.",
            cell: |row| of(&row.cpu, 1, |figures| figures.max_ns),
        },
    ];
}

/// A figure of enough durations.
fn of(stats: &Stats, least: usize, figure: fn(&host::numbers::Figures) -> i64) -> Cell<'static> {
    match &stats.figures {
        Some(figures) if stats.n >= least => Cell::Ns(figure(figures)),
        Some(_) => Cell::missing("too few iterations"),
        None => Cell::missing("not recorded"),
    }
}

/// A column with a part of the wall time.
macro_rules! part {
    ($part:ident, $key:literal) => {
        Column {
            key: $key,
            title: WallPart::$part.title(),
            unit: Unit::Time,
            help: WallPart::$part.meaning(),
            cell: |row: &Iteration| {
                Cell::Ns(row.parts.get(WallPart::$part.id()).copied().unwrap_or(0))
            },
        }
    };
}

impl Row for Iteration {
    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "name",
            title: "Iteration",
            unit: Unit::Text,
            help: "Its name in the file, numbered where others have the same one.",
            cell: |row| row.shown_name().into(),
        },
        Column {
            key: "class",
            title: "Class",
            unit: Unit::Text,
            help: "Stage of an engine's pass; else the name without numbers.",
            cell: |row| row.class.as_str().into(),
        },
        Column {
            key: "cold",
            title: "Cold",
            unit: Unit::Text,
            help: "Why it is cold, if it is.",
            cell: |row| match row.cold {
                None => Cell::missing("it is not, or too few follow"),
                Some(Cold::Longer) => "own time longer than 1.5 times that of later ones".into(),
                Some(Cold::SetsUp) => "sets things up".into(),
            },
        },
        Column {
            key: "dur_ns",
            title: "On the CPU",
            unit: Unit::Time,
            help: "Duration on the CPU; the parts of the wall time are of this time.",
            cell: |row| Cell::Ns(row.dur_ns),
        },
        Column {
            key: "gpu_span_ns",
            title: "GPU span",
            unit: Unit::Time,
            help: "From the first to the last GPU work that it launched, whenever that runs.",
            cell: |row| Cell::or_missing(row.gpu_span_ns, Cell::Ns, "it launches nothing"),
        },
        Column {
            key: "gpu_busy_ns",
            title: "GPU busy with it",
            unit: Unit::Time,
            help: "Time that this work covers.",
            cell: |row| Cell::Ns(row.gpu_busy_ns),
        },
        Column {
            key: "launched",
            title: "Launched",
            unit: Unit::Count,
            help: "GPU slices that its calls launched.",
            cell: |row| Cell::Count(row.launched as u64),
        },
        part!(Compute, "compute"),
        part!(Communication, "communication"),
        part!(Copies, "copies"),
        part!(DataLoading, "data_loading"),
        part!(HostCompute, "host_compute"),
        part!(Launch, "launch"),
        part!(Start, "start"),
        part!(HostWaits, "host_waits"),
        part!(Allocation, "allocation"),
        part!(Loading, "loading"),
        part!(Profiler, "profiler"),
        part!(Between, "between_kernels"),
        part!(Queued, "queued"),
        part!(Unexplained, "unexplained"),
        Column {
            key: "outside_ns",
            title: "Outside the GPU's work",
            unit: Unit::Time,
            help: "Before the first or after the last GPU work of the file.",
            cell: |row| Cell::Ns(row.outside_ns),
        },
    ];
}

/// A share of the difference, in brackets; nothing where it grew by more, because others shrank.
fn of_difference(ns: i64, longer_ns: i64) -> String {
    if ns > longer_ns {
        return String::new();
    }
    format!(" ({} of the difference)", percent(100.0 * ns as f64 / longer_ns.max(1) as f64))
}

impl Iterations {
    /// What they are, the classes, and each of them.
    #[must_use]
    pub fn section(&self) -> Section {
        let mut section = Section::new("iterations", "Iterations");
        section.intro.extend(self.sentence());
        section.intro.extend(self.left_out.clone());
        section.intro.extend(self.slowest_sentence());
        section.intro.extend(self.periods());
        let is_ahead = self.is_ahead();
        if is_ahead {
            let pace = Some(self.pace).filter(|pace| pace.is_some() || !self.fills_gpu);
            section.intro.extend(pace.map(|pace| super::pace::ahead(pace, self.warm().count())));
        } else if self.list.iter().all(|one| !one.is_ahead) {
            section.drawings.extend(self.drawing());
        }
        section.intro.extend(self.others_work());
        let parts: Vec<&str> = WallPart::ALL.iter().map(|part| part.id()).collect();
        let unused: Vec<&str> = parts
            .into_iter()
            .chain(["outside_ns"])
            .filter(|id| {
                let ns = |one: &Iteration| match *id {
                    "outside_ns" => one.outside_ns,
                    id => one.parts.get(id).copied().unwrap_or(0),
                };
                is_ahead || self.list.iter().all(|one| ns(one) == 0)
            })
            .collect();
        let no_gpu: &[&str] =
            if self.device.is_some() { &[] } else { &["gpu_span_ns", "gpu_busy_ns", "launched"] };
        let mut list = Table::of("iterations", "Iterations", &self.list).preview(PREVIEW);
        for id in unused.iter().chain(no_gpu) {
            list = list.without(id);
        }
        if self.n_cold() == 0 {
            list = list.without("cold");
        }
        // (Of one class of few iterations, and of one iteration, the next table says it all.)
        let is_told = self.classes.len() == 1 && self.list.len() <= PREVIEW as usize;
        let classes = Table::of("iteration_classes", "Classes of iterations", &self.classes)
            .only_on_page(is_told)
            .without_missing(&[
                "gpu_p50_ns",
                "gpu_p90_ns",
                "gpu_p95_ns",
                "gpu_p99_ns",
                "p90_ns",
                "p95_ns",
                "p99_ns",
                "std_ns",
            ]);
        section.tables = if self.list.len() > 1 { vec![classes, list] } else { vec![list] };
        section
    }

    /// Whether the GPU does most work of every warm iteration after it. (There is a warm one: see `Ranges::mark`.)
    pub(super) fn is_ahead(&self) -> bool {
        self.warm().all(|one| one.is_ahead)
    }

    /// What the iterations are, and what is left out of their figures; `None` where the table says all.
    fn sentence(&self) -> Option<String> {
        let n = self.list.iter().filter(|one| !one.is_unmarked).count() as u64;
        let what = match self.kind {
            Kind::ProfilerSteps => plural(n, "step of the profiler", "steps of the profiler"),
            Kind::EnginePasses => match &self.classes[..] {
                [class] if class.name == "extend" => plural(n, "prefill", "prefills"),
                [class] if class.name == "decode" => plural(n, "decode pass", "decode passes"),
                _ => plural(n, "pass of prefill or decode", "passes of prefill or decode"),
            },
            Kind::OptimizerSteps => plural(
                n,
                "iteration, up to the end of the optimizer's step",
                "iterations, each up to the end of the optimizer's step",
            ),
            Kind::RepeatedRange => {
                let ranges = plural(n, "range", "ranges");
                match &self.classes[..] {
                    [class] => format!("{ranges} called {}", class.name),
                    classes => {
                        format!("{ranges} of {}", plural(classes.len() as u64, "kind", "kinds"))
                    }
                }
            }
        };
        let (cold, place) = (self.n_cold() as u64, self.cold_place());
        let cold = match (self.list.len(), cold) {
            (1, 0) => String::new(),
            (..=3, 0) if self.is_even() => String::new(),
            (..=3, 0) => "; too few to tell whether the first one is a warm-up".to_owned(),
            (_, 0) => String::new(),
            // (The first sentence of the report says so: its bar is of the others.)
            _ if self.warm_windows.is_some() && self.is_cold_told => String::new(),
            (_, 1) => format!("; 1{place} is cold and excluded from the figures"),
            (_, cold) => format!("; {cold}{place} are cold and excluded from the figures"),
        };
        let of_device = match &self.device {
            Some(device) if self.n_ranks > 1 => format!(
                " These are the iterations of the rank with device {device}, one of {} in the file.",
                self.n_ranks
            ),
            Some(device) if self.is_one_of_several => {
                format!(" GPU figures are those of device {device}, which has most of their work.")
            }
            _ => String::new(),
        };
        // (Their names, and how many they are, stand in the table.)
        let is_plain = match self.kind {
            Kind::ProfilerSteps => true,
            Kind::RepeatedRange => self.classes.len() == 1,
            Kind::EnginePasses | Kind::OptimizerSteps => false,
        };
        let is_told = is_plain && cold.is_empty() && of_device.is_empty();
        (!is_told).then(|| format!("{what}{cold}.{of_device}"))
    }

    /// Whether all take about the same time on the CPU: then none of them is cold.
    fn is_even(&self) -> bool {
        let times = || self.list.iter().map(|one| one.dur_ns);
        let (least, most) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        most as f64 <= EVEN * least as f64
    }

    /// How the slowest differs from the median one.
    #[must_use]
    pub fn slowest_sentence(&self) -> Option<String> {
        let slowest = self.slowest.as_ref()?;
        // (Without a reason it is a row of the table.)
        let has_reason = slowest.part.is_some()
            || slowest.on_cpu.is_some()
            || slowest.op.is_some()
            || slowest.only_waits.is_some();
        if !has_reason && slowest.launched_more == 0 {
            return None;
        }
        let (slow, median) = (self.list.get(slowest.at)?, self.list.get(slowest.median_at)?);
        let mut text = format!(
            "The slowest, {}, takes {} on the CPU, {} more than the median one, {}",
            slow.shown_name(),
            time(slow.dur_ns),
            time(slowest.longer_ns),
            median.shown_name()
        );
        text.extend(slowest.only_waits.as_ref().map(OnlyWaits::clause));
        if let Some((name, ns)) = &slowest.on_cpu {
            let share = of_difference(*ns, slowest.longer_ns);
            let name = report::short_name(name, NAME);
            text.push_str(&format!("; on the CPU it spends {} more in {name}{share}", time(*ns)));
        }
        if let Some((part, ns)) = slowest.part {
            let share = of_difference(ns, slowest.longer_ns);
            text.push_str(&format!(
                "; the part that grew most is \u{201c}{}\u{201d}, by {}{share}",
                part.title(),
                time(ns),
            ));
        }
        if let Some((op, ns)) = &slowest.op {
            text.push_str(&format!(
                "; the op whose own CPU time grew most is {op}, by {}{}",
                time(*ns),
                of_difference(*ns, slowest.longer_ns)
            ));
        }
        if slowest.launched_more != 0 {
            let n = plural(slowest.launched_more.unsigned_abs(), "GPU slice", "GPU slices");
            let word = if slowest.launched_more > 0 { "more" } else { "fewer" };
            text.push_str(&format!("; it launches {n} {word}"));
        }
        text.push('.');
        Some(text)
    }

    /// A bar per iteration, as long as it takes.
    fn drawing(&self) -> Option<Drawing> {
        const ROW: f32 = 18.0;
        const LEFT: f32 = 230.0;
        const WIDTH: f32 = 1000.0;
        let drawn = self.list.get(..self.list.len().min(DRAWN))?;
        let longest = drawn.iter().map(|one| one.dur_ns).max().filter(|ns| *ns > 0)?;
        if drawn.len() < 2 || self.device.is_none() {
            return None;
        }
        let scale = f64::from(WIDTH - LEFT - 90.0) / longest as f64;
        let mut shapes = Vec::new();
        for (row, one) in drawn.iter().enumerate() {
            let y = row as f32 * ROW;
            let (name, mut label) = (one.shown_name(), one.shown_name());
            while !fits(&label, LEFT) && label.pop().is_some() {}
            let text = |x: f32, anchor: Anchor, text: String| Shape::Text {
                x,
                y: y + 13.0,
                anchor,
                text,
                on: "".into(),
            };
            shapes.push(text(LEFT - 8.0, Anchor::End, label));
            let mut x = LEFT;
            for part in WallPart::ALL {
                let ns = one.parts.get(part.id()).copied().unwrap_or(0);
                let width = (ns as f64 * scale) as f32;
                if ns > 0 {
                    let title = format!("{name}: {}, {}", part.title(), time(ns));
                    let category = part.id().into();
                    shapes.push(Shape::Bar {
                        x,
                        y: y + 2.0,
                        width,
                        height: ROW - 4.0,
                        category,
                        title,
                    });
                }
                x += width;
            }
            if one.outside_ns > 0 {
                let width = (one.outside_ns as f64 * scale) as f32;
                let title = format!("{name}: {OUTSIDE}, {}", time(one.outside_ns));
                let category = "".into();
                shapes.push(Shape::Bar {
                    x,
                    y: y + 2.0,
                    width,
                    height: ROW - 4.0,
                    category,
                    title,
                });
                x += width;
            }
            shapes.push(text(x + 6.0, Anchor::Start, time(one.dur_ns)));
        }
        let used = WallPart::ALL.into_iter().filter(|part| {
            drawn.iter().any(|one| one.parts.get(part.id()).is_some_and(|ns| *ns > 0))
        });
        let mut legend: Vec<Entry> = used
            .map(|part| Entry { category: part.id().into(), label: part.title().to_owned() })
            .collect();
        if drawn.iter().any(|one| one.outside_ns > 0) {
            legend.push(Entry { category: "".into(), label: OUTSIDE.to_owned() });
        }
        let of = if drawn.len() < self.list.len() {
            format!("the first {} of {} iterations", drawn.len(), self.list.len())
        } else {
            format!("{} iterations", drawn.len())
        };
        let title = format!("Wall time of {of}, on the CPU's clock");
        Some(Drawing {
            id: "iterations".into(),
            says: format!("{title}; the table of iterations has the figures"),
            title,
            width: WIDTH,
            height: drawn.len() as f32 * ROW + 4.0,
            shapes,
            legend,
        })
    }
}
