"""What recording costs: wall time of a step without and with each option of the profiler, and how many events that records."""

import gc
import json
import time

import torch
from common import GPT, OUT, loss_of, note
from torch.profiler import ProfilerActivity, profile

DEV = "cuda" if torch.cuda.is_available() else "cpu"


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


MODES = dict(
    none=None,
    gpu_only=dict(cpu=False),
    plain=dict(),
    shapes=dict(record_shapes=True),
    memory=dict(profile_memory=True),
    flops=dict(with_flops=True),
    stack=dict(with_stack=True),
    stack_modules=dict(with_stack=True, with_modules=True),
    stack_shapes=dict(with_stack=True, record_shapes=True),
    all=dict(with_stack=True, with_modules=True, record_shapes=True, with_flops=True, profile_memory=True),
)


def measure(name, step, n=24):
    for i in range(5):
        step()
    for mode, kw in MODES.items():
        if mode == "gpu_only" and DEV == "cpu":
            continue
        times = []
        counts = {}
        gc.collect()

        def timed():
            sync()
            t = time.perf_counter_ns()
            step()
            sync()
            times.append(time.perf_counter_ns() - t)

        if kw is None:
            for i in range(n):
                timed()
        else:
            kw = dict(kw)
            cpu = kw.pop("cpu", True)
            acts = ([ProfilerActivity.CPU] if cpu else []) + ([ProfilerActivity.CUDA] if DEV == "cuda" else [])
            with profile(activities=acts, **kw) as p:
                for i in range(3):
                    step()
                sync()
                mark = time.time_ns()
                for i in range(n):
                    timed()
            path = f"{OUT}/cal.json"
            p.export_chrome_trace(path)
            with open(path) as f:
                d = json.load(f)
            base = d.get("baseTimeNanoseconds", 0)
            for e in d["traceEvents"]:
                if e.get("ph") in ("X", "i") and e.get("ts", 0) * 1e3 + base >= mark:
                    counts[e.get("cat")] = counts.get(e.get("cat"), 0) + 1
            del d
        times.sort()
        note(
            "cal",
            workload=name,
            mode=mode,
            n=n,
            median=times[len(times) // 2],
            low=times[len(times) // 4],
            high=times[3 * len(times) // 4],
            counts={k: v / n for k, v in counts.items()},
        )
        print(name, mode, times[len(times) // 2] / 1e3, {k: round(v / n) for k, v in counts.items()}, flush=True)


def main():
    torch.manual_seed(0)
    if DEV == "cpu":
        torch.set_num_threads(1)
    x = torch.zeros(16, device=DEV)

    def ops():
        for _ in range(400):
            x.add_(1.0)

    measure("ops", ops)

    def leaf(v):
        return v

    def frames():
        for i in range(2000):
            leaf(i)

    measure("frames", frames)

    def builtins():
        v = [1]
        for i in range(2000):
            len(v)

    measure("builtins", builtins)
    m = GPT(d=128, layers=2, heads=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4)
    b = torch.randint(0, 8192, (2, 16), device=DEV)

    def train():
        o.zero_grad()
        loss_of(m, b).backward()
        o.step()

    measure("train", train)
    from transformers import LlamaConfig, LlamaForCausalLM

    c = LlamaConfig(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2
    )
    l = LlamaForCausalLM(c).to(DEV).eval()
    y = torch.randint(0, 512, (1, 16), device=DEV)

    def fwd():
        with torch.no_grad():
            l(y, use_cache=False)

    measure("llama", fwd)


if __name__ == "__main__":
    main()
