//! Detects the architecture that the trace was recorded on, and compares it with a target.
//!
//! The order of the evidence is that of artifacts.md 4: a word in the metadata, then kernel names (a Tensile
//! kernel names the instruction set it was built for, and it ran), then the device's name and numbers. The
//! vendor comes before the compute capability: 9.0 is both the H100 and the MI210.

use std::collections::BTreeMap;

use catalog::architectures::ByUnits;
use catalog::{Platform, RawKind, architectures};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace::{Details, Trace};

use timeline::device::{self, Device};
use timeline::gpu::Gpu;

/// Fewer warps per SM, in thousandths, are rounded too much to tell the number of multiprocessors.
const LEAST_WARPS: u64 = 10_000;

/// Used for an architecture that is not recorded.
pub(crate) const UNKNOWN: &str = "unknown";

/// The architecture that the trace shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedArch {
    /// As compilers spell it: `gfx942`, `sm_90`, or `unknown`.
    pub observed_arch: String,
    /// What said so, as half a sentence each, the deciding one first.
    pub evidence: Vec<String>,
    /// What says otherwise, if anything does.
    pub conflict: Option<String>,
}

/// The contract's word for how the observed architecture relates to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchMatch {
    /// The same.
    Exact,
    /// Of one family: structure carries over, times do not.
    Compatible,
    /// Not the same, or not known, or no target.
    Unknown,
}

/// The same in finer words: the contract calls a known difference "unknown", too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchRelation {
    /// The same.
    Exact,
    /// Of one family.
    SameFamily,
    /// Both known, and not comparable.
    Different,
    /// One of them is not known.
    Undetermined,
}

/// The observed architecture against the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchVerdict {
    /// The match, as in the artifact contract.
    pub arch_match: ArchMatch,
    /// The relation, more detailed than the match.
    pub arch_relation: ArchRelation,
    /// One sentence with the evidence.
    pub hardware_relevance_reason: String,
}

impl ObservedArch {
    /// Compares with the target architecture (`None`: not set).
    #[must_use]
    pub fn against(&self, target: Option<&str>) -> ArchVerdict {
        let verdict = |arch_match, arch_relation, reason: String| ArchVerdict {
            arch_match,
            arch_relation,
            hardware_relevance_reason: reason,
        };
        let undetermined = |reason| verdict(ArchMatch::Unknown, ArchRelation::Undetermined, reason);
        let observed = &self.observed_arch;
        let evidence = match self.evidence.join("; ") {
            text if text.is_empty() => "no evidence in the file".to_owned(),
            text => text,
        };
        if let Some(conflict) = &self.conflict {
            return undetermined(format!(
                "Conflicting architectures in the file: {observed} ({evidence}), but {conflict}."
            ));
        }
        let Some(target) = target.map(str::trim).filter(|target| !target.is_empty()) else {
            return undetermined(format!(
                "Observed architecture {observed} ({evidence}); no target architecture set."
            ));
        };
        let target = architectures::spelled(target).unwrap_or_else(|| target.to_owned());
        if observed == UNKNOWN {
            return undetermined(format!(
                "The architecture of this trace is not recorded ({evidence}), so it is unknown whether the results apply to {target}."
            ));
        }
        if *observed == target {
            return verdict(
                ArchMatch::Exact,
                ArchRelation::Exact,
                format!("Observed architecture {observed} equals the target ({evidence})."),
            );
        }
        if let Some(family) = architectures::related(observed, &target) {
            return verdict(
                ArchMatch::Compatible,
                ArchRelation::SameFamily,
                format!(
                    "Observed architecture {observed} is in the family of the target {target} ({}): {} ({evidence}).",
                    family.name, family.carries_over
                ),
            );
        }
        verdict(
            ArchMatch::Unknown,
            ArchRelation::Different,
            format!(
                "Observed architecture {observed} differs from the target {target}: not comparable ({evidence})."
            ),
        )
    }
}

/// The architecture according to the file.
#[inline(never)]
pub(crate) fn observed(
    gpu: &Gpu<'_>,
    platform: Platform,
    details: Option<&Details>,
) -> ObservedArch {
    let said = [
        said_by_metadata(gpu.trace),
        if platform == Platform::Cuda { Vec::new() } else { said_by_kernels(gpu) },
        said_by_devices(gpu, platform),
        said_by_units(gpu, platform, details),
    ];
    let mut said = said.into_iter().flatten();
    let Some(first) = said.next() else {
        return ObservedArch {
            observed_arch: UNKNOWN.to_owned(),
            evidence: latest_generation(gpu)
                .filter(|_| platform == Platform::Cuda)
                .map(|(sm, name)| format!("{name} is built for sm_{sm}"))
                .into_iter()
                .collect(),
            conflict: None,
        };
    };
    let mut evidence = vec![first.why];
    let mut conflict = None;
    for other in said {
        if other.arch == first.arch {
            evidence.push(other.why);
        } else if conflict.is_none() {
            conflict = Some(format!("{} ({})", other.arch, other.why));
        }
    }
    ObservedArch { observed_arch: first.arch, evidence, conflict }
}

/// An architecture, and what names it.
struct Said {
    arch: String,
    why: String,
}

/// A word for the architecture in the metadata. No trace of today has one; whoever adds one means it.
fn said_by_metadata(trace: &Trace) -> Vec<Said> {
    const KEYS: &[&str] = &["gcnArchName", "arch", "gfx_arch", "observed_arch"];
    for key in KEYS {
        let text = device::member(trace, key);
        if let Some(arch) = text.as_ref().and_then(Value::as_str).and_then(architectures::spelled) {
            return vec![Said { arch, why: format!("the file's {key}") }];
        }
    }
    let Some(Value::Array(entries)) = device::member(trace, "deviceProperties") else {
        return Vec::new();
    };
    let found = entries.iter().find_map(|entry| {
        KEYS.iter().find_map(|key| {
            let arch = architectures::spelled(entry.get(key)?.as_str()?)?;
            Some(Said { arch, why: format!("deviceProperties {key}") })
        })
    });
    found.into_iter().collect()
}

/// The instruction sets that kernel names give, most names first: a kernel only runs on what it was built for.
fn said_by_kernels(gpu: &Gpu<'_>) -> Vec<Said> {
    let mut names_of: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    for work in gpu.works.iter().filter(|work| work.kind == RawKind::Kernel) {
        let name = gpu.trace.strings.get(work.name);
        // MIOpen runs its first generation of assembly kernels on several architectures.
        if name.contains("_gtcx_") {
            continue;
        }
        if let (Some(arch), _) = catalog::architecture(name) {
            names_of.entry(arch).or_insert((0, name)).0 += 1;
        }
    }
    let mut said: Vec<_> = names_of.into_iter().collect();
    trace::sort_by(&mut said, |(a, (n, _)), (b, (m, _))| m.cmp(n).then_with(|| a.cmp(b)));
    said.into_iter()
        .map(|(arch, (n, name))| {
            let names = report::units::plural(n, "kernel name", "kernel names");
            Said { arch, why: format!("{names} such as {}", report::short_name(name, 64)) }
        })
        .collect()
}

/// The GPU by its multiprocessors and the generation of its kernels, where the file lists no device.
pub(crate) fn by_units(gpu: &Gpu<'_>, details: Option<&Details>) -> Option<&'static ByUnits> {
    let units = n_units(details?)?;
    let (generation, _) = latest_generation(gpu)?;
    architectures::by_units(generation, units).filter(|_| device::devices(gpu.trace).is_empty())
}

fn said_by_units(gpu: &Gpu<'_>, platform: Platform, details: Option<&Details>) -> Vec<Said> {
    let found = by_units(gpu, details).filter(|_| platform == Platform::Cuda);
    let why = |row: &ByUnits, name: String| {
        format!(
            "{} multiprocessors, by the warps per SM of kernels, and none of a later generation than {name}",
            row.units
        )
    };
    let said = found.zip(latest_generation(gpu));
    said.map(|(row, (_, name))| Said { arch: row.arch.to_owned(), why: why(row, name) })
        .into_iter()
        .collect()
}

/// The latest generation of NVIDIA's that kernels are made for, and the shortened name of the first of them.
fn latest_generation(gpu: &Gpu<'_>) -> Option<(u32, String)> {
    let mut latest: Option<(u32, &str)> = None;
    for work in gpu.works.iter().filter(|work| work.kind == RawKind::Kernel) {
        let name = gpu.trace.strings.get(work.name);
        let (_, sm) = catalog::architecture(name);
        if let Some(sm) = sm.filter(|sm| latest.is_none_or(|(known, _)| *sm > known)) {
            latest = Some((sm, name));
        }
    }
    latest.map(|(sm, name)| (sm, report::short_name(name, 64)))
}

/// How many multiprocessors the device has: the profiler divides the warps of a kernel by their number. The kernel with most warps gives
/// it best.
fn n_units(details: &Details) -> Option<u64> {
    let of = |config: &trace::LaunchConfig| {
        let count = |of: [u32; 3]| of.iter().map(|n| u64::from(*n)).product::<u64>();
        let (threads, per_unit) =
            (count(config.grid?).saturating_mul(count(config.block?)), config.warps_per_sm_milli?);
        let per_unit = u64::from(per_unit);
        // (Warps in thousandths, as the quotient is.)
        let warps = threads.saturating_mul(1000) / 32;
        (per_unit >= LEAST_WARPS).then(|| (per_unit, (warps + per_unit / 2) / per_unit))
    };
    details.configs.iter().filter_map(of).max().map(|(_, units)| units)
}

/// Evidence from names and numbers of the devices: of those that ran something, if the file records which.
fn said_by_devices(gpu: &Gpu<'_>, platform: Platform) -> Vec<Said> {
    let devices = device::devices(gpu.trace);
    let is_used = |device: &Device| {
        gpu.trace.streams.iter().any(|s| s.device.display(&gpu.trace.strings) == device.id)
    };
    let any_used = devices.iter().any(is_used);
    let mut said: Vec<Said> = Vec::new();
    for device in devices.iter().filter(|device| !any_used || is_used(device)) {
        for new in said_by_device(device, platform) {
            if !said.iter().any(|old| old.arch == new.arch && old.why == new.why) {
                said.push(new);
            }
        }
    }
    said
}

fn said_by_device(device: &Device, platform: Platform) -> Vec<Said> {
    let compute = device.compute.as_deref().and_then(|text| text.split_once('.'));
    let numbers =
        compute.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let by_name = architectures::of_device(&device.name)
        .map(|arch| Said { arch: arch.to_owned(), why: format!("device name {}", device.name) });
    let is_amd = |arch: &str| arch.starts_with("gfx");
    match platform {
        Platform::Cuda => {
            let by_numbers = numbers.map(|(major, minor)| Said {
                arch: architectures::of_compute_capability(major, minor),
                why: format!("compute capability {major}.{minor}"),
            });
            by_numbers.or(by_name.filter(|said| !is_amd(&said.arch))).into_iter().collect()
        }
        Platform::Rocm => {
            let units = device.n_units.and_then(|units| u32::try_from(units).ok());
            let by_numbers = numbers.and_then(|(major, minor)| {
                let arch = architectures::of_amd_numbers(major, minor, units.unwrap_or(0))?;
                let units = units.map(|units| format!(" with {units} compute units"));
                let why = format!("compute {major}.{minor}{}", units.unwrap_or_default());
                Some(Said { arch: arch.to_owned(), why })
            });
            let by_name = by_name.filter(|said| is_amd(&said.arch));
            by_name.into_iter().chain(by_numbers).collect()
        }
        Platform::Unknown => by_name.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::{Fixture, kernel};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;

    fn observe(trace: &Trace) -> ObservedArch {
        let platform = device::platform(trace);
        let before = BeforeWindowSlices::of(trace);
        observed(&Gpu::new(trace, platform, &before, &Options::default()), platform, None)
    }

    fn trace(device: &str, kernels: &[&str]) -> Trace {
        let mut fixture = Fixture::default();
        if !device.is_empty() {
            fixture.metadata("deviceProperties", &format!("[{{\"id\": 0, {device}}}]"));
        }
        for (at, name) in kernels.iter().enumerate() {
            fixture.push(kernel(name).at(at as i64 * 10, 5));
        }
        fixture.finish()
    }

    const TENSILE_942: &str = "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT64x64x64_MI16x16x1_ISA942_GRVWA8";
    const TENSILE_90A: &str = "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT64x64x64_MI16x16x1_ISA90a_GRVWA8";
    const MI300X: &str = r#""name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4, "numSms": 304, "warpSize": 64"#;
    const NAMELESS: &str =
        r#""name": "", "computeMajor": 9, "computeMinor": 4, "numSms": 304, "warpSize": 64"#;

    #[test]
    fn each_kind_of_evidence_in_its_order() {
        for (device, kernels, arch) in [
            (NAMELESS, &[TENSILE_942][..], "gfx942"),
            (NAMELESS, &[], "gfx942"),
            (MI300X, &["attn_fwd"], "gfx942"),
            (
                "\"name\": \"AMD Radeon Graphics\", \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 104, \"warpSize\": 64",
                &[],
                "gfx90a",
            ),
            (
                "\"name\": \"NVIDIA H100 80GB HBM3\", \"computeMajor\": 9, \"computeMinor\": 0, \"warpSize\": 32",
                &[],
                "sm_90",
            ),
            (
                "\"name\": \"NVIDIA B200\", \"computeMajor\": 10, \"computeMinor\": 0, \"warpSize\": 32",
                &[],
                "sm_100",
            ),
            ("\"name\": \"\", \"gcnArchName\": \"gfx90a:sramecc+:xnack-\"", &[], "gfx90a"),
            ("", &[TENSILE_90A], "gfx90a"),
            ("", &["igemm_fwd_gtcx3_nhwc_bf16_bx0"], "gfx942"),
            ("", &["igemm_fwd_gtcx_nhwc_bf16_bx0"], "unknown"),
            ("", &[], "unknown"),
        ] {
            let found = observe(&trace(device, kernels));
            assert_eq!((found.observed_arch.as_str(), found.conflict), (arch, None), "{device}");
        }
        // Not seen in any trace yet: by the vendor's tables alone.
        for (device, arch) in [
            (
                "\"name\": \"AMD Instinct MI355X\", \"computeMajor\": 9, \"computeMinor\": 5, \"warpSize\": 64",
                "gfx950",
            ),
            (
                "\"name\": \"NVIDIA B300\", \"computeMajor\": 10, \"computeMinor\": 3, \"warpSize\": 32",
                "sm_103",
            ),
        ] {
            assert_eq!(observe(&trace(device, &[])).observed_arch, arch);
        }
    }

    #[test]
    fn multiprocessors_and_kernels_tell_a_gpu_that_the_file_does_not_name() {
        let observe = |kernels: &[&str], warps_per_sm_milli| {
            let mut fixture = Fixture::default();
            fixture.metadata("cuda_runtime_version", "10020");
            for (at, name) in kernels.iter().enumerate() {
                fixture.push(kernel(name).at(at as i64 * 10, 5));
            }
            let config = trace::LaunchConfig {
                grid: Some([12_544, 2, 1]),
                block: Some([8, 8, 1]),
                warps_per_sm_milli: Some(warps_per_sm_milli),
                ..trace::LaunchConfig::default()
            };
            let details = Details { configs: vec![config], ..Details::default() };
            let trace = fixture.finish();
            let before = BeforeWindowSlices::of(&trace);
            let gpu = Gpu::new(&trace, Platform::Cuda, &before, &Options::default());
            observed(&gpu, Platform::Cuda, Some(&details))
        };
        // 50,176 warps on 80 multiprocessors.
        let volta = observe(&["volta_sgemm_128x64_nn", "softmax_kernel"], 627_200);
        assert_eq!(volta.observed_arch, "sm_70");
        assert!(volta.evidence[0].starts_with("80 multiprocessors"), "{:?}", volta.evidence);
        // (On 68: a GeForce RTX 2080 Ti runs kernels of Volta.)
        let other = observe(&["volta_sgemm_128x64_nn"], 737_882);
        assert_eq!(other.observed_arch, UNKNOWN);
        assert_eq!(other.evidence, ["volta_sgemm_128x64_nn is built for sm_70"]);
        assert_eq!(observe(&["ampere_sgemm_128x64_nn"], 627_200).observed_arch, UNKNOWN);
        assert_eq!(observe(&["softmax_kernel"], 627_200).evidence, [""; 0]);
    }

    #[test]
    fn evidence_that_disagrees_leaves_the_match_open() {
        let found = observe(&trace(MI300X, &[TENSILE_90A]));
        assert_eq!(found.observed_arch, "gfx90a");
        assert!(
            found.conflict.as_ref().is_some_and(|text| text.starts_with("gfx942 (device name"))
        );
        let verdict = found.against(Some("gfx90a"));
        assert_eq!(verdict.arch_match, ArchMatch::Unknown);
        assert!(verdict.hardware_relevance_reason.contains("Conflicting architectures"));
    }

    #[test]
    fn the_match_table() {
        use ArchMatch::{Compatible, Exact, Unknown};
        use ArchRelation::{Different, SameFamily, Undetermined};
        for (observed, target, arch_match, relation) in [
            ("gfx950", Some("gfx950"), Exact, ArchRelation::Exact),
            ("gfx942", Some("gfx950"), Compatible, SameFamily),
            ("gfx950", Some("gfx942"), Compatible, SameFamily),
            ("gfx90a", Some("gfx950"), Unknown, Different),
            ("gfx908", Some("gfx90a"), Unknown, Different),
            ("sm_103", Some("sm_100"), Compatible, SameFamily),
            ("sm_90", Some("sm_100"), Unknown, Different),
            ("sm_90", Some("sm_90a"), Exact, ArchRelation::Exact),
            ("sm_80", Some("gfx950"), Unknown, Different),
            ("unknown", Some("gfx950"), Unknown, Undetermined),
            ("gfx942", None, Unknown, Undetermined),
        ] {
            let arch = ObservedArch {
                observed_arch: observed.to_owned(),
                evidence: vec!["by hand".to_owned()],
                conflict: None,
            };
            let verdict = arch.against(target);
            assert_eq!((verdict.arch_match, verdict.arch_relation), (arch_match, relation));
            let reason = verdict.hardware_relevance_reason;
            assert!(
                reason.contains("by hand")
                    && reason.contains(target.unwrap_or(observed).trim_end_matches('a')),
                "{reason}"
            );
            if target.is_none() {
                assert!(reason.contains("no target architecture set"), "{reason}");
            }
            if relation == SameFamily && observed.starts_with("gfx") {
                assert!(reason.contains("FP4 and FP6") && reason.contains("absolute times"));
            }
        }
    }
}
