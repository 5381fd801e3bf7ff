//! What is known of a rank, as bytes: it is made in the program that has its trace, and used in that of another rank.
//!
//! Numbers are of variable length, and times are differences to the ones before: about twelve bytes a kernel. Page and workers are of one
//! build, so there is no version.

use timeline::intervals::Interval;
use trace::TrackId;

use crate::calls::{CpuKind, Kind, Launched, RankCalls};

impl RankCalls {
    /// As bytes, for [`RankCalls::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self {
            name,
            rank,
            file,
            world_size,
            recorded,
            begins_ns,
            marks,
            kinds,
            broadcasts,
            exposed,
            kernels,
            waits,
            on_cpu,
            groups,
            shift_ns,
        } = self;
        let mut to = Writer::default();
        to.text(name);
        to.int(*rank);
        to.text(file);
        to.option(*world_size);
        to.intervals(recorded.as_slice());
        to.option(*begins_ns);
        to.count(marks.len());
        for (name, at_ns) in marks {
            to.text(name);
            to.int(*at_ns);
        }
        to.count(kinds.len());
        for Kind { key, group_size, is_broadcast, calls } in kinds {
            to.text(key);
            to.option(*group_size);
            to.int((*is_broadcast).into());
            to.intervals(calls);
        }
        to.intervals(broadcasts);
        to.intervals(exposed);
        to.count(kernels.len());
        for Launched { times, launch_ns, stream } in kernels {
            to.interval(*times);
            to.option(launch_ns.map(|at| times.0.wrapping_sub(at)));
            to.int(stream.0.into());
        }
        to.intervals(waits);
        to.count(on_cpu.len());
        for CpuKind { name, size, calls } in on_cpu {
            to.text(name);
            to.text(size);
            to.intervals(calls);
        }
        to.count(groups.len());
        for group in groups {
            to.count(group.len());
            group.iter().for_each(|rank| to.int(*rank));
        }
        to.option(*shift_ns);
        to.bytes
    }

    /// From [`RankCalls::to_bytes`]; `None` where the bytes are not whole.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader { bytes, at_ns: 0 };
        let name = from.text()?;
        let (rank, file, world_size) = (from.int()?, from.text()?, from.option()?);
        let recorded = from.intervals()?.first().copied();
        let begins_ns = from.option()?;
        let marks = from.each(|from| Some((from.text()?, from.int()?)))?;
        let kinds = from.each(|from| {
            Some(Kind {
                key: from.text()?,
                group_size: from.option()?,
                is_broadcast: from.int()? != 0,
                calls: from.intervals()?,
            })
        })?;
        let broadcasts = from.intervals()?;
        let exposed = from.intervals()?;
        let kernels = from.each(|from| {
            let times = from.interval()?;
            let launch_ns = from.option()?.map(|before| times.0.wrapping_sub(before));
            let stream = TrackId(u32::try_from(from.int()?).ok()?);
            Some(Launched { times, launch_ns, stream })
        })?;
        let waits = from.intervals()?;
        let on_cpu = from.each(|from| {
            Some(CpuKind { name: from.text()?, size: from.text()?, calls: from.intervals()? })
        })?;
        let groups = from.each(|from| from.each(Reader::int))?;
        let shift_ns = from.option()?;
        Some(Self {
            name,
            rank,
            file,
            world_size,
            recorded,
            begins_ns,
            marks,
            kinds,
            broadcasts,
            exposed,
            kernels,
            waits,
            on_cpu,
            groups,
            shift_ns,
        })
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// The last start.
    at_ns: i64,
}

impl Writer {
    fn int(&mut self, value: i64) {
        // (A small one is short whatever its sign.)
        let mut rest = (value << 1 ^ value >> 63) as u64;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    fn count(&mut self, n: usize) {
        self.int(n as i64);
    }

    fn option(&mut self, value: Option<i64>) {
        self.int(value.is_some().into());
        if let Some(value) = value {
            self.int(value);
        }
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend(text.as_bytes());
    }

    fn interval(&mut self, (from, to): Interval) {
        self.int(from.wrapping_sub(self.at_ns));
        self.int(to.wrapping_sub(from));
        self.at_ns = from;
    }

    fn intervals(&mut self, all: &[Interval]) {
        self.count(all.len());
        all.iter().for_each(|one| self.interval(*one));
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at_ns: i64,
}

impl Reader<'_> {
    fn int(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let (first, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(first & 0x7f).checked_shl(shift)?;
            shift += 7;
            if first & 0x80 == 0 {
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
    }

    fn option(&mut self) -> Option<Option<i64>> {
        Some(if self.int()? == 0 { None } else { Some(self.int()?) })
    }

    fn text(&mut self) -> Option<String> {
        let n = usize::try_from(self.int()?).ok()?;
        let (text, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    /// As many as the number before them says.
    fn each<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let n = self.int()?;
        (0..n).map(|_| one(self)).collect()
    }

    fn interval(&mut self) -> Option<Interval> {
        let from = self.at_ns.wrapping_add(self.int()?);
        self.at_ns = from;
        Some((from, from.wrapping_add(self.int()?)))
    }

    fn intervals(&mut self) -> Option<Vec<Interval>> {
        self.each(Self::interval)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = Vec<Interval>> {
        prop::collection::vec((any::<i64>(), any::<i64>()), 0..5)
    }

    proptest! {
        #[test]
        fn bytes_hold_everything_and_nothing_less_is_read(
            (rank, file, world_size, shift_ns) in (any::<i64>(), ".{0,9}", any::<Option<i64>>(), any::<Option<i64>>()),
            (exposed, waits, calls) in (times(), times(), times()),
            (launch_ns, stream, is_broadcast) in (any::<Option<i64>>(), any::<u32>(), any::<bool>()),
        ) {
            let kernel = |times| Launched { times, launch_ns, stream: TrackId(stream) };
            let calls = RankCalls {
                name: rank.to_string(),
                rank,
                world_size,
                recorded: exposed.first().copied(),
                begins_ns: launch_ns,
                marks: shift_ns.map(|at_ns| (file.clone(), at_ns)).into_iter().collect(),
                kinds: vec![Kind { key: file.clone(), group_size: world_size, is_broadcast, calls: calls.clone() }],
                kernels: calls.iter().copied().map(kernel).collect(),
                on_cpu: vec![CpuKind { name: file.clone(), size: file.clone(), calls }],
                broadcasts: waits.clone(),
                exposed,
                waits,
                groups: shift_ns.map(|shift| vec![shift, rank]).into_iter().collect(),
                shift_ns,
                file,
            };
            let bytes = calls.to_bytes();
            prop_assert_eq!(RankCalls::from_bytes(&bytes), Some(calls));
            for n in 0..bytes.len() {
                prop_assert_eq!(RankCalls::from_bytes(&bytes[..n]), None);
            }
        }
    }
}
