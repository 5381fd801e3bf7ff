//! Work before a wait for the workers of a data loader: where it becomes shorter, the wait becomes longer, since a batch comes when it is made.

use timeline::batches::taken_over_ns;
use timeline::gpu::Gpu;
use timeline::intervals::{Interval, length_within, union};
use trace::{Flags, TrackId, each_row};

/// Taking over a batch of few tensors needs no longer (measured: 0.4 to 0.6 ms). Where workers are always late, the shortest call is longer.
const TAKES_OVER_NS: i64 = 1_000_000;
/// What only makes such waits longer is told from one in so many parts of a saving on.
pub(crate) const LEAST_TOLD: i64 = 20;
/// Iterators of PyTorch's data loader that get batches from workers.
const BY_WORKERS: &str = "MultiProcessingDataLoaderIter";

/// Takes the part of `removed` away that only makes such waits longer, and returns its time. `removed` has slices and by how much each gets
/// shorter.
#[inline(never)]
pub(crate) fn absorb(gpu: &Gpu<'_>, removed: &mut [(u32, i64)]) -> i64 {
    let waits = waits(gpu);
    if waits.is_empty() {
        return 0;
    }
    removed.sort_unstable_by_key(|(at, _)| gpu.slice(*at as usize).start_ns);
    let (mut next, mut carried, mut absorbed_ns) = (0, 0, 0_i64);
    for (until_ns, wait_ns) in waits {
        let is_before = |(at, _): &(u32, i64)| gpu.slice(*at as usize).start_ns < until_ns;
        next += removed[next..].iter().take_while(|one| is_before(one)).count();
        let mut left_ns = wait_ns;
        // (What an earlier wait had no time for is still ahead of this one.)
        for (_, ns) in &mut removed[carried..next] {
            let own_ns = left_ns.min(*ns);
            *ns -= own_ns;
            left_ns -= own_ns;
            absorbed_ns = absorbed_ns.saturating_add(own_ns);
            if *ns > 0 {
                break;
            }
            carried += 1;
        }
    }
    removed.sort_unstable();
    absorbed_ns
}

/// The end of each call for a batch, and how long the device stands still in it while the batch is not there: it lasts longer than the
/// shortest, which takes over a batch that is, and than taking over its tensors does.
fn waits(gpu: &Gpu<'_>) -> Vec<(i64, i64)> {
    let trace = gpu.trace;
    let names =
        trace.strings.marked(&|name| name.contains(BY_WORKERS) && name.contains("__next__"));
    let mut calls: Vec<Interval> = Vec::new();
    let (mut track, mut n_tracks): (Option<TrackId>, usize) = (None, 0);
    if names.contains(&true) {
        each_row(trace, |row| {
            // (A frame of the same call has the line of its function in its name.)
            if names[trace.name(row).0 as usize]
                && trace.is_complete(row, Flags::HAS_TS, Flags::PYTHON_IDS)
            {
                calls.push((trace.ts_ns(row), trace.end_ns(row)));
                n_tracks += usize::from(track.replace(trace.track(row)) != Some(trace.track(row)));
            }
        });
    }
    // (Of several processes in a file nothing tells which of them a GPU waits for.)
    if n_tracks > 1 {
        return Vec::new();
    }
    let calls = union(calls);
    let shortest_ns = calls.iter().map(|(from, to)| to - from).min().unwrap_or_default();
    let least_ns = shortest_ns.min(TAKES_OVER_NS);
    let slices = (0..gpu.len()).map(|at| gpu.slice(at));
    let busy = union(slices.map(|slice| (slice.start_ns, slice.end_ns())).collect());
    let Some(track) = track else { return Vec::new() };
    let on_track: Vec<(TrackId, Interval)> = calls.iter().map(|call| (track, *call)).collect();
    let of_call = |((from, to), taken_over_ns): (&Interval, i64)| {
        let all_ns = to.saturating_sub(*from);
        let idle_ns = all_ns.saturating_sub(length_within(&busy, (*from, *to)));
        (*to, idle_ns.min(all_ns.saturating_sub(taken_over_ns.max(least_ns))))
    };
    let waits = calls.iter().zip(taken_over_ns(trace, &on_track)).map(of_call);
    waits.filter(|(_, ns)| *ns > 0).collect()
}

#[cfg(test)]
mod tests {
    use fixture::{Fixture, kernel, slice};
    use timeline::Options;
    use timeline::before_window::BeforeWindowSlices;

    use super::*;

    const MS: i64 = 1_000_000;

    /// What is left of a millisecond less in each of four steps, before each of which the loader takes so many ms, and what is absorbed.
    fn absorbed(iterator: &str, loads_ms: [i64; 4]) -> (Vec<i64>, i64) {
        let mut fixture = Fixture::default();
        let mut at_ns = 0;
        for ms in loads_ms {
            let name = format!("enumerate(DataLoader)#_{iterator}.__next__");
            fixture.push(slice("user_annotation", &name).on(1, 1).at(at_ns, ms * MS));
            at_ns += ms * MS;
            fixture.push(kernel("sgemm").at(at_ns, 4 * MS));
            at_ns += 4 * MS;
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
        let mut removed: Vec<(u32, i64)> = (0..gpu.len() as u32).map(|at| (at, MS)).collect();
        let absorbed_ns = absorb(&gpu, &mut removed);
        (removed.into_iter().map(|(_, ns)| ns / MS).collect(), absorbed_ns / MS)
    }

    #[test]
    fn what_workers_set_the_pace_of_ends_no_earlier() {
        // The second and third step both come before the wait of the fourth, which has time for both.
        let by_workers = "MultiProcessingDataLoaderIter";
        assert_eq!(absorbed(by_workers, [1, 9, 1, 20]), (vec![0, 0, 0, 1], 3));
        assert_eq!(absorbed(by_workers, [1, 1, 1, 1]), (vec![1; 4], 0), "batches are there");
        let late = absorbed(by_workers, [9, 9, 9, 9]);
        assert_eq!(late, (vec![0, 0, 0, 1], 3), "they are always late");
        assert_eq!(absorbed(by_workers, [1, 1, 1, 3]), (vec![0, 0, 1, 1], 2), "a short wait");
        assert_eq!(absorbed("SingleProcessDataLoaderIter", [1, 9, 1, 20]), (vec![1; 4], 0));
    }

    #[test]
    fn taking_over_the_tensors_of_a_batch_is_no_wait_for_it() {
        // Of 9 ms, 6 go by from one tensor to the next, and each of the three is taken to need that.
        let mut fixture = Fixture::default();
        let name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
        for nth in 0..3 {
            let at_ns = nth * 20 * MS;
            fixture.push(slice("user_annotation", name).on(1, 1).at(at_ns, 9 * MS));
            for tensor in 0..3 {
                let set = slice("cpu_op", "aten::set_").on(1, 1);
                fixture.push(set.at(at_ns + 8 * MS - (2 - tensor) * 2 * MS, MS));
            }
            fixture.push(kernel("sgemm").at(at_ns + 9 * MS, 4 * MS));
        }
        let trace = fixture.finish();
        let before = BeforeWindowSlices::of(&trace);
        let gpu = Gpu::new(&trace, catalog::Platform::Cuda, &before, &Options::default());
        let waits: Vec<i64> = waits(&gpu).into_iter().map(|(_, ns)| ns / MS).collect();
        assert_eq!(waits, [3, 3, 3]);
    }
}
