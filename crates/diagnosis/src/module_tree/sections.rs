//! The tree of modules as a table and a picture.

use report::drawing::{Anchor, Shape, fits};
use report::units::{percent, plural, time};
use report::{Cell, Column, Drawing, Row, Section, Table, Unit};
use timeline::percent as share;

use super::{ModuleTree, TreeRow};

/// Rows that a document prints.
const PREVIEW: u32 = 40;
/// Rows with this share of GPU time are printed, too.
const PRINTED_PCT: f64 = 1.0;
/// Modules with this share of the GPU time have nearly all of it.
const MOSTLY_PCT: f64 = 95.0;
/// Levels that are drawn.
const LEVELS: usize = 8;
/// Narrower boxes are not drawn, in units of the canvas.
const LEAST_WIDTH: f32 = 2.0;

impl Row for TreeRow {
    const SHOWN: &'static [&'static str] = &[
        "path",
        "instances",
        "share_pct",
        "forward_ns",
        "backward_ns",
        "self_ns",
        "cpu_ns",
        "cpu_most_ns",
        "gflop",
    ];

    const COLUMNS: &'static [Column<Self>] = &[
        Column {
            key: "path",
            title: "Module",
            unit: Unit::Path,
            help: "Classes from the outermost module on; #2 is the second of its like. Equal siblings are one row.",
            cell: |row| row.path.as_str().into(),
        },
        Column {
            key: "depth",
            title: "Depth",
            unit: Unit::Count,
            help: "Modules around it.",
            cell: |row| Cell::Count(row.depth as u64),
        },
        Column {
            key: "instances",
            title: "Modules",
            unit: Unit::Count,
            help: "Equal modules that are one row.",
            cell: |row| Cell::Count(row.instances),
        },
        Column {
            key: "calls",
            title: "Calls",
            unit: Unit::Count,
            help: "Calls of all of them.",
            cell: |row| Cell::Count(row.calls),
        },
        Column {
            key: "share_pct",
            title: "Share of GPU time",
            unit: Unit::Percent,
            help: "Forward and backward, in percent of the GPU time of all GPU slices.",
            cell: |row| Cell::Percent(row.share_pct),
        },
        Column {
            key: "forward_ns",
            title: "GPU, forward",
            unit: Unit::Time,
            help: "GPU time of what was launched in it.",
            cell: |row| Cell::Ns(row.forward_ns),
        },
        Column {
            key: "backward_ns",
            title: "GPU, backward",
            unit: Unit::Time,
            help: "GPU time of the backward pass of ops that were called in it.",
            cell: |row| Cell::Ns(row.backward_ns),
        },
        Column {
            key: "self_ns",
            title: "GPU, self",
            unit: Unit::Time,
            help: "Forward and backward, without the modules inside it.",
            cell: |row| Cell::Ns(row.self_ns),
        },
        Column {
            key: "least_ns",
            title: "GPU, least",
            unit: Unit::Time,
            help: "Least GPU time of a module in the row.",
            cell: |row| Cell::Ns(row.least_ns),
        },
        Column {
            key: "most_ns",
            title: "GPU, most",
            unit: Unit::Time,
            help: "Most GPU time of a module in the row.",
            cell: |row| Cell::Ns(row.most_ns),
        },
        Column {
            key: "cpu_ns",
            title: "CPU",
            unit: Unit::Time,
            help: "Sum of the durations of the calls on the CPU.",
            cell: |row| Cell::Ns(row.cpu_ns),
        },
        Column {
            key: "cpu_most_ns",
            title: "CPU, longest call",
            unit: Unit::Time,
            help: "The longest of these calls: a first one may set libraries up.",
            cell: |row| Cell::Ns(row.cpu_most_ns),
        },
        Column {
            key: "gflop",
            title: "GFLOP of ops with a formula",
            unit: Unit::Text,
            help: "Operations in billions, backward included, of the ops for which a formula is known: fused and custom kernels do not count, in a module or in those inside it.",
            cell: |row| match row.flops {
                0 => Cell::missing("no op of it is counted"),
                flops => format!("{:.3}", flops as f64 / 1e9).into(),
            },
        },
        Column {
            key: "n_slices",
            title: "GPU slices",
            unit: Unit::Count,
            help: "Kernels, copies and fills of its GPU time.",
            cell: |row| Cell::Count(row.n_slices),
        },
    ];
}

/// Modules with less than this share of the GPU time are none to look at: what they call was launched by graphs, or outside of them.
const TOLD_PCT: f64 = 5.0;

/// Whether one of several calls takes most of their time: then the sum says little of the others.
fn has_long_call(row: &TreeRow) -> bool {
    row.calls >= LEAST_CALLS && row.cpu_most_ns.saturating_mul(2) >= row.cpu_ns
}

/// Of fewer calls, one takes half by chance.
const LEAST_CALLS: u64 = 4;

impl ModuleTree {
    /// Whether the tree says where a part of the GPU's time goes; without a GPU, that of the CPU.
    #[must_use]
    pub(crate) fn is_told(&self) -> bool {
        let in_modules = self.device_ns - self.outside_ns - self.unlinked_ns;
        self.device_ns == 0 || share(in_modules, self.device_ns) >= TOLD_PCT
    }

    /// The sentence, the picture and the table. `says_share`: whether it matters which part of the GPU time belongs to modules.
    #[must_use]
    pub fn section(&self, says_share: bool) -> Section {
        let mut section = Section::new("module_tree", "Modules");
        section.intro.extend(self.sentence().filter(|_| says_share));
        section.drawings.extend(self.icicle());
        let mut table =
            Table::of("module_tree", "Modules, those of one structure as one row", &self.rows)
                .without_zero(&["forward_ns", "backward_ns"]);
        if self.device_ns == 0 {
            for key in [
                "share_pct",
                "forward_ns",
                "backward_ns",
                "self_ns",
                "least_ns",
                "most_ns",
                "n_slices",
            ] {
                table = table.without(key);
            }
        }
        let table = table.without_missing(&["gflop"]);
        let table = match self.rows.iter().any(has_long_call) {
            true => table,
            false => table.without("cpu_most_ns"),
        };
        // (In the order of the tree, the first rows need not be the largest.)
        let printed = self.rows.iter().map(|row| row.depth == 0 || row.share_pct >= PRINTED_PCT);
        section.tables.push(match self.device_ns {
            0 => table.preview(PREVIEW),
            _ => table.printing(printed),
        });
        section
    }

    /// How much of the GPU time belongs to modules; `None` where nearly all does, as the table says.
    fn sentence(&self) -> Option<String> {
        let in_modules = self.device_ns - self.outside_ns - self.unlinked_ns;
        let is_most = share(in_modules, self.device_ns) >= MOSTLY_PCT;
        let mut text = plural(self.n_modules, "module", "modules");
        if is_most {
            return None;
        }
        if self.device_ns > 0 {
            let of = |ns: i64| format!("{} ({})", time(ns), percent(share(ns, self.device_ns)));
            text.push_str(&format!(
                "; of {} of GPU time, {} belongs to them",
                time(self.device_ns),
                of(in_modules)
            ));
            if self.outside_ns > 0 {
                text.push_str(&format!(
                    ", {} was launched outside any module",
                    of(self.outside_ns)
                ));
            }
            if self.unlinked_ns > 0 {
                let place = if self.of_step { "this step" } else { "the file" };
                text.push_str(&format!(
                    ", and the launch of {} is not in {place}",
                    of(self.unlinked_ns)
                ));
            }
        }
        text.push('.');
        Some(text)
    }

    /// Boxes as wide as GPU time, modules below the one around them.
    fn icicle(&self) -> Option<Drawing> {
        const WIDTH: f32 = 1000.0;
        const LEVEL: f32 = 24.0;
        if self.device_ns <= 0 || self.rows.len() < 2 {
            return None;
        }
        let width = |row: &TreeRow| {
            let ns = row.forward_ns.saturating_add(row.backward_ns);
            (f64::from(WIDTH) * ns as f64 / self.device_ns as f64) as f32
        };
        let mut shapes = Vec::new();
        // By level: where the next box begins.
        let mut next = [0.0_f32; LEVELS + 1];
        let mut deepest = 0;
        for row in self.rows.iter().filter(|row| row.depth < LEVELS) {
            let (x, y) = (next[row.depth], row.depth as f32 * LEVEL);
            let own = width(row);
            next[row.depth] = x + own;
            next[row.depth + 1] = x;
            if own < LEAST_WIDTH {
                continue;
            }
            deepest = deepest.max(row.depth);
            let label = match row.instances {
                1 => row.name.clone(),
                n => format!("{} x {n}", row.name),
            };
            let ns = row.forward_ns.saturating_add(row.backward_ns);
            let title = format!("{}: {}, {}", row.path, time(ns), percent(row.share_pct));
            let category = if row.depth % 2 == 0 { "python_function" } else { "elementwise" };
            shapes.push(Shape::Bar {
                x,
                y,
                width: own,
                height: LEVEL - 1.0,
                category: category.into(),
                title,
            });
            if fits(&label, own) {
                let (x, y, on) = (x + 6.0, y + 16.0, category.into());
                shapes.push(Shape::Text { x, y, anchor: Anchor::Start, text: label, on });
            }
        }
        let title = "GPU time by module, forward and backward".to_owned();
        Some(Drawing {
            id: "modules".into(),
            says: format!(
                "{title}: a box for each row of the table of modules, below the module around it"
            ),
            title,
            width: WIDTH,
            height: (deepest + 1) as f32 * LEVEL,
            shapes,
            legend: Vec::new(),
        })
    }
}
