//! The CPU's figures of a trace with a million slices of the CPU, as multiples of decoding it, and memory.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Result;
use serde_json::Value;

use super::{Driver, Report, Scratch, median, megabytes, number, repeated};

/// Steps of the trace, and modules in each, with a frame and three ops.
const STEPS: usize = 1000;
const LAYERS: usize = 250;
/// CPU time of ops, threads, steps, calls, gaps and modules by that of decoding.
const MOST_RATIO: f64 = 1.5;

pub(super) fn measure(driver: &Driver, scratch: &Scratch, report: &mut Report) -> Result<()> {
    println!("\n==== the CPU's figures");
    let path = scratch.0.join("host.json");
    let mut out = BufWriter::new(File::create(&path)?);
    write(&mut out, STEPS, LAYERS)?;
    out.flush()?;
    let runs = repeated(|| driver.run(&["host".as_ref(), &path]))?;
    let of = |name: &'static str| median(&runs, move |run: &Value| number(&run[name]));
    let decode_s = of("decode_cpu_s")?;
    println!(
        "{} events, {} of JSON; decoding takes {decode_s:.2} CPU-s = 1x",
        number(&runs[0]["n_events"])?,
        megabytes(path.metadata()?.len() as f64)
    );
    let arguments_s = of("arguments_cpu_s")?;
    let figures_s = of("figures_cpu_s")?;
    let ratio = figures_s / decode_s;
    let target = Some((format!("<= {MOST_RATIO:.1}x"), ratio <= MOST_RATIO));
    report.line("ops, threads, steps, calls, gaps, modules", &line(ratio, figures_s), target);
    let what = "reading the arguments, a second pass over the file";
    report.line(what, &line(arguments_s / decode_s, arguments_s), None);
    for (name, what) in [
        ("decode_memory_bytes", "wasm memory after decode"),
        ("memory_bytes", "wasm memory after the figures"),
    ] {
        report.at_most(what, of(name)?, 1e6, "MB", f64::INFINITY);
    }
    Ok(())
}

fn line(ratio: f64, seconds: f64) -> String {
    format!("{ratio:>7.2}x {seconds:>8.2}")
}

/// A trace of the CPU alone, as torch.profiler writes it: 1 + 4 * `layers` slices per step.
fn write(out: &mut impl Write, steps: usize, layers: usize) -> Result<()> {
    write!(out, "{{\"schemaVersion\": 1, \"traceEvents\": [")?;
    let mut id = 0;
    for step in 0..steps {
        let start = step * layers * 40;
        let lasts = layers * 40 - 1;
        let comma = if step == 0 { "" } else { "," };
        write!(
            out,
            "{comma}\n{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#{step}\", \"pid\": 1, \"tid\": 1, \
             \"ts\": {start}.250, \"dur\": {lasts}.000, \"args\": {{\"External id\": {id}}}}}"
        )?;
        for layer in 0..layers {
            let at = start + 1 + layer * 40;
            id += 4;
            write!(
                out,
                ",\n{{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"nn.Module: Linear_{layer}\", \"pid\": 1, \"tid\": 1, \
                 \"ts\": {at}.500, \"dur\": 36.125, \"args\": {{\"Python id\": {id}, \"Python parent id\": null, \"Python module id\": {layer}}}}}"
            )?;
            for (name, after, dur) in [("linear", 2, 30), ("t", 4, 3), ("addmm", 10, 20)] {
                let at = at + after;
                write!(
                    out,
                    ",\n{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::{name}\", \"pid\": 1, \"tid\": 1, \"ts\": {at}.750, \
                     \"dur\": {dur}.500, \"args\": {{\"External id\": {id}, \"Input Dims\": [[64], [32, 64], [64, 64], [], []], \
                     \"Input type\": [\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"], \
                     \"Concrete Inputs\": [\"\", \"\", \"\", \"1\", \"1\"]}}}}"
                )?;
            }
        }
    }
    Ok(write!(out, "\n]}}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_is_json_with_a_million_slices_at_full_size() {
        let mut out = Vec::new();
        write(&mut out, 2, 3).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 2 * (1 + 4 * 3));
        assert_eq!(STEPS * (1 + 4 * LAYERS), 1_001_000);
    }
}
