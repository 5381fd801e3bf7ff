//! The program of the worker that draws the lanes of a trace.

fn main() {
    web::start_lanes();
}
