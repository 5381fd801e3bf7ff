//! What is advised about a data loader whose workers keep up, and about one whose workers do not, where no frames are recorded.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use fixture::{Fixture, slice};

const US: i64 = 1_000;

/// What is advised in ten steps of 2 ms: after `wait_us` two tensors of a batch are received, 230 us each.
fn advised(wait_us: i64) -> (String, String) {
    advised_of("gemm", wait_us)
}

/// The same on a GPU with TF32, of a product of this name.
fn advised_of(product: &str, wait_us: i64) -> (String, String) {
    let mut fixture = Fixture::default();
    let device = r#"[{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0, "warpSize": 32}]"#;
    fixture.metadata("deviceProperties", device);
    let mut at = 0;
    for n in 0..10_i64 {
        let cpu = |raw_category, name, at, dur| slice(raw_category, name).at(at, dur).on(1, 1);
        let loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
        let received = at + (wait_us + 230) * US;
        fixture.push(cpu("user_annotation", loader, at, (wait_us + 480) * US));
        for set in [received, received + 230 * US] {
            fixture.push(cpu("cpu_op", "aten::set_", set, 2 * US));
        }
        let launched = at + (wait_us + 500) * US;
        launch(&mut fixture, product, n + 1, launched, launched + 4 * US, 1_000 * US);
        at = launched + 1_000 * US;
    }
    let found = diagnosis(fixture);
    let action = found.actions.iter().find(|one| one.rule == "M9").unwrap();
    (action.remedy.to_owned(), action.hypothesis.clone())
}

#[test]
fn batches_that_are_there_are_received_and_more_workers_do_not_help() {
    let (remedy, why) = advised(20);
    assert_eq!(remedy, "loader-transfer");
    // Nine times 460 us: the first call is over before the first work of the GPU.
    assert!(why.contains("For about 4.14 ms of the 4.50 ms that it runs"), "{why}");
    let (remedy, why) = advised(5_000);
    assert_eq!(remedy, "loader-capacity", "{why}");
}

#[test]
fn what_comes_next_is_told_where_only_the_workers_limit_the_run() {
    // Nine of ten products run before a wait that is longer than what TF32 saves of them; the last one saves 0.9 of 115 ms.
    let (_, plain) = advised_of("ampere_sgemm_128x64_tn", 10_000);
    assert!(plain.contains("What comes next: FP32 matrix products"), "{plain}");
    let paced = "their exposed time falls by 8.75 ms; until the workers keep up, 7.88 ms of that only turns into waiting";
    assert!(plain.contains(paced), "{plain}");
    let (_, tensor_cores) = advised_of("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_cublas", 10_000);
    assert!(!tensor_cores.contains("What comes next"), "{tensor_cores}");
}
