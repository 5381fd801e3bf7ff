//! The example that the page ships is the one that this crate makes.

#[test]
fn the_shipped_example_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/assets/example.json.gz");
    let shipped = std::fs::read(path).unwrap();
    assert!(
        shipped == testkit::example::json_gz(),
        "out of date: cargo run -p testkit --example make_example -- web/assets/example.json.gz"
    );
}
