//! What most of the time of a GPU goes to.

use std::collections::BTreeMap;

use catalog::Category;
use report::short_names;
use report::units::percent;
use triage::KernelTableRow;

use crate::Facts;

/// A kind of work is named from this share of the GPU's time on, in percent, and a kernel from this share of its kind on.
const LEAST_WORK_PCT: f64 = 25.0;
/// More than this is all, as far as one decimal tells.
const ALL_PCT: f64 = 99.95;

/// Characters of a kernel's name.
const NAME: usize = 60;

/// What most of the GPU's time goes to, where that is one kind of work, communication aside, which may run beside it.
pub(super) fn largest_work(facts: &Facts<'_>, device: &str) -> String {
    if facts.triage.displaced.as_ref().is_some_and(|found| found.is_much(Some(device))) {
        return String::new();
    }
    let mut sums: BTreeMap<Category, f64> = BTreeMap::new();
    let is_own =
        |row: &&KernelTableRow| row.device == device && row.category != Category::Communication;
    let rows = || facts.triage.merged.iter().filter(is_own);
    for row in rows() {
        *sums.entry(row.category).or_default() += row.gpu_share_pct;
    }
    let lent = lent_to_convolutions(facts, rows().next());
    if let Some(own) = sums.get_mut(&Category::Conv) {
        *own += lent;
        *sums.entry(Category::Gemm).or_default() -= lent;
    }
    let most = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((category, share)) = most.filter(|(_, share)| *share >= LEAST_WORK_PCT) else {
        return String::new();
    };
    let own = || rows().filter(|row| row.category == category);
    let most = own().max_by(|a, b| a.gpu_share_pct.total_cmp(&b.gpu_share_pct));
    let most = most.map(|row| (100.0 * row.gpu_share_pct / share, row));
    let kernel = match most.filter(|(part, _)| *part >= LEAST_WORK_PCT) {
        None => String::new(),
        Some((part, row)) => {
            let part = if part > ALL_PCT { "all".to_owned() } else { percent(part) };
            // (Short names may be equal where the full ones are not: of Tensile's products the tile is in the middle.)
            let names: Vec<&str> = own().map(|row| &*row.kernel_name).collect();
            let shown = short_names(&names, NAME).remove(&*row.kernel_name);
            format!(", {part} of it in {}", shown.unwrap_or_default())
        }
    };
    let with = match category == Category::Conv && percent(share) != percent(share - lent) {
        true => " (with the GEMMs that it launches)",
        false => "",
    };
    let earlier = facts.triage.before_window;
    let launched = match earlier.n_slices > 0 && !earlier.counted {
        true => " that was launched while profiling",
        false => "",
    };
    format!(
        " {} takes {} of the GPU's time{launched}{with}{kernel}.",
        category.title(),
        percent(share)
    )
}

/// The GEMMs that convolutions launch, in percent of the GPU's time, as triage counts them: 0 where that is not known of one device.
fn lent_to_convolutions(facts: &Facts<'_>, row: Option<&KernelTableRow>) -> f64 {
    let row = row.filter(|row| facts.has_one_device() && row.total_ns > 0);
    let gemm_ns = facts.triage.coverage.known_convolution_gemm_ns();
    row.map_or(0.0, |row| row.gpu_share_pct * gemm_ns as f64 / row.total_ns as f64)
}
