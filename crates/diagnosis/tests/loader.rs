//! What is advised about a data loader whose workers keep up, and about one whose workers do not, where no frames are recorded.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use fixture::{Fixture, slice};

const US: i64 = 1_000;

/// What is advised in ten steps of 2 ms: after `wait_us` two tensors of a batch are received, 230 us each.
fn advised(wait_us: i64) -> (String, String) {
    let mut fixture = Fixture::default();
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
        launch(&mut fixture, "gemm", n + 1, launched, launched + 4 * US, 1_000 * US);
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
    assert!(why.contains("For about 4.50 ms of the 4.50 ms that it runs"), "{why}");
    let (remedy, why) = advised(5_000);
    assert_eq!(remedy, "loader-capacity", "{why}");
}
