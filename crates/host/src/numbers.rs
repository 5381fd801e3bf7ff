//! Statistics of durations, as the reference figures define them.

use serde::Serialize;

/// Rounds to three decimals.
#[must_use]
pub fn milli(value: f64) -> f64 {
    (value * 1e3).round_ties_even() / 1e3
}

/// Rounds to six decimals.
#[must_use]
pub(crate) fn micro(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

/// `part` of `whole`, to six decimals; `None` of nothing.
#[must_use]
pub fn share(part: i64, whole: i64) -> Option<f64> {
    (whole != 0).then(|| micro(part as f64 / whole as f64))
}

/// A whole or half number of nanoseconds: what the median of whole numbers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HalfNs(pub i128);

impl HalfNs {
    /// In ns.
    #[must_use]
    pub fn ns(self) -> f64 {
        self.0 as f64 / 2.0
    }
}

impl Serialize for HalfNs {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0 % 2 == 0 {
            to.serialize_i64(i64::try_from(self.0 / 2).unwrap_or(i64::MAX))
        } else {
            to.serialize_f64(self.ns())
        }
    }
}

/// The median of ascending values, exact.
#[must_use]
pub fn median(sorted: &[i64]) -> Option<HalfNs> {
    let low = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let high = sorted.get(sorted.len() / 2)?;
    Some(HalfNs(i128::from(*low) + i128::from(*high)))
}

/// The value of rank `ceil(percent * n / 100)` of ascending values (nearest rank).
#[must_use]
pub(crate) fn nearest_rank(sorted: &[i64], percent: usize) -> Option<i64> {
    let rank = (percent * sorted.len()).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

fn sum(values: &[i64]) -> i128 {
    values.iter().map(|value| i128::from(*value)).sum()
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Durations of steps. Percentiles are nearest ranks; `*_lin` interpolates between the closest ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Number of values; everything else is missing where it is 0.
    pub n: usize,
    /// The figures.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
}

/// Figures of at least one duration, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names are the meaning; `Stats` has the rules")]
pub struct Figures {
    pub sum_ns: i64,
    pub min_ns: i64,
    pub max_ns: i64,
    pub mean_ns: f64,
    pub std_pop_ns: f64,
    pub std_sample_ns: Option<f64>,
    pub p50_ns: i64,
    pub p90_ns: i64,
    pub p95_ns: i64,
    pub p99_ns: i64,
    pub p50_lin_ns: f64,
    pub p90_lin_ns: f64,
    pub p95_lin_ns: f64,
    pub p99_lin_ns: f64,
}

impl Stats {
    /// The figures of some durations in ns.
    #[must_use]
    pub fn of(mut values: Vec<i64>) -> Self {
        trace::sort(&mut values);
        Self { n: values.len(), figures: Figures::of(&values) }
    }
}

impl Figures {
    fn of(sorted: &[i64]) -> Option<Self> {
        let n = sorted.len() as f64;
        let mean = sum(sorted) as f64 / n;
        let squares: f64 = sorted.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
        let linear = |percent: f64| {
            let place = (n - 1.0) * percent / 100.0;
            let low = *sorted.get(place.floor() as usize)?;
            let high = *sorted.get(place.floor() as usize + 1).or(sorted.last())?;
            Some(milli(low as f64 + (high - low) as f64 * (place - place.floor())))
        };
        Some(Self {
            sum_ns: clamp(sum(sorted)),
            min_ns: *sorted.first()?,
            max_ns: *sorted.last()?,
            mean_ns: milli(mean),
            std_pop_ns: milli((squares / n).sqrt()),
            std_sample_ns: (sorted.len() > 1).then(|| milli((squares / (n - 1.0)).sqrt())),
            p50_ns: nearest_rank(sorted, 50)?,
            p90_ns: nearest_rank(sorted, 90)?,
            p95_ns: nearest_rank(sorted, 95)?,
            p99_ns: nearest_rank(sorted, 99)?,
            p50_lin_ns: linear(50.0)?,
            p90_lin_ns: linear(90.0)?,
            p95_lin_ns: linear(95.0)?,
            p99_lin_ns: linear(99.0)?,
        })
    }
}

/// Delays between the end of a launching call and the start of its GPU slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Delays {
    /// Number of values.
    pub n: usize,
    /// The figures, where there is a value.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub figures: Option<DelayFigures>,
    /// Slices that started before their call did: only clocks that disagree can do that.
    pub before_launch_start: u64,
    /// Copies that started before their call ended: normal of blocking copies.
    pub neg_memcpy: u64,
}

/// Figures of at least one delay, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DelayFigures {
    /// The lower of the two values in the middle.
    pub median_low_ns: i64,
    /// The mean of the two values in the middle.
    pub median_ns: HalfNs,
    /// Sum.
    pub sum_ns: i64,
    /// Mean, to three decimals.
    pub mean_ns: f64,
    /// Least.
    pub min_ns: i64,
    /// Greatest.
    pub max_ns: i64,
    /// Nearest rank.
    pub p90_ns: i64,
    /// Values below 0.
    pub neg: u64,
    /// Their share of all.
    pub neg_share: f64,
}

impl DelayFigures {
    /// The figures of some delays in ns.
    #[must_use]
    pub fn of(mut values: Vec<i64>) -> Option<Self> {
        trace::sort(&mut values);
        let n = values.len();
        let neg = values.partition_point(|value| *value < 0);
        Some(Self {
            median_low_ns: *values.get(n.checked_sub(1)? / 2)?,
            median_ns: median(&values)?,
            sum_ns: clamp(sum(&values)),
            mean_ns: milli(sum(&values) as f64 / n as f64),
            min_ns: *values.first()?,
            max_ns: *values.last()?,
            p90_ns: nearest_rank(&values, 90)?,
            neg: neg as u64,
            neg_share: micro(neg as f64 / n as f64),
        })
    }
}
