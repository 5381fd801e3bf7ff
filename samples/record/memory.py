"""Snapshots of the memory of a GPU, and one program under several settings of the allocator (TAG names the setting)."""

import os
import random
import sys

import torch
import torch.nn as nn
from common import DEV, GPT, dump, ids, note, run, train_step

torch.manual_seed(0)


def begin(**kw):
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=50000, **kw)


def end(name):
    dump(name)
    torch.cuda.memory._record_memory_history(enabled=None)


def train():
    begin()
    m = GPT(d=128, layers=2, heads=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4)
    step = train_step(m, o, ids(8192, 4, 64))
    for i in range(3):
        step(i)
    end("snap_train")


def cpp():
    begin(stacks="all")
    m = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(DEV)
    m(torch.randn(8, 256, device=DEV)).sum().backward()
    end("snap_cpp_stacks")


def leak():
    m = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(DEV)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    losses = []
    m(torch.randn(512, 512, device=DEV)).sum().backward()
    o.step()
    o.zero_grad()
    begin()
    for i in range(12):
        l = m(torch.randn(512, 512, device=DEV)).pow(2).mean()
        l.backward(retain_graph=True)
        o.step()
        o.zero_grad()
        losses.append(l)
    end("snap_leak")


def graphs():
    begin()
    m = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(DEV)
    x = torch.randn(512, 512, device=DEV)
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(2):
            m(x).sum().backward()
    torch.cuda.current_stream().wait_stream(s)
    keep = []
    for n in (512, 256):
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g), torch.no_grad():
            y = m(x[:n])
        keep.append((g, y))
    for g, _ in keep:
        g.replay()
    end("snap_graph_pools")


def two_streams():
    begin()
    side = torch.cuda.Stream()
    x = torch.randn(1024, 1024, device=DEV)
    for i in range(4):
        with torch.cuda.stream(side):
            a = torch.randn(1024, 1024, device=DEV)
            b = a @ a
        torch.cuda.current_stream().wait_stream(side)
        c = b + x
        b.record_stream(torch.cuda.current_stream())
        for _ in range(20):
            c = c @ x
        del a, b
    dump("snap_two_streams")
    torch.cuda.memory._record_memory_history(enabled=None)


def cap(mib):
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(mib * 2**20 / torch.cuda.get_device_properties(0).total_memory)


def fragment():  # gaps that no request fits into
    cap(256)
    begin()
    held = []
    try:
        tmp = []
        for i in range(10):
            tmp.append(torch.empty(9 * 2**20, dtype=torch.uint8, device=DEV))
            held.append(torch.empty(11 * 2**20, dtype=torch.uint8, device=DEV))
        tmp.clear()
        torch.empty(60 * 2**20, dtype=torch.uint8, device=DEV)
        print("no OOM")
    except torch.OutOfMemoryError as e:
        note("snap_oom_fragmented_error", error=str(e))
    end(f"snap_oom_fragmented{TAG}")
    torch.cuda.set_per_process_memory_fraction(1.0)


def oom_train():
    cap(300)
    begin()
    try:
        m = GPT(d=256, layers=3, heads=4).to(DEV)
        o = torch.optim.AdamW(m.parameters(), lr=1e-4)
        for i, t in enumerate((64, 128, 256, 512)):
            train_step(m, o, ids(8192, 4, t))(i)
        print("no OOM")
    except torch.OutOfMemoryError as e:
        note(f"snap_oom_train{TAG}_error", error=str(e))
        end(f"snap_oom_train{TAG}")
    torch.cuda.set_per_process_memory_fraction(1.0)


def workload():  # the same requests under each setting of the allocator
    r = random.Random(7)
    begin()
    held = []
    m = GPT(d=256, layers=3, heads=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4)
    for i in range(10):
        t = r.choice([48, 96, 160, 224, 320, 448])
        train_step(m, o, ids(8192, 6, t))(i)
        if i % 3 == 2:
            held.append(torch.empty(r.randrange(3, 14) * 2**20 + 4096, dtype=torch.uint8, device=DEV))
        if len(held) > 2:
            held.pop(0)
    end(f"whatif_train{TAG}")


def workload2():  # gaps of many sizes
    r = random.Random(11)
    begin()
    held = {}
    for i in range(1500):
        if held and r.random() < 0.48:
            held.pop(r.choice(list(held)))
        else:
            n = int(2 ** r.uniform(9, 26)) // 4
            held[i] = torch.empty(n, dtype=torch.float32, device=DEV)
        if sum(v.numel() * 4 for v in held.values()) > 900 * 2**20:
            for k in list(held)[::2]:
                held.pop(k)
    end(f"whatif_random{TAG}")
    held.clear()


TAG = os.environ.get("TAG", "")
if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(globals()[name])
