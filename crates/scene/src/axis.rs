//! Ticks of an axis.

use report::units;

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things: events, slices.
    Count,
    /// ns.
    Time,
    /// Bytes.
    Bytes,
}

/// A tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where it is, in units of the axis.
    pub at: f64,
    /// What it says.
    pub label: String,
}

/// Ticks at round numbers between two units, at most `most` of them.
///
/// Steps are 1, 2 or 5 times a power of ten; of bytes, powers of two.
#[must_use]
pub fn ticks(from: f64, to: f64, most: usize, unit: Unit) -> Vec<Tick> {
    let span = to - from;
    if most == 0 || span <= 0.0 || !span.is_finite() {
        return Vec::new();
    }
    let least = (span / most as f64).max(1.0);
    let step = match unit {
        Unit::Bytes => 2_f64.powi(least.log2().ceil() as i32),
        Unit::Count | Unit::Time => {
            let power = 10_f64.powi(least.log10().floor() as i32);
            let factors = [1.0, 2.0, 5.0, 10.0];
            let factor = factors.into_iter().find(|factor| power * factor >= least);
            power * factor.unwrap_or(10.0)
        }
    };
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    let tick = |n: i64| {
        let at = n as f64 * step;
        let label = match unit {
            Unit::Count => units::count(at.max(0.0) as u64),
            Unit::Time => units::time(at as i64),
            Unit::Bytes => units::bytes(at.max(0.0) as u64),
        };
        Tick { at, label }
    };
    let mut found: Vec<Tick> = (first..=last).map(tick).collect();
    if unit == Unit::Time && found.windows(2).any(|pair| pair[0].label == pair[1].label) {
        found.iter_mut().for_each(|tick| tick.label = precise(tick.at, to.max(-from), step));
    }
    found
}

/// A time with as many digits as tell it from the next tick, in the unit of the largest one.
fn precise(at_ns: f64, largest_ns: f64, step_ns: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    let unit = UNITS.into_iter().find(|(ns, _)| largest_ns >= *ns).unwrap_or((1.0, "ns"));
    let digits = (unit.0 / step_ns).log10().ceil().max(0.0) as usize;
    format!("{:.digits$} {}", at_ns / unit.0, unit.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: f64, to: f64, most: usize, unit: Unit) -> Vec<String> {
        ticks(from, to, most, unit).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(0.0, 1000.0, 5, Unit::Count),
            ["0", "200", "400", "600", "800", "1\u{2009}000"]
        );
        assert_eq!(labels(3.0, 11.0, 4, Unit::Count), ["4", "6", "8", "10"]);
        assert_eq!(labels(0.0, 3.0e9, 4, Unit::Time), ["0 ns", "1.00 s", "2.00 s", "3.00 s"]);
        let gib = f64::from(1 << 30);
        assert_eq!(
            labels(0.0, 3.5 * gib, 4, Unit::Bytes),
            ["0 B", "1.00 GiB", "2.00 GiB", "3.00 GiB"]
        );
    }

    #[test]
    fn ticks_far_from_the_start_are_told_apart() {
        assert_eq!(
            labels(30_812_000.0, 30_842_000.0, 3, Unit::Time),
            ["30.82 ms", "30.83 ms", "30.84 ms"]
        );
        assert_eq!(labels(1_000_000_002.0, 1_000_000_006.0, 2, Unit::Time).len(), 3);
    }

    #[test]
    fn ticks_before_the_start_are_told_apart() {
        assert_eq!(
            labels(-30_842_000.0, -30_812_000.0, 3, Unit::Time),
            ["-30.84 ms", "-30.83 ms", "-30.82 ms"]
        );
    }

    #[test]
    fn an_empty_axis_has_none() {
        assert!(ticks(5.0, 5.0, 4, Unit::Count).is_empty());
        assert!(ticks(0.0, 5.0, 0, Unit::Count).is_empty());
        assert!(ticks(0.0, f64::INFINITY, 3, Unit::Time).is_empty());
    }
}
