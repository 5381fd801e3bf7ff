//! The law of the replay: what it says that waiting costs at most is never less than what it costs in a run that is simulated with and
//! without the waiting.

use proptest::prelude::*;
use timeline::intervals::{Interval, union, without};
use trace::TrackId;

use super::STANDS_NS;
use crate::calls::{CpuKind, Launched, RankCalls};

/// What a call takes the CPU, in ns.
const CALL: i64 = 4_000;
const US: i64 = 1_000;

/// What the CPU of a program does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It computes for so long.
    Compute(i64),
    /// It launches a kernel.
    Kernel(Launch),
    /// It launches a collective, which takes its time once the other ranks have joined: they do then.
    Collective(Launch, i64),
    /// It waits for a stream, or for all, and goes on so long after that.
    Wait(Option<usize>, i64),
    /// It waits so long for the CPUs of other ranks.
    Barrier(i64),
}

/// A kernel that takes `ns` on a stream, `after`: behind all work of that stream so far. On an idle GPU it begins `latency_ns` after its launch.
#[derive(Clone, Copy, Debug)]
struct Launch {
    stream: usize,
    ns: i64,
    after: Option<usize>,
    latency_ns: i64,
}

const STREAMS: usize = 3;

/// A run of a program.
#[derive(Default)]
struct Run {
    kernels: Vec<(Launched, bool)>,
    /// Waits of the CPU for the GPU.
    waits: Vec<Interval>,
    /// Waits of the CPU for those of other ranks.
    on_cpu: Vec<Interval>,
    /// The collectives that wait for other ranks, and when they do.
    waiting: Vec<(Interval, Interval)>,
}

impl Run {
    /// A run of these steps. Without `waits` the other ranks have joined whenever this one does.
    fn of(steps: &[Step], waits: bool) -> Self {
        let mut run = Self::default();
        let (mut now, mut free) = (0_i64, [0_i64; STREAMS]);
        for step in steps {
            let (Launch { stream, ns, after, latency_ns }, joined_ns) = match *step {
                Step::Compute(ns) => {
                    now += ns;
                    continue;
                }
                Step::Barrier(ns) if waits => {
                    run.on_cpu.push((now, now + ns));
                    now += ns;
                    continue;
                }
                Step::Barrier(_) => continue,
                Step::Wait(of, wakes_ns) => {
                    let done = of.map_or_else(|| free.into_iter().max(), |of| Some(free[of]));
                    let done = done.filter(|done| *done > now).map(|done| done + wakes_ns);
                    let done = done.unwrap_or_default().max(now + CALL);
                    run.waits.push((now, done));
                    now = done;
                    continue;
                }
                Step::Kernel(launch) => (launch, None),
                Step::Collective(launch, joined_ns) => (launch, Some(joined_ns)),
            };
            let after = after.map_or(0, |other| free[other]);
            let start = (now + latency_ns).max(free[stream]).max(after);
            let joined = joined_ns.filter(|_| waits).unwrap_or(start).max(start);
            let times = (start, joined + ns);
            let launch_ns = Some(now);
            let kernel = Launched { times, launch_ns, stream: TrackId(stream as u32) };
            run.kernels.push((kernel, joined_ns.is_some()));
            if joined > start {
                run.waiting.push((times, (start, joined)));
            }
            free[stream] = times.1;
            now += CALL;
        }
        run
    }

    fn end_ns(&self) -> i64 {
        self.kernels.iter().map(|(kernel, _)| kernel.times.1).max().unwrap_or_default()
    }

    /// The same as its trace tells it.
    fn recorded(&self) -> RankCalls {
        let times = |of_ranks: bool| {
            let own = self.kernels.iter().filter(|(_, is_collective)| *is_collective == of_ranks);
            union(own.map(|(kernel, _)| kernel.times).collect())
        };
        let mut kernels: Vec<Launched> = self.kernels.iter().map(|(kernel, _)| *kernel).collect();
        kernels.sort_by_key(|kernel| kernel.times.0);
        let mut waits = self.waits.clone();
        waits.sort_by_key(|(_, to)| *to);
        let exposed = without(&times(true), &times(false));
        let on_cpu = vec![CpuKind { calls: self.on_cpu.clone(), ..CpuKind::default() }];
        RankCalls { kernels, waits, exposed, on_cpu, ..RankCalls::default() }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let launch = || {
        let times = ((10_i64..400), (1_i64..30));
        (0..STREAMS, times, prop::option::of(0..STREAMS)).prop_map(
            |(stream, (us, latency), after)| Launch {
                stream,
                ns: us * US,
                after,
                latency_ns: latency * US,
            },
        )
    };
    prop_oneof![
        4 => (1_i64..300).prop_map(|us| Step::Compute(us * US)),
        10 => launch().prop_map(Step::Kernel),
        6 => (launch(), 0_i64..3_000).prop_map(|(launch, us)| Step::Collective(launch, us * US)),
        2 => (prop::option::of(0..STREAMS), 0_i64..60).prop_map(|(of, us)| Step::Wait(of, us * US)),
        1 => (10_i64..500).prop_map(|us| Step::Barrier(us * US)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn waiting_costs_no_more_than_the_replay_says(steps in prop::collection::vec(step(), 1..14)) {
        let (run, without) = (Run::of(&steps, true), Run::of(&steps, false));
        let costs = run.end_ns() - without.end_ns();
        let most = run.recorded().sooner_ns(&run.waiting);
        // (Streams that follow each other closely are not told from those that wait for each other, and a CPU that does not wait any more need
        // not wake up.)
        let wakes = steps.iter().map(|step| if let Step::Wait(_, ns) = step { *ns } else { 0 });
        let blur = STANDS_NS * run.kernels.len() as i64 + wakes.sum::<i64>();
        prop_assert!(costs <= most + blur, "costs {costs}, said {most}: {steps:?} {:?}", run.kernels);
    }
}
