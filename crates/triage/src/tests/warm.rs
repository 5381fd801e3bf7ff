//! What is found and advised of a recording whose first iteration is cold: it tries algorithms that no later one runs.

use crate::{FuseRow, Sources, TriageOptions, TriageReport, triage};
use fixture::{Fixture, kernel, slice};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

const TO_NHWC: &str = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(int)";
const TO_NCHW: &str = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false>(int)";
const WINOGRAD: &str = "miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f2x3_stride1";
const COMPLEX: &str = "void transpose_readWrite_alignment_kernel<float2, float2, 1, false, 6, 4, 4>(cublasTransposeParams<float2>)";
const CONV: &str = "volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1";
const HALF_CONV: &str = "maxwell_fp16_scudnn_fp16_128x64_relu_interior_nn_v1";
const PLAIN_CONV: &str = "volta_scudnn_128x64_relu_interior_nn_v1";

/// Five steps, each with ten times these kernels of 100 us; the first takes four times as long on the CPU as the others, which run other
/// kernels.
fn steps(sm: impl Into<Option<(u32, u32)>>, cold: &[&str], warm: &[&str]) -> TriageReport {
    let mut fixture = Fixture::default();
    let capability = sm.into().map_or_else(String::new, |(major, minor)| {
        format!(r#""computeMajor": {major}, "computeMinor": {minor}, "#)
    });
    let device = format!(r#"[{{"id": 0, "name": "NVIDIA V", {capability}"warpSize": 32}}]"#);
    fixture.metadata("deviceProperties", &device);
    let (mut begins_ns, mut link) = (0, 0);
    for step in 0..5 {
        let kernels = if step == 0 { cold } else { warm };
        let dur_ns = if step == 0 { 40 * MS } else { 10 * MS };
        let name = format!("ProfilerStep#{step}");
        fixture.push(slice("user_annotation", &name).on(1, 1).at(begins_ns, dur_ns));
        for (name, at) in kernels.iter().cycle().take(10 * kernels.len()).zip(0..) {
            link += 1;
            let op_ns = begins_ns + at * 110 * US;
            fixture.push(slice("cpu_op", "aten::conv2d").on(1, 1).at(op_ns, 8 * US));
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
            fixture.push(launch.at(op_ns + US, 4 * US));
            fixture.push(kernel(name).at(op_ns + 8 * US, 100 * US).link(link));
        }
        begins_ns += dur_ns;
    }
    triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
}

fn layout_change(report: &TriageReport) -> Option<FuseRow> {
    report.fuse.iter().find(|row| row.pattern_id == "K09" && row.is_advice()).cloned()
}

fn titles(report: &TriageReport) -> Vec<String> {
    let sections = report.sections(1.0);
    let tables = sections.iter().flat_map(|section| &section.tables);
    tables.map(|table| table.title.to_string()).collect()
}

const TRANSPOSED: &[&str] = &[TO_NHWC, CONV, TO_NCHW];

#[test]
fn what_only_the_cold_iteration_does_is_not_advised() {
    let first = steps((7, 0), TRANSPOSED, &[CONV, CONV]);
    assert_eq!(layout_change(&first), None);
    let all = layout_change(&steps((7, 0), TRANSPOSED, TRANSPOSED)).unwrap();
    assert_eq!(
        all.n_occurrences, 20,
        "two convolutions and the changes around them, in each of the four warm ones"
    );
    // (80 changes of 100 us and the gaps before some of them; the cold iteration has a fifth of all.)
    let saved_ns = all.savings_bound_ns.unwrap();
    assert!((8 * MS..9 * MS).contains(&saved_ns), "{saved_ns}");
    assert!(all.rationale.contains("20 times. "), "{}", all.rationale);
    assert!(all.rationale.contains("Counted are the 4 warm iterations."), "{}", all.rationale);
    assert!(all.rationale.contains("of the 4 warm iterations"), "{}", all.rationale);
}

#[test]
fn where_the_cold_iteration_runs_other_kernels_the_tables_tell_its_time_apart() {
    let said = |report: &TriageReport| {
        let found = report.takeaways.iter().find(|said| said.contains("GPU time in the tables"));
        found.cloned()
    };
    // (The first iteration has 30 kernels of 100 us, each of the four later ones 20; both have the convolution.)
    let first = steps((7, 0), TRANSPOSED, &[CONV, CONV]);
    let expected = "The cold iteration at the beginning has 3.00 ms (27.3%) of the 11.0 ms of GPU time in the tables, 2.00 ms of it in \
                    kernels that no other runs. The rest goes to Convolution (100.0%).";
    assert_eq!(said(&first).as_deref(), Some(expected));
    let cold = |report: &TriageReport| {
        let sections = report.sections(1.0);
        let tables: Vec<_> = sections.into_iter().flat_map(|section| section.tables).collect();
        let table = tables.into_iter().find(|table| table.id == "kernel-table").unwrap();
        let at = table.column("cold_ns")?;
        let cells = table.cells(at).map(|cell| cell.number().unwrap_or_default() as i64);
        Some(cells.collect::<Vec<i64>>())
    };
    assert_eq!(cold(&first), Some(vec![MS, MS, MS]));
    let all = steps((7, 0), TRANSPOSED, TRANSPOSED);
    assert_eq!(
        said(&all),
        None,
        "the cold one has a fifth of the time of all, and no kernels of its own"
    );
    assert_eq!(cold(&all), None);
}

#[test]
fn batch_norms_and_poolings_do_not_go_away_with_the_layout_changes() {
    const NORM: &str = "void at::native::batch_norm_collect_statistics_kernel<float, int>(int)";
    let of = |kernels: &[&str]| layout_change(&steps((8, 0), kernels, kernels)).unwrap();
    let (alone, with) = (of(TRANSPOSED), of(&[TO_NHWC, CONV, TO_NCHW, NORM]));
    assert!(with.rationale.contains("not counted: 4.00 ms of batch norms"), "{with:?}");
    assert!(!alone.rationale.contains("not counted"), "{}", alone.rationale);
    let winograd = of(&[TRANSPOSED, &[WINOGRAD]].concat());
    let convolves =
        "4.00 ms of batch norms, poolings and convolutions (MIOpen's Winograd kernels), which";
    assert!(winograd.rationale.contains(convolves), "{}", winograd.rationale);
    // Where those take longer than what goes away, nothing is known of what the change saves.
    let more = [TRANSPOSED, &[WINOGRAD; 3]].concat();
    let more = steps((8, 0), &more, &more);
    assert_eq!(layout_change(&more), None);
    let note = more.fuse_note.unwrap_or_default();
    assert!(
        note.contains("would then run other kernels, faster or slower: Layout changes"),
        "{note}"
    );
    // (Norms may take longer: they say nothing of the convolutions.)
    let norms = [TRANSPOSED, &[NORM; 3], &[WINOGRAD]].concat();
    assert!(layout_change(&steps((8, 0), &norms, &norms)).is_some());
    // (The changes of four steps and gaps, and nothing of the 40 norms of 100 us.)
    let [alone_ns, with_ns] = [alone, with].map(|row| row.savings_bound_ns.unwrap());
    assert!(with_ns.abs_diff(alone_ns) < MS as u64, "{alone_ns} and {with_ns}");
}

#[test]
fn channels_last_is_not_advised_where_group_norms_put_the_channels_first() {
    const NORM: &str =
        "void at::native::(anonymous namespace)::ComputeFusedParamsCUDAKernel<float>(long)";
    let of = |kernels: &[&str]| layout_change(&steps((8, 0), kernels, kernels)).is_some();
    let change = [TO_NHWC, CONV, TO_NCHW];
    assert!(!of(&[&change[..], &[NORM]].concat()), "one after each convolution");
    let many = change.repeat(6);
    assert!(of(&[&many[..], &[NORM]].concat()), "one after six");
}

#[test]
fn tables_say_which_iterations_they_count() {
    let cold = titles(&steps((7, 0), TRANSPOSED, TRANSPOSED));
    let all = "(all 5 iterations, including the cold one at the beginning)";
    assert_eq!(cold[0], format!("Stages {all}"));
    assert_eq!(cold[1], format!("Kernels by stage {all}"));
    assert_eq!(cold[3], "Fuse opportunities (the 4 warm iterations)");
    let mut even = Fixture::default();
    even.push(kernel(CONV).at(0, MS));
    let even = triage(&even.finish(), &TriageOptions::default(), &Sources::default());
    assert_eq!(titles(&even)[0], "Stages", "nothing is cold");
}

/// Six steps on two devices, each with changes of layout around convolutions; in the first step code is loaded on the thread of
/// device `cold` for 3.7 of 10 ms, and that device waits.
fn on_two_devices(cold: i64) -> TriageReport {
    let mut fixture = Fixture::default();
    let device = |id| {
        format!(
            r#"{{"id": {id}, "name": "NVIDIA V", "computeMajor": 7, "computeMinor": 0, "warpSize": 32}}"#
        )
    };
    fixture.metadata("deviceProperties", &format!("[{}, {}]", device(0), device(1)));
    let mut link = 0;
    for step in 0..6 {
        let begins_ns = step * 10 * MS;
        let name = format!("ProfilerStep#{step}");
        fixture.push(slice("user_annotation", &name).on(1, 1).at(begins_ns, 10 * MS));
        for device in [0, 1] {
            let loads = step == 0 && device == cold;
            let thread = 2 + device;
            if loads {
                let load = slice("cuda_runtime", "cuLibraryLoadData").on(1, thread);
                fixture.push(load.at(begins_ns + 1_200 * US, 3_700 * US));
            }
            // (Device 0 has most kernels: the iterations are its.)
            for at in 0..60 - 20 * device {
                if loads && (7..32).contains(&at) {
                    continue;
                }
                link += 1;
                let op_ns = begins_ns + at * 160 * US + device * 7 * US;
                fixture.push(slice("cpu_op", "aten::conv2d").on(1, thread).at(op_ns, 20 * US));
                let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, thread).link(link);
                fixture.push(call.at(op_ns + 2 * US, 5 * US));
                let name = TRANSPOSED[at as usize % 3];
                let run = kernel(name).at(op_ns + 10 * US, 135 * US);
                fixture.push(run.on(device, 7).link(link));
            }
        }
    }
    triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
}

#[test]
fn an_iteration_is_cold_on_all_devices_or_on_none() {
    for (cold, title) in
        [(0, "Stages (all 6 iterations, including the cold one at the beginning)"), (1, "Stages")]
    {
        let report = on_two_devices(cold);
        assert_eq!(titles(&report)[0], title, "{cold}");
        let rows = report.fuse.iter().filter(|row| row.pattern_id == "K09" && row.is_advice());
        let rows: Vec<(&str, bool)> = rows
            .map(|row| (&*row.device, row.rationale.contains("the 5 warm iterations")))
            .collect();
        assert_eq!(rows, [("0", cold == 0), ("1", cold == 0)], "device {cold} waits");
    }
}

#[test]
fn what_devices_of_one_program_show_is_printed_once() {
    let report = on_two_devices(1);
    let printed = |report: &TriageReport| {
        let rows = report.fuse.iter().filter(|row| row.is_printed());
        rows.map(|row| (row.device.clone(), row.rationale.clone())).collect::<Vec<_>>()
    };
    let [(device, why)] = &printed(&report)[..] else { panic!("{:?}", printed(&report)) };
    assert_eq!(device, "0", "which saves more");
    assert!(why.contains(" Device 1 shows the same: at most "), "{why}");
    // The table has the largest fusion: the sentence above it does not say it again.
    let top = |said: &String| said.starts_with("Top fusion candidate");
    assert!(report.takeaways.iter().any(top), "{:?}", report.takeaways);
    assert!(!report.sections(0.0)[0].intro.iter().any(top));
    // The row of a device that is looked at alone is there.
    let alone = printed(&report.on_device("1"));
    assert!(matches!(&alone[..], [(device, _)] if device == "1"), "{alone:?}");
}

#[test]
fn cold_iterations_in_the_middle_are_not_called_the_first() {
    let mut fixture = Fixture::default();
    let (mut at_ns, mut link) = (0, 0);
    for pass in 0..12 {
        let (kind, dur_ns) = match pass {
            ..6 => ("EXTEND", MS),
            6 => ("DECODE", 5 * MS),
            _ => ("DECODE", MS),
        };
        let name = format!("step[{kind} bs=16 toks=16]");
        fixture.push(slice("user_annotation", &name).on(1, 1).at(at_ns, dur_ns));
        for n in 0..9 {
            link += 1;
            let call_ns = at_ns + 20 * US + n * 100 * US;
            let call = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
            fixture.push(call.at(call_ns, 4 * US));
            fixture.push(kernel("gemm_kernel").at(call_ns + 5 * US, 90 * US).link(link));
        }
        at_ns += dur_ns + 20 * US;
    }
    let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
    let title = &titles(&report)[0];
    assert_eq!(title, "Stages (all 12 iterations, including the cold one)");
}

/// Eight ranges of one name: all but the first have six ops of 1 ms. The first has `n_first` and ends on the CPU after 12 ms, so the second
/// waits on the CPU for what is left of it.
fn after_another_work(n_first: i64) -> TriageReport {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name, at, dur| slice(raw_category, name).on(1, 1).at(at, dur);
    let (mut begins_ns, mut free_ns, mut link) = (0, 0, 0);
    for range in 0..8 {
        let n = if range == 0 { n_first } else { 6 };
        let mut at_ns = begins_ns;
        for op in 0..n {
            link += 1;
            fixture.push(cpu("cpu_op", "aten::addmm", at_ns, 40 * US));
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel", at_ns + US, 4 * US).link(link));
            free_ns = (at_ns + 10 * US).max(free_ns);
            fixture.push(kernel("sgemm").at(free_ns, MS).link(link));
            free_ns += MS;
            at_ns += 300 * US;
            if range > 0 && op == 0 {
                let wait_ns = free_ns - at_ns;
                fixture.push(cpu("cuda_runtime", "cudaStreamSynchronize", at_ns, wait_ns));
                at_ns = free_ns + 20 * US;
            }
        }
        fixture.push(cpu("user_annotation", "batch", begins_ns, at_ns - begins_ns));
        begins_ns = at_ns + 10 * US;
    }
    triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
}

#[test]
fn an_iteration_with_other_work_is_not_cold_nor_is_the_one_that_waits_for_it() {
    assert_eq!(titles(&after_another_work(40))[0], "Stages");
    assert_eq!(titles(&after_another_work(6))[0], "Stages");
}

/// The first step takes five times as long on the CPU. All of its work runs while the CPU waits for it after the last step.
#[test]
fn a_step_that_waits_for_nothing_is_cold_whatever_is_queued() {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name, at, dur| slice(raw_category, name).on(1, 1).at(at, dur);
    fixture.push(kernel("sgemm").at(-MS, 4 * MS).link(100));
    fixture.push(cpu("cuda_runtime", "cudaLaunchKernel", -2 * MS, 4 * US).link(100));
    let mut at_ns = 0;
    for step in 0..8_i64 {
        let dur_ns = if step == 0 { 500 * US } else { 100 * US };
        let name = format!("ProfilerStep#{step}");
        fixture.push(slice("user_annotation", &name).on(1, 1).at(at_ns, dur_ns));
        let launch = cpu("cuda_runtime", "cudaLaunchKernel", at_ns + dur_ns - 20 * US, 4 * US);
        fixture.push(launch.link(step + 1));
        fixture.push(kernel("sgemm").at(3 * MS + step * MS, MS).link(step + 1));
        at_ns += dur_ns;
    }
    fixture.push(cpu("cuda_runtime", "cudaDeviceSynchronize", at_ns, 11 * MS - at_ns));
    let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
    assert_eq!(
        titles(&report)[0],
        "Stages (all 8 iterations, including the cold one at the beginning)"
    );
}

/// Five steps with ten launches each, of 10 ms but for the first, which takes `first_ns`. What comes before them has no step, and takes
/// `before_ns`.
fn after_unmarked(n_launches: i64, (before_ns, first_ns): (i64, i64)) -> TriageReport {
    let mut fixture = Fixture::default();
    let cpu = |raw_category, name, at, dur| slice(raw_category, name).on(1, 1).at(at, dur);
    let (mut begins_ns, mut link) = (0, 0);
    for step in 0..6 {
        let (dur_ns, n) = match step {
            0 => (before_ns, n_launches),
            1 => (first_ns, 10),
            _ => (10 * MS, 10),
        };
        fixture.push(cpu("cpu_op", "aten::conv2d", begins_ns, 4 * MS));
        if step > 0 {
            let name = format!("ProfilerStep#{step}");
            fixture.push(slice("user_annotation", &name).on(1, 1).at(begins_ns, dur_ns));
        }
        for nth in 0..n {
            link += 1;
            let at_ns = begins_ns + nth * 110 * US;
            fixture.push(cpu("cuda_runtime", "cudaLaunchKernel", at_ns, 4 * US).link(link));
            fixture.push(kernel(CONV).at(at_ns + 8 * US, 100 * US).link(link));
        }
        begins_ns += dur_ns;
    }
    triage(&fixture.finish(), &TriageOptions::default(), &Sources::default())
}

#[test]
fn an_iteration_before_the_first_step_of_the_profiler_is_one_if_it_is_cold() {
    let with = |n_launches, times| titles(&after_unmarked(n_launches, times)).swap_remove(0);
    let of = |n_launches| with(n_launches, (40 * MS, 10 * MS));
    let with_it = "Stages (all 6 iterations, including the cold one at the beginning)";
    assert_eq!(of(15), with_it, "as PyTorch 1.8 records the first of a run");
    assert_eq!(of(10), with_it);
    assert_eq!(of(8), "Stages", "a part of one");
    assert_eq!(of(21), "Stages", "more than one");
    // What is no longer than a step is a part of one, and hides no cold step.
    let first = "Stages (all 5 iterations, including the cold one at the beginning)";
    assert_eq!(with(10, (5 * MS, 100 * MS)), first);
}

#[test]
fn transposes_of_complex_numbers_are_no_change_of_layout() {
    let of = |transpose| layout_change(&steps((8, 0), &[CONV], &[transpose, CONV, transpose]));
    assert!(of(TO_NHWC).is_some());
    assert_eq!(of(COMPLEX), None, "a step of a convolution by FFT");
}

#[test]
fn channels_last_is_advised_where_the_gpu_has_faster_convolutions_for_it() {
    let of = |sm: Option<(u32, u32)>, conv| {
        let kernels = &[TO_NHWC, conv, TO_NCHW];
        layout_change(&steps(sm, kernels, kernels)).is_some()
    };
    assert!(of(Some((7, 0)), CONV), "16 bits on tensor cores");
    assert!(!of(Some((7, 0)), PLAIN_CONV), "a V100 has no tensor cores for 32 bits");
    assert!(of(Some((8, 0)), PLAIN_CONV), "an A100 has TF32");
    for sm in [(6, 0), (6, 1)] {
        assert!(!of(Some(sm), HALF_CONV), "{sm:?} has no tensor cores");
    }
    assert!(of(None, CONV), "a GPU that is not named runs a kernel of Volta");
    assert!(!of(None, HALF_CONV), "it may be any GPU");
    assert!(!of(None, PLAIN_CONV), "Volta or later, which does not tell of TF32");
}

#[test]
fn a_gap_of_the_cold_iteration_is_said_to_come_before_the_warm_ones() {
    // The first of nine steps sets up for 40 ms in "setup"; each of the others waits 5 ms for "load".
    let of = |setup_ns: i64| {
        let mut fixture = Fixture::default();
        let (mut begins_ns, mut link) = (0, 0);
        for step in 0..9 {
            let (place, pause_ns) = if step == 0 { ("setup", setup_ns) } else { ("load", 5 * MS) };
            let name = format!("ProfilerStep#{step}");
            let dur_ns = pause_ns + 3 * MS;
            fixture.push(slice("user_annotation", &name).on(1, 1).at(begins_ns, dur_ns));
            let pause = slice("user_annotation", place).on(1, 1);
            fixture.push(pause.at(begins_ns + MS, pause_ns));
            for launched_ns in [begins_ns, begins_ns + MS + pause_ns + 10 * US] {
                link += 1;
                let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(link);
                fixture.push(launch.at(launched_ns, 4 * US));
                fixture.push(kernel("k").at(launched_ns + 5 * US, MS).link(link));
            }
            begins_ns += dur_ns;
        }
        let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
        report.takeaways[0].clone()
    };
    let cold = of(40 * MS);
    assert!(cold.contains("ms, before the first warm iteration, with the CPU in setup"), "{cold}");
    let warm = of(5 * MS);
    assert!(!warm.contains("warm iteration"), "{warm}");
}
