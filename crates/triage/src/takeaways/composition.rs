//! What the GPU time goes to.

use std::collections::BTreeMap;

use catalog::{Category, Family};
use report::units;
use timeline::percent;

use crate::device_time::DeviceTime;
use crate::kernel_row::KernelTableRow;
use crate::tables::DeviceTables;

/// A second category is named from this share of GPU time on, in percent; as is a kernel of no known category.
const SECOND_PCT: f64 = 5.0;
/// Kernels of no known category that are named.
const UNKNOWN_KERNELS: usize = 2;
/// Characters of a kernel's name in a sentence.
const NAME_LENGTH: usize = 56;

/// What the GPU time of the tables goes to. `convolution_gemm_ns` is the time of GEMMs that convolutions launch: they stand
/// under GEMM in the tables, but what makes a linear layer faster does nothing for them. `bare_ns` is the time of kernels without names of
/// their own, where a sentence says so.
pub(super) fn composition(
    time: &DeviceTime,
    tables: &DeviceTables,
    convolution_gemm_ns: i64,
    bare_ns: i64,
) -> Option<String> {
    let mut categories: Vec<(Category, i64)> = time.shown.to_vec();
    let total_ns = categories.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
    // (What kernels without names of their own do is not known, as the sentence on them says: they are in no place of this one.)
    for (_, ns) in categories.iter_mut().filter(|(category, _)| *category == Category::Other) {
        *ns = ns.saturating_sub(bare_ns).max(0);
    }
    let by_id = |a: &(Category, i64), b: &(Category, i64)| a.0.id().cmp(b.0.id());
    trace::sort_by(&mut categories, |a, b| b.1.cmp(&a.1).then_with(|| by_id(a, b)));
    // (With convolutions stand the GEMMs that they launch: the second place is that of the rest.)
    if categories.first().is_some_and(|(category, _)| *category == Category::Conv) {
        let own = |(category, ns): &(Category, i64)| {
            let lent_ns = if *category == Category::Gemm { convolution_gemm_ns } else { 0 };
            ns.saturating_sub(lent_ns)
        };
        trace::sort_by(&mut categories[1..], |a, b| own(b).cmp(&own(a)).then_with(|| by_id(a, b)));
    }
    let pct = |ns: i64| percent(ns, total_ns);
    if categories.first().is_some_and(|(_, ns)| *ns == 0) {
        return None;
    }
    let of = match (total_ns == time.total_ns, bare_ns > 0) {
        (true, false) => "",
        (false, false) => "Of the work launched while profiling, ",
        (_, true) => "Of kernels with names of their own, ",
    };
    let of_all = match (total_ns == time.total_ns, bare_ns > 0) {
        (_, false) => "",
        (true, true) => " of all GPU time",
        (false, true) => " of all GPU time launched while profiling",
    };
    let share = |category: Category, ns: i64| {
        let with_gemms = ns.saturating_add(convolution_gemm_ns);
        if category == Category::Conv && units::percent(pct(with_gemms)) != units::percent(pct(ns))
        {
            let (own, all) = (units::percent(pct(ns)), units::percent(pct(with_gemms)));
            format!("{own}; {all} with the GEMMs that it launches")
        } else {
            units::percent(pct(ns))
        }
    };
    let begins =
        |word: &str| if of.is_empty() { word.to_owned() } else { word.to_ascii_lowercase() };
    let (first, ns) = *categories.first()?;
    let (title, names) = match first {
        Category::Other => ("uncategorised kernels", unknown_kernels(tables, total_ns)),
        _ => (first.title(), String::new()),
    };
    if bare_ns == 0 && categories.get(1).is_none_or(|(_, ns)| *ns == 0) {
        return Some(format!("{of}{} GPU time goes to {title}{names}.", begins("All")));
    }
    let is_most = ns.saturating_mul(2) > total_ns.saturating_sub(bare_ns);
    let begin = begins(if is_most { "Most" } else { "The largest part of" });
    let then = match categories.get(1) {
        Some((second, more)) if pct(*more) >= SECOND_PCT && names.is_empty() => {
            format!(", then {} ({})", second.title(), share(*second, *more))
        }
        _ => String::new(),
    };
    let share = share(first, ns);
    Some(format!("{of}{begin} GPU time goes to {title} ({share}{of_all}){names}{then}."))
}

/// The largest kernels of no known category, after a colon.
fn unknown_kernels(tables: &DeviceTables, total_ns: i64) -> String {
    // (Those that TorchInductor writes have no names that say anything.)
    let is_own = |row: &&KernelTableRow| {
        let is_named = row.family != Family::Inductor && !row.kernel_name.starts_with("triton_");
        row.category == Category::Other && is_named
    };
    let own = tables.kernels.iter().filter(is_own);
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for row in own {
        let sum = by_name.entry(&row.kernel_name).or_default();
        *sum = sum.saturating_add(row.total_ns);
    }
    let mut sums: Vec<(&str, i64)> = by_name.into_iter().collect();
    trace::sort_by_key(&mut sums, |(_, ns)| std::cmp::Reverse(*ns));
    let told = sums.iter().take(UNKNOWN_KERNELS);
    let told = told.filter(|(_, ns)| percent(*ns, total_ns) >= SECOND_PCT);
    let told: Vec<String> = told
        .map(|(name, ns)| {
            let share = units::percent(percent(*ns, total_ns));
            format!("{} takes {share}", report::short_name(name, NAME_LENGTH))
        })
        .collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
}
