//! What the tests of rules share.

#![allow(dead_code, reason = "each test program uses a part of it")]

use diagnosis::{Diagnosis, Facts, diagnose};
use fixture::{Fixture, kernel, slice};
use trace::{Collective, Details, Trace};
use triage::{Sources, TriageOptions, triage};

/// What is said of a tiny trace.
pub fn diagnosis(fixture: Fixture) -> Diagnosis {
    with_details(&fixture.finish(), &Details::default())
}

/// What is said of a trace and what its ops were called with.
pub fn with_details(trace: &Trace, details: &Details) -> Diagnosis {
    of(trace, details, &Sources::default(), None)
}

/// A file and what its ops were called with, as the program reads it.
pub fn read(file: &[u8]) -> (decode::Decoded, Details) {
    let mut decoder = decode::Decoder::new();
    for chunk in file.chunks(1 << 16) {
        decoder.push(chunk).unwrap();
    }
    let decoded = decoder.finish().unwrap();
    let mut reader = decode::DetailsReader::with_host(&decoded, host::wants_inputs);
    reader.push(file);
    let details = reader.finish();
    (decoded, details)
}

/// What is said of a file.
pub fn of_file(file: &[u8]) -> Diagnosis {
    of_file_timed(file, None)
}

/// The same where an iteration takes `iteration_ns` without the profiler.
pub fn of_file_timed(file: &[u8], iteration_ns: Option<i64>) -> Diagnosis {
    let (decoded, details) = read(file);
    let sources = Sources { details: Some(&details), ..Sources::default() };
    of(&decoded.trace, &details, &sources, iteration_ns)
}

fn of(
    trace: &Trace,
    details: &Details,
    sources: &Sources<'_>,
    iteration_ns: Option<i64>,
) -> Diagnosis {
    let triaged = triage(trace, &TriageOptions::default(), sources);
    let index = host::HostIndex::of(trace);
    let report = host::host(&index, details);
    diagnose(&Facts::of(&index, details, &report, &triaged).timed(iteration_ns))
}

/// A kernel and its launch.
pub fn launch(fixture: &mut Fixture, name: &str, link: i64, called: i64, at: i64, dur: i64) {
    let call = slice("cuda_runtime", "cudaLaunchKernel").at(called, 2_000).on(1, 1);
    fixture.push(call.link(link));
    fixture.push(kernel(name).at(at, dur).link(link));
}

/// All-reduces of two ranks, each of so many elements; which slice is of which is not told yet.
pub fn all_reduces(sizes: &[i64]) -> Details {
    let mut details = Details::default();
    let (name, kind) = (details.texts.intern("allreduce"), details.texts.intern("Float;0;[0,1];"));
    for elements in sizes {
        let (in_elements, out_elements) = (*elements, *elements);
        let of = Collective { name, kind, in_elements, out_elements, group_size: 2 };
        details.collectives.push(of);
    }
    details
}
