use kinetoscope::SnapshotReader;
use kinetoscope::scene::Tone;

use super::*;

/// A block of 1000 bytes from before the first event, one that stays, and one that comes and goes; then there is no memory.
const SNAPSHOT: &str = r#"{"segments": [{"device": 0, "address": 4096, "total_size": 8192, "allocated_size": 2048,
    "active_size": 2048, "stream": 0, "segment_type": "small", "blocks": [
    {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []},
    {"address": 5120, "size": 1024, "requested_size": 900, "state": "active_allocated", "frames": []},
    {"address": 6144, "size": 6144, "requested_size": 0, "state": "inactive", "frames": []}]}],
    "device_traces": [[
    {"action": "alloc", "addr": 5120, "size": 900, "stream": 0, "time_us": 10, "frames": [{"filename": "a.py", "line": 1, "name": "f"}]},
    {"action": "alloc", "addr": 8192, "size": 3000, "stream": 0, "time_us": 20, "frames": [{"filename": "b.py", "line": 2, "name": "g"}]},
    {"action": "free_requested", "addr": 8192, "size": 3000, "stream": 0, "time_us": 30, "frames": []},
    {"action": "free_completed", "addr": 8192, "size": 3000, "stream": 0, "time_us": 40, "frames": []},
    {"action": "oom", "device_free": 0, "size": 8192, "stream": 0, "time_us": 110, "frames": []}]]}"#;

fn looking() -> (Snapshot, Look) {
    let mut reader = SnapshotReader::new();
    reader.push(SNAPSHOT.as_bytes()).expect("a snapshot");
    let snapshot = reader.finish().expect("a snapshot");
    let first = Chart::of(&snapshot, 0).map(|chart| (0, chart));
    let mut look = Look::new(&snapshot, vec![0], first);
    for surface in [Surface::Memory, Surface::Blocks] {
        look.take(&snapshot, surface, &Input::Size { width: 600.0, height: 200.0, scale: 2.0 });
    }
    (snapshot, look)
}

fn ink(look: &mut Look, surface: Surface) -> Vec<Ink> {
    let painted = look.paint();
    painted.into_iter().find(|(of, _)| *of == surface).expect("it has changed").1
}

/// Width and height of the boxes of a colour.
fn boxes(ink: &[Ink], of: Tone) -> Vec<(f32, f32)> {
    let found = ink.iter().filter_map(|ink| match ink {
        Ink::Box { width, height, tone, .. } if *tone == of => Some((*width, *height)),
        _ => None,
    });
    found.collect()
}

fn texts(ink: &[Ink]) -> Vec<&str> {
    let found = ink.iter().filter_map(|ink| match ink {
        Ink::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    found.collect()
}

fn press(snapshot: &Snapshot, look: &mut Look, key: Key) {
    look.take(snapshot, Surface::Memory, &Input::Key { key, shift: false });
}

fn point(snapshot: &Snapshot, look: &mut Look, what: Pointer, x: f32) {
    look.take(snapshot, Surface::Memory, &Input::Pointer { what, x, y: 50.0, pans: false });
}

#[test]
fn layers_are_as_high_as_their_bytes() {
    let (_, mut look) = looking();
    let ink = ink(&mut look, Surface::Memory);
    // 8192 reserved bytes are the 162 px between the head and the axis.
    let px = |bytes: f32| 162.0 * bytes / 8192.0;
    let [(width, height)] = boxes(&ink, Tone::Category(""))[..] else { panic!("one box") };
    assert_eq!(width, 600.0, "there from the first event to the last");
    assert!((height - px(1000.0)).abs() < 0.01, "{height}");
    let [(width, height)] = boxes(&ink, Tone::Category("series_0"))[..] else { panic!("one box") };
    // b.py holds 3000 bytes in two of six states: from its allocation until its free has ended.
    assert_eq!(width, 200.0);
    assert!((height - px(3000.0)).abs() < 0.01, "{height}");
    assert!(texts(&ink).contains(&"OOM"));
}

#[test]
fn it_begins_where_memory_ran_out() {
    let (snapshot, mut look) = looking();
    let news = look.news(&snapshot).expect("the first moment");
    assert!(
        news.says.starts_with("Before event 4: 1.86 KiB requested in 2 blocks"),
        "{}",
        news.says
    );
    assert!(news.says.ends_with("oom of 8.00 KiB at <no stack>."), "{}", news.says);
    assert_eq!(look.news(&snapshot), None, "it is said once");
}

#[test]
fn a_click_moves_the_cursor_and_a_drag_selects() {
    let (snapshot, mut look) = looking();
    // Six states of 100 px each.
    for what in [Pointer::Down, Pointer::Up] {
        point(&snapshot, &mut look, what, 250.0);
    }
    let news = look.news(&snapshot).expect("another moment");
    assert!(
        news.says.starts_with("Before event 2: 4.79 KiB requested in 3 blocks"),
        "{}",
        news.says
    );
    let drawn = ink(&mut look, Surface::Blocks);
    let width = |tone| boxes(&drawn, tone).iter().map(|(width, _)| width).sum::<f32>();
    // The block of b.py takes 3072 of 8192 bytes, on several rows.
    let share = width(Tone::Category("series_0")) / width(Tone::Grid);
    assert!((share - 3072.0 / 8192.0).abs() < 0.01, "{share}");
    point(&snapshot, &mut look, Pointer::Down, 50.0);
    point(&snapshot, &mut look, Pointer::Drag, 150.0);
    point(&snapshot, &mut look, Pointer::Drag, 450.0);
    point(&snapshot, &mut look, Pointer::Up, 450.0);
    let news = look.news(&snapshot).expect("a range");
    assert!(news.says.starts_with("Events 0 to 3: requested bytes go from"), "{}", news.says);
    assert_eq!(news.chapters.len(), 2, "the range and the moment");
    let selected = boxes(&ink(&mut look, Surface::Memory), Tone::Selected);
    assert_eq!(selected, [(400.0, 178.0)]);
    press(&snapshot, &mut look, Key::Clear);
    assert_eq!(look.news(&snapshot).expect("no range").chapters.len(), 1);
}

#[test]
fn keys_walk_through_the_events_and_along_the_axes() {
    let (snapshot, mut look) = looking();
    press(&snapshot, &mut look, Key::Peak);
    press(&snapshot, &mut look, Key::Back);
    let news = look.news(&snapshot).expect("a moment");
    assert!(news.says.starts_with("Before event 1: 1.86 KiB"), "{}", news.says);
    press(&snapshot, &mut look, Key::Axis);
    let drawn = ink(&mut look, Surface::Memory);
    assert!(texts(&drawn).contains(&"100 µs"), "{:?}", texts(&drawn));
    // By time, b.py holds its bytes from 20 to 40 of 100 µs.
    let [(width, _)] = boxes(&drawn, Tone::Category("series_0"))[..] else { panic!("one box") };
    assert!((119.0..=182.0).contains(&width), "{width}");
    press(&snapshot, &mut look, Key::Last);
    assert!(look.news(&snapshot).expect("a moment").says.contains("After the last event."));
}

#[test]
fn a_pointer_shows_what_lies_below_it() {
    let (snapshot, mut look) = looking();
    let hover = Input::Pointer { what: Pointer::Hover, x: 5.0, y: 22.0, pans: false };
    look.take(&snapshot, Surface::Blocks, &hover);
    let drawn = ink(&mut look, Surface::Blocks);
    let said = texts(&drawn);
    assert!(said[1].starts_with("1\u{2009}000 B requested, 1.00 KiB taken"), "{said:?}");
    let hover = Input::Pointer { what: Pointer::Hover, x: 250.0, y: 22.0, pans: false };
    look.take(&snapshot, Surface::Memory, &hover);
    let drawn = ink(&mut look, Surface::Memory);
    assert!(texts(&drawn).contains(&"Before event 2"), "{:?}", texts(&drawn));
}

#[test]
fn a_block_is_selected_by_click_and_by_keys_and_followed_through_time() {
    let (snapshot, mut look) = looking();
    let _drawn = ink(&mut look, Surface::Blocks);
    look.news(&snapshot);
    let click = |look: &mut Look, x: f32, y: f32| {
        for what in [Pointer::Down, Pointer::Up] {
            look.take(&snapshot, Surface::Blocks, &Input::Pointer { what, x, y, pans: false });
        }
    };
    let outlines = |ink: &[Ink]| {
        let is_outline = |ink: &&Ink| matches!(ink, Ink::Line { tone: Tone::Text, .. });
        ink.iter().filter(is_outline).count()
    };
    click(&mut look, 5.0, 22.0);
    let news = look.news(&snapshot).expect("a block");
    assert!(news.says.starts_with("Block at 0x1000: 1\u{2009}000 B requested"), "{}", news.says);
    assert_eq!(news.chapters.len(), 2, "the block and the moment");
    // (It goes on in the second row.)
    assert_eq!(outlines(&ink(&mut look, Surface::Blocks)), 2);
    // By keys: the next block, no further than the last, and back.
    let press = |look: &mut Look, key| {
        look.take(&snapshot, Surface::Blocks, &Input::Key { key, shift: false });
        look.news(&snapshot).expect("another block").says
    };
    for (key, address) in [
        (Key::NextSame, "0x1400"),
        (Key::NextSame, "0x1400"),
        (Key::PreviousSame, "0x1000"),
        (Key::PreviousSame, "0x1000"),
        (Key::NextSame, "0x1400"),
    ] {
        let said = press(&mut look, key);
        assert!(said.starts_with(&format!("Block at {address}:")), "{key:?}: {said}");
    }
    // The cursor moves to before its allocation, and back.
    let chapters = |look: &mut Look, key| {
        look.take(&snapshot, Surface::Blocks, &Input::Key { key, shift: false });
        look.news(&snapshot).expect("another moment").chapters.len()
    };
    assert_eq!(chapters(&mut look, Key::First), 1, "it is not allocated yet");
    assert_eq!(chapters(&mut look, Key::Forward), 2);
    assert_eq!(chapters(&mut look, Key::Clear), 1);
    // Free memory is no block.
    click(&mut look, 300.0, 94.0);
    assert_eq!(look.news(&snapshot).expect("nothing is selected").chapters.len(), 1);
    assert_eq!(outlines(&ink(&mut look, Surface::Blocks)), 0);
}
