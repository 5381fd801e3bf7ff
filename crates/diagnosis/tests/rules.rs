//! Rules on tiny traces: each fires on what it is about, and not on the same trace without it.

#![allow(clippy::unwrap_used, reason = "a test: helpers fail as the tests do")]

mod common;

use common::{all_reduces, diagnosis, launch, with_details};
use diagnosis::{Diagnosis, Facts, Finding, WallPart, diagnose};
use fixture::{Fixture, kernel, slice};
use trace::Details;
use triage::{Sources, TriageOptions, triage};

/// The verdicts of a rule.
fn verdicts(diagnosis: &Diagnosis, rule: &str) -> Vec<&'static str> {
    let own = diagnosis.findings.iter().filter(|finding| finding.rule.id() == rule);
    own.map(|finding| finding.verdict).collect()
}

/// Twenty kernels of 5 us, each launched `every_ns` after the one before.
fn paced(every_ns: i64) -> Fixture {
    let mut fixture = Fixture::default();
    for n in 0..20 {
        launch(&mut fixture, "k", n + 1, n * every_ns, n * every_ns + 4_000, 5_000);
    }
    fixture
}

#[test]
fn short_kernels_far_apart_are_limited_by_launches_and_the_bound_is_a_part_of_the_bar() {
    let found = diagnosis(paced(50_000));
    assert_eq!(verdicts(&found, "M2"), ["launch_bound"]);
    assert_eq!(verdicts(&found, "M17"), ["no_graph"]);
    let part = |part| found.wall.iter().find(|row| row.part == part).unwrap().total_ns;
    let action = &found.actions[0];
    let late_ns = part(WallPart::Launch) + part(WallPart::Start);
    assert_eq!((action.rule.as_str(), action.bound_ns), ("M2", late_ns));
    // The first sentence has the figure of the action.
    let told =
        format!("The GPU waits for launches for {}", report::units::percent(action.bound_pct));
    assert!(found.headline.as_ref().unwrap().starts_with(&told), "{:?}", found.headline);
}

#[test]
fn graphs_by_batch_size_are_not_for_the_prefill_of_sglang() {
    let with = |pass: &str| {
        let mut fixture = paced(50_000);
        fixture.push(slice("user_annotation", pass).at(-1_000, 1_100_000).on(1, 1));
        let frame = slice("python_function", "sglang/srt/managers/scheduler.py(10): run_batch");
        fixture.push(frame.at(-2_000, 1_200_000).on(1, 1));
        diagnosis(fixture).actions.first().map(|action| action.remedy)
    };
    assert_eq!(with("step[EXTEND bs=1 toks=2048]"), Some("sglang-prefill-graph"));
    assert_eq!(with("step[DECODE bs=8]"), Some("sglang-batch-graph"));
}

#[test]
fn the_same_kernels_one_after_the_other_are_not() {
    let found = diagnosis(paced(5_500));
    assert_eq!(verdicts(&found, "M1"), ["ok"]);
    assert!(verdicts(&found, "M2").is_empty() && found.actions.is_empty(), "{:?}", found.actions);
}

#[test]
fn a_data_loader_between_two_kernels_is_the_first_thing_to_say() {
    let with = |loader: bool| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "k", 1, 0, 4_000, 1_000_000);
        if loader {
            let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            fixture.push(slice("user_annotation", name).at(1_004_000, 9_000_000).on(1, 1));
        }
        launch(&mut fixture, "k", 2, 10_010_000, 10_014_000, 1_000_000);
        diagnosis(fixture)
    };
    let found = with(true);
    assert_eq!(verdicts(&found, "M9"), ["dataloader_bound"]);
    assert!(found.headline.unwrap().starts_with("The GPU waits for the data loader for 81"));
    assert_eq!(found.actions[0].bound_ns, 9_000_000);
    // (One figure, whatever else of the loader is in the file.)
    assert!(
        found.actions[0].observation.contains("for 9.00 ms"),
        "{}",
        found.actions[0].observation
    );
    let check = &found.actions[0].check;
    assert_eq!((&*check.path, &*check.now), ("wall", "9.00 ms"));
    assert!(
        found.actions[0].action.contains("num_workers of the DataLoader above 0 (it is 0 here)")
    );
    assert!(verdicts(&with(false), "M9").is_empty());
}

#[test]
fn exposed_communication_counts_without_what_runs_beside_it() {
    let with = |compute: bool| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, 0, 4_000, 100_000);
        launch(&mut fixture, "ncclDevKernel_AllReduce_Sum_f32", 2, 3_000, 104_000, 100_000);
        if compute {
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(6_000, 2_000).on(1, 1);
            fixture.push(call.link(3));
            fixture.push(kernel("gemm").at(104_000, 100_000).on(0, 8).link(3));
        }
        diagnosis(fixture)
    };
    let found = with(false);
    let finding = found.findings.iter().find(|finding| finding.rule.id() == "M10").unwrap();
    assert_eq!((finding.verdict, finding.bound_ns), ("exposed", Some(100_000)));
    assert!(verdicts(&with(true), "M10").is_empty());
}

#[test]
fn launches_that_come_late_behind_a_collective_limit_the_rank() {
    // Twenty times a product of 25 us and an all-reduce, of which four are fast; launched every 100 us, or all at once.
    let with = |every_ns: i64| {
        let (mut fixture, mut details) = (Fixture::default(), all_reduces(&[1_000]));
        for n in 0..20_i64 {
            let (called, at) = (n * every_ns, n * 100_000 + 10_000);
            launch(&mut fixture, "gemm", 2 * n + 1, called, at, 25_000);
            let dur = if n % 5 == 0 { 5_000 } else { 70_000 };
            let name = "ncclDevKernel_AllReduce_Sum_f32";
            launch(&mut fixture, name, 2 * n + 2, called + 3_000, at + 25_000, dur);
            details.collective_of.push((4 * n as u32 + 3, 0));
        }
        with_details(&fixture.finish(), &details)
    };
    let late = with(100_000);
    assert_eq!(verdicts(&late, "M2"), ["launch_bound_behind_communication"]);
    let of = |rule: &str| late.findings.iter().find(|one| one.rule.id() == rule).unwrap();
    // The last product starts 10 us after its launch, and the all-reduce after it goes away; 16 all-reduces take 65 us more than the fast ones.
    assert!(
        of("M2").observation.contains("save at most 80.0 µs, although 1.14 ms"),
        "{:?}",
        of("M2")
    );
    assert!((16 * 65_000..1_500_000).contains(&of("M2").bound_ns.unwrap()));
    // (Of that, the 65 us of waiting in the last all-reduce are not for overlap.)
    assert_eq!(of("M10").bound_ns, Some(15_000));
    let limits = "Launches limit the GPU: it runs only communication kernels for 57.1% of its span (1.14 ms), but removing all \
                  communication would save at most 80.0 µs.";
    assert_eq!(late.headline.as_deref(), Some(limits));
    let early = with(8_000);
    assert!(verdicts(&early, "M2").is_empty());
    assert!(early.headline.unwrap().starts_with("The GPU runs only communication kernels for"));
}

/// Decode passes whose graphs run long after their launches, with many small collectives.
fn passes_ahead(launch_ns: impl Fn(i64) -> i64) -> Fixture {
    let mut fixture = Fixture::default();
    let mut called = 0;
    for pass in 0..6_i64 {
        let dur = launch_ns(pass);
        let name = "execute_context_0(0)_generation_1(1)";
        fixture.push(slice("user_annotation", name).at(called, dur).on(1, 1));
        let call = slice("cuda_runtime", "cudaGraphLaunch").at(called + 1_000, dur - 2_000);
        fixture.push(call.on(1, 1).link(pass + 1));
        called += dur;
        for node in 0..50_i64 {
            let at = 100_000_000 + pass * 1_000_000 + node * 20_000;
            let name = if node % 2 == 0 { "gemm" } else { "ncclDevKernel_AllReduce_Sum_f32" };
            fixture.push(kernel(name).at(at, 18_000).link(pass + 1));
        }
    }
    fixture
}

#[test]
fn small_collectives_of_graphs_are_not_to_be_started_earlier() {
    let found = diagnosis(passes_ahead(|_| 400_000));
    let finding = found.findings.iter().find(|finding| finding.rule.id() == "M10").unwrap();
    assert_eq!(finding.verdict, "short_collectives");
    let short = "150 of 150 collectives take less than 50.0 µs each (100.0% of their time)";
    assert!(finding.meaning.starts_with(short), "{}", finding.meaning);
    assert!(found.actions.iter().all(|action| action.remedy != "earlier-communication"));
    // What lies between the nodes is nobody's on the CPU.
    let idle: Vec<_> = found.wall.iter().filter(|row| row.part.is_idle()).collect();
    assert_eq!(idle.len(), 1);
    assert_eq!((idle[0].part, idle[0].total_ns), (WallPart::Between, 6 * 50 * 2_000 - 2_000));
}

#[test]
fn a_pass_that_is_slow_on_the_cpu_while_its_work_is_queued_is_not_the_slowest() {
    let found = diagnosis(passes_ahead(|pass| if pass == 4 { 2_000_000 } else { 400_000 }));
    let section = found.iterations.unwrap().section();
    assert!(section.intro.iter().all(|text| !text.starts_with("The slowest")), "{section:?}");
    assert!(section.intro.iter().any(|text| text.starts_with("The CPU launches ahead")));
    let keys = |table: &report::Table| table.columns.iter().any(|of| of.key == "compute");
    assert!(!section.tables.iter().any(keys));
}

#[test]
fn a_cpu_that_launches_too_late_for_most_passes_is_not_ahead() {
    // Passes of 1 ms on the CPU, whose graph runs for 5 ms; from one to the next an op of the scheduler.
    let of = |every_ns: i64, waits: Option<&str>| {
        let mut fixture = Fixture::default();
        for pass in 0..6_i64 {
            let at = pass * every_ns;
            let name = "execute_context_0(0)_generation_1(1)";
            fixture.push(slice("user_annotation", name).at(at, 1_000_000).on(1, 1));
            if let Some(call) = waits {
                fixture.push(slice("cuda_runtime", call).at(at + 6_000_000, 10_000).on(1, 1));
            }
            fixture.push(
                slice("cpu_op", "schedule").at(at + 1_000_000, every_ns - 1_000_000).on(1, 1),
            );
            let call = slice("cuda_runtime", "cudaGraphLaunch").at(at + 400_000, 100_000);
            fixture.push(call.on(1, 1).link(pass + 1));
            let begins = at.max(pass * 5_000_000) + 600_000;
            fixture.push(kernel("gemm").at(begins, 2_400_000).link(pass + 1));
            fixture.push(kernel("gemm").at(begins + 2_400_000, 2_400_000).link(pass + 1));
        }
        diagnosis(fixture).iterations.unwrap().section().intro
    };
    let with = |every_ns: i64| of(every_ns, None);
    let said = |intro: &[String], text: &str| intro.iter().any(|one| one.contains(text));
    // A wait for the device leaves nothing queued, however far ahead the CPU was; one for a stream may be for a copy.
    let drained = of(8_000_000, Some("cudaDeviceSynchronize"));
    assert!(
        said(&drained, "In 5 of 5 iterations the CPU waits for all of the GPU's work"),
        "{drained:?}"
    );
    assert!(said(&of(8_000_000, Some("cudaStreamSynchronize")), "but not by enough"));
    let late = with(8_000_000);
    let dry = "In 5 of 6 iterations the GPU goes idle before their work ends (13.5 ms in all), because launches come late.";
    assert!(said(&late, dry), "{late:?}");
    assert!(
        said(
            &late,
            "an iteration starts every 8.00 ms (median of 5); the launching thread waits 0 ns of that"
        ),
        "{late:?}"
    );
    let ahead = with(3_000_000);
    assert!(said(&ahead, "The CPU launches ahead: "), "{ahead:?}");
}

#[test]
fn how_far_the_cpu_is_ahead_of_a_full_gpu_is_not_told() {
    let with = |pause_ns: i64| {
        let mut fixture = Fixture::default();
        for pass in 0..6_i64 {
            let at = pass * 1_000_000;
            let name = "execute_context_0(0)_generation_1(1)";
            fixture.push(slice("user_annotation", name).at(at, 900_000).on(1, 1));
            let call = slice("cuda_runtime", "cudaGraphLaunch").at(at + 100_000, 100_000);
            fixture.push(call.on(1, 1).link(pass + 1));
            let begins = 10_000_000 + pass * 5_000_000;
            fixture.push(kernel("gemm").at(begins, 5_000_000 - pause_ns).link(pass + 1));
        }
        let intro = diagnosis(fixture).iterations.unwrap().section().intro;
        intro.iter().any(|text| text.contains("The CPU launches ahead"))
    };
    assert!(with(200_000), "the GPU is idle for 4% of the time");
    assert!(!with(20_000), "it computes for 99.7% of it");
}

/// What is said of the period of six decode passes of 5 ms each on the GPU, with `between_ns` of sampling after each and `idle_ns` without work.
fn said_of_period(between_ns: i64, idle_ns: i64) -> Option<String> {
    let mut fixture = Fixture::default();
    let mut at = 0;
    for pass in 0..6_i64 {
        let name = "execute_context_0(0)_generation_1(1)";
        fixture.push(slice("user_annotation", name).at(at, 1_000_000).on(1, 1));
        for (link, called, begins, ns) in [
            (2 * pass + 1, 400_000, 600_000, 5_000_000),
            (2 * pass + 2, 1_200_000, 5_600_000, between_ns),
        ] {
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(at + called, 100_000);
            fixture.push(call.on(1, 1).link(link));
            fixture.push(kernel("gemm").at(at + begins, ns).link(link));
        }
        at += 5_000_000 + between_ns + idle_ns;
    }
    let intro = diagnosis(fixture).iterations.unwrap().section().intro;
    intro.into_iter().find(|text| text.contains("comes every"))
}

#[test]
fn a_step_of_a_full_gpu_is_the_time_from_start_to_start() {
    let said = said_of_period(1_500_000, 0).unwrap();
    let expected = "On the GPU an iteration of decode comes every 6.50 ms (median of 5): the 1.50 ms after its own work belong to no \
                    iteration";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(said_of_period(100_000, 0), None, "hardly longer than the pass");
    assert_eq!(said_of_period(1_500_000, 2_000_000), None, "launches are late, too");
    assert_eq!(said_of_period(100_000, 300_000), None, "most of the time between is idle");
}

/// Six passes of a graph of 2 ms; the CPU waits for each, copies for the next, and launches that `late_ns` after the wait.
fn passes_that_wait(late_ns: i64) -> Fixture {
    let mut fixture = Fixture::default();
    for pass in 0..6_i64 {
        let at = pass * (2_000_000 + late_ns);
        let link = 2 * pass + 1;
        fixture.push(slice("cuda_runtime", "cudaGraphLaunch").at(at, 10_000).on(1, 1).link(link));
        for node in 0..20_i64 {
            fixture.push(kernel("gemm").at(at + 20_000 + node * 99_000, 99_000).link(link));
        }
        let wait = slice("cuda_runtime", "cudaEventSynchronize").at(at + 20_000, 1_980_000);
        fixture.push(wait.on(1, 1));
        let copied = at + 2_000_000 + late_ns / 2;
        let copy = slice("cuda_runtime", "cudaMemcpyAsync").at(copied, 2_000).on(1, 1);
        fixture.push(copy.link(link + 1));
        let copy = slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)").at(copied + 3_000, 1_000);
        fixture.push(copy.on(0, 7).link(link + 1));
    }
    fixture
}

#[test]
fn what_the_gpu_stands_still_between_a_wait_and_the_next_graph_is_one_finding() {
    let found = diagnosis(passes_that_wait(300_000));
    assert_eq!(verdicts(&found, "M3"), ["between_graphs"]);
    assert!(verdicts(&found, "M5").is_empty());
    let finding = found.findings.iter().find(|finding| finding.rule.id() == "M3").unwrap();
    // Five times 300 us and 20 us to the first kernel of the graph, without the copy.
    assert_eq!(finding.bound_ns, Some(5 * (300_000 + 20_000 - 1_000)));
    assert_eq!(found.actions[0].remedy, "larger-graphs");
    // Below 5% of the span it is none.
    assert_ne!(verdicts(&diagnosis(passes_that_wait(50_000)), "M3"), ["between_graphs"]);
}

/// Graphs of 1 ms, 100 us apart; where a graph is captured before the next one, 3 ms.
fn graphs_and_captures(pauses: &str) -> Diagnosis {
    let mut fixture = Fixture::default();
    fixture.push(slice("cpu_op", "CompiledFunction").at(0, 5_000).on(1, 1));
    fixture.push(slice("cpu_op", "aten::mm").at(0, 4_000).on(1, 1));
    let call = |name, at| slice("cuda_runtime", name).at(at, 2_000).on(1, 1);
    let mut at = 10_000;
    for (nth, pause) in (1..).zip(pauses.chars().chain(['.'])) {
        fixture.push(call("cudaGraphLaunch", at).link(nth));
        for node in 0..20_i64 {
            fixture.push(kernel("gemm").at(at + 10_000 + node * 50_000, 50_000).link(nth));
        }
        at += 1_010_000;
        if pause == 'c' {
            fixture.push(call("cudaStreamBeginCapture", at + 100_000));
            fixture.push(call("cudaStreamEndCapture", at + 200_000));
        }
        at += if pause == '.' { 90_000 } else { 2_990_000 };
    }
    diagnosis(fixture)
}

#[test]
fn graphs_that_are_captured_again_are_told_as_such() {
    let again = graphs_and_captures(".c.c");
    let finding = again.findings.iter().find(|one| one.verdict == "captures_again").unwrap();
    let told = "is idle for 6.00 ms (53.6% of its span) in 2 pauses between graphs in which the CPU captures a graph; without a capture \
                such a pause has 100 µs";
    assert!(finding.observation.contains(told), "{}", finding.observation);
    assert_eq!(finding.bound_ns, Some(5_800_000));
    assert!(again.actions.iter().any(|one| one.remedy == "graphs-once"), "{:?}", again.actions);
    assert_eq!(again.headline.as_ref(), Some(&finding.observation));
    // Captures before any graph ran without one are of the start, and long pauses without one have other causes.
    for pauses in ["cc..", "ccc", ".c..", "l.ll"] {
        let other = graphs_and_captures(pauses);
        assert!(!verdicts(&other, "M3").contains(&"captures_again"), "{pauses}");
    }
}

#[test]
fn equal_collectives_that_differ_tell_how_long_they_wait() {
    let with = |collectives: bool| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "gemm", 1, 0, 4_000, 100_000);
        for n in 0..3 {
            let at = 104_000 + n * 50_000;
            let name = "ncclDevKernel_AllReduce_Sum_f32";
            launch(&mut fixture, name, n + 2, at - 40_000, at, 10_000 * (n + 1));
        }
        let trace = fixture.finish();
        let mut details = Details::default();
        if collectives {
            let kernels = (0..trace.len() as trace::Row)
                .filter(|row| trace.name_text(*row).starts_with("nccl"));
            details.collective_of = kernels.map(|row| (row, 0)).collect();
        }
        let triaged = triage(&trace, &TriageOptions::default(), &Sources::default());
        let index = host::HostIndex::of(&trace);
        let report = host::host(&index, &details);
        let found = diagnose(&Facts::of(&index, &details, &report, &triaged));
        found.findings.into_iter().find(|finding| finding.rule.id() == "M10").unwrap().meaning
    };
    // 10, 20 and 30 us: above the shortest 10 and 20.
    let said = with(true);
    assert!(said.contains("3 of one kind and size take 10.0 µs to 30.0 µs"), "{said}");
    assert!(said.contains("In all, they take 30.0 µs longer than the fast ones of each size, or what the group's best bandwidth allows"), "{said}");
    assert!(with(false).starts_with("Part of it may be waiting"), "sizes that are not recorded");
}

#[test]
fn the_line_that_keeps_the_gpu_waiting_is_named_where_one_does() {
    let with = |line: bool| {
        let mut fixture = paced(2_000_000);
        if line {
            let frame = slice("python_function", "prepare.py(12): tokenize").on(1, 1);
            fixture.push(frame.at(10_000, 1_980_000 * 19));
        }
        diagnosis(fixture)
    };
    let line = "launching thread is in prepare.py:12 tokenize";
    let found = with(true);
    assert!(found.headline.as_ref().is_some_and(|text| text.contains(line)), "{found:?}");
    let of_rules = found.findings.iter().filter(|finding| finding.meaning.contains(line));
    assert!(of_rules.count() > 0, "{found:?}");
    let found = with(false);
    assert!(!found.headline.unwrap_or_default().contains("launching thread"));
}

#[test]
fn the_stages_share_the_wall_time_and_idle_time_has_the_stage_of_what_comes_next() {
    let mut fixture = Fixture::default();
    // Two passes of an engine: the first takes 1 ms; the second is launched 9 ms later.
    for (n, name) in
        [(0, "execute_context_1(512)_generation_0(0)"), (1, "execute_context_0(0)_generation_8(8)")]
    {
        let at = n * 10_000_000;
        fixture.push(slice("user_annotation", name).at(at, 2_000_000).on(1, 1));
        launch(&mut fixture, "gemm", n + 1, at + 1_000, at + 5_000, 1_000_000);
    }
    let found = diagnosis(fixture);
    let walls: Vec<_> = found
        .wall_stages
        .iter()
        .map(|wall| (wall.stage.id(), wall.total_ns, wall.part(WallPart::Compute)))
        .collect();
    assert_eq!(walls, [("extend", 1_000_000, 1_000_000), ("decode", 10_000_000, 1_000_000)]);
    let sum: i64 = found.wall.iter().map(|row| row.total_ns).sum();
    assert_eq!(found.wall_stages.iter().map(|wall| wall.total_ns).sum::<i64>(), sum);
    let bars: Vec<String> = found.stage_bars().map(|(title, _)| title).collect();
    assert_eq!(bars[0], "1.00 ms, 9.1% of the wall time");
    assert!(diagnosis(paced(50_000)).wall_stages.is_empty(), "one stage has the bar of the run");
}

#[test]
fn figures_of_the_run_stand_apart_from_costs() {
    let mut found = diagnosis(paced(50_000));
    found.actions.clear();
    let (costs, figures) = found.further();
    let has = |rows: &[Finding], rule: &str| rows.iter().any(|row| row.rule.id() == rule);
    assert!(has(&costs, "M2") && !has(&figures, "M2"), "{costs:?} {figures:?}");
    assert!(verdicts(&found, "M4").len() + verdicts(&found, "M17").len() == 2, "the JSON has both");
    assert!(figures.is_empty(), "nothing follows from gaps and graphs: {figures:?}");
}

#[test]
fn what_an_action_says_is_not_said_again() {
    let found = diagnosis(paced(50_000));
    assert_eq!(found.actions[0].rule, "M2");
    let (costs, figures) = found.further();
    assert!(costs.iter().chain(&figures).all(|finding| finding.rule.id() != "M2"));
}

#[test]
fn a_first_launch_that_loads_a_module_is_told_apart_from_the_others() {
    let cost = |fixture: Fixture| {
        let found = diagnosis(fixture);
        let own = found.findings.iter().find(|finding| finding.verdict == "no_graph").unwrap();
        own.observation.clone()
    };
    assert_eq!(
        cost(paced(50_000)),
        "No graph runs: each of 20 kernels has a launch of its own. The launching calls take the CPU 40.0 µs, 2.00 µs each on average."
    );
    let mut fixture = Fixture::default();
    let call = slice("cuda_runtime", "cudaLaunchKernel").at(0, 6_990_000).on(1, 1);
    fixture.push(call.link(100));
    fixture.push(kernel("first").at(6_991_000, 5_000).link(100));
    for n in 0..20 {
        launch(&mut fixture, "k", n + 1, 7_000_000 + n * 500_000, 7_004_000 + n * 500_000, 5_000);
    }
    assert_eq!(
        cost(fixture),
        "No graph runs: each of 21 kernels has a launch of its own. The launching calls take the CPU 7.03 ms: 1 takes most of it (6.99 ms), the others 2.00 µs each (median). \
         It is the first launch of its kernel and loads its code."
    );
}

#[test]
fn work_that_was_launched_long_before_it_ran_makes_the_busy_share_unknown_and_advises_nothing() {
    let mut fixture = Fixture::default();
    launch(&mut fixture, "k", 1, 0, 4_000, 100_000);
    launch(&mut fixture, "k", 2, 10_000, 50_000_000, 100_000);
    let found = diagnosis(fixture);
    assert_eq!(verdicts(&found, "M1"), ["unknown"]);
    assert!(found.actions.is_empty());
}

#[test]
fn without_a_gpu_the_cpu_is_told_and_nothing_else() {
    let mut fixture = Fixture::default();
    fixture.push(slice("cpu_op", "aten::mm").at(0, 1_000).on(1, 1));
    let found = diagnosis(fixture);
    assert_eq!(verdicts(&found, "M1"), ["no_gpu"]);
    assert!(found.wall.is_empty());
    let said = "The file has no GPU work: only the CPU's figures are meaningful.";
    assert_eq!(found.headline.as_deref(), Some(said));
}

/// Ranges on the CPU, each with a kernel of 1 ms that is launched at its beginning; the duration of each range in ms.
fn ranges(names: impl Fn(usize) -> String, durations_ms: &[i64]) -> Fixture {
    let mut fixture = Fixture::default();
    let mut at = 0;
    for (n, ms) in durations_ms.iter().enumerate() {
        let name = names(n);
        fixture.push(slice("user_annotation", &name).at(at, ms * 1_000_000).on(1, 1));
        launch(&mut fixture, "gemm", n as i64 + 1, at + 1_000, at + 5_000, 1_000_000);
        at += ms * 1_000_000;
    }
    fixture
}

#[test]
fn ranges_that_come_again_are_iterations_and_the_bar_is_of_the_warm_ones() {
    let found = diagnosis(ranges(|n| format!("iter {n}"), &[40, 9, 5, 5, 5, 5, 6]));
    let iterations = found.iterations.as_ref().unwrap();
    assert_eq!(iterations.kind, diagnosis::Kind::RepeatedRange);
    let cold: Vec<bool> = iterations.list.iter().map(|one| one.cold.is_some()).collect();
    assert_eq!(cold, [true, true, false, false, false, false, false]);
    let [class] = &iterations.classes[..] else { panic!("{:?}", iterations.classes) };
    assert_eq!((&*class.name, class.n, class.cold, class.cpu.n), ("iter", 7, 2, 5));
    assert_eq!(class.cpu.figures.as_ref().unwrap().p50_ns, 5_000_000);
    assert_eq!(class.gpu_span.figures.as_ref().unwrap().max_ns, 1_000_000);
    // Five warm ranges with a kernel of 1 ms each; the last one ends beyond the GPU's work.
    let parts: i64 = found.wall.iter().map(|row| row.total_ns).sum();
    let outside: i64 = iterations.warm().map(|one| one.outside_ns).sum();
    assert_eq!(
        (parts + outside, found.left_out.first().map(|(_, of)| *of)),
        (26_000_000, Some((2, 7)))
    );
    let compute = found.wall.iter().find(|row| row.part == WallPart::Compute).unwrap();
    assert_eq!(compute.total_ns, 5_000_000);
    let headline = found.headline.unwrap();
    assert!(headline.contains("of the warm iterations"), "{headline}");
    assert!(
        headline.ends_with("2 of 7 iterations, at the beginning, are cold and left out."),
        "{headline}"
    );
}

#[test]
fn nothing_is_cold_in_the_middle_and_the_slowest_is_explained() {
    let found = diagnosis(ranges(|n| format!("ProfilerStep#{n}"), &[5, 5, 5, 9, 5, 5, 5]));
    let iterations = found.iterations.unwrap();
    assert_eq!((iterations.n_cold(), found.left_out.len()), (0, 0));
    let slowest = iterations.slowest.clone().unwrap();
    assert_eq!((slowest.at, slowest.longer_ns), (3, 4_000_000));
    assert_eq!(slowest.part.unwrap().1, 4_000_000);
    let said = iterations.slowest_sentence().unwrap();
    assert!(said.contains("ProfilerStep#3, takes 9.00 ms on the CPU, 4.00 ms more"), "{said}");
}

#[test]
fn the_slowest_step_is_explained_by_what_the_cpu_does_longer_in_it() {
    let mut fixture = ranges(|n| format!("ProfilerStep#{n}"), &[5, 5, 5, 9, 5]);
    for (n, at) in [0, 5, 10, 15, 24].into_iter().enumerate() {
        // In the slow step the update takes 4 ms more, of which one op takes 3.6 ms; another thread does nothing of it.
        let (update, op) = if n == 3 { (4_500_000, 3_700_000) } else { (500_000, 100_000) };
        let at = at * 1_000_000 + 500_000;
        fixture.push(slice("user_annotation", "Optimizer.step").at(at, update).on(1, 1));
        fixture.push(slice("cpu_op", "aten::norm").at(at + 10_000, op).on(1, 1));
        fixture.push(slice("cpu_op", "aten::stack").at(at, 2 * update).on(1, 2));
    }
    let iterations = diagnosis(fixture).iterations.unwrap();
    let slowest = iterations.slowest.clone().unwrap();
    assert_eq!(slowest.on_cpu, Some(("aten::norm".to_owned(), 3_600_000)));
    let said = iterations.slowest_sentence().unwrap();
    let cause = "on the CPU it spends 3.60 ms more in aten::norm (90.0% of the difference)";
    assert!(said.contains(cause), "{said}");
}

/// Steps with 5 ms of GPU work each, one after the other without a gap; the CPU waits in each up to the time given, in ms.
fn steps_behind_the_gpu(waits_until_ms: &[i64], work_ms: impl Fn(usize) -> i64) -> Fixture {
    let mut fixture = Fixture::default();
    let (mut at, mut runs_at) = (0, 10_000);
    for (n, until) in waits_until_ms.iter().enumerate() {
        let until = until * 1_000_000;
        let name = format!("ProfilerStep#{n}");
        fixture.push(slice("user_annotation", &name).at(at, until - at).on(1, 1));
        fixture.push(slice("cpu_op", "aten::item").at(at + 100_000, until - at - 200_000).on(1, 1));
        let dur = work_ms(n) * 1_000_000;
        launch(&mut fixture, "gemm", n as i64 + 1, at + 1_000, runs_at, dur);
        let wait = slice("cuda_runtime", "cudaStreamSynchronize");
        fixture.push(wait.at(at + 150_000, until - at - 300_000).on(1, 1));
        (at, runs_at) = (until, runs_at + dur);
    }
    fixture
}

#[test]
fn a_step_that_only_waits_longer_for_equal_work_of_the_gpu_is_not_slow() {
    // (The second step ends before its work does, the third waits for that and for its own.)
    let of = |waits: &[i64], work: fn(usize) -> i64| {
        diagnosis(steps_behind_the_gpu(waits, work)).iterations.unwrap()
    };
    let iterations = of(&[5, 8, 15, 20, 25, 30], |_| 5);
    let slowest = iterations.slowest.clone().unwrap();
    assert_eq!((slowest.part, slowest.on_cpu), (None, None));
    let waits = slowest.only_waits.unwrap();
    assert_eq!((waits.longer_ns, waits.busy_ns), (2_000_000, (5_000_000, 5_000_000)));
    assert_eq!(waits.call.as_deref(), Some("cudaStreamSynchronize"));
    let said = iterations.slowest_sentence().unwrap();
    let cause = "but it does not delay the GPU: the CPU waits 2.00 ms longer for it, in cudaStreamSynchronize; the GPU is busy with its \
                 work for 5.00 ms (5.00 ms with that of the median one), and idle for 0 ns during it (0 ns).";
    assert!(said.ends_with(cause), "{said}");
    // Twice the work in the slow step, or in the one before it, is a cause.
    for work in [|n| if n == 2 { 10 } else { 5 }, |n| if n == 1 { 10 } else { 5 }] {
        let more = of(&[5, 8, 20, 25, 30, 35], work);
        assert_eq!(more.slowest.unwrap().only_waits, None);
    }
}

#[test]
fn passes_of_an_engine_are_told_by_stage() {
    let name = |n: usize| {
        let kinds =
            ["execute_context_2(900)_generation_0(0)", "execute_context_0(0)_generation_8(8)"];
        kinds[usize::from(n > 0)].to_owned()
    };
    let iterations = diagnosis(ranges(name, &[30, 5, 5, 5, 5])).iterations.unwrap();
    assert_eq!(iterations.kind, diagnosis::Kind::EnginePasses);
    let classes: Vec<(&str, usize)> =
        iterations.classes.iter().map(|class| (&*class.name, class.n)).collect();
    assert_eq!(classes, [("extend", 1), ("decode", 4)]);
    assert_eq!(iterations.n_cold(), 0, "a prefill is no cold decode");
    // A cold decode after the one prefill.
    let found = diagnosis(ranges(name, &[30, 20, 5, 5, 5]));
    let iterations = found.iterations.unwrap();
    let cold: Vec<bool> = iterations.list.iter().map(|one| one.cold.is_some()).collect();
    assert_eq!(cold, [false, true, false, false, false]);
    let headline = found.headline.unwrap();
    assert!(headline.ends_with("1 of 5 iterations is cold and left out."), "{headline}");
    // (The headline has said which of them is cold.)
    assert_eq!(iterations.section().intro[0], "5 passes of prefill or decode.");
}

#[test]
fn the_stages_share_the_bar_of_the_warm_iterations() {
    let name = |n: usize| {
        let kinds =
            ["execute_context_2(900)_generation_0(0)", "execute_context_0(0)_generation_8(8)"];
        kinds[usize::from(n > 0)].to_owned()
    };
    let found = diagnosis(ranges(name, &[30, 20, 5, 5, 5]));
    assert_eq!(found.left_out.len(), 1);
    let bar: i64 = found.wall.iter().map(|row| row.total_ns).sum();
    let stages: Vec<_> = found.wall_stages.iter().map(|wall| wall.stage.id()).collect();
    assert_eq!(stages, ["extend", "decode"]);
    assert_eq!(found.wall_stages.iter().map(|wall| wall.total_ns).sum::<i64>(), bar);
    let shares: f64 = found.wall_stages.iter().map(|wall| wall.share_pct).sum();
    assert!((shares - 100.0).abs() < 1e-6, "{shares}");
}

#[test]
fn equal_steps_have_no_slowest_and_a_step_a_tenth_longer_is_not_told() {
    let of = |durations: &[i64]| {
        diagnosis(ranges(|n| format!("ProfilerStep#{n}"), durations)).iterations.unwrap()
    };
    assert_eq!(of(&[10, 10, 10, 10]).slowest, None);
    assert_eq!(of(&[10, 10, 11, 10]).slowest, None);
    assert!(of(&[10, 10, 12, 10]).slowest.is_some());
}

#[test]
fn ranges_that_leave_most_of_the_work_out_are_no_iterations() {
    let mut fixture = ranges(|n| format!("iter {n}"), &[5, 5, 5]);
    for n in 0..10 {
        let at = 100_000_000 + n * 2_000_000;
        launch(&mut fixture, "gemm", 100 + n, at, at + 4_000, 1_000_000);
    }
    assert_eq!(diagnosis(fixture).iterations, None);
}

/// A run with the details of its events, on a device of this name with 132 multiprocessors.
fn diagnosed(mut fixture: Fixture, device: &str, details: &Details) -> Diagnosis {
    let json = format!(r#"[{{"id": 0, "name": "{device}", "numSms": 132, "warpSize": 32}}]"#);
    fixture.metadata("deviceProperties", &json);
    with_details(&fixture.finish(), details)
}

const H100: &str = "NVIDIA H100 80GB HBM3";

#[test]
fn an_addition_at_the_bandwidth_of_the_device_is_limited_by_it() {
    // 3 x 512 MiB of 16-bit floats in 600 us are 2684 GB/s of 3350; in 3 ms they are not, and in 300 us a cache helped.
    let with = |device: &str, dur: i64| {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::add").at(0, 50_000).on(1, 1));
        launch(&mut fixture, "vectorized_elementwise_kernel", 1, 1_000, 10_000, dur);
        let mut details = Details::default();
        let dims = details.texts.intern("[[16384,16384],[16384,16384],[]]");
        let types = details.texts.intern(r#"["c10::BFloat16","c10::BFloat16","Scalar"]"#);
        details.inputs.push(trace::OpInputs { dims, types });
        details.ops.push((0, 0));
        diagnosed(fixture, device, &details)
    };
    let found = with(H100, 600_000);
    assert_eq!(verdicts(&found, "M21"), ["bandwidth_bound"]);
    let finding = found.findings.iter().find(|finding| finding.rule.id() == "M21").unwrap();
    assert!(finding.observation.contains("aten::add (600 µs, 80.1% of"), "{}", finding.observation);
    assert!(verdicts(&with(H100, 3_000_000), "M21").is_empty());
    assert!(verdicts(&with(H100, 300_000), "M21").is_empty());
    assert!(verdicts(&with("Unknown device", 600_000), "M21").is_empty());
}

#[test]
fn products_of_a_matrix_and_a_vector_read_each_weight_for_one_row() {
    let with = |name: &str, dur: i64, at: i64| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, name, 1, 0, 10_000, dur);
        launch(&mut fixture, "gemm", 2, 4_000, at, 500_000);
        verdicts(&diagnosis(fixture), "M21")
    };
    let gemv =
        "void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false>(P)";
    assert_eq!(with(gemv, 300_000, 310_000), ["matrix_vector"]);
    assert!(with(gemv, 30_000, 310_000).is_empty(), "a small part of the time");
    assert!(with(gemv, 300_000, 9_000_000).is_empty(), "the GPU is idle");
    assert!(with("void gemm_kernel<float>(P)", 300_000, 310_000).is_empty());
}

#[test]
fn only_a_value_that_is_read_between_launches_is_in_a_graphs_way() {
    let with = |reads: &[i64], on_gpu: bool| {
        let mut fixture = Fixture::default();
        for (step, inner) in (0..4_i64).flat_map(|step| reads.iter().map(move |at| (step, *at))) {
            if on_gpu {
                let link = 10_000_000 * step + inner;
                let at = step * 4_000_000 + inner;
                let call = slice("cuda_runtime", "cudaMemcpyAsync").at(at + 1_000, 50_000);
                fixture.push(call.on(1, 1).link(link));
                let copy = slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)");
                fixture.push(copy.at(at + 20_000, 2_000).link(link));
            }
            for op in ["aten::item", "aten::_local_scalar_dense"] {
                let at = step * 4_000_000 + inner;
                fixture.push(slice("cpu_op", op).at(at, 60_000).on(1, 1));
            }
        }
        for step in 0..4_i64 {
            let at = step * 4_000_000;
            let name = format!("ProfilerStep#{step}");
            fixture.push(slice("user_annotation", &name).at(at, 4_000_000).on(1, 1));
            for n in 0..20 {
                let called = at + n * 150_000;
                launch(&mut fixture, "k", 100 * step + n + 1, called, called + 4_000, 5_000);
            }
        }
        let found = diagnosis(fixture);
        let action = found.actions.iter().find(|action| action.rule == "M2").unwrap();
        action
            .hypothesis
            .split_once("A graph cannot span a read from the GPU, and ")
            .map(|(_, text)| text.to_owned())
    };
    let said = |reads: &[i64]| with(reads, true).unwrap_or_default();
    assert!(said(&[1_510_000]).starts_with("4 are between the launches"));
    assert_eq!(with(&[3_100_000], true), None, "after the last launch");
    assert_eq!(with(&[1_510_000], false), None, "a value of the CPU");
    // (As M6 counts them.)
    assert!(said(&[1_510_000, 3_100_000]).starts_with("4 of 8 are between the launches"));
}

#[test]
fn python_outside_ops_is_named_where_it_is_the_largest_place() {
    let with = |op_ns: i64| {
        let mut fixture = paced(50_000);
        for n in 0..20 {
            fixture.push(slice("cpu_op", "aten::mul").at(n * 50_000 + 15_000, op_ns).on(1, 1));
        }
        diagnosis(fixture).actions[0].hypothesis.clone()
    };
    let short = with(10_000);
    assert!(short.contains("the launching thread is in no recorded op ("), "{short}");
    assert!(short.contains("aten::mul ("), "{short}");
    let long = with(30_000);
    assert!(long.contains("the launching thread is in aten::mul ("), "{long}");
}

#[test]
fn a_grid_smaller_than_the_device_counts_where_nothing_else_runs() {
    let with = |blocks: u32, dur: i64, other: bool| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "small_grid", 1, 0, 10_000, dur);
        if other {
            let call = slice("cuda_runtime", "cudaLaunchKernel").at(5_000, 2_000).on(1, 1);
            fixture.push(call.link(2));
            fixture.push(kernel("large_grid").at(9_000, dur + 2_000).on(0, 8).link(2));
        }
        let mut details = Details::default();
        let grid = |x| trace::LaunchConfig { grid: Some([x, 1, 1]), ..Default::default() };
        details.configs = vec![grid(blocks), grid(100_000)];
        details.launches = vec![(1, 0), (3, 1)];
        diagnosed(fixture, H100, &details)
    };
    let found = with(40, 100_000, false);
    assert_eq!(verdicts(&found, "M20"), ["under_filled"]);
    let finding = found.findings.iter().find(|finding| finding.rule.id() == "M20").unwrap();
    assert!(finding.observation.contains("of the 132 multiprocessors"), "{}", finding.observation);
    assert!(verdicts(&with(132, 100_000, false), "M20").is_empty());
    assert!(verdicts(&with(40, 9_000, false), "M20").is_empty());
    assert!(verdicts(&with(40, 100_000, true), "M20").is_empty());
}

#[test]
fn a_product_with_odd_rows_is_told_and_a_padded_one_is_not() {
    let with = |inner: usize| {
        let mut fixture = Fixture::default();
        fixture.push(slice("cpu_op", "aten::mm").at(0, 50_000).on(1, 1));
        launch(&mut fixture, "cutlass_align1", 1, 1_000, 10_000, 600_000);
        let mut details = Details::default();
        let dims = details.texts.intern(&format!("[[4096,{inner}],[{inner},512]]"));
        let types = details.texts.intern(r#"["c10::BFloat16","c10::BFloat16"]"#);
        details.inputs.push(trace::OpInputs { dims, types });
        details.ops.push((0, 0));
        diagnosed(fixture, H100, &details)
    };
    let odd = with(1001);
    assert_eq!(verdicts(&odd, "M14"), ["counted", "misaligned"]);
    // 4096 x 1001 x 512 x 2 operations take 4.2 us at 989 TFLOP/s.
    let bounds: Vec<i64> = odd.findings.iter().filter_map(|finding| finding.bound_ns).collect();
    assert!(bounds.iter().any(|ns| (595_000..596_000).contains(ns)), "{bounds:?}");
    assert!(odd.actions.iter().any(|action| action.remedy == "aligned-sizes"), "{:?}", odd.actions);
    assert_eq!(verdicts(&with(1008), "M14"), ["counted"]);
}

/// A product by a kernel of this name for 600 us, and other work for the rest of 1 ms, on a device.
fn product_by(name: &str, device: &str, dur: i64) -> Diagnosis {
    let mut fixture = Fixture::default();
    fixture.push(slice("cpu_op", "aten::mm").at(0, 50_000).on(1, 1));
    launch(&mut fixture, name, 1, 1_000, 60_000, dur);
    launch(&mut fixture, "other", 2, 55_000, 60_000 + dur, 1_000_000 - dur);
    let mut details = Details::default();
    let dims = details.texts.intern("[[4096,1001],[1001,512],[]]");
    let types = details.texts.intern(r#"["float","float",""]"#);
    details.inputs.push(trace::OpInputs { dims, types });
    details.ops.push((0, 0));
    diagnosed(fixture, device, &details)
}

#[test]
fn kernels_with_narrow_loads_are_told_with_their_op_and_sizes() {
    let narrow = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(int)";
    let a100 = "NVIDIA A100-SXM4-80GB";
    let found = product_by(narrow, a100, 60_000);
    assert_eq!(verdicts(&found, "kernel_choice"), ["narrow_loads"]);
    let of = |found: &Diagnosis| {
        let own = found.findings.iter().find(|finding| finding.rule.id() == "kernel_choice");
        own.unwrap().observation.clone()
    };
    let text = of(&found);
    assert!(text.contains("60.0 µs (6.0% of"), "{text}");
    assert!(text.contains("aten::mm [4096,1001] [1001,512] (60.0 µs)"), "{text}");
    // Below 5% nothing is told, and wide loads are as they should be.
    assert!(verdicts(&product_by(narrow, a100, 40_000), "kernel_choice").is_empty());
    let wide = narrow.replace("align1", "align4");
    assert!(verdicts(&product_by(&wide, a100, 60_000), "kernel_choice").is_empty());
}

#[test]
fn a_convolution_of_last_resort_is_told_from_one_percent_on() {
    let naive = "naive_conv_nonpacked_wrw_nchw_half_double_half.kd";
    let on = |device, dur| verdicts(&product_by(naive, device, dur), "kernel_choice");
    assert_eq!(on("AMD Instinct MI300X", 20_000), ["naive_convolution"]);
    assert!(on("AMD Instinct MI300X", 5_000).is_empty());
    assert!(on(H100, 20_000).is_empty(), "MIOpen is a library of ROCm");
}

#[test]
fn kernels_for_an_earlier_generation_are_a_hypothesis() {
    let ampere = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn";
    let found = product_by(ampere, H100, 600_000);
    assert_eq!(verdicts(&found, "kernel_choice"), ["older_generation"]);
    let own = found.findings.iter().find(|finding| finding.rule.id() == "kernel_choice").unwrap();
    assert_eq!((own.confidence.id(), own.bound_ns), ("low", None));
    assert!(own.observation.contains("kernels for Ampere"), "{}", own.observation);
    assert!(own.meaning.contains("may have no newer kernel"), "{}", own.meaning);
    assert!(found.actions.iter().all(|action| action.rule != "kernel_choice"));
    // The same kernels are the newest of an A100, and on an unknown device nobody can tell.
    for device in ["NVIDIA A100-SXM4-80GB", "A device"] {
        assert!(verdicts(&product_by(ampere, device, 600_000), "kernel_choice").is_empty());
    }
    assert!(verdicts(&product_by(ampere, H100, 40_000), "kernel_choice").is_empty());
}

#[test]
fn work_that_begins_before_its_launch_means_that_the_clocks_disagree() {
    let with = |early_ns: i64, late_ns: i64| {
        let mut fixture = Fixture::default();
        for n in 0..20 {
            launch(&mut fixture, "k", n + 1, n * 50_000 + early_ns, n * 50_000 + 4_000, 5_000);
        }
        if late_ns > 0 {
            launch(&mut fixture, "k", 30, late_ns, late_ns + 4_000, 5_000);
        }
        diagnosis(fixture)
    };
    let found = |early_ns: i64| with(early_ns, 0);
    assert!(verdicts(&found(0), "clocks").is_empty());
    // Old files cut times to whole microseconds.
    assert!(verdicts(&found(5_500), "clocks").is_empty());
    let drifted = found(34_000);
    assert_eq!(verdicts(&drifted, "clocks"), ["disagree"]);
    let headline = drifted.headline.unwrap();
    assert!(
        headline.contains(
            "20 of 20 GPU slices begin more than 2.00 µs before the call that launched them, at most 30.0 µs"
        ),
        "{headline}"
    );
    // Beside a second of idle time, 21 times 30 us change no figure.
    let idle = with(34_000, 1_000_000_000);
    let clocks = idle.findings.iter().find(|one| one.verdict == "disagree").unwrap();
    assert!(clocks.is_aside && !idle.headline.unwrap().contains("clocks"));
}

#[test]
fn launches_without_work_in_the_file_are_counted() {
    let mut fixture = paced(50_000);
    assert!(verdicts(&diagnosis(paced(50_000)), "lost").is_empty());
    for n in 0..2 {
        let call = slice("cuda_runtime", "cudaLaunchKernel").at(1_000_000 + n * 10_000, 2_000);
        fixture.push(call.on(1, 1).link(100 + n));
    }
    let found = diagnosis(fixture);
    assert_eq!(verdicts(&found, "lost"), ["no_gpu_work"]);
    let lost = found.findings.iter().find(|finding| finding.rule.id() == "lost").unwrap();
    assert_eq!(lost.observation, "2 of 22 launch calls (9.1%) have no GPU work in the file.");
}

#[test]
fn steps_of_an_optimizer_are_iterations_up_to_their_ends() {
    let run = |n_steps: i64| {
        let mut fixture = Fixture::default();
        for n in 0..n_steps {
            let at = n * 1_000_000;
            fixture.push(slice("cpu_op", "aten::mm").at(at, 100_000).on(1, 1));
            launch(&mut fixture, "k", n + 1, at + 10_000, at + 20_000, 5_000);
            let step = slice("user_annotation", "Optimizer.step#SGD.step");
            fixture.push(step.at(at + 500_000, 100_000).on(1, 1));
        }
        diagnosis(fixture).iterations
    };
    let found = run(4).unwrap();
    assert_eq!(found.kind, diagnosis::Kind::OptimizerSteps);
    let windows: Vec<(i64, i64)> = found.list.iter().map(|one| one.window()).collect();
    assert_eq!(windows[..2], [(0, 600_000), (600_000, 1_600_000)]);
    assert!(run(2).is_none(), "two are too few");
    // A second optimizer that steps right after the first.
    let mut fixture = Fixture::default();
    for n in 0..4_i64 {
        let at = n * 1_000_000;
        fixture.push(slice("cpu_op", "aten::mm").at(at, 100_000).on(1, 1));
        for k in 0..3 {
            let called = at + 10_000 + k * 10_000;
            launch(&mut fixture, "k", 3 * n + k + 1, called, called + 5_000, 5_000);
        }
        for (name, from) in
            [("Optimizer.step#Muon.step", 500_000), ("Optimizer.step#AdamW.step", 610_000)]
        {
            fixture.push(slice("user_annotation", name).at(at + from, 100_000).on(1, 1));
        }
    }
    let both = diagnosis(fixture).iterations.unwrap();
    let windows: Vec<(i64, i64)> = both.list.iter().map(|one| one.window()).collect();
    assert_eq!(windows[..2], [(0, 710_000), (710_000, 1_710_000)]);
}

#[test]
fn communication_hides_behind_other_kernels_and_not_behind_idle_time() {
    let run = |launched_ns: i64, begun_ns: i64| {
        let mut fixture = Fixture::default();
        launch(&mut fixture, "ncclDevKernel_AllReduce_Sum", 1, 0, 10_000, 8_000_000);
        launch(&mut fixture, "gemm", 2, 5_000, 8_010_000, 1_000_000);
        launch(&mut fixture, "gemm", 3, launched_ns, begun_ns, 1_000_000);
        let found = diagnosis(fixture).findings;
        found.into_iter().find(|finding| finding.rule.id() == "M10").unwrap()
    };
    let queued = run(10_000, 9_010_000);
    assert_eq!(queued.bound_ns, Some(2_000_000));
    assert!(
        queued
            .meaning
            .ends_with("Other kernels run alone for 2.00 ms: no more of it can be hidden.")
    );
    // The last one begins 10 us after its launch, and would without any communication, too.
    let late = run(90_000_000, 90_010_000);
    assert_eq!(late.bound_ns, Some(10_000));
    assert!(
        late.meaning
            .ends_with("would save at most 10.0 \u{b5}s: what follows is launched no earlier.")
    );
}

#[test]
fn copies_that_go_away_take_their_ops_with_them() {
    // Three times a clone of 100 us on the GPU, and a kernel that is launched 100 us after its op.
    let mut fixture = Fixture::default();
    for n in 0..3 {
        let (from, link) = (n * 1_000_000, 2 * n + 1);
        fixture.push(slice("cpu_op", "aten::clone").at(from, 400_000).on(1, 1));
        fixture.push(slice("cpu_op", "aten::copy_").at(from + 10_000, 380_000).on(1, 1));
        let call = slice("cuda_runtime", "cudaMemcpyAsync").on(1, 1).link(link);
        fixture.push(call.at(from + 20_000, 5_000));
        let copy = slice("gpu_memcpy", "Memcpy DtoD (Device -> Device)").link(link);
        fixture.push(copy.at(from + 30_000, 100_000));
        launch(&mut fixture, "k", link + 1, from + 500_000, from + 510_000, 300_000);
    }
    // The device waits for the CPU all the time: three times 400 us go away, and not three times 100.
    let found = diagnosis(fixture).findings;
    let copies = found.iter().find(|finding| finding.rule.id() == "M7").unwrap();
    assert_eq!(copies.bound_ns, Some(1_200_000));
    assert!(copies.meaning.contains("The CPU spends 1.20 ms in the ops"), "{}", copies.meaning);
}

/// A loop that reads values one by one: an op, a copy of 4 bytes and its call.
fn reads(n: i64, bytes: i64) -> Diagnosis {
    let mut fixture = Fixture::default();
    let mut details = Details::default();
    for at in 0..n {
        let from = at * 40_000;
        fixture.push(slice("cpu_op", "aten::copy_").at(from, 30_000).on(1, 1));
        fixture.push(
            slice("cuda_runtime", "cudaMemcpyAsync").at(from + 1_000, 20_000).on(1, 1).link(at + 1),
        );
        fixture.push(
            slice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)")
                .at(from + 15_000, 3_000)
                .link(at + 1),
        );
        details.copied_bytes.push((3 * at as u32 + 2, bytes));
    }
    diagnosed(fixture, H100, &details)
}

#[test]
fn values_read_one_by_one_are_to_be_copied_at_once() {
    let found = reads(200, 4);
    let waits = found.findings.iter().find(|finding| finding.rule.id() == "M5").unwrap();
    assert!(
        waits.observation.starts_with("The CPU waits for the GPU in 200 calls for 4.00 ms"),
        "{}",
        waits.observation
    );
    let advice = |found: &Diagnosis| {
        found
            .actions
            .iter()
            .any(|action| action.action.starts_with("Copy the tensor to the CPU once"))
    };
    assert!(advice(&found), "{:?}", found.actions);
    assert!(!advice(&reads(200, 1 << 20)), "large copies are no loop over values");
    assert!(!advice(&reads(50, 4)), "fifty are few");
}

#[test]
fn work_whose_call_is_not_in_the_file_is_of_no_earlier_step() {
    let mut fixture = paced(50_000);
    fixture.push(kernel("triton_poi_fused_add_0").at(2_000_000, 5_000).link(99));
    let found = diagnosis(fixture);
    let orphans = found.findings.iter().find(|finding| finding.verdict == "launch_lost").unwrap();
    assert!(
        orphans
            .observation
            .starts_with("The launches of 1 of 21 GPU slices (5.00 µs) are not in the file"),
        "{}",
        orphans.observation
    );
    let mut fixture = paced(50_000);
    fixture.push(kernel("k").at(1_000, 2_000).link(99));
    let found = diagnosis(fixture);
    let orphans = found.findings.iter().find(|finding| finding.verdict == "carried_over").unwrap();
    assert!(orphans.meaning.starts_with("They belong to an earlier step"), "{}", orphans.meaning);
}

/// A wait of 50 us at the end of a gap of 9 ms in which the CPU computes: the device waits for it from there on.
#[test]
fn a_wait_late_in_a_gap_counts_from_its_start() {
    let mut fixture = Fixture::default();
    launch(&mut fixture, "k", 1, 0, 4_000, 10_000_000);
    let wait =
        |at: i64, dur: i64| slice("cuda_runtime", "cudaStreamSynchronize").at(at, dur).on(1, 1);
    // (Of the first nothing is left: it ends before there is work.)
    fixture.push(wait(-90_000_000, 89_000_000));
    fixture.push(wait(10_000, 9_000_000));
    fixture.push(wait(19_000_000, 50_000));
    launch(&mut fixture, "k", 2, 21_000_000, 21_004_000, 50_000_000);
    let found = diagnosis(fixture);
    let waits = found.findings.iter().find(|finding| finding.rule.id() == "M5").unwrap();
    let said = "waits for the GPU in 2 calls for 9.05 ms; the GPU is idle for 2.00 ms before its next work";
    assert!(waits.observation.contains(said), "{}", waits.observation);
}

/// Ranges of one name whose numbers label parts of the program: one is around all, one comes often.
#[test]
fn numbers_that_label_are_no_count_of_iterations() {
    let names = |name: &dyn Fn(i64) -> String| {
        let mut fixture = Fixture::default();
        fixture.push(slice("user_annotation", "part 0").at(0, 100_000_000).on(1, 1));
        for n in 0..9 {
            let at = 1_000_000 + n * 10_000_000;
            fixture.push(slice("user_annotation", &name(n)).at(at, 9_900_000).on(1, 1));
            launch(&mut fixture, "k", n + 1, at + 1_000, at + 5_000, 5_000_000);
        }
        diagnosis(fixture).iterations.map(|of| of.list.len())
    };
    assert_eq!(names(&|_| "part 1".to_owned()), Some(9), "the one that comes again");
    assert_eq!(
        names(&|n| format!("part {}", n + 1)),
        None,
        "all of them count, and one is around the others"
    );
}

/// Calls in a step that free and allocate: inside an op, or by themselves.
#[test]
fn memory_that_is_given_back_inside_an_op_is_of_an_allocation_that_failed() {
    let found = |op: &str| {
        let mut fixture = paced(50_000);
        fixture
            .push(slice("user_annotation", "ProfilerStep#5").at(-90_000_000, 200_000_000).on(1, 1));
        fixture.push(slice("cpu_op", op).at(-80_000_000, 60_000_000).on(1, 1));
        for n in 0..4 {
            let at = -70_000_000 + n * 5_000_000;
            fixture.push(slice("cuda_runtime", "cudaFree").at(at, 4_000_000).on(1, 1));
        }
        fixture.push(slice("cuda_runtime", "cudaMalloc").at(-40_000_000, 9_000_000).on(1, 1));
        verdicts(&diagnosis(fixture), "M11")
    };
    assert_eq!(found("aten::cat"), ["retries"]);
    assert_eq!(found("aten::linalg_eigh"), ["in_steps"], "its library has a workspace");
    assert_eq!(found("my_cache::clear"), ["in_steps"]);
}

/// Two kernels, 9 ms apart; the CPU waits for the first, computes for 8 ms, and launches the second.
#[test]
fn what_the_cpu_does_after_a_wait_is_told_beside_the_wait() {
    let mut fixture = Fixture::default();
    launch(&mut fixture, "k", 1, 0, 4_000, 90_000_000);
    let wait = slice("cuda_runtime", "cudaStreamSynchronize").at(10_000, 90_000_000).on(1, 1);
    fixture.push(wait);
    fixture.push(slice("cpu_op", "aten::sort").at(90_100_000, 8_000_000).on(1, 1));
    launch(&mut fixture, "k", 2, 99_000_000, 99_004_000, 50_000_000);
    let found = diagnosis(fixture);
    let waits = found.findings.iter().find(|finding| finding.rule.id() == "M5").unwrap();
    assert!(
        waits.observation.contains("is idle for 9.00 ms before its next work, "),
        "{}",
        waits.observation
    );
}

/// Calls of TorchScript's fallback: three that run, and two nested ones that compile while the GPU stands still.
#[test]
fn torchscript_that_compiles_is_a_set_up() {
    let mut fixture = Fixture::default();
    launch(&mut fixture, "k", 1, 0, 4_000, 5_000);
    for n in 0..3 {
        fixture
            .push(slice("cpu_op", "fallback_function").at(10_000 + n * 400_000, 300_000).on(1, 1));
    }
    for n in 0..2 {
        let at = 2_000_000 + n * 1_000;
        let compiles = slice("cpu_op", "fallback_function").at(at, 80_000_000 - 2 * n * 1_000);
        fixture.push(compiles.on(1, 1));
    }
    launch(&mut fixture, "k", 2, 83_000_000, 83_004_000, 5_000);
    let found = diagnosis(fixture);
    assert_eq!(verdicts(&found, "M18"), ["torchscript"]);
    let headline = found.headline.as_deref().unwrap();
    assert!(headline.starts_with("TorchScript compiles for 80.0 ms of the 83.0 ms"), "{headline}");
}

#[test]
fn time_in_the_compiler_is_told_and_a_last_empty_step_is_none() {
    let mut fixture = Fixture::default();
    fixture.push(
        slice("user_annotation", "_compile.compile_inner (dynamo_timed)")
            .at(10_000, 80_000_000)
            .on(1, 1),
    );
    launch(&mut fixture, "k", 1, 0, 4_000, 5_000);
    launch(&mut fixture, "k", 2, 80_500_000, 80_504_000, 5_000);
    for (n, at, dur) in [(0, 0, 90_000_000), (1, 90_000_000, 30_000)] {
        fixture.push(slice("user_annotation", &format!("ProfilerStep#{n}")).at(at, dur).on(1, 1));
    }
    let found = diagnosis(fixture);
    assert_eq!(verdicts(&found, "M18"), ["compiling"]);
    assert!(
        found
            .headline
            .as_deref()
            .unwrap()
            .starts_with("torch.compile compiles for 80.0 ms of the 80.5 ms"),
        "{:?}",
        found.headline
    );
    let steps = found.findings.iter().find(|finding| finding.rule.id() == "M13").unwrap();
    assert!(
        steps.observation.starts_with("One step of 90.0 ms on the CPU. A last one"),
        "{}",
        steps.observation
    );
}

/// Three passes of DistributedDataParallel; in each the thread works for 3 ms on buffers before the first kernel of the model.
#[test]
fn a_broadcast_of_buffers_that_the_gpu_waits_for_is_named() {
    let with = |first: &str, trains: bool| {
        let mut fixture = Fixture::default();
        let op = |name| slice("cpu_op", name).on(1, 1);
        for n in 0..3 {
            let at = n * 10_000_000;
            let pass = slice("user_annotation", "DistributedDataParallel.forward").on(1, 1);
            fixture.push(pass.at(at, 5_000_000));
            fixture.push(op(first).at(at + 100_000, 500_000));
            fixture.push(op("c10d::broadcast_").at(at + 700_000, 300_000));
            launch(
                &mut fixture,
                "ncclDevKernel_Broadcast",
                10 * n + 1,
                at + 800_000,
                at + 810_000,
                5_000,
            );
            fixture.push(op("aten::unflatten_dense_tensors").at(at + 1_000_000, 1_600_000));
            fixture.push(op("aten::view").at(at + 1_100_000, 100_000));
            fixture.push(op("aten::copy_").at(at + 2_700_000, 400_000));
            fixture.push(op("aten::conv2d").at(at + 3_200_000, 100_000));
            launch(&mut fixture, "k", 10 * n + 2, at + 3_250_000, at + 3_260_000, 6_000_000);
            if trains {
                let step = slice("user_annotation", "Optimizer.step#SGD.step").on(1, 1);
                fixture.push(step.at(at + 6_000_000, 10_000));
            }
        }
        let mut found = diagnosis(fixture);
        let action = found.actions.iter().position(|action| action.remedy == "own-buffers");
        (verdicts(&found, "M3").contains(&"ddp_buffers"), action.map(|at| found.actions.remove(at)))
    };
    let (is_said, action) = with("aten::flatten_dense_tensors", true);
    let action = action.unwrap();
    // 3 ms each without the broadcast, but in the first pass what lies between the broadcast's kernel, which goes away, and the model's.
    assert!(is_said && action.observation.contains("of 3 forward passes"), "{action:?}");
    assert_eq!(action.bound_ns, 2_450_000 + 2 * 3_000_000, "{action:?}");
    assert!(with("aten::flatten_dense_tensors", false).1.is_none(), "of inference");
    assert!(!with("aten::relu", true).0, "the model comes first");
}

#[test]
fn a_share_of_the_busy_time_is_also_told_without_work_from_before_the_recording() {
    let with = |earlier_ns: i64| {
        let mut fixture = Fixture::default();
        for n in 0..10 {
            let at = 1_000_000 + n * 100_000;
            fixture.push(slice("cpu_op", "aten::copy_").at(at, 9_000).on(1, 1));
            launch(&mut fixture, "copies", n + 1, at + 1_000, at + 4_000, 90_000);
        }
        fixture.push(kernel("k").at(-earlier_ns, earlier_ns).link(99));
        let trace = fixture.finish();
        let triaged = triage(&trace, &TriageOptions::default(), &Sources::default());
        let index = host::HostIndex::of(&trace);
        let report = host::host(&index, &Details::default());
        Facts::of(&index, &Details::default(), &report, &triaged).of_busy(450_000)
    };
    assert_eq!(
        with(900_000),
        "25.0% of the busy time, 50.0% without work from before the recording"
    );
    assert_eq!(with(10_000), "49.5% of the busy time");
}

#[test]
fn two_products_of_tensile_are_told_apart_by_their_tiles() {
    let product = |tile: &str| {
        let middle = "LDSB1_AFC1_AFEM1_CLR1_CADS0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8";
        format!(
            "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT{tile}_MI16x16x1_SN_{middle}_WS64_WG32_8_1"
        )
    };
    let (large, small) = (product("256x128x64"), product("128x224x64"));
    let mut fixture = Fixture::default();
    for n in 0..20 {
        let name = if n % 4 == 0 { &small } else { &large };
        launch(&mut fixture, name, n + 1, n * 3_000, 100_000 + n * 100_000, 100_000);
    }
    let headline = diagnosis(fixture).headline.unwrap();
    assert!(headline.contains("75.0% of it in Cijk_Alik_Bljk_B_"), "{headline}");
    assert!(headline.contains("MT256x128x64"), "{headline}");
}

#[test]
fn a_file_whose_ops_have_stacks_as_a_text_needs_no_other_recording() {
    let with = |ops_have_stacks: bool| {
        let details = Details { ops_have_stacks, ..Details::default() };
        with_details(&paced(50_000).finish(), &details).actions[0].hypothesis.clone()
    };
    assert!(with(false).contains("with_stack=True"), "{}", with(false));
    assert!(!with(true).contains("with_stack=True"), "{}", with(true));
}

#[test]
fn a_cache_of_memory_that_is_off_counts_the_calls_that_allocate() {
    // Half of the tensors have an op of their own; all have a call.
    let mut fixture = Fixture::default();
    for n in 0..240_i64 {
        let at = n * 100_000;
        if n % 2 == 0 {
            fixture.push(slice("cpu_op", "aten::empty").at(at, 90_000).on(1, 1));
        }
        fixture.push(slice("cuda_runtime", "hipMalloc").at(at + 1_000, 80_000).on(1, 1));
        launch(&mut fixture, "gemm", n + 1, at + 92_000, at + 96_000, 3_000);
    }
    let found = diagnosis(fixture);
    let finding = found.findings.iter().find(|finding| finding.verdict == "uncached").unwrap();
    let text = "240 calls of hipMalloc allocate memory from the driver: PyTorch's caching";
    assert!(finding.observation.starts_with(text), "{}", finding.observation);
}

#[test]
fn a_cache_of_memory_that_is_on_brings_late_launches_earlier() {
    let bound_us = |kernel_us: i64| {
        let mut fixture = Fixture::default();
        for n in 0..240_i64 {
            let at = n * 100_000;
            fixture.push(slice("cpu_op", "aten::empty").at(at, 90_000).on(1, 1));
            fixture.push(slice("cuda_runtime", "hipMalloc").at(at + 1_000, 80_000).on(1, 1));
            launch(&mut fixture, "gemm", n + 1, at + 92_000, at + 96_000, kernel_us * 1_000);
        }
        let found = diagnosis(fixture).findings;
        let finding = found.into_iter().find(|finding| finding.verdict == "uncached").unwrap();
        (finding.bound_ns.unwrap() / 1_000, finding.meaning)
    };
    // Of each gap of 70 us the call covers 55; without it the CPU takes 20 us for a kernel of 30.
    let (us, meaning) = bound_us(30);
    assert_eq!(us, 239 * 70);
    assert!(meaning.contains("also come earlier"), "{meaning}");
    // The CPU takes longer than a kernel of 3 us: only the call goes away.
    assert_eq!(bound_us(3), (239 * 80, String::new()));
}

#[test]
fn ranges_of_several_kinds_are_not_called_by_the_name_of_one() {
    let mut fixture = Fixture::default();
    for (n, tokens) in [0_i64, 1024, 0].into_iter().enumerate() {
        let at = n as i64 * 1_000_000;
        let name = format!("execute_context_{}({tokens})_generation_0(0)", tokens.min(1));
        fixture.push(slice("user_annotation", &name).at(at, 999_000).on(1, 1));
        launch(&mut fixture, "k", n as i64 + 1, at + 1_000, at + 5_000, 900_000);
    }
    let found = diagnosis(fixture);
    let iterations = found.iterations.as_ref().unwrap();
    assert_eq!(iterations.classes.len(), 2);
    assert_eq!(iterations.section().intro[0], "3 ranges of 2 kinds.", "as long as each other, too");
}

#[test]
fn what_saves_less_than_two_runs_differ_is_in_no_report() {
    let printed = |bound_ns: i64| {
        let mut found = diagnosis(paced(50_000));
        let text = "It waits.".to_owned();
        let own = Finding::fact(diagnosis::Rule::Communication, "exposed", text);
        found.findings = vec![own.bound(bound_ns).means("Start it earlier.")];
        let (costs, figures) = found.further();
        costs.len() + figures.len()
    };
    // (The bar is of about a millisecond.)
    assert_eq!((printed(500), printed(50_000)), (0, 1));
}

#[test]
fn kernels_that_another_number_format_replaces_are_said_once() {
    let found = |name: &str| {
        let mut fixture = Fixture::default();
        let device = r#"[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 132}]"#;
        fixture.metadata("deviceProperties", device);
        for n in 0..20_i64 {
            launch(&mut fixture, name, n + 1, n * 10_000, 1_000_000 + n * 1_000_000, 1_000_000);
        }
        diagnosis(fixture)
    };
    let floats = found("ampere_sgemm_128x64_tn");
    assert!(floats.actions.iter().any(|one| one.rule == "M19"), "{:?}", floats.actions);
    assert_eq!(verdicts(&floats, "kernel_choice"), [""; 0]);
    let half = found("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn");
    assert_eq!(verdicts(&half, "kernel_choice"), ["older_generation"]);
}
