"""Steps before and after a change, with Python stacks and sizes."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import DEV, GPT, OUT, ids, loss_of, run, trace, train_step
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)


def sync():  # .item() after every layer of work against one at the end
    m = GPT(d=256, layers=4).to(DEV)
    o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
    parts = [ids(8192, 4, 128) for _ in range(8)]

    def of(reads):
        def step(i):
            total = 0.0 if reads else torch.zeros((), device=DEV)
            for p in parts:
                with torch.autocast("cuda", torch.bfloat16):
                    l = loss_of(m, p)
                l.backward()
                total += l.item() if reads else l.detach()
            o.step()
            o.zero_grad()
            return total

        return step

    trace("sync_before", of(True), steps=2)
    trace("sync_after", of(False), steps=2)


def optimizer():
    for kind, args in [("loop", dict(foreach=False)), ("foreach", dict(foreach=True)), ("fused", dict(fused=True))]:
        m = GPT(d=256, layers=6).to(DEV)
        o = torch.optim.AdamW(m.parameters(), lr=1e-4, **args)
        trace(f"adam_{kind}", train_step(m, o, ids(8192, 8, 256)), steps=2)


def zero(record=trace, batch=4, length=512):
    for kind, to_none in [("before", False), ("after", True)]:
        m = GPT(d=1024, layers=6, heads=16).to(DEV)
        o = torch.optim.SGD(m.parameters(), lr=1e-4, foreach=True)
        record(f"zero_{kind}", train_step(m, o, ids(8192, batch, length), set_to_none=to_none), steps=2)


def copies(record=trace, prefetched=True):
    m = torch.compiler.disable(
        nn.Sequential(
            nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
        )
    ).to(DEV)
    host = [torch.randn(64, 3, 224, 224) for _ in range(4)]
    pinned = [h.pin_memory() for h in host]

    def of(batches, nb):
        def step(i):
            x = batches[i % 4].to(DEV, non_blocking=nb)
            m(x).sum().backward()
            m.zero_grad()

        return step

    record("copy_pageable", of(host, False))
    record("copy_pinned", of(pinned, True))
    if not prefetched:
        return
    side = torch.cuda.Stream()
    nxt = [None]

    def prefetch(i):
        if nxt[0] is None:
            nxt[0] = pinned[0].to(DEV, non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        x = nxt[0]
        with torch.cuda.stream(side):
            nxt[0] = pinned[(i + 1) % 4].to(DEV, non_blocking=True)
        x.record_stream(torch.cuda.current_stream())
        m(x).sum().backward()
        m.zero_grad()

    record("copy_prefetched", prefetch)


def precision():
    for kind, tf, amp in [("fp32", False, False), ("tf32", True, False), ("bf16", True, True)]:
        torch.backends.cuda.matmul.allow_tf32 = tf
        m = GPT(d=1024, layers=4, heads=16).to(DEV)
        o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
        trace(f"precision_{kind}", train_step(m, o, ids(8192, 8, 512), amp=amp), steps=2)


def conv(record=trace, batch=64):
    import torchvision

    for kind, last in [("nchw", False), ("nhwc", True)]:
        m = torchvision.models.resnet18().to(DEV)
        x = torch.randn(batch, 3, 224, 224, device=DEV)
        y = torch.randint(0, 1000, (batch,), device=DEV)
        if last:
            m = m.to(memory_format=torch.channels_last)
            x = x.to(memory_format=torch.channels_last)
        o = torch.optim.SGD(m.parameters(), lr=0.1)

        def step(i):
            with torch.autocast("cuda", torch.bfloat16):
                l = F.cross_entropy(m(x).float(), y)
            l.backward()
            o.step()
            o.zero_grad()

        record(f"conv_{kind}", step, steps=2)


def fuse(record=trace, compiled=True):
    m = GPT(d=1024, layers=4, heads=16).to(DEV).bfloat16().eval()
    b = ids(8192, 8, 512)

    def eager(i):
        with torch.no_grad():
            m(b)

    record("fuse_eager", eager, steps=2)
    if not compiled:
        return
    c = torch.compile(m)

    def comp(i):
        with torch.no_grad():
            c(b)

    record("fuse_compiled", comp, steps=2)
    torch._dynamo.reset()


def attention(record=trace):
    for kind, naive in [("naive", True), ("sdpa", False)]:
        m = GPT(d=1024, layers=4, heads=16, naive=naive).to(DEV)
        o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
        record(f"attention_{kind}", train_step(m, o, ids(8192, 4, 1024)), steps=2)


def vocab():
    for v in (50257, 50304):
        m = GPT(vocab=v, d=768, layers=2, heads=12).to(DEV)
        o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
        trace(f"vocab_{v}", train_step(m, o, ids(50257, 8, 512)), steps=2)


def mask():
    x = torch.randn(4096, 1024, device=DEV)
    w = torch.randn(1024, 1024, device=DEV)

    def before(i):
        y = x
        for _ in range(16):
            y = torch.tanh(y @ w)
            y[y > 0.9] = 0.5

    def after(i):
        y = x
        for _ in range(16):
            y = torch.tanh(y @ w)
            y = torch.where(y > 0.9, 0.5, y)

    trace("mask_index", before)
    trace("mask_where", after)


def branches():
    ws = [torch.randn(512, 512, device=DEV) for _ in range(2)]
    x = torch.randn(256, 512, device=DEV)
    streams = [torch.cuda.Stream() for _ in range(2)]

    def work(w):
        y = x
        for _ in range(40):
            y = torch.relu(y @ w)
        return y

    def graph(two):
        g = torch.cuda.CUDAGraph()
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            work(ws[0])
            work(ws[1])
        torch.cuda.current_stream().wait_stream(s)
        with torch.cuda.graph(g):
            if two:
                for k in (0, 1):
                    streams[k].wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(streams[k]):
                        work(ws[k])
                for k in (0, 1):
                    torch.cuda.current_stream().wait_stream(streams[k])
            else:
                work(ws[0])
                work(ws[1])
        return g

    def eager(i):
        work(ws[0])
        work(ws[1])

    a = graph(False)
    b = graph(True)
    trace("branches_eager", eager)
    trace("branches_graph_serial", lambda i: a.replay())
    trace("branches_graph_two", lambda i: b.replay())


def loader():
    from torch.utils.data import DataLoader, Dataset

    class D(Dataset):
        def __len__(self):
            return 100000

        def __getitem__(self, i):
            x = torch.rand(3, 96, 96)
            for _ in range(6):
                x = (x * 1.01).clamp(0, 1).flip(-1).contiguous()
            return x, i % 10

    m = nn.Sequential(
        nn.Conv2d(3, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    ).to(DEV)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    for workers in (0, 6):
        it = iter(DataLoader(D(), batch_size=32, num_workers=workers, pin_memory=workers > 0, persistent_workers=workers > 0))

        def step(i):
            x, y = next(it)
            x = x.to(DEV, non_blocking=True)
            y = y.to(DEV, non_blocking=True)
            F.cross_entropy(m(x), y).backward()
            o.step()
            o.zero_grad()

        trace(f"loader_{workers}", step, steps=2, timed=30)
        it = None  # ends the workers


def llama():
    """A small Llama of Transformers, and one forward pass of it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    c = LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=512,
    )
    m = LlamaForCausalLM(c).to(DEV).bfloat16().eval()
    x = ids(8192, 1, 16)

    def fwd(i):
        with torch.no_grad():
            return m(x, use_cache=False).logits

    return m, fwd


def decode():
    m, fwd = llama()
    b = ids(8192, 1, 32)

    def step(i):
        with torch.no_grad():
            m.generate(b, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0)

    trace("decode_generate", step, steps=2, timed=5)
    trace("decode_eager", fwd, steps=3)
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            fwd(0)
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True, record_shapes=True) as p:
        with torch.cuda.graph(g):
            fwd(0)
        torch.cuda.synchronize()
    p.export_chrome_trace(f"{OUT}/decode_capture.json")
    trace("decode_replay", lambda i: g.replay(), steps=3)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(globals()[name])
