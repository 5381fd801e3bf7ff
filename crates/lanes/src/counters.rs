//! Counters of a trace as tracks.

use trace::{Row, StringId, StringTable, Trace, sort_numbers};

use crate::build::{Kind, Lanes};
use crate::levels::Levels;
use crate::series::Series;

impl Lanes {
    /// Adds the counters of a trace as tracks, behind all others. `samples` are the event, the key of the value among `texts`, and the
    /// value, in the order of the file.
    #[inline(never)]
    pub fn add_counters(
        &mut self,
        trace: &Trace,
        texts: &StringTable,
        samples: &[(Row, StringId, f64)],
    ) {
        let process = |row: Row| trace.track_info(trace.track(row)).process.0;
        // The process of a counter, its name, and the key of its value.
        let key = |at: u32| {
            let (row, series, _) = samples[at as usize];
            (process(row), trace.name(row), series)
        };
        // (Of several values at one moment the last of the file holds.)
        let mut order: Vec<u32> = (0..samples.len() as u32).collect();
        let at_ns = |at: u32| trace.ts_ns(samples[at as usize].0);
        sort_numbers(&mut order, &|a, b| (key(a), at_ns(a), a).cmp(&(key(b), at_ns(b), b)));
        let is_one = samples.iter().all(|(row, ..)| process(*row) == process(samples[0].0));
        let mut found: Vec<Levels> = Vec::new();
        for own in order.chunk_by(|a, b| key(*a) == key(*b)) {
            let (process, name, series) = key(own[0]);
            let (name, series) = (trace.strings.get(name), texts.get(series));
            let mut label = name.to_owned();
            if series != name && !series.is_empty() && series != "value" {
                label += ": ";
                label += series;
            }
            if !is_one {
                label += ", process ";
                label += &trace.processes[process as usize].pid.display(&trace.strings);
            }
            let times = own.iter().map(|at| at_ns(*at).saturating_sub(self.origin_ns)).collect();
            let values = own.iter().map(|at| samples[*at as usize].2).collect();
            found.push(Levels::counter(label, Series::new(None, times, values)));
        }
        let mut last = None;
        for (row, ..) in samples {
            self.n_other -= usize::from(self.n_other > 0 && last != Some(*row));
            last = Some(*row);
        }
        self.add_levels(Kind::Counter, found);
    }
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, slice};
    use trace::Phase;

    use super::*;
    use crate::lanes_of;

    #[test]
    fn a_counter_is_a_track_for_each_key_of_its_process() {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "op").on(1, 1).at(1_000, 50));
        for (at, pid) in [(1_010, "1"), (1_005, "1"), (1_020, "2")] {
            fixture.push(slice("", "memory").in_process(pid).at(at, 0).arrow(Phase::Counter));
        }
        let trace = fixture.finish();
        let mut texts = StringTable::default();
        let (used, value) = (texts.intern("used"), texts.intern("value"));
        let samples = [(1, used, 7.0), (1, value, 3.0), (2, used, 5.0), (3, used, 9.0)];
        let (mut lanes, _) = lanes_of(&trace);
        let n = lanes.tracks.len();
        lanes.add_counters(&trace, &texts, &samples);
        let tracks: Vec<_> = lanes.tracks[n..]
            .iter()
            .map(|track| {
                let series = track.levels.as_ref().unwrap().series();
                let values: Vec<_> = (0..series.len()).filter_map(|at| series.value(at)).collect();
                (track.label.as_str(), values)
            })
            .collect();
        assert_eq!(
            tracks,
            [
                ("memory: used, process 1", vec![(5, 5.0), (10, 7.0)]),
                ("memory, process 1", vec![(10, 3.0)]),
                ("memory: used, process 2", vec![(20, 9.0)]),
            ]
        );
        lanes.add_counters(&trace, &texts, &[]);
        assert_eq!(lanes.tracks.len(), n);
    }
}
