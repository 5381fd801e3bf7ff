//! `throughput FILE [ROUNDS [CHUNK]]`: decodes a trace and says how fast, in CPU time of this thread.
#![allow(clippy::print_stdout, reason = "a command line tool")]

use std::{error::Error, time::Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: throughput FILE [ROUNDS [CHUNK]]")?;
    let rounds = args.next().map_or(Ok(5), |text| text.parse())?;
    let chunk = args.next().map_or(Ok(4 << 20), |text| text.parse())?;
    let file = std::fs::read(&path)?;
    for _ in 0..rounds {
        let (wall, cpu) = (Instant::now(), cpu_ns());
        let mut decoder = decode::Decoder::new();
        for piece in file.chunks(chunk) {
            decoder.push(piece)?;
        }
        let decoded = decoder.finish()?;
        // Where the system does not tell CPU time, wall time must do.
        let wall_ns = wall.elapsed().as_nanos() as u64;
        let ns = cpu_ns().zip(cpu).map_or(wall_ns, |(end, start)| end - start);
        let (bytes, events) = (decoded.source.json_bytes, decoded.trace.len());
        println!(
            "{:.0} MB/s, {events} events, {:.1} bytes an event, {} kinds of problems",
            bytes as f64 * 1000.0 / ns as f64,
            decoded.trace.heap_bytes() as f64 / events.max(1) as f64,
            decoded.problems.len(),
        );
    }
    Ok(())
}

/// CPU time of this thread, on Linux.
fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}
