//! Pictures of several files on one axis: each draws its own lanes, and all show the same time.

use kinetoscope::report::Section;
use kinetoscope::scene::{Ink, SharedAxis, Shown, Tone};

use super::Look;
use super::layout::MINIMAP;

/// What a picture has in common with those of other files.
#[derive(Debug, Default)]
pub(super) struct Joined {
    axis: Option<SharedAxis>,
    /// What the others know of it.
    told: Option<Shown>,
    /// Where the pointer is in another picture.
    pointer: Option<f64>,
    /// The range that the page was told of last.
    range: Option<(f64, f64)>,
}

impl Look {
    /// The axis is that of several files from now on, or its own again.
    pub(super) fn take_axis(&mut self, axis: Option<&SharedAxis>) {
        let own = (0.0, self.lanes.span_ns as f64);
        let (from, to) = axis.map_or(own, |axis| (axis.from as f64, axis.to as f64));
        self.window.set_whole(from, to);
        // (All but one say nothing before that one has said what it shows.)
        let told = axis.is_some_and(|axis| axis.nth > 0).then(|| self.what_is_shown());
        self.joined = Joined { axis: axis.cloned(), told, range: self.range, pointer: None };
        self.is_dirty = true;
        self.is_news |= self.selected.is_some() || self.range.is_some();
    }

    /// Another picture shows this: so does this one.
    pub(super) fn follow(&mut self, shown: &Shown) {
        let before = self.window;
        self.window.show(shown.window.0, shown.window.1);
        self.is_dirty |= self.window != before;
        self.joined.pointer = shown.pointer;
        if self.range != shown.range {
            (self.range, self.bound) = (shown.range, None);
        }
        // (The figures of a range that is still dragged are of no use.)
        if !shown.is_held && self.joined.range != self.range {
            self.joined.range = self.range;
            self.is_news = true;
        }
        self.joined.told = Some(self.what_is_shown());
    }

    /// What the other pictures are to show, if it is news.
    pub(in super::super) fn news_for_others(&mut self) -> Option<Shown> {
        self.joined.axis.as_ref()?;
        let shown = self.what_is_shown();
        if !shown.is_held {
            self.joined.range = self.range;
        }
        (self.joined.told.replace(shown) != Some(shown)).then_some(shown)
    }

    fn what_is_shown(&self) -> Shown {
        let pointer = self.pointer.map(|(x, _)| self.ns_at(x));
        let is_held = self.drag.is_some_and(|drag| drag.selects());
        Shown { window: self.shown(), pointer, range: self.range, is_held }
    }

    /// What is added to a time for the labels of the axis.
    pub(super) fn offset_ns(&self) -> i64 {
        self.joined.axis.as_ref().map_or(0, |axis| axis.offset)
    }

    /// A label with the file that it is of, where several are shown.
    pub(super) fn of_file(&self, label: &str) -> String {
        match &self.joined.axis {
            Some(axis) => format!("{}: {label}", axis.name),
            None => label.to_owned(),
        }
    }

    /// Makes a section one of the file, where several are shown: titles name it, and no two tables have one id.
    pub(super) fn mark_as_own(&self, section: &mut Section) {
        let Some(axis) = &self.joined.axis else { return };
        for table in &mut section.tables {
            table.title = self.of_file(&table.title).into();
            if axis.nth > 0 {
                table.id = format!("{}-{}", table.id, axis.nth).into();
            }
        }
        if !section.title.is_empty() {
            section.title = self.of_file(&section.title).into();
        }
    }

    /// Where the pointer is in another picture.
    pub(super) fn draw_pointer_of_others(&self, ink: &mut Vec<Ink>) {
        let x = self.joined.pointer.map(|ns| self.x_of(ns));
        if let Some(x) = x.filter(|x| (0.0..=self.width).contains(x)) {
            let (y, height) = (MINIMAP, self.height - MINIMAP);
            ink.push(Ink::Box { x, y, width: 1.0, height, tone: Tone::Strong });
        }
    }
}

#[cfg(test)]
mod tests {
    use kinetoscope::lanes::{Alone, RecordedLevels};
    use kinetoscope::scene::{Input, Key, Pointer};

    use super::super::tests::{height_of, look, point, press, texts};
    use super::*;
    use crate::protocol::Surface;

    /// All of a picture are 100 us; the axis has 100 us more on each side.
    fn axis(nth: u32) -> Input {
        let (from, to, offset) = (-100_000, 200_000, 5_000);
        Input::Axis(Some(SharedAxis { from, to, offset, name: "rank1".to_owned(), nth }))
    }

    fn pair() -> (Look, Look) {
        let (mut first, mut second) = (look(), look());
        first.take(Surface::Over, &axis(0));
        second.take(Surface::Over, &axis(1));
        (first, second)
    }

    /// Passes on what one shows; whether there was something.
    fn pass(from: &mut Look, to: &mut Look) -> bool {
        let shown = from.news_for_others();
        if let Some(shown) = shown {
            to.take(Surface::Over, &Input::Shown(shown));
        }
        shown.is_some()
    }

    #[test]
    fn the_others_show_the_same_time_and_say_nothing_back() {
        let (mut first, mut second) = pair();
        assert!(!pass(&mut second, &mut first), "the first one leads");
        assert!(pass(&mut first, &mut second));
        press(&mut first, Key::ZoomIn);
        assert!(pass(&mut first, &mut second));
        assert_eq!(second.window, first.window);
        assert!(!pass(&mut second, &mut first), "it shows what it was told");
        press(&mut second, Key::PanLeft);
        assert!(pass(&mut second, &mut first));
        assert_eq!(second.window, first.window);
    }

    #[test]
    fn a_range_is_one_of_all_files_and_has_figures_once_it_is_let_go() {
        let (mut first, mut second) = pair();
        let y = height_of(&first, 0, 0);
        point(&mut first, Pointer::Down, 400.0, y);
        point(&mut first, Pointer::Drag, 500.0, y);
        assert!(pass(&mut first, &mut second));
        assert_eq!(second.range, first.range);
        assert!(second.news().is_none(), "it is still dragged");
        point(&mut first, Pointer::Up, 500.0, y);
        assert!(pass(&mut first, &mut second));
        assert!(second.news().is_some_and(|looked| looked.says.starts_with("rank1: ")));
        press(&mut first, Key::Clear);
        pass(&mut first, &mut second);
        assert!(second.range.is_none());
    }

    #[test]
    fn the_pointer_is_seen_in_the_others_without_drawing_their_lanes() {
        let (mut first, mut second) = pair();
        pass(&mut first, &mut second);
        second.paint();
        point(&mut first, Pointer::Hover, 500.0, 200.0);
        pass(&mut first, &mut second);
        let painted = second.paint();
        assert!(painted.iter().all(|(surface, _)| *surface == Surface::Over));
        let is_line =
            |ink: &Ink| matches!(ink, Ink::Box { x, width, .. } if (*x, *width) == (500.0, 1.0));
        assert!(painted[0].1.iter().any(is_line));
    }

    #[test]
    fn labels_name_the_file_and_count_on_the_clock_of_the_first_one() {
        let (_, mut second) = pair();
        let ink = second.paint().remove(0).1;
        let said = texts(&ink);
        assert!(said.contains(&"▾ rank1: GPU 0, stream 7"), "{said:?}");
        assert!(said.contains(&"-50.0 µs"), "{said:?}");
        second.take(Surface::Over, &Input::Axis(None));
        assert_eq!(second.shown(), (0.0, 100_000.0));
        assert!(texts(&second.paint().remove(0).1).contains(&"▾ GPU 0, stream 7"));
    }

    #[test]
    fn memory_is_drawn_where_the_file_records_it_and_not_beside() {
        let memory = vec![RecordedLevels::new("Memory".to_owned(), (8, 8), &[(50_000, 4, 8)])];
        let of = Alone { starts_ns: 7, span_ns: 100_000, memory, steps: Vec::new() };
        let (mut look, facts) = Look::alone(of);
        assert_eq!((facts.starts_ns, facts.span_ns), (Some(7), 100_000));
        look.take(Surface::Over, &Input::Size { width: 300.0, height: 400.0, scale: 1.0 });
        look.take(Surface::Over, &axis(1));
        let bars = look.paint().remove(0).1.into_iter().find_map(|ink| match ink {
            Ink::Bars { bars, y, .. } if y > MINIMAP => Some(bars),
            _ => None,
        });
        let shares: Vec<_> = bars.iter().flatten().map(|bar| bar.map(|bar| bar.share)).collect();
        // The axis is three times as long as what is recorded, which is in its middle.
        let at = |x: usize| shares[x];
        assert_eq!((at(50), at(120), at(180), at(250)), (None, Some(1.0), Some(0.5), None));
    }
}
