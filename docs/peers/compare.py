#!/usr/bin/env python3
"""Our figures and those of other tools, on the same traces: the tables of docs/peers.md, as Markdown.

    python3 docs/peers/compare.py --kinetoscope target/release/kinetoscope --skill SCRIPTS --python PYTHON \
        --pair MEASURED CAPTURE --pair ... TRACE...

PYTHON is an interpreter in which TraceLens and HTA can be imported; SCRIPTS is the folder of
analyze_llm_torch_profile.py. A missing tool is named on stderr and left out, and the exit status is then 1.
--figures FILE saves the measurements and reuses them (delete a tool's entry to measure it again).

Every tool runs in its own process; CPU time (all threads) and peak memory come from the operating system. Where a
figure of another tool differs from ours, this script looks for the cause: it reads the trace itself, with Python's json,
counts by other definitions of "GPU time", and names the definition that gives the tool's figure. A figure that
none of them gives is marked "?" and counted on stderr.
"""

import argparse
import csv
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
LAUNCHERS = {"cuda_runtime", "cuda_driver", "hip_runtime", "runtime"}

TRACELENS = "import sys; from TraceLens.Reporting.generate_perf_report_pytorch import main; sys.exit(main())"
TRACELENS_PAIR = TRACELENS.replace("_pytorch", "_pytorch_inference")

HTA = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
_, kernels = analysis.get_gpu_kernel_breakdown(
    visualize=False, duration_ratio=1.0, num_kernels=1_000_000, include_memory_kernels=True)
time = analysis.get_temporal_breakdown(visualize=False).iloc[0]
kernels = kernels[kernels["kernel_type"] != "MEMORY"]
top = kernels.sort_values("sum (us)", ascending=False).iloc[0] if len(kernels) else None
print("RESULT " + json.dumps({
    "busy_us": float(time["kernel_time(us)"] - time["idle_time(us)"]),
    "sum_us": float(kernels["sum (us)"].sum()),
    "top": None if top is None else [str(top["name"]), float(top["sum (us)"])],
}))
"""

# Its command line, as it is.
SKILL = "import sys; sys.path.insert(0, sys.argv[1]); import analyze_llm_torch_profile as a; a.main(sys.argv[2:])"
# Its tables without the cut at 1 %, then the figures that it keeps to itself.
SKILL_ALL = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import analyze_llm_torch_profile as skill
import profile_common, triage_kernel_helpers
trace = profile_common.load_trace_json(Path(sys.argv[2]))
kernels = triage_kernel_helpers.extract_trace_data(trace)[0]
sums = {}
for kernel in kernels:
    row = sums.setdefault(kernel.canonical_name, [0.0, kernel.category])
    row[0] += kernel.dur
top = max(sums.items(), key=lambda row: row[1][0]) if sums else None
print("RESULT " + json.dumps({
    "n": len(kernels),
    "sum_us": sum(kernel.dur for kernel in kernels),
    "other_us": sum(us for us, category in sums.values() if category == "other"),
    "top": top and [top[0], top[1][0]],
}))
skill.MIN_RENDER_SHARE_PCT = 0.0
skill.main(sys.argv[3:] + ["--kernel-table-limit", "0"])
"""

VERSIONS = """
import importlib.metadata as m, platform, sys
for name in sys.argv[1:]:
    print(name, m.version(name))
print("Python", platform.python_version())
"""

MISSING = []


def warn(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    """What a process printed, used and returned."""

    def __init__(self, command):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.out = out.read().decode("utf-8", "replace")
            self.err = err.read().decode("utf-8", "replace")
        self.code = process.returncode
        self.cpu_s = usage.ru_utime + usage.ru_stime
        # Kilobytes, but on macOS bytes.
        self.peak_mb = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)

    def why(self):
        lines = [line for line in self.err.splitlines() if line.strip()]
        return (lines[-1] if lines else f"exit status {self.code}")[:160]

    def result(self):
        for line in self.out.splitlines():
            if line.startswith("RESULT "):
                return json.loads(line[len("RESULT "):])
        return None


def ns(value):
    """A time in microseconds as exact nanoseconds; digits below are cut."""
    if value is None:
        return None
    return int(Decimal(value) * 1000) if not isinstance(value, int) else value * 1000


def union(spans):
    """The length of the union of spans."""
    merged = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    return sum(stop - start for start, stop in merged)


def sum_ns(spans):
    return sum(stop - start for start, stop in spans)


COPIES = "copies and memsets count as kernels"
BEFORE = "kernels launched before profiling started are excluded"
FLOATS = "times are 64-bit floats, too coarse for the nanoseconds of this clock"
WHOLE = "times in whole microseconds: starts rounded up, ends rounded down"
STREAMED = "annotations, waits and API calls with a stream argument count as GPU work"
STEPS = "only kernels launched by ops before the last ProfilerStep"
NO_FILLS = "memsets are excluded"
ONE_PROCESS = "one process of several"


class Slice:
    """A slice that names a stream, or is GPU work."""

    __slots__ = ("start", "end", "at", "until", "is_gpu", "is_kernel", "is_call", "linked", "pid", "name", "correlation")


class Reading:
    """A trace's GPU slices, and sums of them as other tools read them."""

    def __init__(self, path):
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
        with opened as file:
            document = json.loads(file.read().decode("utf-8", "replace"), parse_float=str, strict=False)
        events = document["traceEvents"] if isinstance(document, dict) else document
        self.slices, launched, hosts, self.steps = [], set(), [], {}
        for event in events:
            if not isinstance(event, dict) or event.get("ph") != "X" or "ts" not in event:
                continue
            args = event.get("args") if isinstance(event.get("args"), dict) else {}
            raw, ts, dur = str(event.get("cat", "")).lower(), event["ts"], event.get("dur") or 0
            correlation, name = args.get("correlation"), str(event.get("name"))
            stream = str(args.get("stream", "-1"))
            if raw in LAUNCHERS:
                launched.add(correlation)
            if raw not in GPU and (stream == "-1" or raw in LAUNCHERS):
                hosts.append((math.ceil(float(ts)), correlation))
                if name.startswith("ProfilerStep"):
                    self.steps[name] = max(math.ceil(float(ts)), self.steps.get(name, 0))
            if raw not in GPU and stream == "-1":
                continue
            one = Slice()
            one.start = ns(ts)
            one.end = one.start + max(0, ns(dur))
            one.at, one.until = float(ts), float(ts) + float(dur)
            one.is_gpu, one.is_kernel, one.is_call = raw in GPU, raw == "kernel", raw in LAUNCHERS
            one.pid, one.name, one.correlation = str(event.get("pid")), name, correlation
            self.slices.append(one)
        launched.discard(None)
        # How many ops of the host, that began before the last step, carry an id.
        self.early = {}
        last = max(self.steps.values(), default=0)
        for start, correlation in hosts:
            if start < last and correlation is not None:
                self.early[correlation] = self.early.get(correlation, 0) + 1
        by_pid = {}
        for one in self.slices:
            one.linked = not launched or one.correlation in launched
            by_pid[one.pid] = by_pid.get(one.pid, 0) + one.end - one.start
        self.gpu = [one for one in self.slices if one.is_gpu]
        self.kernels = [one for one in self.gpu if one.is_kernel]
        heaviest = max(by_pid, key=by_pid.get, default=None)
        self.one_process = [one for one in self.slices if one.pid == heaviest and one.end > one.start]

    def of_hta(self, slices):
        """In whole microseconds, and, where the trace has several steps, those of all but the last."""
        several = len(self.steps) > 1
        for one in slices:
            start, end = 1000 * math.ceil(one.at), 1000 * math.floor(one.until)
            for _ in range(self.early.get(one.correlation, 0) if several else 1):
                yield start, end

    def hta(self, total):
        """Its readings, the smallest change first."""
        several = [STEPS] if len(self.steps) > 1 else []
        for slices, why in ((self.gpu, []), ([one for one in self.slices if not one.is_call], [STREAMED])):
            if total is sum_ns:
                # Its computation and communication.
                slices = [one for one in slices if not re.match(r".*Memcpy|Memset|.*Sync", one.name)]
            yield "; ".join([WHOLE] + several + why), total(self.of_hta(slices))

    def work(self):
        """Sums and, where the tool tells it, numbers of what it takes for kernels."""
        def of(slices):
            slices = list(slices)
            return sum_ns((one.start, one.end) for one in slices), len(slices)
        yield "", *of(self.kernels)
        yield COPIES, *of(one for one in self.gpu if one.end > one.start)
        yield f"{COPIES}; {ONE_PROCESS}", *of(one for one in self.one_process if one.is_gpu)
        yield f"{COPIES}; {STREAMED}", *of(self.one_process)
        for text, ns in self.hta(sum_ns):
            yield text, ns, None

    def busy(self):
        floats = lambda slices: 1000 * union((one.at, one.until) for one in slices)
        linked = [one for one in self.gpu if one.linked]
        yield "", union((one.start, one.end) for one in self.gpu), None
        yield FLOATS, floats(self.gpu), None
        for slices, why in ((self.gpu, []), (linked, [BEFORE])):
            # Fills have no op above them.
            yield "; ".join([*why, FLOATS]), floats(slices), None
            yield "; ".join([*why, NO_FILLS, FLOATS]), floats(s for s in slices if not s.name.startswith("Memset")), None
        for text, ns in self.hta(union):
            yield text, ns, None


class Notes:
    """Causes, numbered as they come."""

    def __init__(self):
        self.known, self.n_unexplained = [], 0

    def mark(self, figures, key, readings):
        """The mark of the first reading that gives a tool's time, and its number of kernels if it tells one."""
        ns, n = figures[key], figures.get("n") if key == "sum_ns" else None
        for text, read_ns, read_n in readings:
            if abs(ns - read_ns) <= 2 and (n is None or read_n is None or n == read_n):
                if not text:
                    return ""
                if text not in self.known:
                    self.known.append(text)
                return f" [{self.known.index(text) + 1}]"
        self.n_unexplained += 1
        return " ?"


def kinetoscope(program, trace, capture):
    extra = ["--capture", str(capture)] if capture else []
    timed = Run([program, "triage", str(trace), *extra])
    whole = Run([program, "breakdown", str(trace), "--json"])
    if timed.code or whole.code:
        return {"failed": timed.why() if timed.code else whole.why()}
    found = json.loads(whole.out)
    gpu, kernels = found["gpu"], found["kernels"]
    gpu_ns = sum(row["total_ns"] for row in found["categories"])
    other = sum(row["total_ns"] for row in found["categories"] if row["category"] == "other")
    with tempfile.TemporaryDirectory() as folder:
        run = Run([program, "triage", str(trace), *extra, "--out", folder])
        if run.code:
            return {"failed": run.why()}
        table = lambda name: json.loads((Path(folder) / f"{name}.json").read_text())
        rows, fuse, overlap = (table(name) for name in
                               ("kernel_table", "fuse_opportunities", "overlap_opportunities"))
    total = sum(row["total_us"] for row in rows)
    share = lambda keep: 100 * sum(row["total_us"] for row in rows if keep(row)) / total if total else None
    status = lambda name: sum(row["status"] == name for row in fuse)
    return {
        "busy_ns": gpu["busy_ns"], "sum_ns": gpu["kernel_sum_ns"], "n": gpu["n_kernels"],
        "before": (gpu["kernel_sum_ns"] + gpu["memcpy_sum_ns"] + gpu["memset_sum_ns"]) - round(total * 1000),
        "other_pct": 100 * other / gpu_ns if gpu_ns else None,
        "top": (kernels[0]["kernel_name"], 100 * kernels[0]["total_ns"] / gpu["kernel_sum_ns"]) if kernels else None,
        "op_pct": share(lambda row: row["mapping_confidence"] not in ("launch", "none")),
        "line_pct": share(lambda row: row["python_location"] != "unresolved"),
        "fuse": f"{status('already_fused')} fused, {status('partial')} partly, {status('opportunity')} could be",
        "n_overlap": len(overlap), "cpu_s": timed.cpu_s, "peak_mb": timed.peak_mb,
    }


def tracelens(python, trace, capture):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as captures:
        command = [python, "-c", TRACELENS_PAIR if capture else TRACELENS]
        command += ["--profile_json_path", str(trace), "--output_csvs_dir", folder]
        if capture:
            # It finds captures by this name, and writes next to them.
            shutil.copyfile(capture, Path(captures) / "graph_capture_rank_0.json.gz")
            command += ["--capture_folder", captures]
        timed = Run(command)
        if timed.code:
            return {"failed": timed.why()}
        run = Run([*command, "--enable_kernel_summary"])
        read = lambda name: list(csv.DictReader((Path(folder) / name).open(newline="", encoding="utf-8")))
        if run.code or not (Path(folder) / "kernel_summary.csv").exists():
            return {"failed": run.why() if run.code else "no kernel summary was written"}
        csv.field_size_limit(1 << 28)
        time = {row["type"]: float(row["time ms"]) for row in read("gpu_timeline.csv")}
        rows = read("kernel_summary.csv")
    us = next(key for key in rows[0] if key.endswith("_sum")) if rows else ""
    n = us.replace("_sum", "_count")
    sums, total = {}, sum(float(row[us]) for row in rows)
    for row in rows:
        sums[row["Kernel name"]] = sums.get(row["Kernel name"], 0) + float(row[us])
    share = lambda keep: 100 * sum(float(row[us]) for row in rows if keep(row)) / total if total else None
    return {
        "busy_ns": time["busy_time"] * 1e6, "sum_ns": total * 1e3, "n": round(sum(float(row[n]) for row in rows)),
        "other_pct": share(lambda row: row.get("Parent op category", "").lower() in ("other", "", "nan")),
        "top": (lambda name: (name, 100 * sums[name] / total))(max(sums, key=sums.get)) if total else None,
        "op_pct": share(lambda row: row.get("Parent cpu_op", "") not in ("", "nan", "None")
                        and "launch" not in row["Parent cpu_op"].lower()),
        "cpu_s": timed.cpu_s, "peak_mb": timed.peak_mb,
    }


def hta(python, trace, _):
    run = Run([python, "-c", HTA, str(trace.resolve())])
    found = run.result()
    if found is None:
        return {"failed": run.why()}
    top, total = found["top"], found["sum_us"]
    return {
        "busy_ns": found["busy_us"] * 1e3, "sum_ns": total * 1e3,
        "top": (top[0], 100 * top[1] / total) if top and total else None,
        "cpu_s": run.cpu_s, "peak_mb": run.peak_mb,
    }


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def table_rows(text, title):
    """Rows of one of the skill's tables, of all stages, without its placeholders."""
    rows, here = [], False
    for line in text.splitlines():
        if line.endswith(" Table"):
            here = line == title
        elif here and line.startswith("| ") and not line.startswith(("| ---", "| Kernel |", "| Priority |", "| Pattern |")):
            row = cells(line)
            if row[-1] != "-":
                rows.append(row)
    return rows


def sites(row):
    """Of a row of the skill's kernel table, how much has an op (0 to 1), and how much a line of Python."""
    unknown = lambda text: text.lower() in ("unresolved", "unknown", "", "-")
    lines, ops = row[5].split("<br>"), row[6].split("<br>")
    op, line = 1.0, 1.0
    for at, text in enumerate(lines):
        found = re.search(r" \(site share (\d+)%\)$", text)
        share = int(found[1]) / 100 if found else 1.0
        if unknown(text[:found.start()] if found else text):
            line -= share
        name = ops[min(at, len(ops) - 1)]
        if unknown(name) or "launch" in name.lower():
            op -= share
    return max(op, 0.0), max(line, 0.0)


def skill(scripts, trace, capture):
    # The pair is what overlap needs; without another trace, the trace itself, as its own figures are given.
    pair = ["--mapping-input", str(capture or trace), "--formal-input", str(trace)]
    timed = Run([sys.executable, "-c", SKILL, str(scripts), "triage", *pair])
    # Without another trace its kernel table is the same in both modes.
    single = pair if capture else ["--input", str(trace)]
    whole = Run([sys.executable, "-c", SKILL_ALL, str(scripts), str(trace), "triage", *single])
    found = whole.result()
    if timed.code or found is None:
        return {"failed": timed.why() if timed.code else whole.why()}
    rows = [(float(row[2].split()[0]), *sites(row)) for row in table_rows(whole.out, "Kernel Table")]
    total = sum(ms for ms, _, _ in rows)
    known = lambda of: 100 * sum(row[0] * row[of] for row in rows) / total if total else None
    top, sum_us = found["top"], found["sum_us"]
    return {
        "sum_ns": sum_us * 1e3, "n": found["n"],
        "other_pct": 100 * found["other_us"] / sum_us if sum_us else None,
        "top": (top[0], 100 * top[1] / sum_us) if top else None,
        "op_pct": known(1), "line_pct": known(2),
        "fuse": f"{len(table_rows(timed.out, 'Fuse Opportunity Table'))} rows",
        "n_overlap": len(table_rows(timed.out, "Overlap Opportunity Table")),
        "cpu_s": timed.cpu_s, "peak_mb": timed.peak_mb,
    }


def ms(value_ns):
    return f"{value_ns / 1e6:.3f}"


def pct(value):
    return "" if value is None else f"{value:.2f}%"


def short(top):
    if top is None:
        return ""
    name = re.sub(r"^void ", "", top[0])
    name = name if len(name) <= 36 else name[:35] + "…"
    return f"`{name.replace('|', '/')}` {top[1]:.1f}%"


def print_table(title, tools, results, cell):
    print(f"\n## {title}\n")
    print("| trace | " + " | ".join(tools) + " |")
    print("|---|" + "---|" * len(tools))
    for name, found in results:
        row = []
        for tool in tools:
            figures = found["tools"][tool]
            row.append("failed" if "failed" in figures else cell(found, figures))
        print(f"| {name} | " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinetoscope", required=True, help="our program")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has TraceLens and HTA")
    parser.add_argument("--skill", type=Path, help="the folder of analyze_llm_torch_profile.py")
    parser.add_argument("--pair", nargs=2, type=Path, action="append", default=[], metavar=("MEASURED", "CAPTURE"))
    parser.add_argument("--figures", type=Path, metavar="FILE", help="save the measurements here and reuse them")
    parser.add_argument("traces", nargs="*", type=Path)
    options = parser.parse_args()

    tools = {"Kinetoscope": lambda trace, capture: kinetoscope(options.kinetoscope, trace, capture)}
    for name, module, of in (("TraceLens", "TraceLens", tracelens), ("HTA", "hta", hta)):
        if Run([options.python, "-c", f"import {module}"]).code:
            MISSING.append(f"{name} cannot be imported in {Path(options.python).name}; left out")
        else:
            tools[name] = lambda trace, capture, of=of: of(options.python, trace, capture)
    if options.skill and (options.skill / "analyze_llm_torch_profile.py").exists():
        tools["SGLang skill"] = lambda trace, capture: skill(options.skill, trace, capture)
    else:
        MISSING.append("the SGLang skill is not there (--skill SCRIPTS); left out")
    for line in MISSING:
        warn(f"MISSING: {line}")

    packages = [package for tool, package in (("TraceLens", "TraceLens"), ("HTA", "HolisticTraceAnalysis"))
                if tool in tools]
    versions = Run([options.python, "-c", VERSIONS, *packages, *(["pandas"] if packages else [])]).out.splitlines()
    if "SGLang skill" in tools:
        commit = Run(["git", "-C", str(options.skill), "rev-parse", "--short", "HEAD"])
        versions.append(f"SGLang skill {commit.out.strip() or 'of an unknown commit'}")
    versions.append(Run([options.kinetoscope, "--version"]).out.strip())
    print("Versions: " + ", ".join(version for version in versions if version) + ".")

    kept = json.loads(options.figures.read_text()) if options.figures and options.figures.exists() else {}
    results, notes, failures = [], Notes(), []
    for trace, capture in [(trace, None) for trace in options.traces] + options.pair:
        name = trace.name.removesuffix(".gz").removesuffix(".json") + (" + capture" if capture else "")
        warn(name)
        found = kept.setdefault(name, {})
        for tool, of in tools.items():
            if tool not in found:
                found[tool] = of(trace, capture)
                if options.figures:
                    options.figures.write_text(json.dumps(kept, indent=1))
        failures += [(name, tool, figures["failed"]) for tool, figures in found.items() if "failed" in figures]
        results.append((name, {"tools": found, "trace": trace}))
    # Not before: a process's peak memory counts that of the one it came from, which is us.
    for name, found in results:
        found["reading"] = Reading(found["trace"])

    def compared(shown, key, readings, text):
        def cell(found, figures):
            if figures.get(shown) is None:
                return ""
            return text(figures[shown]) + notes.mark(figures, key, readings(found["reading"]))
        return cell

    names = list(tools)
    print_table("GPU busy, ms", names, results, compared("busy_ns", "busy_ns", Reading.busy, ms))
    print_table("Sum of kernel times, ms", names, results, compared("sum_ns", "sum_ns", Reading.work, ms))
    print_table("Kernels", names, results, compared("n", "sum_ns", Reading.work, str))
    print_table("Share without a category", names, results, lambda _, row: pct(row.get("other_pct")))
    print_table("Kernel with the largest share", names, results, lambda _, row: short(row.get("top")))
    traced = lambda _, row: " / ".join(pct(row[key]) for key in ("op_pct", "line_pct") if row.get(key) is not None)
    print_table("GPU time mapped to an op / to a Python line", names, results, traced)
    chances = lambda _, row: f"{row['fuse']}; {row['n_overlap']}" if "fuse" in row else ""
    print_table("Fuse rows; overlap rows", names, results, chances)
    used = lambda _, row: f"{row['cpu_s']:.2f} s, {row['peak_mb']:.0f} MB"
    print_table("CPU time and peak memory", names, results, used)
    print("\n## Causes\n")
    for number, text in enumerate(notes.known, 1):
        print(f"{number}. {text}")
    for name, tool, why in failures:
        print(f"* {tool} failed on {name}: {why}")
    if notes.n_unexplained:
        warn(f"{notes.n_unexplained} figures are not explained: marked with ?")
    return 1 if MISSING or notes.n_unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
