//! The memory of a snapshot over the time of its events, for a picture on the clock of a trace.

use crate::chart::Chart;
use crate::model::{Event, Snapshot};
use crate::run::steps;

/// The memory of all devices over time. Times are ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverTime {
    /// When the first event is, since 1970.
    pub starts_ns: i64,
    /// From there to the last one.
    pub span_ns: i64,
    /// The devices.
    pub devices: Vec<DeviceOverTime>,
    /// The steps of the profiler: their names, and when each begins, from the first event on.
    pub steps: Vec<(String, i64)>,
}

/// The memory of a device over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOverTime {
    /// Its number.
    pub device: i64,
    /// Requested and reserved bytes before the first event.
    pub first: (i64, i64),
    /// When each event is, from the first of all devices on, and requested and reserved bytes after it.
    pub levels: Vec<(i64, i64, i64)>,
}

impl OverTime {
    /// That of the devices whose events have times and fit their segments; `None` where there is none of these.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        // (Levels of a part of a file are those of no run.)
        if snapshot.reading.is_partial() {
            return None;
        }
        let times = || snapshot.traces.iter().flatten().filter_map(Event::time);
        let (first, last) = times().min().zip(times().max())?;
        let after = |us: i64| us.saturating_sub(first).saturating_mul(1_000);
        let device = |device: i64| {
            let chart = Chart::of(snapshot, device).filter(Chart::has_times)?;
            let events = snapshot.trace(device).iter().enumerate();
            let level = |(at, event): (usize, &Event)| {
                let (requested, reserved) = chart.level(at + 1);
                Some((after(event.time()?), requested, reserved))
            };
            let levels = events.filter_map(level).collect();
            Some(DeviceOverTime { device, first: chart.level(0), levels })
        };
        let devices: Vec<_> = (0..snapshot.traces.len() as i64).filter_map(device).collect();
        let steps = steps(snapshot).into_iter().map(|(name, us)| (name, after(us))).collect();
        (!devices.is_empty()).then(|| Self {
            starts_ns: first.saturating_mul(1_000),
            span_ns: after(last),
            devices,
            steps,
        })
    }
}
