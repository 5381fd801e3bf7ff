//! The layers of the chart add up to its level, whatever they stand for.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

use snapshot::{Explorer, Reader, Snapshot, Stacking, analyze};

fn read(path: &std::path::Path) -> Snapshot {
    let mut reader = Reader::new();
    reader.push(&std::fs::read(path).unwrap()).unwrap();
    reader.finish().unwrap()
}

#[test]
fn layers_of_every_kind_add_up_to_the_level() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let stems =
        ["eor_snapshot_markers", "synth_small_train", "synth_leak", "silmont_mem", "magma27"];
    for stem in stems {
        let snapshot = read(&shared.join(format!("{stem}.json.gz")));
        let mut explorer = Explorer::new(&snapshot, 0).unwrap();
        let classes = serde_json::to_value(analyze(&snapshot)).unwrap()["classes"]["0"].clone();
        for _ in 0..4 {
            let stacking = explorer.stacking().unwrap();
            let chart = explorer.chart();
            for at in (0..chart.len()).step_by(7).chain([chart.len() - 1]) {
                let sum: i64 = chart.stack(at).iter().sum();
                assert_eq!(sum, chart.level(at).0, "{stem} {stacking:?} {at}");
            }
            if stacking == Stacking::Class {
                // At the peak they are the table of the classes.
                let peak = chart.stack(chart.highest(0..chart.len()));
                let of = |class: &str| -> i64 {
                    let rows = classes.as_array().unwrap().iter();
                    rows.filter(|row| row["class"] == class)
                        .map(|row| row["peak_bytes"].as_i64().unwrap())
                        .sum()
                };
                for (class, bytes) in [
                    "parameter",
                    "optimizer_state",
                    "gradient",
                    "activation",
                    "cast",
                    "temporary",
                    "workspace",
                    "unknown",
                ]
                .iter()
                .zip(peak)
                {
                    assert_eq!(bytes, of(class), "{stem} {class}");
                }
            }
            explorer.stack_by(&snapshot, stacking.next());
        }
    }
}

#[test]
fn blocks_have_the_colours_of_their_layers() {
    let Some(shared) = testkit::shared("corpus/snapshots") else { return };
    let snapshot = read(&shared.join("eor_snapshot_markers.json.gz"));
    let mut explorer = Explorer::new(&snapshot, 0).unwrap();
    for stacking in [Stacking::Class, Stacking::Phase, Stacking::Site] {
        explorer.stack_by(&snapshot, stacking);
        let peak = explorer.chart().highest(0..explorer.chart().len());
        explorer.go(&snapshot, peak);
        let chart = explorer.chart();
        for (layer, bytes) in chart.layers().iter().zip(chart.stack(peak)) {
            let held = explorer.walk().unwrap().held();
            let of_layer = held.filter(|held| explorer.category(held) == layer.category);
            let sum: i64 = of_layer.map(|held| held.requested).sum();
            assert_eq!(sum, bytes, "{stacking:?} {}", layer.label);
        }
    }
}
