"""Runs every script that `kinetoscope bench-op --all` makes of some traces, with the PyTorch that is installed.

    python bench_ops.py KINETOSCOPE TRACE...

Each distinct script runs in a process of its own, with a limit of time and memory. A script ends in one of four ways: it runs; its
tensors are too large for the limits; PyTorch has no kernel for the op on this machine; or it fails, which is a fault of Kinetoscope.
The exit status is 1 after a failure. $CALLS calls are timed per script (default 5), $SECONDS_EACH is the limit of time (default 5).
$MOST is the number of scripts of a trace that run, evenly spaced over its ops (default 300).
"""

import collections
import contextlib
import hashlib
import io
import json
import os
import resource
import signal
import subprocess
import sys

import torch

SECONDS = int(os.environ.get("SECONDS_EACH", 5))
CALLS = int(os.environ.get("CALLS", 5))
MOST = int(os.environ.get("MOST", 300))
MOST_BYTES = 4 << 30
TOO_LARGE = ("memory", "can't allocate", "CUDA out of memory", "alarm")


def bytes_mapped():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def child(script, pipe):
    """Runs a script and writes how it ended."""
    signal.alarm(SECONDS)
    if not torch.cuda.is_available():
        most = bytes_mapped() + MOST_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    script = script.replace("WARM_UP, RUNS = 10, 100", f"WARM_UP, RUNS = 1, {CALLS}")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(script, "script", "exec"), {"__name__": "__main__"})
        ended = "ran"
    except MemoryError:
        ended = "memory"
    except SystemExit as reason:
        ended = f"exit: {reason}"
    except Exception as error:
        ended = f"{type(error).__name__}: {error}".split("\n")[0]
    os.write(pipe, ended.encode()[:2000])
    os._exit(0)


def run(script):
    """How a script ends: `ran`, `too large`, `no kernel here`, or the error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(script, write)
    os.close(write)
    with os.fdopen(read) as pipe:
        ended = pipe.read()
    _, status = os.waitpid(pid, 0)
    if not ended:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        ended = "alarm" if number in (signal.SIGALRM, signal.SIGKILL) else f"signal {number}"
    if any(part in ended for part in TOO_LARGE):
        return "too large"
    return "no kernel here" if "has no kernel" in ended else ended


def main(kinetoscope, traces):
    torch.set_num_threads(1)
    done, totals = set(), collections.Counter()
    for trace in traces:
        made = subprocess.run([kinetoscope, "bench-op", "--all", trace], capture_output=True, text=True)
        if made.returncode:
            print(f"{os.path.basename(trace)}: {made.stderr.strip().splitlines()[-1]}")
            continue
        own = collections.Counter()
        lines = [json.loads(line) for line in made.stdout.splitlines()]
        own["refused"] = sum("reason" in line for line in lines)
        wanted = []
        for line in lines:
            if "reason" in line:
                continue
            # (The head of a script has figures of the trace.)
            body = line["script"][line["script"].index("import ") :]
            key = hashlib.sha256(body.encode()).digest()
            if key in done:
                own["the same as another"] += 1
                continue
            done.add(key)
            wanted.append(line)
        every = max(1, -(-len(wanted) // MOST))
        own["left out"] = len(wanted) - len(wanted[::every])
        for line in wanted[::every]:
            ended = run(line["script"])
            known = ended in ("ran", "too large", "no kernel here")
            own[ended if known else "failed"] += 1
            if not known:
                print(f"FAILED {os.path.basename(trace)} {line['op']} {line['kind']}: {ended}", flush=True)
        totals.update(own)
        print(f"{os.path.basename(trace)}: {dict(sorted(own.items()))}", flush=True)
    print(f"PyTorch {torch.__version__}: {dict(sorted(totals.items()))}")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
