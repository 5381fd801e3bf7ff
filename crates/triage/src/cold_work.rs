//! What the GPU does in cold iterations, where it does something else in the others: a library tries algorithms that it never runs again.

use catalog::Category;
use report::units;
use timeline::percent;

use crate::iterations::Warm;
use crate::kernel_row::KernelTableRow;

/// The cold ones do something else if they have this multiple of their share of the GPU time, or run kernels for
/// [`APART_PCT`] of it that no other runs.
const MORE: f64 = 1.5;
/// In percent of the GPU time of the tables.
const APART_PCT: f64 = 10.0;
/// So many categories are named.
const NAMED: usize = 3;
/// A category is named from this share on, in percent.
const LEAST_PCT: f64 = 5.0;

/// The GPU time of cold iterations beside that of the tables.
pub(crate) struct ColdWork {
    /// "The cold iteration has".
    have: String,
    /// Whether it is one.
    is_one: bool,
    total_ns: i64,
    cold_ns: i64,
    /// In kernels that nothing else runs.
    apart_ns: i64,
    /// Of what is left, most time first.
    categories: Vec<(Category, i64)>,
}

impl ColdWork {
    /// Of the kernels by name alone; `None` where the cold iterations have the share of GPU time that their number gives them, and no
    /// kernels of their own.
    pub(crate) fn of(merged: &[KernelTableRow], warm: &Warm) -> Option<Self> {
        let mut work = Self {
            have: warm.cold_have(),
            is_one: warm.n_cold == 1,
            total_ns: 0,
            cold_ns: 0,
            apart_ns: 0,
            categories: Vec::new(),
        };
        for row in merged {
            let cold_ns = row.cold_ns?;
            work.total_ns = work.total_ns.saturating_add(row.total_ns);
            work.cold_ns = work.cold_ns.saturating_add(cold_ns);
            let apart_ns = if cold_ns == row.total_ns { cold_ns } else { 0 };
            work.apart_ns = work.apart_ns.saturating_add(apart_ns);
            let sum = match work.categories.iter().position(|(known, _)| *known == row.category) {
                Some(at) => &mut work.categories[at].1,
                None => {
                    work.categories.push((row.category, 0));
                    &mut work.categories.last_mut()?.1
                }
            };
            *sum = sum.saturating_add(row.total_ns.saturating_sub(cold_ns));
        }
        trace::sort_by(&mut work.categories, |a, b| (b.1, a.0.id()).cmp(&(a.1, b.0.id())));
        let cold_pct = percent(work.cold_ns, work.total_ns);
        let fair_pct = percent(warm.n_cold as i64, warm.n as i64);
        let has_more = cold_pct >= APART_PCT && cold_pct >= MORE * fair_pct;
        let differs = has_more || percent(work.apart_ns, work.total_ns) >= APART_PCT;
        (work.cold_ns < work.total_ns && differs).then_some(work)
    }

    /// "The cold iteration at the beginning has 476 ms (48.2%) of the 988 ms of GPU time in the tables, 209 ms of it in kernels that no other
    /// runs. The rest goes to Convolution (61.4%), then Norm (14.7%)."
    pub(crate) fn sentence(&self) -> String {
        let Self { have, is_one, total_ns, cold_ns, apart_ns, categories } = self;
        let share = |ns: i64, of: i64| units::percent(percent(ns, of));
        let who = if *is_one { "no other runs" } else { "no others run" };
        let apart = match percent(*apart_ns, *total_ns) {
            pct if pct < 1.0 => String::new(),
            _ => format!(", {} of it in kernels that {who}", units::time(*apart_ns)),
        };
        let rest_ns = total_ns.saturating_sub(*cold_ns);
        let is_told = |(at, (_, ns)): &(usize, &(Category, i64))| {
            *at == 0 || percent(*ns, rest_ns) >= LEAST_PCT
        };
        let named = categories.iter().take(NAMED).enumerate().filter(is_told);
        let named: Vec<String> = named
            .map(|(_, (category, ns))| format!("{} ({})", category.title(), share(*ns, rest_ns)))
            .collect();
        format!(
            "{have} {} ({}) of the {} of GPU time in the tables{apart}. The rest goes to {}.",
            units::time(*cold_ns),
            share(*cold_ns, *total_ns),
            units::time(*total_ns),
            named.join(", then ")
        )
    }
}
