//! The part of an axis that is shown.

use report::units::between;

/// A part of an axis, in units of the axis. It never leaves the whole axis and never is narrower than [`Window::LEAST`] units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    whole: (f64, f64),
    from: f64,
    to: f64,
}

impl Window {
    /// The least width, in units.
    pub const LEAST: f64 = 8.0;

    /// All of an axis.
    #[must_use]
    pub fn of(from: f64, to: f64) -> Self {
        let to = to.max(from + 1.0);
        Self { whole: (from, to), from, to }
    }

    /// The axis: where it begins and ends.
    #[must_use]
    pub fn whole(&self) -> (f64, f64) {
        self.whole
    }

    /// The axis is another one from now on. What is shown stays, as far as that axis has it; a window that showed everything still does.
    pub fn set_whole(&mut self, from: f64, to: f64) {
        let was_whole = self.is_whole();
        self.whole = (from, to.max(from + 1.0));
        if was_whole {
            self.show_all();
        } else {
            self.show(self.from, self.to);
        }
    }

    /// The left edge.
    #[must_use]
    pub fn from(&self) -> f64 {
        self.from
    }

    /// The right edge.
    #[must_use]
    pub fn to(&self) -> f64 {
        self.to
    }

    /// Units that are shown.
    #[must_use]
    pub fn span(&self) -> f64 {
        self.to - self.from
    }

    /// Whether all of the axis is shown.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        (self.from, self.to) == self.whole
    }

    /// The unit at a share of the width.
    #[must_use]
    pub fn at(&self, share: f64) -> f64 {
        self.from + self.span() * share
    }

    /// The share of the width at which a unit lies; outside of 0 to 1 where it is not shown.
    #[must_use]
    pub fn share(&self, unit: f64) -> f64 {
        (unit - self.from) / self.span()
    }

    /// Shows a part, as far as the axis has it.
    pub fn show(&mut self, from: f64, to: f64) {
        let whole = self.whole.1 - self.whole.0;
        let span = between(to - from, Self::LEAST.min(whole), whole);
        let middle = f64::midpoint(from, to);
        let from = between(middle - span / 2.0, self.whole.0, self.whole.1 - span);
        (self.from, self.to) = (from, from + span);
        if span >= whole {
            (self.from, self.to) = self.whole;
        }
    }

    /// Shows `factor` times as many units; the one at a share of the width stays where it is.
    pub fn zoom(&mut self, factor: f64, share: f64) {
        let whole = self.whole.1 - self.whole.0;
        let span = between(self.span() * factor, Self::LEAST.min(whole), whole);
        let from = self.at(share) - span * share;
        self.show(from, from + span);
    }

    /// Moves by a share of the width; to the right where it is positive.
    pub fn pan(&mut self, share: f64) {
        let by = self.span() * share;
        self.show(self.from + by, self.to + by);
    }

    /// Moves as little as shows a unit.
    pub fn reveal(&mut self, unit: f64) {
        let span = self.span();
        if unit < self.from {
            self.show(unit, unit + span);
        } else if unit > self.to {
            self.show(unit - span, unit);
        }
    }

    /// Shows everything.
    pub fn show_all(&mut self) {
        (self.from, self.to) = self.whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zooming_keeps_the_unit_below_the_pointer() {
        let mut window = Window::of(0.0, 1000.0);
        window.zoom(0.5, 0.25);
        assert_eq!((window.from(), window.to()), (125.0, 625.0));
        assert_eq!(window.at(0.25), 250.0);
        window.zoom(2.0, 0.25);
        assert!(window.is_whole());
    }

    #[test]
    fn the_window_stays_on_the_axis() {
        let mut window = Window::of(0.0, 1000.0);
        window.zoom(0.1, 0.0);
        window.pan(-3.0);
        assert_eq!((window.from(), window.to()), (0.0, 100.0));
        window.pan(100.0);
        assert_eq!((window.from(), window.to()), (900.0, 1000.0));
        window.zoom(1e-9, 0.5);
        assert_eq!(window.span(), Window::LEAST);
        window.reveal(10.0);
        assert_eq!(window.from(), 10.0);
        window.reveal(500.0);
        assert_eq!(window.to(), 500.0);
        window.zoom(1e9, 0.5);
        assert!(window.is_whole());
    }

    #[test]
    fn another_axis_keeps_what_is_shown() {
        let mut window = Window::of(0.0, 1000.0);
        window.set_whole(-500.0, 2000.0);
        assert!(window.is_whole());
        window.show(100.0, 200.0);
        window.set_whole(0.0, 1000.0);
        assert_eq!((window.from(), window.to()), (100.0, 200.0));
        window.set_whole(150.0, 1000.0);
        assert_eq!((window.from(), window.to()), (150.0, 250.0), "as far as there is an axis");
    }

    #[test]
    fn a_short_axis_is_shown_whole() {
        let mut window = Window::of(0.0, 3.0);
        window.zoom(0.01, 0.5);
        assert!(window.is_whole());
    }
}
