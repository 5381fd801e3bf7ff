//! The worker's program.

fn main() {
    web::start_worker();
}
