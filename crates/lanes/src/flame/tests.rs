//! The calls of small threads, by hand.

use super::*;
use fixture::{Fixture, kernel, slice};
use report::drawing::Shape;

/// A frame with two ops, of which one crosses the end of the frame: a lane of its own.
fn found() -> (Trace, Lanes, Arrows) {
    let mut fixture = Fixture::default();
    for (category, name, at, dur) in [
        ("python_function", "a.py(3): f", 0, 100),
        ("cpu_op", "aten::mm", 10, 20),
        ("cpu_op", "aten::mm", 40, 20),
        ("cuda_runtime", "cudaLaunchKernel", 45, 5),
        ("cpu_op", "crossing", 90, 30),
        ("python_function", "a.py(9): g", 120, 50),
        ("cuda_runtime", "cudaLaunchKernel", 130, 5),
    ] {
        fixture.push(slice(category, name).at(at * 1_000, dur * 1_000).on(1, 1));
    }
    let trace = fixture.finish();
    let (lanes, arrows) = crate::lanes_of(&trace);
    (trace, lanes, arrows)
}

#[test]
fn own_times_are_those_of_the_calls() {
    let (trace, lanes, arrows) = found();
    let calls = Calls::of(&lanes, &trace, &arrows, 0, (0, 170_000));
    let rows = calls.by_name(&trace);
    let own: Vec<(&str, i64)> = rows.iter().map(|row| (&*row.name, row.self_ns)).collect();
    let expected =
        [("a.py:3 f", 60_000), ("a.py:9 g", 45_000), ("aten::mm", 35_000), ("crossing", 30_000)];
    assert_eq!(own[..4], expected);
    assert_eq!(own[4], ("cudaLaunchKernel", 10_000));
}

#[test]
fn a_range_cuts_what_reaches_out_of_it() {
    let (trace, lanes, arrows) = found();
    let calls = Calls::of(&lanes, &trace, &arrows, 0, (15_000, 50_000));
    let total: i64 = calls.whole()[0];
    assert_eq!(total, 35_000);
    let mm = calls.by_name(&trace).into_iter().find(|row| row.name == "aten::mm").unwrap();
    assert_eq!(mm.self_ns, 15_000 + 10_000 - 5_000);
}

#[test]
fn the_thread_with_most_slices_is_drawn() {
    let (trace, lanes, arrows) = found();
    let shown = |range| {
        let mut section = Section::default();
        flame(&mut section, (&lanes, &trace, &arrows), (None, ""), range);
        section
    };
    let section = shown((0, 170_000));
    let (drawing, table) = (&section.drawings[0], &section.tables[0]);
    assert!(table.title.ends_with("by time of their own"), "{}", table.title);
    assert_eq!(section.drawings.len(), 1, "nothing is launched");
    let texts: Vec<&str> = drawing
        .shapes
        .iter()
        .filter_map(|shape| match shape {
            Shape::Text { text, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    assert!(texts.contains(&"a.py:3 f") && texts.contains(&"aten::mm"), "{texts:?}");
    assert!(shown((300_000, 400_000)).tables.is_empty(), "nothing runs there");
}

/// A frame that launches through an op, twice, and once itself; the op is also called by nothing.
fn launching() -> (Trace, Lanes, Arrows) {
    let mut fixture = Fixture::default();
    for (category, name, at, dur) in [
        ("python_function", "a.py(3): f", 0, 100),
        ("cpu_op", "aten::mm", 10, 30),
        ("cpu_op", "aten::mm", 20, 15),
        ("cpu_op", "aten::add", 50, 10),
        ("cpu_op", "aten::mm", 120, 10),
    ] {
        fixture.push(slice(category, name).at(at * 1_000, dur * 1_000).on(1, 1));
    }
    for (link, at, gpu_at, gpu_dur) in
        [(1, 22, 60, 7), (2, 36, 70, 5), (3, 52, 80, 11), (4, 90, 95, 2), (5, 121, 140, 13)]
    {
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(at * 1_000, 1_000).on(1, 1);
        fixture.push(call.link(link));
        fixture.push(kernel("k").at(gpu_at * 1_000, gpu_dur * 1_000).link(link));
    }
    let trace = fixture.finish();
    let (lanes, arrows) = crate::lanes_of(&trace);
    (trace, lanes, arrows)
}

fn thread_of(lanes: &Lanes) -> usize {
    lanes.tracks.iter().position(|track| track.kind == Kind::Thread).unwrap()
}

#[test]
fn gpu_time_belongs_to_what_launched_it() {
    let (trace, lanes, arrows) = launching();
    let calls = Calls::of(&lanes, &trace, &arrows, thread_of(&lanes), (0, 200_000));
    assert_eq!(calls.whole(), [110_000, (7 + 5 + 11 + 2 + 13) * 1_000]);
    let rows = calls.by_name(&trace);
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.name == name).unwrap();
        (row.self_ns, row.total_ns, row.gpu_ns, row.gpu_total_ns)
    };
    assert_eq!(of("a.py:3 f"), (59_000, 100_000, 0, 25_000));
    // (The inner one is in the time of the outer one.)
    assert_eq!(of("aten::mm"), (37_000, 40_000, 0, 25_000));
    assert_eq!(of("aten::add"), (9_000, 10_000, 0, 11_000));
    assert_eq!(of("cudaLaunchKernel"), (5_000, 5_000, 38_000, 38_000));
    // A call that begins before the range launched nothing in it.
    let part = Calls::of(&lanes, &trace, &arrows, thread_of(&lanes), (22_500, 60_000));
    assert_eq!(part.whole(), [37_500, 16_000]);
}

#[test]
fn callers_and_callees_are_those_of_the_text() {
    let (trace, lanes, arrows) = launching();
    let shown = |text: &str| {
        let mut section = Section::default();
        let range = (0, 200_000);
        flame(&mut section, (&lanes, &trace, &arrows), (None, text), range);
        section
    };
    let section = shown("MM");
    let table = |id: &str| {
        let table = section.tables.iter().find(|table| table.id == id).unwrap();
        table.view().tsv()
    };
    assert_eq!(
        table("range-callers"),
        "name\ttotal_ns\tgpu_ns\na.py:3 f\t30000\t12000\naten::mm\t15000\t7000\n(nothing: outermost)\t10000\t13000\n"
    );
    assert_eq!(
        table("range-callees"),
        "name\ttotal_ns\tgpu_ns\naten::mm\t15000\t7000\ncudaLaunchKernel\t3000\t25000\n"
    );
    assert_eq!(
        section.intro,
        [
            "Calls of names with \u{201c}MM\u{201d} take 40.0 µs with what they call, 36.4% of the thread's calls in the range, \
          and launched 25.0 µs of GPU work, 65.8% of that of the thread."
        ]
    );
    let ids: Vec<&str> = section.drawings.iter().map(|drawing| &*drawing.id).collect();
    assert_eq!(ids, ["range-flame", "range-flame-gpu", "range-focus", "range-focus-gpu"]);
    let edges = |drawing: &report::Drawing| {
        drawing.shapes.iter().filter(|shape| matches!(shape, Shape::Line { .. })).count()
    };
    // Below f, below itself, and below nothing.
    assert_eq!(edges(&section.drawings[0]), 3);
    assert_eq!(shown("moon").drawings.len(), 2);
    assert_eq!(shown("").tables.len(), 1);
}

#[test]
fn a_slice_that_is_selected_is_what_is_looked_at() {
    let (trace, lanes, arrows) = launching();
    let add = trace.rows().find(|row| trace.name_text(*row) == "aten::add").unwrap();
    let mut section = Section::default();
    let selected = lanes.spot(&trace, add);
    flame(&mut section, (&lanes, &trace, &arrows), (selected, ""), (0, 200_000));
    let titles: Vec<&str> = section.tables.iter().map(|table| &*table.title).collect();
    assert_eq!(
        titles[..2],
        ["Callers of \u{201c}aten::add\u{201d}", "Callees of \u{201c}aten::add\u{201d}"]
    );
}
