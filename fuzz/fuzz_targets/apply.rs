//! Any file that decodes is repaired, whatever the pieces, into strict JSON that needs no repair.
#![no_main]

use kinetoscope::trace::{Flags, Trace};
use kinetoscope::{
    Decoded, Decoder, NotATrace, Options, Output, PlanOptions, Proof, RepairPlan, RepairReport,
    Repairer, analyze, breakdown_json, plan_repair, repair_log_json,
};
use libfuzzer_sys::fuzz_target;

fn decode(file: &[u8]) -> Result<Decoded, NotATrace> {
    let mut decoder = Decoder::new();
    decoder.push(file)?;
    decoder.finish()
}

fn repair_in(file: &[u8], decoded: &Decoded, plan: &RepairPlan, size: usize) -> (Vec<u8>, Proof) {
    let mut repairer = Repairer::new(decoded, plan, Output::Json);
    let mut out = Vec::new();
    for chunk in file.chunks(size) {
        repairer.push(chunk, &mut out);
    }
    let proof = repairer.finish(&mut out);
    (out, proof)
}

/// Whether the times lie close enough together for the importer's doubles: nothing mends a file whose first
/// and last nanosecond are further apart than 2^53.
fn fits_doubles(trace: &Trace) -> bool {
    let timed = || trace.rows().filter(|row| trace.flags(*row).has(Flags::HAS_TS));
    let first = timed().map(|row| i128::from(trace.ts_ns(row))).min();
    let last = timed()
        .map(|row| i128::from(trace.ts_ns(row)) + i128::from(trace.dur_ns(row).max(0)))
        .max();
    first.zip(last).is_none_or(|(first, last)| last - first < ((1 << 42) * 1000 - 1_000_000))
}

/// Whether another parser reads `text`. serde_json limits depth and the size of numbers; JSON does not.
fn is_json(text: &[u8]) -> Result<(), String> {
    match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let reason = error.to_string();
            let limit = reason.contains("recursion limit") || reason.contains("out of range");
            if limit { Ok(()) } else { Err(reason) }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    // The last two bytes say how to cut the rest, and what is asked for.
    let Some((wishes, input)) = input.split_last() else { return };
    let Some((size, file)) = input.split_last() else { return };
    let Ok(decoded) = decode(file) else { return };
    let options =
        PlanOptions { clip_impossible: wishes & 1 != 0, fold_process_labels: wishes & 2 != 0 };
    let plan = plan_repair(&decoded.trace, &options);
    let (out, proof) = repair_in(file, &decoded, &plan, usize::MAX);
    let shown = || String::from_utf8_lossy(&out).into_owned();
    assert_eq!(
        repair_in(file, &decoded, &plan, usize::from(*size) + 1),
        (out.clone(), proof.clone())
    );

    // What is written for people does not stumble over it either.
    if wishes & 4 != 0 {
        let report = RepairReport::new(&decoded, &plan);
        assert!(report.section().is_none_or(|section| !section.tables.is_empty()));
        let analyses = analyze(&decoded.trace, &Options::default());
        for text in [
            breakdown_json(&decoded, &analyses, &plan.before),
            repair_log_json(&decoded, &plan, Some(&proof)),
        ] {
            assert_eq!(is_json(text.expect("serialises").as_bytes()), Ok(()));
        }
    }

    assert!(proof.holds, "{proof:#?}\n{}", shown());
    // The plan followed its changes thread by thread; from nothing, the model says the same.
    assert_eq!(plan.after, repair::perfetto::predict_after(&decoded.trace, &plan));
    // Perfetto does not know an array without events for a trace, and nothing can be added to it.
    let mendable = fits_doubles(&decoded.trace) && plan.after.stops.is_none();
    assert!(plan.after.is_clean() || !mendable, "{:?}\n{}", plan.after, shown());
    if plan.is_identity() && !decoded.source.gzip {
        assert!(out == file, "a file that needs no repair keeps every byte");
    }
    assert_eq!(is_json(&out), Ok(()), "{}", shown());
    let again = decode(&out).expect("the repaired file is a trace");
    let second = plan_repair(&again.trace, &PlanOptions::default());
    if mendable {
        assert!(second.before.is_clean(), "{:?}\n{}", second.before, shown());
        assert!(second.is_identity(), "{:?}\n{}", second.counts, shown());
    }
});
