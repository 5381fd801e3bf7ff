//! Where GPU time goes: by category, by family, and by both.

use catalog::{Category, Family};
use report::{Cell, Column, Row, Unit};
use serde::Serialize;

use crate::{columns, words};
use timeline::gpu::{Extent, Gpu};
use timeline::percent;

/// One category of GPU work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CategoryRow {
    /// Category id.
    pub category: String,
    /// The reporting group it belongs to.
    pub bucket: &'static str,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total as a percentage of the sum over all GPU slices.
    pub share_pct: f64,
    /// Time during which at least one slice of it ran.
    pub busy_ns: i64,
    /// Total - busy: time that slices of the category ran concurrently.
    pub overlap_ns: i64,
    /// GPU slices.
    pub n_slices: u64,
    /// Distinct names.
    pub n_names: u64,
}

/// One family (library, compiler) of GPU work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilyRow {
    /// The library or compiler that they come from.
    #[serde(serialize_with = "crate::ids::serialize")]
    pub family: Family,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total as a percentage of the sum over all GPU slices.
    pub share_pct: f64,
    /// Time during which at least one slice of it ran.
    pub busy_ns: i64,
    /// Total - busy.
    pub overlap_ns: i64,
    /// GPU slices.
    pub n_slices: u64,
    /// Distinct names.
    pub n_names: u64,
}

/// One category of one family.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixRow {
    /// What the kernels do.
    #[serde(serialize_with = "crate::ids::serialize")]
    pub category: Category,
    /// The library or compiler that they come from.
    #[serde(serialize_with = "crate::ids::serialize")]
    pub family: Family,
    /// Sum of durations.
    pub total_ns: i64,
    /// Total as a percentage of the sum over all GPU slices.
    pub share_pct: f64,
    /// GPU slices.
    pub n_slices: u64,
}

pub(crate) struct Breakdown {
    pub(crate) categories: Vec<CategoryRow>,
    pub(crate) families: Vec<FamilyRow>,
    pub(crate) matrix: Vec<MatrixRow>,
}

/// Keys in order of first appearance, each with its extent. There are a few dozen at most.
struct Groups<K> {
    keys: Vec<K>,
    extents: Vec<Extent>,
    n_names: Vec<u64>,
    /// Group of each of [`Gpu::works`].
    of_work: Vec<usize>,
}

impl<K: Copy + PartialEq> Groups<K> {
    fn new(keys_of_works: impl Iterator<Item = K>) -> Self {
        let mut groups = Self {
            keys: Vec::new(),
            extents: Vec::new(),
            n_names: Vec::new(),
            of_work: Vec::new(),
        };
        for key in keys_of_works {
            let group = groups.group(key);
            groups.n_names[group] += 1;
            groups.of_work.push(group);
        }
        groups
    }

    fn group(&mut self, key: K) -> usize {
        self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.extents.push(Extent::default());
            self.n_names.push(0);
            self.keys.len() - 1
        })
    }

    fn rows<R>(&self, row: impl Fn(K, &Extent, u64) -> R) -> Vec<R> {
        let groups = self.keys.iter().zip(&self.extents).zip(&self.n_names);
        groups.map(|((key, extent), n_names)| row(*key, extent, *n_names)).collect()
    }
}

#[inline(never)]
pub(crate) fn breakdown(gpu: &Gpu<'_>) -> Breakdown {
    let mut categories = Groups::new(gpu.works.iter().map(|work| work.category));
    let mut families = Groups::new(gpu.works.iter().map(|work| work.family));
    let mut both = Groups::new(gpu.works.iter().map(|work| (work.category, work.family)));
    // What could not be named is always said, also when it is nothing.
    if !gpu.works.is_empty() {
        categories.group(Category::Other);
    }
    let mut all_ns = 0_i64;
    gpu.each_slice(|slice| {
        all_ns = all_ns.saturating_add(slice.dur_ns);
        categories.extents[categories.of_work[slice.work]].add(&slice);
        families.extents[families.of_work[slice.work]].add(&slice);
        both.extents[both.of_work[slice.work]].add(&slice);
    });

    let mut breakdown = Breakdown {
        categories: categories.rows(|category: Category, extent, n_names| CategoryRow {
            category: category.id().to_owned(),
            bucket: category.bucket(),
            total_ns: extent.total_ns,
            share_pct: percent(extent.total_ns, all_ns),
            busy_ns: extent.busy_ns,
            overlap_ns: extent.overlap_ns(),
            n_slices: extent.n,
            n_names,
        }),
        families: families.rows(|family: Family, extent, n_names| FamilyRow {
            family,
            total_ns: extent.total_ns,
            share_pct: percent(extent.total_ns, all_ns),
            busy_ns: extent.busy_ns,
            overlap_ns: extent.overlap_ns(),
            n_slices: extent.n,
            n_names,
        }),
        matrix: both.rows(|(category, family), extent, _| MatrixRow {
            category,
            family,
            total_ns: extent.total_ns,
            share_pct: percent(extent.total_ns, all_ns),
            n_slices: extent.n,
        }),
    };
    trace::sort_by(&mut breakdown.categories, |a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| a.category.cmp(&b.category))
    });
    trace::sort_by(&mut breakdown.families, |a, b| {
        b.total_ns.cmp(&a.total_ns).then_with(|| a.family.id().cmp(b.family.id()))
    });
    trace::sort_by(&mut breakdown.matrix, |a, b| {
        b.total_ns
            .cmp(&a.total_ns)
            .then_with(|| a.category.id().cmp(b.category.id()))
            .then_with(|| a.family.id().cmp(b.family.id()))
    });
    breakdown
}

const HELP_TOTAL: &str = "Sum of the durations.";
const HELP_SHARE: &str =
    "Total as a percentage of the summed duration of all GPU slices, not of wall time.";
const HELP_BUSY: &str = "Time during which at least one such slice ran.";

const fn overlap_ns<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Total - Busy: time in which slices of this kind ran concurrently.";
    Column { key: "overlap_ns", title: "Overlap", unit: Unit::Time, help, cell }
}

const fn n_names<R>(cell: fn(&R) -> Cell) -> Column<R> {
    Column {
        key: "n_names",
        title: "Names",
        unit: Unit::Count,
        help: "Number of distinct names.",
        cell,
    }
}

impl Row for CategoryRow {
    const COLUMNS: &'static [Column<Self>] = &[
        columns::category("Kind of work, from the kernel's name; other: no rule matches.", |row| {
            words::category(&row.category)
        }),
        Column {
            key: "bucket",
            title: "Group",
            unit: Unit::Text,
            help: "Reporting group of the category.",
            cell: |row| row.bucket.into(),
        },
        columns::total_ns(HELP_TOTAL, |row| Cell::Ns(row.total_ns)),
        columns::share_pct(columns::OF_GPU_TIME, HELP_SHARE, |row| Cell::Percent(row.share_pct)),
        columns::busy_ns(HELP_BUSY, |row| Cell::Ns(row.busy_ns)),
        overlap_ns(|row| Cell::Ns(row.overlap_ns)),
        columns::n_slices(|row| Cell::Count(row.n_slices)),
        n_names(|row| Cell::Count(row.n_names)),
    ];
}

impl Row for FamilyRow {
    const COLUMNS: &'static [Column<Self>] = &[
        columns::family(
            "The library or compiler the work comes from, from the kernel's name.",
            |row| words::of_family(row.family),
        ),
        columns::total_ns(HELP_TOTAL, |row| Cell::Ns(row.total_ns)),
        columns::share_pct(columns::OF_GPU_TIME, HELP_SHARE, |row| Cell::Percent(row.share_pct)),
        columns::busy_ns(HELP_BUSY, |row| Cell::Ns(row.busy_ns)),
        overlap_ns(|row| Cell::Ns(row.overlap_ns)),
        columns::n_slices(|row| Cell::Count(row.n_slices)),
        n_names(|row| Cell::Count(row.n_names)),
    ];
}

impl Row for MatrixRow {
    const COLUMNS: &'static [Column<Self>] = &[
        columns::category("What the work is.", |row| words::of_category(row.category)),
        columns::family("The library or compiler the work comes from.", |row| {
            words::of_family(row.family)
        }),
        columns::total_ns(HELP_TOTAL, |row| Cell::Ns(row.total_ns)),
        columns::share_pct(columns::OF_GPU_TIME, HELP_SHARE, |row| Cell::Percent(row.share_pct)),
        columns::n_slices(|row| Cell::Count(row.n_slices)),
    ];
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyze};
    use fixture::{Fixture, kernel, slice};

    #[test]
    fn shares_are_of_all_gpu_slices_and_sum_to_the_whole() {
        let mut fixture = Fixture::default();
        fixture.push(kernel("Cijk_Alik_Bljk_BBS_BH_MT64x64x64").at(0, 60).on(0, 1));
        fixture.push(kernel("Cijk_Ailk_Bljk_BBS_BH_MT32x32x64").at(10, 20).on(0, 2));
        fixture.push(kernel("qwertz").at(90, 10).on(0, 1));
        fixture.push(slice("gpu_memcpy", "Memcpy HtoD (Host -> Device)").at(95, 10).on(0, 2));
        let report = analyze(&fixture.finish(), &Options::default());
        let found: Vec<_> = report
            .categories
            .iter()
            .map(|row| {
                (row.category.as_str(), row.total_ns, row.busy_ns, row.overlap_ns, row.n_names)
            })
            .collect();
        assert_eq!(
            found,
            [("gemm", 80, 60, 20, 2), ("memcpy", 10, 10, 0, 1), ("other", 10, 10, 0, 1)]
        );
        assert!(
            (report.categories.iter().map(|row| row.share_pct).sum::<f64>() - 100.0).abs() < 1e-9
        );
        assert_eq!(report.categories[0].share_pct, 80.0);
        assert_eq!(report.matrix.iter().map(|row| row.total_ns).sum::<i64>(), 100);
        assert_eq!(report.families.iter().map(|row| row.n_slices).sum::<u64>(), 4);
    }

    #[test]
    fn other_is_shown_when_it_is_nothing() {
        let mut fixture = Fixture::default();
        fixture.push(kernel("Cijk_Alik_Bljk_BBS_BH_MT64x64x64").at(0, 60));
        let rows = analyze(&fixture.finish(), &Options::default()).categories;
        assert_eq!(
            (rows[1].category.as_str(), rows[1].total_ns, rows[1].n_slices),
            ("other", 0, 0)
        );
    }
}
