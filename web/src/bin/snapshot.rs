//! The program of the worker that reads memory snapshots.

fn main() {
    web::start_snapshot();
}
