"""Recordings of dependent launches, graphs, streams, first calls and a failed allocation."""

import sys

import torch
import torch.nn as nn
from common import DEV, GPT, OUT, dump, ids, note, run, trace, train_step
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(0)


def pdl():
    from dependent import scale

    n = 1 << 20
    a = torch.rand(n, device=DEV)
    b = torch.empty_like(a)

    def of(on):
        def step(i):
            for _ in range(10):
                scale[(n // 4096,)](a, b, n, on, 4096, 200, launch_pdl=on)
                scale[(n // 4096,)](b, a, n, on, 4096, 200, launch_pdl=on)

        return step

    trace("pdl_off", of(False), steps=2)
    trace("pdl_on", of(True), steps=2)
    for on in (False, True):
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            of(on)(0)
        trace("pdl_graph_on" if on else "pdl_graph_off", lambda i: g.replay(), steps=2)


def train_small():
    m = GPT(d=128, layers=2, heads=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4)
    trace("train_small", train_step(m, o, ids(8192, 4, 64)), steps=3, memory=True)


def reduce_overhead():
    m = GPT(d=256, layers=2, heads=4).to(DEV).bfloat16().eval()
    b = ids(8192, 2, 64)
    c = torch.compile(m, mode="reduce-overhead")

    def f(i):
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            c(b)

    trace("compile_reduce_overhead", f, steps=3, warm=8)
    torch._dynamo.reset()


def compile_train():
    m = GPT(d=256, layers=2, heads=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
    c = torch.compile(m)
    trace("compile_train", train_step(m, o, ids(8192, 4, 128), call=c), steps=3)
    torch._dynamo.reset()


def cold():
    m = GPT(d=512, layers=2, heads=8).to(DEV).bfloat16()
    b = ids(8192, 2, 96)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True, record_shapes=True) as p:
        with record_function("first call"):
            m(b).sum().backward()
        with record_function("second call"):
            m(b).sum().backward()
        torch.cuda.synchronize()
    p.export_chrome_trace(f"{OUT}/cold.json")


def streams():
    side = torch.cuda.Stream()
    w = torch.randn(2048, 2048, device=DEV)
    x = torch.randn(2048, 2048, device=DEV)
    big = torch.randn(1 << 22).pin_memory()
    back = torch.empty(1 << 22).pin_memory()

    def step(i):
        y = x
        with torch.cuda.stream(side):
            d = big.to(DEV, non_blocking=True)
            d.mul_(2)
            back.copy_(d, non_blocking=True)
        for _ in range(6):
            y = torch.tanh(y @ w)
        torch.cuda.current_stream().wait_stream(side)
        z = y[0, 0] + d[0]
        d.record_stream(torch.cuda.current_stream())
        return z

    trace("streams", step, steps=3)


def oom():
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(512 * 2**20 / torch.cuda.get_device_properties(0).total_memory)
    m = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).to(DEV)
    o = torch.optim.AdamW(m.parameters())
    torch.cuda.memory._record_memory_history(max_entries=20000)
    path = f"{OUT}/oom_trace.json"
    hit = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True, record_shapes=True, profile_memory=True) as p:
        for n in (1024, 2048, 4096, 16384):
            try:
                with record_function(f"batch {n}"):
                    y = m(torch.randn(n, 1024, device=DEV))
                    y.relu().sum().backward()
                    o.step()
                    o.zero_grad()
            except torch.OutOfMemoryError as e:
                hit.append(str(e))
                y = None
                break
    p.export_chrome_trace(path)
    note("oom_trace", error=hit)
    dump("oom_snapshot_after")
    torch.cuda.memory._record_memory_history(enabled=None)
    torch.cuda.set_per_process_memory_fraction(1.0)


def same_run():
    m = GPT(d=128, layers=2, heads=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4)
    b = ids(8192, 4, 64)
    step = train_step(m, o, b)
    step(0)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=20000)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True, record_shapes=True, profile_memory=True) as p:
        for i in range(2):
            with record_function(f"step {i}"):
                step(i)
        torch.cuda.synchronize()
    dump("same_run_snapshot")
    torch.cuda.memory._record_memory_history(enabled=None)
    p.export_chrome_trace(f"{OUT}/same_run_trace.json")
    try:
        p.export_memory_timeline(f"{OUT}/same_run_timeline.raw.json.gz", device="cuda:0")
        p.export_memory_timeline(f"{OUT}/same_run_timeline.json", device="cuda:0")
    except Exception as e:
        print("timeline", e)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(globals()[name])
