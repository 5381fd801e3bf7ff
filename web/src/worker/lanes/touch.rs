//! Fingers: one moves the picture, two zoom it about the point between them.

use kinetoscope::scene::{Pointer, Window};

use super::Look;

/// px between two fingers that count at least: closer ones would zoom without bound.
const LEAST_APART: f32 = 24.0;

/// The fingers on the picture.
#[derive(Debug, Default)]
pub(super) struct Fingers {
    down: Vec<(i32, (f32, f32))>,
    pinch: Option<Pinch>,
}

/// What was shown when the second finger went down.
#[derive(Clone, Copy, Debug)]
struct Pinch {
    middle: (f32, f32),
    apart: f32,
    window: Window,
    top: f32,
}

impl Fingers {
    /// The middle of the first two, and how far apart they are.
    fn pair(&self) -> Option<((f32, f32), f32)> {
        let [(_, a), (_, b), ..] = self.down[..] else { return None };
        let middle = (f32::midpoint(a.0, b.0), f32::midpoint(a.1, b.1));
        Some((middle, (a.0 - b.0).hypot(a.1 - b.1).max(LEAST_APART)))
    }
}

impl Look {
    /// A finger did something.
    pub(super) fn touch(&mut self, id: i32, what: Pointer, at: (f32, f32)) {
        let known = self.fingers.down.iter().position(|(of, _)| *of == id);
        match (what, known) {
            (Pointer::Down, _) => {
                self.fingers.down.retain(|(of, _)| *of != id);
                self.fingers.down.push((id, at));
                match self.fingers.pair() {
                    None => self.point(Pointer::Down, at, true),
                    Some((middle, apart)) => {
                        self.drag = None;
                        let (window, top) = (self.window, self.top);
                        self.fingers.pinch = Some(Pinch { middle, apart, window, top });
                    }
                }
            }
            (Pointer::Drag | Pointer::Hover, Some(place)) => {
                self.fingers.down[place].1 = at;
                match self.fingers.pinch {
                    Some(pinch) => self.pinched(pinch),
                    None => self.point(Pointer::Drag, at, true),
                }
            }
            (Pointer::Up | Pointer::Leave, Some(place)) => {
                self.fingers.down.remove(place);
                let was_pinch = self.fingers.pinch.take().is_some();
                match (self.fingers.pair(), self.fingers.down.first()) {
                    (Some((middle, apart)), _) => {
                        let (window, top) = (self.window, self.top);
                        self.fingers.pinch = Some(Pinch { middle, apart, window, top });
                    }
                    (None, Some((_, left))) => self.go_on(*left),
                    // (What the browser takes over was no click.)
                    (None, None) if was_pinch || what == Pointer::Leave => self.drag = None,
                    (None, None) => self.point(Pointer::Up, at, true),
                }
            }
            (Pointer::Double, _) => self.point(what, at, true),
            _ => {}
        }
        // (A finger that is lifted points at nothing.)
        self.pointer = None;
    }

    fn pinched(&mut self, pinch: Pinch) {
        let Some((middle, apart)) = self.fingers.pair() else { return };
        let share = |x: f32| f64::from(x) / f64::from(self.width.max(1.0));
        let held = pinch.window.at(share(pinch.middle.0));
        let span = pinch.window.span() * f64::from(pinch.apart / apart);
        let from = held - span * share(middle.0);
        self.window.show(from, from + span);
        self.top = pinch.top;
        self.scroll(pinch.middle.1 - middle.1);
    }
}

#[cfg(test)]
mod tests {
    use kinetoscope::scene::Input;

    use super::super::tests::look;
    use super::*;
    use crate::protocol::Surface;

    fn finger(look: &mut Look, id: i32, what: Pointer, x: f32) {
        look.take(Surface::Over, &Input::Finger { id, what, x, y: 80.0 });
    }

    /// In whole ns: px are short floats.
    fn shown(look: &Look) -> (f64, f64) {
        (look.window.from().round(), look.window.to().round())
    }

    /// All of the trace are 100 us in 1,000 px.
    #[test]
    fn a_pinch_keeps_the_time_between_the_fingers() {
        let mut look = look();
        finger(&mut look, 1, Pointer::Down, 400.0);
        finger(&mut look, 2, Pointer::Down, 600.0);
        finger(&mut look, 1, Pointer::Drag, 300.0);
        finger(&mut look, 2, Pointer::Drag, 700.0);
        assert_eq!(shown(&look), (25_000.0, 75_000.0));
        // Both go on together: the picture follows.
        finger(&mut look, 1, Pointer::Drag, 400.0);
        finger(&mut look, 2, Pointer::Drag, 800.0);
        assert_eq!(shown(&look), (20_000.0, 70_000.0));
        // One is lifted: the other one pans, and is no click when it goes.
        finger(&mut look, 2, Pointer::Up, 800.0);
        finger(&mut look, 1, Pointer::Drag, 500.0);
        assert_eq!(shown(&look), (15_000.0, 65_000.0));
        finger(&mut look, 1, Pointer::Up, 500.0);
        assert!(look.selected.is_none() && look.range.is_none() && look.pointer.is_none());
    }

    #[test]
    fn a_tap_selects_and_what_the_browser_takes_over_does_not() {
        let mut look = look();
        finger(&mut look, 7, Pointer::Down, 700.0);
        finger(&mut look, 7, Pointer::Leave, 700.0);
        assert!(look.selected.is_none());
        finger(&mut look, 7, Pointer::Down, 700.0);
        finger(&mut look, 7, Pointer::Up, 700.0);
        assert!(look.selected.is_some());
        // Fingers on the same spot do not zoom without bound, and one that is unknown does nothing.
        finger(&mut look, 1, Pointer::Down, 500.0);
        finger(&mut look, 2, Pointer::Down, 500.0);
        finger(&mut look, 3, Pointer::Drag, 900.0);
        finger(&mut look, 2, Pointer::Drag, 501.0);
        assert!(look.window.is_whole());
    }
}
