#!/usr/bin/env python3
"""Compares the GPU time of each nn.Module with that of TraceLens, and proves each difference.

    python3 docs/peers/modules.py KINETOSCOPE PYTHON TRACE...

PYTHON is an interpreter in which TraceLens can be imported. A module is identified by its path from the outermost frame; the
calls of one path are added up. The script reads each trace itself, with Python's json. It first counts as Kinetoscope defines
the figure, then adopts one definition of TraceLens after the other. The first count must equal Kinetoscope's figure to the
nanosecond, and the last must equal TraceLens's to one nanosecond per GPU slice: its times are 64-bit floats. A module for
which this is not so is marked with ? and counted on stderr, and the exit status is then 1.
"""

import gzip
import json
import sys
from pathlib import Path

from compare import GPU, LAUNCHERS, Run, ns, sum_ns, union

PREFIX = "nn.Module: "
# Rows of the table of differences, for each trace.
MOST = 4

# GPU time and number of GPU slices of each frame, and the time that is not in a module below it.
TRACELENS = """
import contextlib, io, json, sys, warnings
warnings.filterwarnings("ignore")
from TraceLens import TreePerfAnalyzer
with contextlib.redirect_stdout(io.StringIO()):
    analyzer = TreePerfAnalyzer.from_file(sys.argv[1], add_python_func=True)
    tree, failed, rows = analyzer.tree, set(), {}
    frames = [event for event in tree.events
              if event.get("cat") == "python_function" and event["name"].startswith("nn.Module: ")]
    for frame in frames:
        if tree.get_gpu_events(frame):
            try:
                analyzer.build_nn_module_latency_tree(frame)
            except ValueError:
                failed.add(id(frame))
    for frame in frames:
        path, above = [], frame
        while above is not None:
            if above["name"].startswith("nn.Module: "):
                path.insert(0, above["name"][len("nn.Module: "):])
            above = tree.get_parent_event(above)
        row = rows.setdefault("/".join(path), {"calls": 0, "n": 0, "us": 0.0, "own_us": 0.0, "n_failed": 0})
        row["n_failed"] += id(frame) in failed
        row["calls"] += 1
        row["n"] += len(tree.get_gpu_events(frame))
        row["us"] += frame.get("GPU Time", 0)
        if tree.get_nn_module_children(frame):
            row["own_us"] += frame.get("Non-nn.Module GPU Time", 0)
        else:
            row["own_us"] += frame.get("GPU Time", 0)
print("RESULT " + json.dumps(rows))
"""


class Frame:
    """A call of an nn.Module, with the GPU slices that were launched in it."""

    def __init__(self, row, event):
        self.name, self.row, self.start = event["name"][len(PREFIX):], row, ns(event["ts"])
        self.end, self.path, self.parent = self.start + max(0, ns(event["dur"])), "", None
        self.all, self.own, self.below = [], [], []


def nest(frames):
    """Sets parent and path: a frame is in the one that began before it and has not ended."""
    open_frames = []
    for frame in sorted(frames, key=lambda one: (one.start, -one.end, one.row)):
        while open_frames and open_frames[-1].end <= frame.start:
            open_frames.pop()
        frame.parent = open_frames[-1] if open_frames else None
        frame.path = f"{frame.parent.path}/{frame.name}" if frame.parent else frame.name
        if frame.parent:
            frame.parent.below.append(frame)
        open_frames.append(frame)


def read(path):
    """The frames of a trace. A GPU slice is (start, end, whether flow events connect it with its launch)."""
    with gzip.open(path, "rb") as file:
        document = json.loads(file.read().decode("utf-8", "replace"), parse_float=str, strict=False)
    tracks, calls, flows, gpu = {}, {}, {"s": set(), "f": set()}, []
    for row, event in enumerate(document["traceEvents"] if isinstance(document, dict) else document):
        cat, args, track = str(event.get("cat", "")).lower(), event.get("args") or {}, (event.get("pid"), event.get("tid"))
        if cat == "ac2g" and event.get("ph") in flows:
            flows[event["ph"]].add(event.get("id"))
        if event.get("ph") != "X" or "ts" not in event:
            continue
        if cat == "python_function" and event["name"].startswith(PREFIX):
            tracks.setdefault(track, []).append(Frame(row, event))
        elif cat in LAUNCHERS and args.get("correlation"):
            calls.setdefault(args["correlation"], []).append((ns(event["ts"]), row, track, "GraphLaunch" in event["name"]))
        elif cat in GPU and args.get("correlation"):
            gpu.append((ns(event["ts"]), ns(event["ts"]) + max(0, ns(event.get("dur") or 0)), args["correlation"]))
    for frames in tracks.values():
        nest(frames)
    for start, end, correlation in gpu:
        if correlation in calls:
            at, _, track, is_graph = min(calls[correlation])
            inside = [frame for frame in tracks.get(track, []) if frame.start <= at < frame.end]
            frame = max(inside, key=lambda one: (one.start, -one.end, one.row), default=None)
            one = (start, end, is_graph or correlation in flows["s"] and correlation in flows["f"])
            if frame:
                frame.own.append(one)
            while frame:
                frame.all.append(one)
                frame = frame.parent
    return [frame for frames in tracks.values() for frame in frames]


def spans(slices, linked_only=False):
    return [(start, end) for start, end, linked in slices if linked or not linked_only]


def is_empty(frame):
    """Whether the frame, or one below it, has no slice that TraceLens finds: then it computes no own time."""
    return not spans(frame.all, True) or any(is_empty(one) for one in frame.below)


def figures(frames):
    """By path: (calls, slices, time, own time, failures) as Kinetoscope counts; then each definition of TraceLens: only slices
    with a flow, the union of slices, no own time above a module without slices."""
    out = {}
    for frame in frames:
        linked, own, n = spans(frame.all, True), spans(frame.own, True), len(spans(frame.all, True))
        failed = int(bool(linked) and is_empty(frame))
        counts = ((1, len(frame.all), sum_ns(spans(frame.all)), sum_ns(spans(frame.own)), 0),
                  (1, n, sum_ns(linked), sum_ns(own), 0),
                  (1, n, union(linked), union(own), 0),
                  (1, n, union(linked), 0 if failed else union(own), failed))
        sums = out.setdefault(frame.path, [(0,) * 5] * len(counts))
        out[frame.path] = [tuple(map(sum, zip(*pair))) for pair in zip(sums, counts)]
    return out


def is_explained(steps, own, other):
    """Whether the first count is Kinetoscope's and the last is TraceLens's."""
    near = lambda us, value: abs(1000 * us - value) <= 1 + steps[-1][1]
    ours = steps[0][:4] == (own["calls"], own["kernels"], own["device_ns"], own["self_device_ns"])
    n_calls, n, time, own_time, n_failed = steps[-1]
    return (ours and (n_calls, n, n_failed) == (other["calls"], other["n"], other["n_failed"])
            and near(other["us"], time) and near(other["own_us"], own_time))


def main():
    program, python, *paths = sys.argv[1:]
    totals, changed, n_without, n_unexplained = [], [], 0, 0
    for path in map(Path, paths):
        name = path.name.split(".json")[0]
        steps = figures(read(path))
        own = json.loads(Run([program, "cpu", str(path), "--json", "--all"]).out)["modules"]["list"]
        own = {row["path"]: row for row in own}
        if not own:
            n_without += 1
            continue
        found = Run([python, "-c", TRACELENS, str(path)]).result() or {}
        if not set(steps) == set(own) == set(found):
            print(f"{name}: the modules differ", file=sys.stderr)
            n_unexplained += 1
            continue
        marks = {module: "" if is_explained(steps[module], own[module], found[module]) else " ?" for module in steps}
        n_unexplained += sum(map(bool, marks.values()))
        different = [module for module in steps if len({counts[1:3] for counts in steps[module]}) > 1 or marks[module]]
        changed += [(name, module, steps[module], found[module]["us"], marks[module])
                    for module in sorted(different, key=lambda module: (-steps[module][0][2], module))[:MOST]]
        roots = [module for module in steps if "/" not in module]
        totals.append((name, len(steps), len(different), sum(steps[module][0][2] for module in roots) / 1e6,
                       sum(found[module]["us"] for module in roots) / 1e3,
                       sum(counts[0][3] != counts[-1][3] for counts in steps.values()),
                       sum(counts[-1][4] for counts in steps.values())))
    print("| trace | modules | of these with another time | Kinetoscope, ms | TraceLens, ms | with another own time | "
          "frames without own time |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, n, n_different, ours, theirs, n_own, n_failed in totals:
        print(f"| {name} | {n} | {n_different} | {ours:.3f} | {theirs:.3f} | {n_own} | {n_failed} |")
    print(f"\n| trace | module (the first {MOST}) | Kinetoscope, ms | without a flow | concurrent | TraceLens, ms |")
    print("|---|---|---:|---:|---:|---:|")
    for name, module, counts, us, mark in changed:
        delta = [f"{(after[2] - before[2]) / 1e6:+.6f}" if after != before else "" for before, after in zip(counts, counts[1:3])]
        print(f"| {name} | `{module}` | {counts[0][2] / 1e6:.6f} | {delta[0]} | {delta[1]} | {us / 1e3:.6f}{mark} |")
    print(f"\n{n_without} traces have no frames of modules.")
    if n_unexplained:
        print(f"{n_unexplained} modules are not explained: marked with ?", file=sys.stderr)
    return 1 if n_unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
