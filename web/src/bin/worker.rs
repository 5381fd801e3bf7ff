//! The program of the worker that makes the first screen.

fn main() {
    web::start_worker();
}
