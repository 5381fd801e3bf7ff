//! Every nasty file decodes to what is expected of it: our own, and those of the corpus, which have the same names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;

use decode::{Decoded, FileKind};
use trace::{Flags, IdToken, Phase};

/// What is expected of one file.
struct Case {
    file: &'static str,
    /// Events in all, and complete ones.
    n: (usize, usize),
    problems: &'static [&'static str],
    check: fn(&Decoded),
}

const fn case(
    file: &'static str,
    n: (usize, usize),
    problems: &'static [&'static str],
    check: fn(&Decoded),
) -> Case {
    Case { file, n, problems, check }
}

fn nothing_more(_: &Decoded) {}

fn complete(decoded: &Decoded) -> Vec<(&str, i64, i64)> {
    let trace = &decoded.trace;
    trace
        .rows()
        .filter(|row| trace.phase(*row) == Phase::Complete)
        .map(|row| (trace.name_text(row), trace.ts_ns(row), trace.dur_ns(row)))
        .collect()
}

fn count(decoded: &Decoded, phase: Phase) -> usize {
    decoded.trace.rows().filter(|row| decoded.trace.phase(*row) == phase).count()
}

const CASES: &[Case] = &[
    case("01_pdl_overlap.json", (17, 12), &[], |it| {
        let trace = &it.trace;
        let row = trace.rows().find(|row| trace.flags(*row).has(Flags::KERNEL)).unwrap();
        assert_eq!(
            trace.track_info(trace.track(row)).name.map(|id| trace.strings.get(id)),
            Some("stream 7 ")
        );
    }),
    case("02_rocm_huge_dur.json", (906, 901), &[], |it| {
        assert_eq!(complete(it).iter().map(|slice| slice.2).max(), Some(20_000_000));
    }),
    case("03_zero_dur_same_ts.json", (11, 6), &[], |it| {
        assert!(complete(it).iter().any(|slice| slice.2 == 0));
        assert!(
            it.trace
                .rows()
                .filter(|row| it.trace.phase(*row) == Phase::Complete)
                .all(|row| it.trace.flags(row).has(Flags::HAS_DUR))
        );
    }),
    case("05_big_ts_subns.json", (45, 40), &[], |it| {
        assert!(complete(it).iter().all(|slice| slice.2 == 1_100));
        assert!(complete(it).windows(2).all(|two| two[0].1 + two[0].2 == two[1].1));
        assert_eq!(it.trace.origin_ns, 0);
    }),
    case("07_flows_moved.json", (13, 4), &[], |it| {
        let trace = &it.trace;
        let links: Vec<_> = trace
            .rows()
            .filter(|row| trace.phase(*row).is_flow())
            .map(|row| trace.link(row))
            .collect();
        assert_eq!(links.len(), 4);
        assert!(links.iter().all(Option::is_some));
    }),
    case("09_async.json", (6, 1), &[], |it| {
        assert_eq!(
            (
                count(it, Phase::AsyncBegin),
                count(it, Phase::AsyncInstant),
                count(it, Phase::AsyncEnd)
            ),
            (2, 1, 2)
        );
    }),
    case("10_counters_instants.json", (9, 1), &[], |it| {
        assert_eq!((count(it, Phase::Counter), count(it, Phase::Instant)), (5, 3));
        let wide =
            it.trace.rows().filter(|row| it.trace.flags(*row).has(Flags::SCOPE_WIDE)).count();
        assert_eq!(wide, 2);
    }),
    case("11_python_cross.json", (21, 20), &[], |it| {
        assert!(complete(it).iter().all(|slice| slice.2 == 35_000));
    }),
    case("13_truncated_mid_event.json", (25, 20), &["truncated", "unclosed-array"], |it| {
        assert_eq!(it.trace.layout.lost_tail_bytes, 57);
    }),
    case("14_trailing_comma.json", (35, 30), &["trailing-comma"], |it| {
        assert!(it.trace.layout.gaps_need_rewrite);
    }),
    case("15_nan_inf_args.json", (3, 3), &["non-finite-number"], |it| {
        assert!(it.trace.rows().all(|row| it.trace.flags(row).has(Flags::TEXT)));
    }),
    case("17_invalid_utf8.json", (2, 2), &["invalid-utf8"], |it| {
        assert_eq!(complete(it)[0].0, "caf\u{fffd} \u{fffd}\u{fffd}");
    }),
    case("18_bom.json", (35, 30), &["bom"], |it| assert_eq!(it.trace.layout.start, 3)),
    case("19_concatenated.json", (70, 60), &["concatenated"], |it| {
        assert_eq!(it.trace.layout.documents, 2);
        assert!(it.trace.layout.gaps_need_rewrite && !it.trace.layout.suffix_needs_rewrite);
    }),
    case("20_empty.json", (0, 0), &[], |it| assert!(it.trace.layout.end.is_some())),
    case("23_bare_array_unclosed.json", (35, 30), &["unclosed-array"], |it| {
        assert!(it.trace.layout.end.is_none() && it.trace.layout.lost_tail_bytes == 0);
    }),
    case("24_no_dur.json", (3, 3), &["missing-dur"], |it| {
        let flags = it.trace.flags(1);
        assert!(flags.has(Flags::HAS_TS) && !flags.has(Flags::HAS_DUR));
    }),
    case("26_dup_lane.json", (10, 4), &[], nothing_more),
    case("28_neg_dur_ts.json", (3, 3), &["negative-dur", "negative-ts"], |it| {
        assert_eq!(
            complete(it),
            [("neg", 10_000, -5_000), ("negts", -20_000, 5_000), ("ok", 30_000, 5_000)]
        );
    }),
    case("29_surrogate.json", (3, 3), &["surrogate-escape"], |it| {
        assert_eq!(complete(it)[0].0, "\u{1f600} step");
        assert_eq!(complete(it)[1].0, "lone \u{fffd}");
        assert!(!it.trace.flags(2).has(Flags::TEXT));
    }),
    case("32_same_tid_two_pids.json", (4, 4), &[], |it| {
        assert_eq!((it.trace.tracks.len(), it.trace.processes.len()), (4, 2));
        assert_eq!(
            it.trace.tracks.iter().filter(|track| matches!(track.tid, IdToken::Text(_))).count(),
            2
        );
    }),
    case("33_sort_order.json", (3, 3), &[], nothing_more),
    case("34_reversed.json", (50, 50), &[], |it| {
        assert!(complete(it).windows(2).all(|two| two[0].1 > two[1].1));
    }),
    case("35_gz.json.gz", (35, 30), &[], |it| assert!(it.source.gzip)),
    case(
        "37_gz_truncated.json.gz",
        (11, 6),
        &["gzip-truncated", "truncated", "unclosed-array"],
        |it| {
            assert_eq!(it.trace.layout.lost_tail_bytes, 22);
        },
    ),
    case("38_meta_only_end.json", (8, 2), &[], |it| {
        assert_eq!(count(it, Phase::Metadata), 6);
        for key in ["deviceProperties", "distributedInfo", "baseTimeNanoseconds"] {
            assert!(it.trace.metadata.get(key).is_some(), "{key}");
        }
        assert!(it.trace.metadata.int("baseTimeNanoseconds").is_some());
    }),
    case("39_empty_obj_events.json", (3, 1), &["empty-event"], nothing_more),
    case("42_dup_keys.json", (2, 2), &["duplicate-key"], |it| {
        assert_eq!(it.trace.dur_ns(0), 6_000)
    }),
    case("43_leading_ws_key_after.json", (2, 2), &[], |it| {
        let layout = &it.trace.layout;
        assert_eq!((layout.before.len(), layout.after.len()), (1, 1));
        assert_eq!(it.trace.metadata.get("z"), Some(r#"[1,[2,{"q":"\"]"}]]"#));
    }),
    case("45_surrogate_in_args.json", (2, 2), &["surrogate-escape"], nothing_more),
    case("47_ctrl_toplevel.json", (2, 2), &["control-character"], |it| {
        assert!(it.trace.layout.prefix_needs_rewrite);
        assert_eq!(it.trace.metadata.get("traceName"), Some(r#""a\nb""#));
    }),
    case("50_exp_ts.json", (2, 2), &[], |it| {
        assert_eq!(complete(it), [("a", 1_500_000, 5_000), ("b", 1_600_000, 5_000)]);
    }),
    case("52_flow_before_slice.json", (4, 2), &[], |it| assert_eq!(it.trace.ts_ns(2), 19_999)),
    case("54_dup_flow_id.json", (6, 3), &[], nothing_more),
    case("55_text_after_close.json", (35, 30), &["trailing-text"], |it| {
        assert_eq!(it.trace.layout.trailing_bytes, 9);
    }),
];

#[test]
fn every_nasty_file() {
    let mut seen = BTreeSet::new();
    for sample in testkit::nasty_samples() {
        let name = &*sample.name;
        let file = sample.bytes();
        let result = common::decode(&file);
        for size in [1, 3, 100] {
            assert_eq!(
                common::digest(&common::decode_in(&file, size)),
                common::digest(&result),
                "{name}"
            );
        }
        if name == testkit::nasty::UNREADABLE {
            assert_eq!(result.unwrap_err().kind, FileKind::PythonRepr);
            continue;
        }
        let case = CASES.iter().find(|case| case.file == name);
        let case = case.unwrap_or_else(|| panic!("no expectation for {name}"));
        let decoded = result.unwrap();
        assert_eq!((decoded.trace.len(), count(&decoded, Phase::Complete)), case.n, "{name}");
        assert_eq!(common::ids(&decoded.problems), case.problems, "{name}");
        assert!(decoded.problems.iter().all(|it| it.count > 0 && !it.excerpt.is_empty()), "{name}");
        (case.check)(&decoded);
        if sample.own {
            seen.insert(name.to_owned());
        }
    }
    let unseen: Vec<_> = CASES.iter().filter(|case| !seen.contains(case.file)).collect();
    assert!(
        unseen.is_empty(),
        "no sample: {:?}",
        unseen.iter().map(|case| case.file).collect::<Vec<_>>()
    );
}
