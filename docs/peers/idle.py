#!/usr/bin/env python3
"""Compares the GPU's idle time, by cause, with that of HTA, and proves each difference.

    python3 docs/peers/idle.py KINETOSCOPE PYTHON TRACE...

PYTHON is an interpreter in which HTA can be imported. The script reads each trace itself, with Python's json. It first counts
as Kinetoscope defines the figure, then adopts one definition of HTA after the other. A column contains the change that one
definition makes; a column without any change is omitted. The first count must equal Kinetoscope's figure to the nanosecond,
and the last must equal HTA's to the microsecond (HTA computes in whole ones). A row for which this is not so is marked with ?
and counted on stderr, and the exit status is then 1.
"""

import gzip
import json
import math
import re
import sys
from pathlib import Path

from compare import GPU, LAUNCHERS, Run, ns

# HTA's argument consecutive_kernel_delay has the default 30, and its times are microseconds.
KERNEL_WAIT_NS = 30_000

HTA = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
found = {}
try:
    causes, _ = analysis.get_idle_time_breakdown(visualize=False)
    causes = causes.groupby("idle_category")["idle_time"].sum()
    found["causes"] = [float(causes.get(cause, 0)) for cause in ("host_wait", "kernel_wait", "other")]
except Exception as error:
    found["no causes"] = repr(error)
try:
    time = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    found["times"] = [float(time[column]) for column in ("idle_time(us)", "compute_time(us)", "non_compute_time(us)")]
except Exception as error:
    found["no times"] = repr(error)
print("RESULT " + json.dumps(found))
"""


class Slice:
    """An event with a duration: exact nanoseconds, and the whole microseconds of HTA, in nanoseconds."""

    def __init__(self, row, event):
        args = event.get("args") if isinstance(event.get("args"), dict) else {}
        self.row, self.name, self.cat = row, str(event.get("name")), str(event.get("cat", "")).lower()
        self.device = str(args.get("device", event.get("pid")))
        self.correlation = args.get("correlation", -1)
        try:
            self.stream = int(args.get("stream", -1))
        except ValueError:
            self.stream = -1
        ts, dur = event["ts"], event["dur"]
        self.start = ns(ts)
        self.end = self.start + max(0, ns(dur))
        self.at, self.until = 1000 * math.ceil(float(ts)), 1000 * math.floor(float(ts) + float(dur))
        if isinstance(ts, int) and isinstance(dur, int):
            self.at, self.until = self.start, self.start + 1000 * dur
        self.launch = None

    def is_gpu_of_hta(self):
        return self.stream >= 0 and self.correlation >= 0 or self.name in ("Event Sync", "Context Sync")


class Trace:
    """The slices of a trace, each GPU slice with its launch."""

    def __init__(self, path):
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
        with opened as file:
            document = json.loads(file.read().decode("utf-8", "replace"), parse_float=str, strict=False)
        events = document["traceEvents"] if isinstance(document, dict) else document
        self.slices = [Slice(row, event) for row, event in enumerate(events)
                       if event.get("ph") == "X" and "ts" in event and "dur" in event and event.get("cat") not in (None, "Trace")]
        calls = {}
        for one in sorted((one for one in self.slices if one.cat in LAUNCHERS), key=lambda one: (one.start, one.row)):
            calls.setdefault(one.correlation, one)
        self.gpu = [one for one in self.slices if one.cat in GPU]
        for one in self.gpu:
            one.launch = calls.get(one.correlation) if one.correlation > 0 else None

    def kept_by_hta(self):
        """If there are several steps, HTA keeps a GPU slice once per host event before the last step with its correlation."""
        steps = {one.name for one in self.slices if "ProfilerStep" in one.name}
        hosts = [one for one in self.slices if not one.is_gpu_of_hta()]
        if len(steps) < 2:
            return self.slices
        last, times = max(one.at for one in hosts if one.name in steps), {}
        for one in hosts:
            if one.at < last:
                times[one.correlation] = times.get(one.correlation, 0) + 1
        kept = [one for one in self.slices if one.is_gpu_of_hta() for _ in range(times.get(one.correlation, 0))]
        return kept + [one for one in hosts if one.at < last]


def merged(spans):
    out = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def length(spans):
    return sum(end - start for start, end in merged(spans))


def gaps_of_devices(gpu, with_empty):
    """The gaps in which a device runs nothing, and the slice that ends each: the first of the file. A slice whose recorded
    duration is 0 ends a gap only with `with_empty`."""
    for device in sorted({one.device for one in gpu}):
        own, first = [one for one in gpu if one.device == device], {}
        for one in own:
            first.setdefault(one.start, one)
        spans = merged((one.start, one.end) for one in own if with_empty or one.end > one.start)
        for before, after in zip(spans, spans[1:]):
            yield before[1], after[0], first[after[0]]


def split(gaps):
    """Kinetoscope: a gap waits for the host until the launch call ends; afterwards the next slice is queued."""
    host = queued = no_launch = 0
    for start, end, after in gaps:
        if after.launch is None:
            no_launch += end - start
            continue
        launched = min(max(start, after.launch.end), end)
        host, queued = host + launched - start, queued + end - launched
    return host, queued, no_launch


def is_blocked(start, end, after):
    """Whether HTA names the host as the cause of a gap, although the next slice was queued for over a millisecond of it."""
    return after.launch is not None and after.launch.start > start and end - after.launch.end > 1_000_000


def whole(gaps):
    """HTA: a gap has one cause, which is the host if the launch call starts after the start of the gap."""
    host = wait = other = 0
    for start, end, launched in gaps:
        if launched is not None and launched > start:
            host += end - start
        elif end - start < KERNEL_WAIT_NS:
            wait += end - start
        else:
            other += end - start
    return host, wait, other


def gaps_of_streams(rows):
    """From the end of each slice of a stream to the start of the next one; negative where they overlap."""
    for stream in sorted({row[0] for row in rows}):
        own = sorted((row[1:] for row in rows if row[0] == stream), key=lambda row: row[0])
        for before, after in zip(own, own[1:]):
            yield before[1], after[0], after[2]


def exact(slices):
    return [(one.stream, one.start, one.end, one.launch and one.launch.start) for one in slices]


def rounded(slices, unlinked=None):
    return [(one.stream, one.at, one.until, one.launch.at if one.launch else unlinked) for one in slices]


def causes(trace):
    """Pairs: a definition, and (waits for the host, and two other causes) by it and those before it."""
    yield "Kinetoscope", split(gaps_of_devices(trace.gpu, with_empty=False))
    gaps = list(gaps_of_devices(trace.gpu, with_empty=True))
    yield "slices of 0 µs", split(gaps)
    yield "one cause per gap", whole((start, end, after.launch and after.launch.start) for start, end, after in gaps)
    yield "per stream", whole(gaps_of_streams(exact(trace.gpu)))
    yield "whole µs", whole(gaps_of_streams(rounded(trace.gpu)))
    gpu = [one for one in trace.kept_by_hta() if one.cat in GPU]
    yield "no last step", whole(gaps_of_streams(rounded(gpu)))
    # HTA looks the launch up by its row in the file, and a slice without a launch refers to row 0.
    first = trace.slices[0].at if trace.slices and trace.slices[0].row == 0 else None
    yield "row 0", whole(gaps_of_streams(rounded(gpu, first)))


OURS_COMM = re.compile(
    r"nccl|rccl|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem_", re.IGNORECASE)
HTA_OTHER = re.compile(r"^nccl.*Kernel|.*Memcpy|Memset|.*Sync")


def times(slices, is_compute, start, end):
    spans = [(start(one), end(one)) for one in slices]
    covered = merged(spans)
    busy = length(spans)
    compute = length((start(one), end(one)) for one in slices if is_compute(one))
    return (covered[-1][1] - covered[0][0] - busy if covered else 0), compute, busy - compute


def temporal(trace):
    """Pairs: a definition, and (idle, compute, other work) by it and those before it."""
    start, end = (lambda one: one.start), (lambda one: one.end)
    at, until = (lambda one: one.at), (lambda one: one.until)
    ours = lambda one: one.cat == "kernel" and not OURS_COMM.search(one.name)
    theirs = lambda one: not HTA_OTHER.match(one.name)
    yield "Kinetoscope", times(trace.gpu, ours, start, end)
    yield "names", times(trace.gpu, theirs, start, end)
    streamed = [one for one in trace.slices if one.stream != -1]
    yield "stream argument", times(streamed, theirs, start, end)
    yield "whole µs", times(streamed, theirs, at, until)
    yield "no last step", times([one for one in trace.kept_by_hta() if one.stream != -1], theirs, at, until)


def kinetoscope(program, path):
    cpu = Run([program, "cpu", str(path), "--json"])
    work = Run([program, "breakdown", str(path), "--json"])
    gpu, found = json.loads(work.out)["gpu"], json.loads(cpu.out)
    gaps = [device["all"] for device in found["gaps"].values()]
    total = lambda key: sum(gap[key] for gap in gaps)
    exposed = sum(device["M10"]["exposed_ns"] for device in found["verdicts"]["devices"].values())
    compute = gpu["kernel_busy_ns"] - exposed
    return ((total("host_ns"), total("queued_ns"), total("no_launch_ns")),
            (gpu["idle_ns"], compute, gpu["busy_ns"] - compute))


def ms(*values):
    return " + ".join(f"{value / 1e6:.3f}" for value in values)


def change(before, after):
    if before == after:
        return ""
    return f"{(after - before) / 1e6:+.3f}" if abs(after - before) >= 500 else f"{(after - before) / 1e6:+.6f}"


def print_rows(title, of, rows):
    """A table of the changes of the sum of some parts."""
    value = lambda step: sum(step[1][part] for part in of)
    names = [name for name, _ in rows[0][1]]
    shown = [at for at in range(1, len(names)) if any(value(steps[at - 1]) != value(steps[at]) for _, steps, _, _ in rows)]
    print(f"\n### {title}\n\n| trace | Kinetoscope | " + " | ".join(names[at] for at in shown) + " | HTA |")
    print("|---|" + "---:|" * (len(shown) + 2))
    for name, steps, theirs, mark in rows:
        changes = [change(value(steps[at - 1]), value(steps[at])) for at in shown]
        ends = ms(*(steps[0][1][part] for part in of)), ms(*(theirs[part] for part in of)) if theirs else "failed"
        print(f"| {name} | {ends[0]} | " + " | ".join(changes) + f" | {ends[1]}{mark} |")


def main():
    program, python, *paths = sys.argv[1:]
    waits, parts, blocked, failures, n_unexplained = [], [], [], [], 0
    for path in map(Path, paths):
        name, found, trace = path.name.split(".json")[0], Run([python, "-c", HTA, str(path)]).result() or {}, Trace(path)
        for rows, steps, own, key in zip((waits, parts), (causes, temporal), kinetoscope(program, path), ("causes", "times")):
            steps = list(steps(trace))
            theirs = [round(1000 * value) for value in found[key]] if key in found else None
            right = steps[0][1] == own and theirs in (None, list(steps[-1][1]))
            n_unexplained += not right
            rows.append((name, steps, theirs, "" if right else " ?"))
            if theirs is None:
                last = ms(*steps[-1][1]).replace(" + ", ", ")
                failures.append(f"* {name}: {found.get('no ' + key, 'no output')}; its definitions give {last} ms")
        blocked += [(name, *gap) for gap in gaps_of_devices(trace.gpu, with_empty=True) if is_blocked(*gap)]
    print_rows("Idle time in which the next slice was not launched yet, ms", (0,), waits)
    print_rows("Other idle time, ms: queued + without a launch; kernel wait + other", (1, 2), waits)
    print_rows("Idle from the first to the last slice, ms", (0,), parts)
    print_rows("Time with compute kernels, ms", (1,), parts)
    print("\n### Gaps that wait for the host in HTA, although the launch call had ended\n")
    print("| trace | gap, ms | launch call, µs after the start of the gap |\n|---|---:|---:|")
    for name, start, end, after in blocked:
        call = (f"{(time - start) / 1000:.1f}" for time in (after.launch.start, after.launch.end))
        print(f"| {name} | {ms(end - start)} | {' to '.join(call)} |")
    print("\n" + "\n".join(failures))
    if n_unexplained:
        print(f"{n_unexplained} rows are not explained: marked with ?", file=sys.stderr)
    return 1 if n_unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
