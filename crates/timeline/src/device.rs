//! Devices, platform, runtime and ranks, from the file's top-level members.

use catalog::Platform;
use dialect::{cuda, rocm};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace::Trace;

use crate::versions;

/// One entry of the file's `deviceProperties`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The id, as spelled in the arguments of kernels.
    pub id: String,
    /// The name; empty where the driver reported none.
    pub name: String,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Streaming multiprocessors or compute units.
    pub n_units: Option<u64>,
    /// Compute capability, such as `9.0`: not unique across vendors (H100 and MI210 are both 9.0).
    pub compute: Option<String>,
    /// 32 on NVIDIA, 64 on AMD's data centre devices.
    pub warp_size: Option<u64>,
}

/// Devices in the order of the file. Unreadable entries are skipped.
pub fn devices(trace: &Trace) -> Vec<Device> {
    let Some(Value::Array(entries)) = member(trace, "deviceProperties") else { return Vec::new() };
    entries
        .iter()
        .filter(|entry| entry.is_object())
        .map(|entry| {
            let number = |key: &str| entry.get(key).and_then(Value::as_u64);
            Device {
                id: match entry.get("id") {
                    Some(Value::String(id)) => id.clone(),
                    Some(id) => id.to_string(),
                    None => String::new(),
                },
                name: entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                memory_bytes: number("totalGlobalMem"),
                n_units: number("numSms"),
                compute: number("computeMajor")
                    .zip(number("computeMinor"))
                    .map(|(major, minor)| format!("{major}.{minor}")),
                warp_size: number("warpSize"),
            }
        })
        .collect()
}

/// The GPU's platform. Neither the compute capability (9.0 is both H100 and MI210) nor the raw category (ROCm
/// also writes `cuda_runtime`) identifies it.
pub fn platform(trace: &Trace) -> Platform {
    let has = |keys: &[&str]| keys.iter().any(|key| trace.metadata.get(key).is_some());
    if has(&["hip_runtime_version", "hip_driver_version", "roctracer_version"]) {
        return Platform::Rocm;
    }
    if has(&["cuda_runtime_version", "cuda_driver_version", "cupti_version"]) {
        return Platform::Cuda;
    }
    let devices = devices(trace);
    let named = |words: &[&str]| {
        devices.iter().any(|device| words.iter().any(|word| device.name.contains(word)))
    };
    if named(&["AMD", "Radeon", "Instinct"]) || devices.iter().any(|d| d.warp_size == Some(64)) {
        return Platform::Rocm;
    }
    if named(&["NVIDIA", "Tesla", "GeForce", "Quadro"])
        || devices.iter().any(|d| d.warp_size == Some(32))
    {
        return Platform::Cuda;
    }
    // Without device information, the names of runtime calls decide.
    let called = |names: &[&str]| names.iter().any(|name| trace.strings.find(name).is_some());
    if called(rocm::LAUNCHES) {
        Platform::Rocm
    } else if called(cuda::LAUNCHES) {
        Platform::Cuda
    } else {
        Platform::Unknown
    }
}

/// The platform's id in the JSON.
pub fn platform_id(platform: Platform) -> &'static str {
    match platform {
        Platform::Cuda => "cuda",
        Platform::Rocm => "rocm",
        Platform::Unknown => "unknown",
    }
}

/// "HIP 6.4.43483" or "CUDA 12.4", decoded from the number that the runtime reports ([`versions`]).
pub fn runtime(trace: &Trace) -> Option<String> {
    if let Some(version) = trace.metadata.int("hip_runtime_version").and_then(versions::hip) {
        return Some(format!("HIP {version}"));
    }
    let version = trace.metadata.int("cuda_runtime_version").and_then(versions::cuda)?;
    Some(format!("CUDA {version}"))
}

/// `rank`, `world_size` and `backend` of the file's `distributedInfo`.
pub fn distributed(trace: &Trace) -> (Option<i64>, Option<i64>, Option<String>) {
    let info = member(trace, "distributedInfo").unwrap_or_default();
    (
        info.get("rank").and_then(Value::as_i64),
        info.get("world_size").and_then(Value::as_i64),
        info.get("backend").and_then(Value::as_str).map(str::to_owned),
    )
}

/// A member of the file's object, read as JSON.
pub fn member(trace: &Trace, key: &str) -> Option<Value> {
    serde_json::from_str(trace.metadata.get(key)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::Fixture;

    fn with(members: &[(&str, &str)]) -> Trace {
        let mut fixture = Fixture::default();
        for (key, json) in members {
            fixture.metadata(key, json);
        }
        fixture.finish()
    }

    #[test]
    fn the_vendor_comes_before_the_compute_capability() {
        let h100 = r#"[{"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0}]"#;
        let mi250 =
            r#"[{"id": 0, "name": "AMD Radeon Graphics", "computeMajor": 9, "computeMinor": 0}]"#;
        let nameless = r#"[{"id": 0, "name": "", "warpSize": 64}]"#;
        assert_eq!(platform(&with(&[("deviceProperties", h100)])), Platform::Cuda);
        assert_eq!(platform(&with(&[("deviceProperties", mi250)])), Platform::Rocm);
        assert_eq!(platform(&with(&[("deviceProperties", nameless)])), Platform::Rocm);
        assert_eq!(platform(&with(&[("roctracer_version", "4")])), Platform::Rocm);
        assert_eq!(platform(&with(&[("cupti_version", "24")])), Platform::Cuda);
        assert_eq!(platform(&with(&[("deviceProperties", "[]")])), Platform::Unknown);
        assert_eq!(platform(&with(&[("deviceProperties", "[nonsense")])), Platform::Unknown);
    }

    #[test]
    fn versions_are_decoded() {
        assert_eq!(
            runtime(&with(&[("hip_runtime_version", "60443483")])).unwrap(),
            "HIP 6.4.43483"
        );
        assert_eq!(
            runtime(&with(&[("hip_runtime_version", "70051831")])).unwrap(),
            "HIP 7.0.51831"
        );
        assert_eq!(runtime(&with(&[("cuda_runtime_version", "12040")])).unwrap(), "CUDA 12.4");
        assert_eq!(runtime(&with(&[("cuda_runtime_version", "\"12\"")])), None);
    }

    #[test]
    fn ranks_are_read() {
        let info = r#"{"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 1}"#;
        assert_eq!(
            distributed(&with(&[("distributedInfo", info)])),
            (Some(3), Some(8), Some("nccl".to_owned()))
        );
        assert_eq!(distributed(&with(&[("distributedInfo", "null")])), (None, None, None));
    }
}
