//! `memory`: what it takes beside snapshots.

use crate::common::Folder;

/// A parameter from before, an activation that is freed, and a gradient.
const ROWS: &str =
    "[[-1, 1, 1048576, 0], [5000, 2, 4194304, 4], [6000, 2, 1024, 5], [9000, 4, -4194304, 4]]";
/// The same as levels.
const LEVELS: &str = "[[0, 5, 6, 9], [[0, 1048576, 0, 0, 0, 0, 0, 0, 0], [0, 1048576, 0, 0, 0, 4194304, 0, 0, 0], \
                      [0, 1048576, 0, 0, 0, 4194304, 1024, 0, 0], [0, 1048576, 0, 0, 0, 0, 1024, 0, 0]]]";

#[test]
fn timelines_of_both_forms_are_read_as_what_they_are() {
    let folder = Folder::new("memory-timeline");
    for (name, text) in [("a.memory_timeline.raw.json", ROWS), ("b.json", LEVELS)] {
        folder.write(name, text);
        let said = folder.run(&["memory", name]).done().stdout;
        assert!(said.contains("The most memory is 5.00 MiB"), "{name}: {said}");
        let figures = folder.run(&["memory", name, "--json"]).done().json();
        assert_eq!(figures["timeline"]["peak_bytes"], 5_243_904, "{name}");
        assert_eq!(figures["timeline"]["end_bytes"], 1_049_600, "{name}");
        let refused = folder.run(&["memory", name, "--at-peak"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("a memory timeline has no blocks"), "{}", refused.stderr);
    }
}

#[test]
fn another_array_is_no_timeline() {
    let folder = Folder::new("memory-array");
    folder.write("a.json", "[1, 2, 3]");
    let refused = folder.run(&["memory", "a.json"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("no memory snapshot"),
        "{}",
        refused.stderr
    );
}
