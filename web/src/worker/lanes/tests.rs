use kinetoscope::lanes::{Place, RecordedBand, RecordedLevels, RecordedPart, RecordedPlaces};
use kinetoscope::scene::{Bar, Key, Pointer};
use kinetoscope::{CountersReader, Decoder};

use super::layout::HEAD;
use super::*;

/// Two launches inside a frame of Python, and their kernels on one stream.
const TRACE: &str = r#"{"traceEvents":[
{"ph":"X","cat":"python_function","name":"train.py(3): step","pid":1,"tid":1,"ts":0,"dur":100},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":20,"dur":5,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":30,"dur":20,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"softmax","pid":0,"tid":7,"ts":60,"dur":40,"args":{"device":0,"stream":7,"correlation":2}}
]}"#;

pub(super) fn look() -> Look {
    look_at(TRACE)
}

pub(super) fn look_at(trace: &str) -> Look {
    let mut decoder = Decoder::new();
    decoder.push(trace.as_bytes()).expect("it is a trace");
    let mut look = Look::new(decoder.finish().expect("it is a trace").trace);
    for surface in [Surface::Lanes, Surface::Over] {
        look.take(surface, &Input::Size { width: 1000.0, height: 400.0, scale: 1.0 });
    }
    look
}

/// Why the device stands still is known.
fn told_of(parts: Vec<RecordedPart>) -> Told {
    Told { bands: vec![RecordedBand { label: "GPU 0".to_owned(), parts }], ..Told::default() }
}

pub(super) fn press(look: &mut Look, key: Key) -> String {
    look.take(Surface::Over, &Input::Key { key, shift: false });
    look.news().map(|looked| looked.says).unwrap_or_default()
}

pub(super) fn point(look: &mut Look, what: Pointer, x: f32, y: f32) {
    look.take(Surface::Over, &Input::Pointer { what, x, y, pans: false });
}

/// The middle of a lane in the picture.
pub(super) fn height_of(look: &Look, track: usize, lane: usize) -> f32 {
    let row = look.layout.lane(track, lane).expect("it is shown");
    row.y - look.top + look.ceiling() + row.height / 2.0
}

pub(super) fn texts(ink: &[Ink]) -> Vec<&str> {
    let texts = ink.iter().filter_map(|ink| match ink {
        Ink::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn tracks_and_slices_have_their_names() {
    let mut look = look();
    assert_eq!(look.facts().says, "5 slices in 2 tracks.");
    let painted = look.paint();
    let (surface, ink) = &painted[0];
    assert_eq!(*surface, Surface::Lanes);
    let texts = texts(ink);
    for wanted in [
        "▾ GPU 0, stream 7",
        "2 slices, busy 60.0% of the time shown",
        "gemm",
        "softmax",
        "train.py(3): step",
        "▾ Thread 1",
    ] {
        assert!(texts.contains(&wanted), "{wanted} in {texts:?}");
    }
    assert!(look.paint().is_empty(), "nothing changed");
}

#[test]
fn a_click_selects_the_slice_below_it() {
    let mut look = look();
    let y = height_of(&look, 0, 0);
    point(&mut look, Pointer::Down, 700.0, y);
    point(&mut look, Pointer::Up, 700.0, y);
    let looked = look.news().expect("something is selected");
    assert_eq!(looked.says, "softmax: 40.0 µs at 60.0 µs on GPU 0, stream 7.");
    let facts = &looked.chapters[0].intro[1];
    assert_eq!(
        facts,
        "Launched by cudaLaunchKernel: it starts 40.0 µs after the call begins and 35.0 µs after the call returns."
    );
    let lines = look.paint().remove(0).1.len();
    assert!(lines > 0);
    point(&mut look, Pointer::Down, 550.0, y);
    point(&mut look, Pointer::Up, 550.0, y);
    assert!(look.selected.is_none(), "there is nothing");
}

#[test]
fn keys_go_from_the_frame_to_its_kernels_and_back() {
    let mut look = look();
    assert!(press(&mut look, Key::Forward).starts_with("gemm"), "the first slice of all");
    assert!(press(&mut look, Key::Forward).starts_with("softmax"));
    assert!(press(&mut look, Key::Cause).starts_with("cudaLaunchKernel: 5.00 µs at 20.00 µs"));
    assert!(press(&mut look, Key::PreviousSame).contains("at 10.00 µs"));
    assert!(press(&mut look, Key::Cause).starts_with("train.py(3): step"), "what encloses it");
    assert!(press(&mut look, Key::Effect).starts_with("gemm"), "the first kernel of the frame");
    assert_eq!(press(&mut look, Key::PreviousSame), "No such slice.");
    assert!(press(&mut look, Key::Up).starts_with("No such"), "nothing is above");
    assert!(press(&mut look, Key::Down).starts_with("train.py"));
}

#[test]
fn a_slice_that_is_sought_before_there_is_room_is_in_view_once_there_is() {
    let mut look = look();
    let size = |height| Input::Size { width: 1000.0, height, scale: 1.0 };
    look.take(Surface::Over, &size(20.0));
    look.take(Surface::Over, &Input::Event(3));
    look.take(Surface::Over, &size(120.0));
    look.add_told(told_of(Vec::new()));
    let spot = look.selected.expect("the slice is selected");
    let row = *look.layout.lane(spot.track, spot.lane).expect("its lane is shown");
    let room = look.height - look.ceiling();
    assert!(room < look.layout.height, "not everything has room: {room}");
    assert!(
        look.top <= row.y && row.y + row.height <= look.top + room,
        "{row:?} from {}",
        look.top
    );
    // Where a person has scrolled away, nothing comes back.
    look.take(Surface::Over, &Input::Scroll(1000.0));
    let top = look.top;
    assert!(top > row.y);
    look.take(Surface::Over, &size(119.0));
    assert!(look.top >= top);
}

#[test]
fn a_drag_selects_a_range_with_exact_figures() {
    let mut look = look();
    let y = height_of(&look, 0, 0);
    point(&mut look, Pointer::Down, 400.0, y);
    point(&mut look, Pointer::Drag, 800.0, y);
    point(&mut look, Pointer::Up, 800.0, y);
    let looked = look.news().expect("a range is selected");
    assert_eq!(
        looked.chapters[0].intro,
        [
            "40.0 µs from 40.0 µs to 80.0 µs.",
            "GPU 0 is busy for 30.0 µs (75.0%) and idle for 10.0 µs."
        ]
    );
    press(&mut look, Key::Fit);
    assert_eq!((look.window.from(), look.window.to()), (40_000.0, 80_000.0));
    press(&mut look, Key::Clear);
    assert!(look.range.is_none());
}

#[test]
fn a_range_is_chosen_by_its_two_ends() {
    let mut look = look();
    // From the start of the first kernel to the end of the second.
    look.take(Surface::Over, &Input::Event(3));
    let says = press(&mut look, Key::RangeStart);
    assert_eq!(says, "The range starts 30.0 µs after the first slice. Press O where it ends.");
    let (_, over) = look.paint().pop().expect("it is drawn");
    assert!(texts(&over).contains(&"Range starts"));
    press(&mut look, Key::RangeStart);
    assert_eq!(look.range, None, "an end is no range");
    press(&mut look, Key::Forward);
    press(&mut look, Key::RangeEnd);
    assert_eq!((look.range, look.bound), (Some((30_000.0, 100_000.0)), None));
    // Another start moves it; one behind its end starts another range.
    press(&mut look, Key::RangeStart);
    assert_eq!(look.range, Some((60_000.0, 100_000.0)));
    press(&mut look, Key::Clear);
    // Without a slice, a click says where; the end may come first.
    let y = height_of(&look, 0, 0);
    for (x, key) in [(550.0, Key::RangeEnd), (100.0, Key::RangeStart)] {
        point(&mut look, Pointer::Down, x, y);
        point(&mut look, Pointer::Up, x, y);
        press(&mut look, key);
    }
    assert_eq!((look.selected, look.range), (None, Some((10_000.0, 55_000.0))));
    press(&mut look, Key::RangeStart);
    look.take(Surface::Over, &Input::Event(4));
    press(&mut look, Key::RangeStart);
    assert_eq!(look.range, None);
    press(&mut look, Key::Clear);
    assert_eq!((look.bound, look.clicked), (None, None));
    // Else it is the middle of what is shown.
    press(&mut look, Key::RangeStart);
    look.take(Surface::Over, &Input::Event(4));
    press(&mut look, Key::RangeEnd);
    assert_eq!(look.range, Some((50_000.0, 100_000.0)));
}

#[test]
fn a_search_finds_slices_by_a_part_of_their_names() {
    let mut look = look();
    look.take(Surface::Over, &Input::Find("LAUNCH".into()));
    let says = look.news().map(|looked| looked.says);
    assert_eq!(says.as_deref(), Some("2 slices have \u{201c}LAUNCH\u{201d} in their names."));
    assert!(press(&mut look, Key::Found).contains("at 10.00 µs"));
    assert!(press(&mut look, Key::Found).contains("at 20.00 µs"));
    assert!(press(&mut look, Key::Found).contains("at 10.00 µs"), "from the first one again");
    look.take(Surface::Over, &Input::Key { key: Key::Found, shift: true });
    assert!(look.news().is_some_and(|looked| looked.says.contains("at 20.00 µs")));
    look.take(Surface::Over, &Input::Find("moon".into()));
    assert!(look.news().is_some_and(|looked| looked.says.starts_with("No slice has")));
}

#[test]
fn a_name_is_shown_from_elsewhere_and_a_slice_that_has_it_stays() {
    let mut look = look();
    look.take(Surface::Over, &Input::Name("cudaLaunchKernel".to_owned()));
    let selected = |look: &Look| look.selected.and_then(|spot| look.lanes.row(spot));
    assert_eq!(selected(&look), Some(1));
    press(&mut look, Key::Range);
    press(&mut look, Key::NextSame);
    look.take(Surface::Over, &Input::Name("cudaLaunchKernel".to_owned()));
    assert_eq!((selected(&look), look.range), (Some(2), None), "the range was of something else");
    look.take(Surface::Over, &Input::Name("gemm".to_owned()));
    assert_eq!(selected(&look), Some(3));
    look.take(Surface::Over, &Input::Name("absent".to_owned()));
    assert_eq!(selected(&look), Some(3));
}

#[test]
fn an_event_is_shown_from_elsewhere() {
    let mut look = look();
    look.window.show(0.0, 1_000.0);
    look.range = Some((0.0, 500.0));
    look.take(Surface::Over, &Input::Event(4));
    assert_eq!(look.range, None);
    assert!(look.news().is_some_and(|looked| looked.says.starts_with("softmax")));
    assert!(look.window.from() <= 60_000.0 && look.window.to() >= 100_000.0, "{:?}", look.window);
    look.take(Surface::Over, &Input::Event(99));
    assert!(look.news().is_some_and(|looked| looked.says.starts_with("This event is not")));
}

#[test]
fn a_folded_track_shows_its_first_lane() {
    let mut look = look();
    let n = look.layout.rows.len();
    let head = look.layout.rows[2];
    point(&mut look, Pointer::Down, 20.0, head.y + TOP + 4.0);
    point(&mut look, Pointer::Up, 20.0, head.y + TOP + 4.0);
    assert_eq!(look.layout.rows.len(), n - 1);
    assert!(look.layout.lane(1, 1).is_none());
    look.take(Surface::Over, &Input::Event(1));
    assert!(look.layout.lane(1, 1).is_some(), "what is shown is unfolded");
}

#[test]
fn tracks_are_filtered_and_pinned_and_what_is_sought_is_shown_nevertheless() {
    let mut look = look();
    let order = |look: &Look| -> Vec<usize> {
        let heads = look.layout.rows.iter().filter(|row| row.lane.is_none());
        heads.map(|row| row.track).collect()
    };
    assert_eq!(order(&look), [0, 1]);
    look.take(Surface::Over, &Input::Event(1));
    press(&mut look, Key::Pin);
    assert_eq!(order(&look), [1, 0], "the thread is kept at the top");
    assert!(texts(&look.draw()).iter().any(|text| text.ends_with("(pinned)")));
    press(&mut look, Key::Pin);
    assert_eq!(order(&look), [0, 1]);
    look.take(Surface::Over, &Input::Tracks("gpu".to_owned()));
    assert_eq!(look.news().map(|looked| looked.says).as_deref(), Some("1 of 2 tracks shown."));
    assert_eq!(order(&look), [0]);
    look.take(Surface::Over, &Input::Event(1));
    assert_eq!(order(&look), [0, 1], "a slice of a track that is filtered out shows it");
    assert!(press(&mut look, Key::Pin).ends_with("is kept at the top."));
    look.take(Surface::Over, &Input::Tracks("gpu".to_owned()));
    assert_eq!(order(&look), [1, 0]);
    press(&mut look, Key::Pin);
    assert_eq!(order(&look), [0]);
    look.take(Surface::Over, &Input::Tracks(String::new()));
    assert_eq!(order(&look), [0, 1]);
}

#[test]
fn the_overview_moves_what_is_shown() {
    let mut look = look();
    look.window.show(0.0, 10_000.0);
    point(&mut look, Pointer::Down, 500.0, 5.0);
    point(&mut look, Pointer::Up, 500.0, 5.0);
    assert_eq!((look.window.from(), look.window.to()), (45_000.0, 55_000.0));
    assert!(look.selected.is_none() && look.range.is_none());
}

/// The device computes, waits for launches from 50 to 60 us, and computes.
fn with_bands() -> Look {
    let mut look = look();
    let us = |from: i64, to: i64| (from * 1_000, to * 1_000);
    let parts = [
        RecordedPart::new("compute", "Compute", false, &[us(30, 50), us(60, 100)]),
        RecordedPart::new("launch", "Idle: gaps between launches", true, &[us(50, 57)]),
        RecordedPart::new("start", "Idle: from launch to start", true, &[us(57, 60)]),
    ];
    look.add_told(told_of(parts.into()));
    look
}

#[test]
fn a_band_says_why_the_device_stands_still() {
    let mut look = with_bands();
    let painted = look.paint();
    let drawn = texts(&painted[0].1);
    assert!(drawn.iter().any(|text| text.starts_with("gaps")), "7 us are 70 px: {drawn:?}");
    let head = "GPU 0 is idle for 10.0% of the time shown: gaps between launches 7.0%, from launch to start 3.0%";
    assert!(drawn.contains(&head), "{drawn:?}");
    point(&mut look, Pointer::Hover, 535.0, TOP + HEAD + 5.0);
    let over = look.draw_over();
    let hint = texts(&over);
    assert!(
        hint.contains(&"Idle: gaps between launches") && hint.contains(&"7.00 µs from 50.00 µs"),
        "{hint:?}"
    );
    point(&mut look, Pointer::Down, 535.0, TOP + HEAD + 5.0);
    point(&mut look, Pointer::Up, 535.0, TOP + HEAD + 5.0);
    assert_eq!(look.range, Some((50_000.0, 57_000.0)));
    // Lanes lie below the bands: a click on the kernel selects it, and nothing of the band.
    let y = height_of(&look, 0, 0);
    point(&mut look, Pointer::Down, 400.0, y);
    point(&mut look, Pointer::Up, 400.0, y);
    assert!(look.selected.is_some());
}

#[test]
fn a_range_has_its_parts_and_the_calls_of_the_thread() {
    let mut look = with_bands();
    point(&mut look, Pointer::Down, 150.0, 390.0);
    point(&mut look, Pointer::Drag, 600.0, 390.0);
    point(&mut look, Pointer::Up, 600.0, 390.0);
    let range = look.range.expect("it is dragged");
    let looked = look.news().expect("there is a range");
    let chapter = &looked.chapters[0];
    let table = |id: &str| chapter.tables.iter().find(|table| table.id == id).expect("it is there");
    let cell = |id: &str, row: usize, key: &str| {
        let at = table(id).columns.iter().position(|column| column.key == key).expect("it is one");
        table(id).cell(row, at).map(|cell| cell.raw()).unwrap_or_default()
    };
    let rows = 0..table("range-wall").n_rows();
    let sum: i64 =
        rows.map(|row| cell("range-wall", row, "total_ns").parse::<i64>().expect("a time")).sum();
    // What lies before the first work of the device is in no part.
    assert_eq!(sum, (range.1 - 30_000.0) as i64);
    let drawn: Vec<&str> = chapter.drawings.iter().map(|drawing| &*drawing.id).collect();
    assert_eq!(drawn, ["range-flame", "range-flame-gpu"], "the calls of thread 1");
    assert_eq!(cell("range-calls", 0, "name"), "train.py:3 step");
    // From 15 to 60 us without the second launch of 5 us.
    assert_eq!(
        cell("range-calls", 0, "self_ns").parse::<f64>().ok(),
        Some(range.1 - range.0 - 5_000.0)
    );
}

#[test]
fn a_moment_at_which_the_device_begins_to_wait_is_shown_as_a_range() {
    let mut look = with_bands();
    look.take(Surface::Over, &Input::Moment(50_000));
    assert_eq!(look.range, Some((50_000.0, 60_000.0)), "up to the next kernel");
    let says = look.news().expect("it is said").says;
    assert!(says.contains("50.0 µs"), "{says}");
    look.take(Surface::Over, &Input::Moment(35_000));
    assert_eq!(look.marks, [35_000.0]);
}

#[test]
fn g_selects_one_gap_after_the_other_and_shift_goes_back() {
    let mut look = look();
    assert!(press(&mut look, Key::Gap).contains("not known yet"));
    let us = |from: i64, to: i64| (from * 1_000, to * 1_000);
    let parts = [
        RecordedPart::new("launch", "Idle: gaps between launches", true, &[us(10, 20), us(50, 57)]),
        RecordedPart::new("start", "Idle: from launch to start", true, &[us(57, 60)]),
        // 0.1 us is less than 2 px of 100 ns.
        RecordedPart::new("queued", "Idle: work was queued", true, &[(30_000, 30_100)]),
    ];
    look.add_told(told_of(parts.into()));
    let mut go = |shift: bool| {
        look.take(Surface::Over, &Input::Key { key: Key::Gap, shift });
        (look.range, look.news().expect("it is said").says)
    };
    assert_eq!(go(false).0, Some((10_000.0, 20_000.0)));
    assert_eq!(go(false).0, Some((50_000.0, 60_000.0)), "both causes");
    assert!(go(false).1.contains("No such gap"));
    assert_eq!(go(true).0, Some((10_000.0, 20_000.0)));
    assert!(go(true).1.contains("No such gap"));
}

#[test]
fn from_a_piece_of_a_gap_g_goes_to_another_gap() {
    let mut look = look();
    let us = |from: i64, to: i64| (from * 1_000, to * 1_000);
    let parts = [
        RecordedPart::new("launch", "Idle: gaps between launches", true, &[us(10, 20), us(50, 57)]),
        RecordedPart::new("start", "Idle: from launch to start", true, &[us(57, 60), us(80, 90)]),
    ];
    look.add_told(told_of(parts.into()));
    for (piece, shift, found) in [
        ((50_000.0, 57_000.0), false, (80_000.0, 90_000.0)),
        ((57_000.0, 60_000.0), false, (80_000.0, 90_000.0)),
        ((57_000.0, 60_000.0), true, (10_000.0, 20_000.0)),
    ] {
        look.range = Some(piece);
        look.take(Surface::Over, &Input::Key { key: Key::Gap, shift });
        assert_eq!(look.range, Some(found), "{piece:?}, {shift}");
    }
}

#[test]
fn a_moment_that_is_sought_before_the_bands_are_there_is_found_when_they_come() {
    let mut look = look();
    look.take(Surface::Over, &Input::Moment(50_000));
    assert_eq!(look.range, None);
    let parts =
        [RecordedPart::new("launch", "Idle: gaps between launches", true, &[(50_000, 60_000)])];
    look.add_told(told_of(parts.into()));
    assert_eq!(look.range, Some((50_000.0, 60_000.0)));
}

/// Drawing orders, one a line, as they are checked in: what changes a picture changes this text.
#[track_caller]
fn assert_drawn(name: &str, ink: &[Ink]) {
    let lines: String = ink.iter().map(|ink| format!("{}\n", line(ink))).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/worker/lanes/golden/");
    testkit::assert_golden(format!("{path}{name}.txt"), &lines);
}

/// Places to a tenth of a px; bars as how many of each hue in a row, with their shares in percent.
fn line(ink: &Ink) -> String {
    match ink {
        Ink::Clear { width, height } => format!("clear {width:.1} x {height:.1}"),
        Ink::Box { x, y, width, height, tone } => {
            format!("box {x:.1},{y:.1} {width:.1} x {height:.1} {tone:?}")
        }
        Ink::Bars { x, y, height, bars } => {
            let runs = bars.chunk_by(|a, b| a == b).map(|run| {
                let n = run.len();
                match run[0] {
                    Some(Bar { hue, share, .. }) => {
                        format!("{n} {} {:.0}%", hue.id(), share * 100.0)
                    }
                    None => format!("{n} none"),
                }
            });
            format!("bars {x:.1},{y:.1} x {height:.1}: {}", runs.collect::<Vec<_>>().join(", "))
        }
        Ink::Line { points, tone } => format!("line {points:.1?} {tone:?}"),
        Ink::Text { x, y, text, tone, anchor } => {
            format!("text {x:.1},{y:.1} {anchor:?} {tone:?}: {text}")
        }
    }
}

#[test]
fn pictures_are_drawn_as_checked_in() {
    let mut look = with_bands();
    assert_drawn("whole", &look.draw());
    look.window.show(0.0, 20_000.0);
    assert_drawn("near", &look.draw());
    look.window.show(0.0, 1e9);
    look.take(Surface::Over, &Input::Event(4));
    press(&mut look, Key::Range);
    press(&mut look, Key::Mark);
    let y = height_of(&look, 0, 0);
    point(&mut look, Pointer::Hover, 400.0, y);
    assert_drawn("over", &look.draw_over());
    look.take(Surface::Over, &Input::Tracks("thread".to_owned()));
    press(&mut look, Key::Pin);
    assert_drawn("pinned", &look.draw());
}

#[test]
fn memory_is_a_track_above_the_threads() {
    let mut look = look();
    let levels =
        [(20_000, 1 << 20, 1 << 21), (50_000, 3 << 20, 1 << 22), (70_000, 1 << 20, 1 << 22)];
    let memory = RecordedLevels::new("Memory of GPU 0".to_owned(), (1 << 19, 1 << 21), &levels);
    look.add_told(Told { memory: vec![memory], ..Told::default() });
    let heads: Vec<&str> =
        look.layout.tracks().map(|track| look.lanes.tracks[track].label.as_str()).collect();
    assert_eq!(heads, ["GPU 0, stream 7", "Memory of GPU 0", "Thread 1"]);
    let painted = look.paint();
    assert!(texts(&painted[0].1).contains(&"at most 3.00 MiB of 3.00 MiB in the time shown"));
    let bars = painted[0].1.iter().find_map(|ink| match ink {
        Ink::Bars { bars, height: 38.0, .. } => Some(bars),
        _ => None,
    });
    let share = |x: usize| bars.and_then(|bars| bars[x].map(|bar: Bar| bar.share));
    let shares = [0, 199, 200, 499, 500, 699, 700, 999].map(share);
    let third = Some(1.0 / 3.0);
    assert_eq!(
        shares,
        [Some(0.5 / 3.0), Some(0.5 / 3.0), third, third, Some(1.0), Some(1.0), third, third]
    );
    let y = height_of(&look, 2, 0);
    point(&mut look, Pointer::Hover, 600.0, y);
    let painted = look.paint();
    let hint = texts(&painted[0].1);
    assert!(
        hint.contains(&"3.00 MiB allocated") && hint.contains(&"4.00 MiB reserved"),
        "{hint:?}"
    );
    point(&mut look, Pointer::Down, 100.0, y);
    point(&mut look, Pointer::Drag, 600.0, y);
    point(&mut look, Pointer::Up, 600.0, y);
    let looked = look.news().expect("a range");
    let table = looked.chapters[0].table("range-memory").expect("it has memory");
    assert_eq!(table.n_rows(), 1);
}

#[test]
fn a_replayed_kernel_tells_where_it_was_captured() {
    let mut look = look();
    let place = Place {
        op: Some("aten::mm".to_owned()),
        line: Some("model.py:7 forward".to_owned()),
        stack: vec!["model.py(7): forward".to_owned()],
        how: "matched by name".to_owned(),
        ..Place::default()
    };
    // (The event of the first kernel.)
    let places = RecordedPlaces::new(vec![place], vec![(3, 0)]);
    look.take(Surface::Over, &Input::Event(3));
    look.add_told(Told { places, ..Told::default() });
    let looked = look.news().expect("there is more to say");
    let intro = &looked.chapters[0].intro[1];
    assert_eq!(intro, "Op aten::mm, line model.py:7 forward (matched by name).");
    assert!(looked.chapters[0].table("place-calls").is_some());
    let y = height_of(&look, 0, 0);
    point(&mut look, Pointer::Hover, 400.0, y);
    let (_, over) = look.paint().pop().expect("the pointer moved");
    assert!(texts(&over).contains(&"model.py:7 forward"));
}

/// A picture of a trace whose counters are read.
fn look_with_counters(trace: &str) -> Look {
    let mut decoder = Decoder::new();
    decoder.push(trace.as_bytes()).expect("it is a trace");
    let decoded = decoder.finish().expect("it is a trace");
    let mut reader = CountersReader::new(&decoded).expect("it has counters");
    reader.push(trace.as_bytes());
    let counters = reader.finish();
    let mut look = Look::new(decoded.trace);
    look.add_counters(&counters);
    for surface in [Surface::Lanes, Surface::Over] {
        look.take(surface, &Input::Size { width: 1000.0, height: 400.0, scale: 1.0 });
    }
    look
}

#[test]
fn a_counter_is_a_track_with_its_value_at_the_pointer_and_as_a_table() {
    let counters = r#"{"ph":"C","name":"util","pid":1,"ts":20,"args":{"gpu":40}},
        {"ph":"C","name":"util","pid":1,"ts":60,"args":{"gpu":12.5}},"#;
    let trace = TRACE.replacen('[', &format!("[{counters}"), 1);
    let mut look = look_with_counters(&trace);
    assert_eq!(look.facts().says, "5 slices in 3 tracks.", "counters are drawn");
    let heads: Vec<&str> =
        look.layout.tracks().map(|track| look.lanes.tracks[track].label.as_str()).collect();
    assert_eq!(heads, ["GPU 0, stream 7", "util: gpu", "Thread 1"]);
    assert!(texts(&look.paint()[0].1).contains(&"12.5 to 40 in the time shown"));
    let track = look.layout.tracks().nth(1).expect("it is shown");
    let y = height_of(&look, track, 0);
    for (x, value) in [(100.0, "no value yet"), (300.0, "40"), (700.0, "12.5")] {
        point(&mut look, Pointer::Hover, x, y);
        let painted = look.paint();
        assert!(texts(&painted[0].1).contains(&value), "{value} at {x}");
    }
    point(&mut look, Pointer::Down, 300.0, y);
    point(&mut look, Pointer::Up, 300.0, y);
    let looked = look.news().expect("the lane as a table");
    assert_eq!(looked.says, "At 30.0 µs after the first slice: 40.");
    assert_eq!(looked.chapters[0].table("lane-levels").map(|table| table.n_rows()), Some(2));
    point(&mut look, Pointer::Down, 100.0, y);
    point(&mut look, Pointer::Drag, 600.0, y);
    point(&mut look, Pointer::Up, 600.0, y);
    let looked = look.news().expect("a range");
    assert!(looked.chapters[0].table("range-counters").is_some());
}

/// What is drawn of a counter, against a plain search through its values.
#[test]
fn the_range_that_a_column_shows_is_the_lowest_and_the_highest_of_its_time() {
    // Values at odd times, several at one moment, and some below zero; the order of the file is not that of time.
    let mut seed = 17_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut values: Vec<(u64, i64)> = (0..700)
        .map(|_| (random(95), i64::try_from(random(1_000)).expect("it is small") - 300))
        .collect();
    let text: String = values
        .iter()
        .map(|(at, value)| {
            format!(r#"{{"ph":"C","name":"n","pid":1,"ts":{at},"args":{{"value":{value}}}}},"#)
        })
        .collect();
    let mut look = look_with_counters(&TRACE.replacen('[', &format!("[{text}"), 1));
    values.sort_by_key(|(at, _)| *at);
    let all = values.iter().map(|(_, value)| *value);
    let (lowest, highest) = (all.clone().min().unwrap_or(0).min(0), all.max().unwrap_or(0));
    let scale = (highest - lowest) as f64;
    for zoom in [None, Some((0.25, 0.3)), Some((0.4999, 0.5001))] {
        if let Some((from, to)) = zoom {
            look.window.show(100_000.0 * from, 100_000.0 * to);
            look.is_dirty = true;
        }
        let (from, to) = look.shown();
        let painted = look.paint();
        let drawn: Vec<&Vec<Option<Bar>>> = painted[0]
            .1
            .iter()
            .filter_map(|ink| match ink {
                Ink::Bars { bars, height: 38.0, .. } => Some(bars),
                _ => None,
            })
            .collect();
        let [drawn] = drawn[..] else { panic!("{} rows of bars", drawn.len()) };
        assert_eq!(drawn.len(), 1_000);
        for (column, bar) in drawn.iter().enumerate() {
            let edge = |at: usize| from + (to - from) * at as f64 / 1_000.0;
            let (left, right) = (edge(column), edge(column + 1));
            let mut own = Vec::new();
            let mut held = None;
            for (at, value) in &values {
                let at = (at * 1_000) as f64;
                if at <= left {
                    held = Some(*value);
                }
                if left <= at && at < right {
                    own.push(*value);
                }
            }
            own.extend(held);
            let share = |value: &i64| ((value - lowest) as f64 / scale) as f32;
            let wanted = own.iter().min().map(share).zip(own.iter().max().map(share));
            let shown = bar.map(|bar| (bar.low, bar.share));
            assert_eq!(
                shown,
                wanted.filter(|(_, high)| *high > 0.0),
                "column {column} of {zoom:?}"
            );
        }
    }
}
