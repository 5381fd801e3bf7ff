//! Decodes runtime versions that are one number: `HIP_VERSION` (`major * 10^7 + minor * 10^5 + patch`, ROCm's
//! `hip_version.h`) and `CUDART_VERSION` (`major * 1000 + minor * 10`, CUDA's `cuda_runtime_api.h`).

/// `60443483` is HIP 6.4.43483.
#[must_use]
pub fn hip(number: i64) -> Option<String> {
    let (major, minor, patch) = hip_parts(number)?;
    Some(format!("{major}.{minor}.{patch}"))
}

/// The ROCm release of a HIP runtime. Their major and minor numbers are equal from 6.0 to 7.2 (measured); 7.13
/// and 7.14 are build numbers between releases and identify no release.
#[must_use]
pub fn rocm_of_hip(number: i64) -> Option<String> {
    let (major, minor, _) = hip_parts(number)?;
    Some(match (major, minor) {
        (6, _) | (7, 0..=2) => format!("{major}.{minor}"),
        _ => format!("HIP {major}.{minor} (ROCm release not derivable)"),
    })
}

/// `12040` is CUDA 12.4.
#[must_use]
pub fn cuda(number: i64) -> Option<String> {
    (number >= 1000).then(|| format!("{}.{}", number / 1000, number % 1000 / 10))
}

fn hip_parts(number: i64) -> Option<(i64, i64, i64)> {
    let (major, rest) = (number / 10_000_000, number % 10_000_000);
    (major > 0).then_some((major, rest / 100_000, rest % 100_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_real_traces() {
        for (number, version, release) in [
            (60_443_483, "6.4.43483", "6.4"),
            (70_051_831, "7.0.51831", "7.0"),
            (70_226_015, "7.2.26015", "7.2"),
            (70_253_211, "7.2.53211", "7.2"),
            (71_326_183, "7.13.26183", "HIP 7.13 (ROCm release not derivable)"),
            (71_460_850, "7.14.60850", "HIP 7.14 (ROCm release not derivable)"),
        ] {
            assert_eq!(hip(number).as_deref(), Some(version));
            assert_eq!(rocm_of_hip(number).as_deref(), Some(release));
        }
        assert_eq!((hip(12_040), hip(-60_443_483)), (None, None));
        for (number, version) in [(12_040, "12.4"), (12_090, "12.9"), (13_000, "13.0")] {
            assert_eq!(cuda(number).as_deref(), Some(version));
        }
        assert_eq!(cuda(0), None);
    }
}
