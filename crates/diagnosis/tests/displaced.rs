//! Graphs of ROCm whose kernel names do not belong to their times.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{diagnosis, launch};
use diagnosis::{Diagnosis, Rule};
use fixture::{Fixture, LAYER_OF_MI300, kernel, slice};

const US: i64 = 1_000;

/// A graph of twelve layers whose names move by three kernels, then so many products of 100 us.
fn and_products(n: i64) -> Diagnosis {
    let mut fixture = Fixture::default();
    let device = r#"[{"id": 0, "name": "AMD Instinct MI300X", "warpSize": 64}]"#;
    fixture.metadata("deviceProperties", device);
    let call = slice("cuda_runtime", "hipGraphLaunch").on(1, 1).link(1);
    fixture.push(call.at(0, 9 * US));
    let mut at_ns = 20 * US;
    for at in 0..96_usize {
        let moved = 3 * (usize::from(at >= 20) + usize::from(at >= 52));
        let (name, us) = (LAYER_OF_MI300[(at - moved) % 8].0, LAYER_OF_MI300[at % 8].1);
        fixture.push(kernel(name).at(at_ns, us * US + at as i64 * 7).on(0, 7).link(1));
        at_ns += us * US + US;
    }
    for link in 2..2 + n {
        launch(
            &mut fixture,
            "Cijk_Alik_Bljk_BBS_BH_MT64x64",
            link,
            at_ns,
            at_ns + 5 * US,
            100 * US,
        );
        at_ns += 106 * US;
    }
    diagnosis(fixture)
}

#[test]
fn a_little_of_the_gpu_time_with_wrong_names_is_no_headline() {
    for (n, is_much) in [(10, true), (1_000, false)] {
        let found = and_products(n);
        let headline = found.headline.unwrap();
        let said = "The profiler recorded the kernel names of 1 graph launch with the wrong times";
        assert_eq!(headline.starts_with(said), is_much, "{n}: {headline}");
        assert_eq!(headline.contains("of the GPU's time"), !is_much, "{n}: {headline}");
        let own = found.findings.iter().filter(|one| one.rule == Rule::EqualKernels);
        let own: Vec<(&str, &str)> = own.map(|one| (one.verdict, &*one.meaning)).collect();
        let meaning = "Figures by kernel name and category are not usable for these 96 kernels. The times of each graph as a whole are \
                       right.";
        assert_eq!(own, [("names_displaced", meaning)]);
    }
}
