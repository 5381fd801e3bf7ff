//! Places collectives from a separate stream between the kernels that wait for each other.
//!
//! `torch.distributed` runs collectives on a stream of their own and lets the streams wait for each other, so that an
//! all-reduce and the norm of its result never stand next to each other on one stream. Where a collective of such a
//! stream lies whole in a pause of another stream of its device, and was launched between the kernels on both sides of
//! the pause, that stream did nothing until it was done: it is looked at as if it stood there. One that ran beside
//! anything stays where it is.

use catalog::Category;
use trace::StreamId;

use timeline::gpu::Gpu;
use timeline::launches::Launches;

/// Streams of a device beyond which nothing is moved: no program has so many, and each is looked at.
const MOST_STREAMS: usize = 64;

/// A pause of a stream, by the slices on both sides of it.
struct Pause {
    /// How long after the collective the stream went on.
    until_ns: i64,
    stream: usize,
    /// The place, in the stream's list, of the slice that ends the pause.
    before: usize,
}

/// The slices of each stream by start, with collectives moved to where they are waited for.
#[inline(never)]
pub(super) fn by_stream(gpu: &Gpu<'_>, launches: &Launches) -> Vec<Vec<u32>> {
    let lane = |stream: Option<StreamId>| stream.map_or(0, |id| usize::from(id.0) + 1);
    let mut streams: Vec<Vec<u32>> = vec![Vec::new(); gpu.trace.streams.len() + 1];
    for at in 0..gpu.len() {
        streams[lane(gpu.slice(at).stream)].push(at as u32);
    }
    let moves = moves(gpu, launches, &streams);
    if moves.is_empty() {
        return streams;
    }
    let mut moved = vec![false; gpu.len()];
    for (_, slice) in &moves {
        moved[*slice as usize] = true;
    }
    let mut moves = moves.iter().peekable();
    let lists = streams.iter().enumerate().map(|(stream, slices)| {
        let mut list = Vec::with_capacity(slices.len());
        for (at, slice) in slices.iter().enumerate() {
            while let Some((_, guest)) = moves.next_if(|(place, _)| *place == (stream, at)) {
                list.push(*guest);
            }
            if !moved[*slice as usize] {
                list.push(*slice);
            }
        }
        list
    });
    lists.collect()
}

/// Which collectives move before which place of which stream, sorted.
#[inline(never)]
fn moves(gpu: &Gpu<'_>, launches: &Launches, streams: &[Vec<u32>]) -> Vec<((usize, usize), u32)> {
    let collective =
        |at: u32| gpu.works[gpu.slice(at as usize).work].category == Category::Communication;
    // By stream: whether anything but collectives runs there.
    let works: Vec<bool> =
        streams.iter().map(|slices| slices.iter().any(|at| !collective(*at))).collect();
    let device = |stream: usize| stream.checked_sub(1).map(|id| gpu.trace.streams[id].device);
    let mut found = Vec::new();
    for (own, slices) in streams.iter().enumerate().skip(1).filter(|(own, _)| !works[*own]) {
        let others: Vec<usize> = (1..streams.len())
            .filter(|other| *other != own && works[*other] && device(*other) == device(own))
            .take(MOST_STREAMS + 1)
            .collect();
        if others.is_empty() || others.len() > MOST_STREAMS {
            continue;
        }
        for slice in slices.iter().copied() {
            let pauses = others
                .iter()
                .filter_map(|stream| pause(gpu, launches, slice, *stream, &streams[*stream]));
            let nearest = pauses.min_by_key(|pause| (pause.until_ns, pause.stream));
            found.extend(nearest.map(|pause| ((pause.stream, pause.before), slice)));
        }
    }
    trace::sort(&mut found);
    found
}

/// The pause of a stream in which a collective lies, if the stream waited for it.
#[inline(never)]
fn pause(
    gpu: &Gpu<'_>,
    launches: &Launches,
    collective: u32,
    stream: usize,
    slices: &[u32],
) -> Option<Pause> {
    let of = |at: u32| gpu.slice(at as usize);
    let slice = of(collective);
    let before = slices.partition_point(|at| of(*at).start_ns < slice.start_ns);
    let (last, next) = (*slices.get(before.checked_sub(1)?)?, *slices.get(before)?);
    let lies_in_it = of(last).end_ns() <= slice.start_ns && slice.end_ns() <= of(next).start_ns;
    let launched = |at: u32| Some(gpu.trace.ts_ns(launches.of_slice(at as usize)?));
    // (What one graph launched has one launch.)
    let in_order = [last, collective, next].map(launched).is_sorted_by(|a, b| match (a, b) {
        (Some(a), Some(b)) => a <= b,
        _ => true,
    });
    (lies_in_it && in_order).then(|| Pause {
        until_ns: of(next).start_ns.saturating_sub(slice.end_ns()),
        stream,
        before,
    })
}
