"""Shared by the recording programs: a small transformer, a recorded step, a snapshot. Needs PyTorch and a GPU; writes to $REC_OUT."""

import json
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, schedule

OUT = os.environ.get("REC_OUT", "/tmp/rec")
os.makedirs(OUT, exist_ok=True)
DEV = "cuda"


def trace(name, step, steps=3, stack=True, shapes=True, memory=False, flops=True, modules=True, warm=4, timed=20, acts=None, after=None):
    """Times `step` without the profiler, then records `steps` of it."""
    for i in range(warm):
        step(i)
    torch.cuda.synchronize()
    marks = []
    for i in range(timed):
        t = time.perf_counter_ns()
        step(i)
        torch.cuda.synchronize()
        marks.append(time.perf_counter_ns() - t)
    t = time.perf_counter_ns()
    for i in range(timed):
        step(i)
    torch.cuda.synchronize()
    whole = (time.perf_counter_ns() - t) / max(1, timed)
    path = f"{OUT}/{name}.json"
    with profile(
        activities=acts or [ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=1, warmup=2, active=steps, repeat=1),
        record_shapes=shapes,
        profile_memory=memory,
        with_stack=stack,
        with_flops=flops,
        with_modules=modules,
        on_trace_ready=lambda p: p.export_chrome_trace(path),
    ) as prof:
        for i in range(steps + 4):
            step(i)
            prof.step()
    torch.cuda.synchronize()
    note(name, unprofiled_step_ns=whole, synced_steps_ns=sorted(marks))
    if after:
        after(prof)
    return prof


def run(f):
    t = time.time()
    try:
        f()
    except Exception as e:
        import traceback

        traceback.print_exc()
        print("FAILED", f.__name__, repr(e)[:200])
    torch.cuda.empty_cache()
    print(f.__name__, round(time.time() - t, 1), "s", flush=True)


def note(name, **values):
    with open(f"{OUT}/notes.jsonl", "a") as f:
        f.write(json.dumps(dict(name=name, **values)) + "\n")


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        v = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(v + 1e-6)).to(x.dtype) * self.weight


class Attention(nn.Module):
    def __init__(self, d, heads, naive=False):
        super().__init__()
        self.heads = heads
        self.naive = naive
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if self.naive:
            s = (q @ k.transpose(-2, -1)) / (d // self.heads) ** 0.5
            mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
            s = s.masked_fill(~mask, float("-inf"))
            y = F.softmax(s, dim=-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class MLP(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.gate = nn.Linear(d, h, bias=False)
        self.up = nn.Linear(d, h, bias=False)
        self.down = nn.Linear(h, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, d, heads, naive=False):
        super().__init__()
        self.n1 = RMSNorm(d)
        self.attn = Attention(d, heads, naive)
        self.n2 = RMSNorm(d)
        self.mlp = MLP(d, 4 * d)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab=8192, d=256, layers=2, heads=4, naive=False):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d, heads, naive) for _ in range(layers))
        self.norm = RMSNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


def loss_of(model, ids):
    out = model(ids)
    return F.cross_entropy(out[:, :-1].float().reshape(-1, out.shape[-1]), ids[:, 1:].reshape(-1))


def ids(vocab, b, t):
    return torch.randint(0, vocab, (b, t), device=DEV)


def train_step(model, opt, batch, amp=True, set_to_none=True, call=None):
    f = model if call is None else call

    def step(i):
        opt.zero_grad(set_to_none=set_to_none)
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            loss = loss_of(f, batch)
        loss.backward()
        opt.step()
        return loss

    return step


def dump(name, free=None):
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    s = torch.cuda.memory._snapshot()
    settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    with open(f"{OUT}/{name}.json", "w") as f:
        json.dump(s, f)
    note(name, stats={k: v for k, v in stats.items() if isinstance(v, int)}, settings=settings)
