//! Which calls of ops set something up: they take far longer than the others of their name.

use timeline::intervals::Interval;
use trace::StringId;

use super::LONG_NS;

/// A call of an op is a set-up if it takes [`LONG_NS`] or more, and this many times the mean of the others.
const FIRST_CALL: i64 = 10;
/// Of fewer calls the mean says nothing.
const FEWEST_CALLS: i64 = 3;

/// What ops set up that take [`FIRST_CALL`] times as long as the others of their name and in which code is loaded: up to the end of that,
/// a library chooses its kernel.
#[inline(never)]
pub(super) fn loads_first(
    calls: &[Calls],
    slow: &[(StringId, Interval)],
    mut lazy: Vec<Interval>,
) -> Vec<Interval> {
    if lazy.is_empty() {
        return Vec::new();
    }
    trace::sort(&mut lazy);
    // By name: the slow ones, and their time.
    let mut of_name = vec![(0_i64, 0_i64); calls.len()];
    for (name, (from, to)) in slow {
        let sum = &mut of_name[name.0 as usize];
        *sum = (sum.0 + 1, sum.1.saturating_add(to.saturating_sub(*from)));
    }
    let of = |(name, times): &(StringId, Interval)| {
        let all = calls.get(name.0 as usize)?;
        let (n_slow, slow_ns) = of_name[name.0 as usize];
        let (n, rest_ns) = (all.n - n_slow, all.total_ns.saturating_sub(slow_ns));
        let dur_ns = times.1.saturating_sub(times.0);
        // (Where all calls are slow, or there are few others, nothing shows what a call takes without.)
        if n < FEWEST_CALLS || dur_ns.saturating_mul(n) < rest_ns.saturating_mul(FIRST_CALL) {
            return None;
        }
        let first = lazy.partition_point(|(from, _)| *from < times.0);
        let inside = lazy[first..].iter().take_while(|(from, _)| *from < times.1);
        inside.map(|(_, to)| (times.0, (*to).min(times.1))).max_by_key(|(_, to)| *to)
    };
    slow.iter().filter_map(of).collect()
}

/// The calls of one op.
#[derive(Clone, Copy, Default)]
pub(super) struct Calls {
    n: i64,
    total_ns: i64,
    first: Interval,
}

impl Calls {
    pub(super) fn add(&mut self, start: i64, end: i64) {
        self.n += 1;
        self.total_ns = self.total_ns.saturating_add(end.saturating_sub(start));
        if self.n == 1 || start < self.first.0 {
            self.first = (start, end);
        }
    }

    /// The first call, if it sets something up.
    pub(super) fn set_up(&self) -> Option<Interval> {
        let first_ns = self.first.1.saturating_sub(self.first.0);
        let others_ns = self.total_ns.saturating_sub(first_ns);
        let long = first_ns >= LONG_NS && self.n >= FEWEST_CALLS;
        let far = first_ns.saturating_mul(self.n - 1) >= others_ns.saturating_mul(FIRST_CALL);
        (long && far).then_some(self.first)
    }
}
