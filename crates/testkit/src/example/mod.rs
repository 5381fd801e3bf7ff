//! The example trace, which the page opens on "Try an example".
//!
//! It is **synthetic**, and its metadata, device and process names state this: an invented language
//! model served on an invented device that resembles an H100. A small simulation of a CPU that
//! launches and streams that run generates it, so that every table has rows. It deliberately contains the
//! defects of real traces that make Perfetto drop slices or report errors:
//!
//! * kernels of one stream that overlap by a microsecond, as with programmatic dependent launch;
//! * step annotations that begin inside a Python frame and end after it;
//! * times at 5.1e12 us with three decimals, above 2^42 us: adjacent doubles are about a nanosecond apart there;
//! * a thread whose id does not fit in 32 bits, so that Perfetto merges it with the main thread;
//! * `NaN` among the arguments of one event;
//! * kernels launched before profiling started.

mod model;

use crate::Kineto;

/// The example as JSON text: the same bytes on every machine.
#[must_use]
pub fn json() -> String {
    let mut trace = Kineto::new()
        .with("schemaVersion", "1")
        .with(
            "kinetoscopeExample",
            "\"Synthetic. Made by a program, not measured: no real model, machine or user is behind it.\"",
        )
        .with(
            "deviceProperties",
            r#"[{"id": 0, "name": "Synthetic H100-like device", "totalGlobalMem": 85028765696, "computeMajor": 9, "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132}]"#,
        )
        .with("cupti_version", "24")
        .with("cuda_runtime_version", "12040")
        .with("cuda_driver_version", "12040")
        .with("with_stack", "1")
        .with("record_shapes", "1")
        .with(
            "distributedInfo",
            r#"{"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1, "nccl_version": "2.21.5"}"#,
        )
        .with_after("traceName", "\"kinetoscope-example-synthetic.json\"")
        .with_after("displayTimeUnit", "\"ms\"")
        .with_after("baseTimeNanoseconds", "1735689600000000000");
    for event in model::events() {
        trace.push(event);
    }
    trace.text()
}

/// The example as a gzip file.
#[must_use]
pub fn json_gz() -> Vec<u8> {
    crate::gzip(json().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_small_and_the_same_every_time() {
        let json = json();
        assert_eq!(json, super::json());
        let gz = json_gz();
        assert!(gz.len() < 600_000, "{} bytes", gz.len());
        assert_eq!(crate::gunzip(&gz).unwrap(), json.as_bytes());
        let n_events = json.matches("{\"ph\":").count();
        assert!((20_000..40_000).contains(&n_events), "{n_events} events");
    }

    #[test]
    fn the_example_says_that_it_is_synthetic() {
        // NaN among the arguments is one of its defects; without it the text is strict JSON.
        let json = json();
        assert_eq!(json.matches(": NaN").count(), 1);
        let value: serde_json::Value = serde_json::from_str(&json.replace(": NaN", ": 0")).unwrap();
        assert!(value["kinetoscopeExample"].as_str().unwrap().starts_with("Synthetic"));
        assert!(value["deviceProperties"][0]["name"].as_str().unwrap().contains("Synthetic"));
        assert!(value["traceName"].as_str().unwrap().contains("synthetic"));
    }
}
