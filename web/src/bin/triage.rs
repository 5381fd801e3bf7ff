//! The program of the worker that triages.

fn main() {
    web::start_triage();
}
