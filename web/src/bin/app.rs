//! The page's program.

fn main() {
    web::start_page();
}
