//! What the GPU does in the warm iterations, where the cold ones do something else: a library tries algorithms that it never runs again.

use catalog::Category;
use report::units;
use timeline::percent;

use crate::iterations::Warm;
use crate::kernel_row::KernelTableRow;
use crate::words;

/// The cold ones do something else if they have this multiple of their share of the GPU time, or run kernels for
/// [`APART_PCT`] of it that no warm one runs.
const MORE: f64 = 1.5;
/// In percent of the GPU time of the tables.
const APART_PCT: f64 = 10.0;
/// So many categories are named.
const NAMED: usize = 3;
/// A category is named from this share on, in percent.
const LEAST_PCT: f64 = 5.0;

/// The GPU time of the warm iterations beside that of the tables.
pub(crate) struct WarmWork {
    /// "the 5 warm iterations".
    told: String,
    total_ns: i64,
    warm_ns: i64,
    /// In kernels that no warm iteration runs.
    apart_ns: i64,
    /// Of the warm ones, most time first.
    categories: Vec<(Category, i64)>,
}

impl WarmWork {
    /// Of the kernels by name alone; `None` where the warm iterations have the share of GPU time that their number gives them, and all
    /// kernels.
    pub(crate) fn of(merged: &[KernelTableRow], warm: &Warm) -> Option<Self> {
        let mut work = Self {
            told: warm.told(),
            total_ns: 0,
            warm_ns: 0,
            apart_ns: 0,
            categories: Vec::new(),
        };
        for row in merged {
            let warm_ns = row.warm_ns?;
            work.total_ns = work.total_ns.saturating_add(row.total_ns);
            work.warm_ns = work.warm_ns.saturating_add(warm_ns);
            let apart_ns = if warm_ns == 0 { row.total_ns } else { 0 };
            work.apart_ns = work.apart_ns.saturating_add(apart_ns);
            let sum = match work.categories.iter().position(|(known, _)| *known == row.category) {
                Some(at) => &mut work.categories[at].1,
                None => {
                    work.categories.push((row.category, 0));
                    &mut work.categories.last_mut()?.1
                }
            };
            *sum = sum.saturating_add(warm_ns);
        }
        trace::sort_by(&mut work.categories, |a, b| (b.1, a.0.id()).cmp(&(a.1, b.0.id())));
        let rest_pct = percent(work.total_ns.saturating_sub(work.warm_ns), work.total_ns);
        let fair_pct = percent(warm.n_cold as i64, warm.n as i64);
        let has_more = rest_pct >= APART_PCT && rest_pct >= MORE * fair_pct;
        let differs = has_more || percent(work.apart_ns, work.total_ns) >= APART_PCT;
        (work.warm_ns > 0 && differs).then_some(work)
    }

    /// "The 5 warm iterations have 520 ms (52.6%) of the 988 ms of GPU time in the tables; 340 ms is in kernels that they do not
    /// run. Of their own GPU time, most goes to Convolution (50.0%), then Norm (17.0%)."
    pub(super) fn sentence(&self) -> String {
        let Self { told, total_ns, warm_ns, apart_ns, categories } = self;
        let share = |ns: i64, of: i64| units::percent(percent(ns, of));
        let apart = match percent(*apart_ns, *total_ns) {
            pct if pct < 1.0 => String::new(),
            _ => format!("; {} is in kernels that they do not run", units::time(*apart_ns)),
        };
        let is_told = |(at, (_, ns)): &(usize, &(Category, i64))| {
            *at == 0 || percent(*ns, *warm_ns) >= LEAST_PCT
        };
        let named = categories.iter().take(NAMED).enumerate().filter(is_told);
        let named: Vec<String> = named
            .map(|(_, (category, ns))| format!("{} ({})", category.title(), share(*ns, *warm_ns)))
            .collect();
        format!(
            "{} have {} ({}) of the {} of GPU time in the tables{apart}. Their own GPU time goes to {}.",
            words::sentence_case(told),
            units::time(*warm_ns),
            share(*warm_ns, *total_ns),
            units::time(*total_ns),
            named.join(", then ")
        )
    }
}
