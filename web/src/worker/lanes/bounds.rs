//! A range that is chosen by its two ends, without a drag (WCAG 2.2, criterion 2.5.7).

use kinetoscope::report::units;
use kinetoscope::scene::{Ink, Tone};

use super::Look;
use super::draw::text;
use super::layout::MINIMAP;

/// An end that was chosen and waits for the other one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    /// In ns from the first slice.
    at: f64,
    is_end: bool,
}

impl Look {
    /// The range starts here, or ends here. An end beyond the other one starts another range.
    pub(super) fn bound(&mut self, is_end: bool) {
        let at = self.here(is_end);
        let of_range = self.range.map(|(from, to)| if is_end { from } else { to });
        let of_range = of_range.filter(|other| if is_end { *other < at } else { at < *other });
        let of_bound = self.bound.filter(|bound| bound.is_end != is_end).map(|bound| bound.at);
        match of_range.or(of_bound).filter(|other| *other != at) {
            Some(other) => {
                self.range = Some((at.min(other), at.max(other)));
                self.bound = None;
            }
            None => {
                self.range = None;
                self.bound = Some(Bound { at, is_end });
                let after = units::time(at as i64);
                self.says = Some(match is_end {
                    true => format!(
                        "The range ends {after} after the first slice. Press I where it starts."
                    ),
                    false => format!(
                        "The range starts {after} after the first slice. Press O where it ends."
                    ),
                });
            }
        }
        self.is_news = true;
    }

    /// The start or the end of the selected slice, else the moment that was clicked, else the middle of what is shown.
    fn here(&self, is_end: bool) -> f64 {
        let times = self.selected.and_then(|spot| self.lanes.times(spot));
        let of_slice = times.map(|(start, end)| if is_end { end as f64 } else { start as f64 });
        let (from, to) = self.shown();
        of_slice.or(self.clicked).unwrap_or(f64::midpoint(from, to)).round()
    }

    /// The moment that was clicked, and the end that waits.
    pub(super) fn draw_bounds(&self, ink: &mut Vec<Ink>) {
        let clicked = self.clicked.filter(|_| self.selected.is_none()).map(|at| (at, 1.0, ""));
        let label = |bound: Bound| if bound.is_end { "Range ends" } else { "Range starts" };
        let bound = self.bound.map(|bound| (bound.at, 2.0, label(bound)));
        for (at, width, label) in clicked.into_iter().chain(bound) {
            let (x, y) = (self.x_of(at), MINIMAP);
            if !(0.0..=self.width).contains(&x) {
                continue;
            }
            ink.push(Ink::Box { x, y, width, height: self.height - y, tone: Tone::Accent });
            if !label.is_empty() {
                ink.push(text(x + 4.0, self.ceiling() + 14.0, label.to_owned(), Tone::Text));
            }
        }
    }
}
