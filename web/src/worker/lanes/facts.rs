//! What the page hears of a file whose lanes are drawn: how much there is, and where it is on a clock.

use kinetoscope::lanes::{Alone, Kind, Lane};
use kinetoscope::report::units;
use kinetoscope::scene::Window;
use kinetoscope::since_1970;
use kinetoscope::trace::Trace;

use super::Look;
use crate::protocol::LanesFacts;

/// Steps that other files are aligned by: the first that two files have in common is one of these, or there is none.
const MOST_STEPS: usize = 64;

impl Look {
    /// Looks at memory without a trace.
    pub(in super::super) fn alone(of: Alone) -> (Self, LanesFacts) {
        let Alone { starts_ns, span_ns, memory, steps } = of;
        let mut look = Self::new(Trace::default());
        look.lanes.span_ns = span_ns;
        look.lanes.add_memory(&memory);
        look.window = Window::of(0.0, span_ns as f64);
        look.lay_out();
        let says = String::new();
        (look, LanesFacts { says, starts_ns: Some(starts_ns), span_ns, steps })
    }

    /// What there is, and what is not drawn.
    pub(in super::super) fn facts(&self) -> LanesFacts {
        let slices = units::plural(self.lanes.n_slices() as u64, "slice", "slices");
        let tracks = units::plural(self.lanes.tracks.len() as u64, "track", "tracks");
        let mut says = format!("{slices} in {tracks}.");
        if self.lanes.n_other > 0 {
            let events = units::plural(self.lanes.n_other as u64, "event", "events");
            says += &format!(
                " {events} without a duration or a value (arrows, instants) are not drawn."
            );
        }
        let n_deep: usize = self.lanes.tracks.iter().map(|track| track.n_deep).sum();
        if n_deep > 0 {
            let slices = units::plural(n_deep as u64, "slice", "slices");
            says += &format!(" {slices} below 512 others are not drawn.");
        }
        let first = self.lanes.origin_ns;
        let starts_ns = since_1970(&self.trace, first).and_then(|since| since.checked_add(first));
        let (span_ns, steps) = (self.lanes.span_ns, self.first_steps());
        LanesFacts { says, starts_ns, span_ns, steps }
    }

    /// The first steps by name, with their starts in ns from the first slice.
    pub(super) fn first_steps(&self) -> Vec<(String, i64)> {
        let tracks = self.lanes.tracks.iter().filter(|track| track.kind == Kind::Steps);
        let lanes = tracks.filter_map(|track| track.lanes.first());
        let slices = lanes.flat_map(|lane| (0..lane.len()).map(move |at| (lane, at)));
        let step = |(lane, at): (&Lane, usize)| {
            let name = self.trace.strings.get(self.trace.name(lane.row(at)));
            (name.to_owned(), lane.times(at).0)
        };
        slices.take(MOST_STEPS).map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::look_at;

    #[test]
    fn a_file_tells_where_its_steps_begin() {
        let look = look_at(
            r#"{"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":10,"dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":4,"dur":1},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":1,"tid":1,"ts":20,"dur":5}]}"#,
        );
        let steps = [("ProfilerStep#3".to_owned(), 6_000), ("ProfilerStep#4".to_owned(), 16_000)];
        assert_eq!(look.first_steps(), steps);
    }
}
