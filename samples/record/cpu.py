"""Small programs, recorded with torch.profiler on the CPU, each with the table that PyTorch itself makes of it.

    python cpu.py FUNCTION...

writes NAME.json and NAME.truth.json to $REC_OUT. If $KINETOSCOPE names the program, its `cpu --json` is compared with
`prof.key_averages()`: count, self and total time of every name to the ns.
"""

import json
import os
import subprocess
import sys
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.flop_counter import FlopCounterMode

OUT = os.environ.get("REC_OUT", ".")
torch.manual_seed(0)
torch.set_num_threads(2)
PLAIN = dict(activities=[ProfilerActivity.CPU])
ALL = dict(PLAIN, record_shapes=True, with_stack=True, with_flops=True, with_modules=True, profile_memory=True)


def truth(prof, name, steps, counted):
    rows = []
    for row in prof.key_averages():
        times = dict(self_cpu_ns=round(row.self_cpu_time_total * 1000), cpu_total_ns=round(row.cpu_time_total * 1000))
        rows.append(dict(name=row.key, count=row.count, **times, flops=row.flops or 0))
    found = dict(torch=torch.__version__, steps=steps, key_averages=rows, flop_counter=counted)
    with open(f"{OUT}/{name}.truth.json", "w") as file:
        json.dump(found, file, indent=1)
    if "KINETOSCOPE" in os.environ:
        compare(name, rows)


def compare(name, rows):
    """Prints every name of which Kinetoscope has another figure."""
    command = [os.environ["KINETOSCOPE"], "cpu", "--json", "--all", f"{OUT}/{name}.json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["key_averages"]
    differ = {key for key in found} - {row["name"] for row in rows}
    for row in rows:
        keys = ("count", "self_cpu_ns", "cpu_total_ns")
        if any(found.get(row["name"], {}).get(key) != row[key] for key in keys):
            differ.add(row["name"])
    print(f"{name}: {len(rows)} names, {len(differ)} differ {sorted(differ)}", flush=True)


def record(name, step, steps=3, options=ALL, wait=1, warmup=1):
    """Records `steps` of it, and counts the operations of one more."""
    kept = []

    def ready(prof):
        prof.export_chrome_trace(f"{OUT}/{name}.json")
        kept.append(prof.key_averages())

    with profile(schedule=schedule(wait=wait, warmup=warmup, active=steps, repeat=1), on_trace_ready=ready, **options) as prof:
        for n in range(wait + warmup + steps):
            step(n)
            prof.step()
    with FlopCounterMode(display=False) as counter:
        step(wait + warmup + steps)
    counted = counter.get_flop_counts().get("Global", {})
    prof.key_averages = lambda: kept[0]
    truth(prof, name, steps, {str(op): flops * steps for op, flops in counted.items()})


def train(model, x, y, opt):
    def step(n):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()

    return step


def conv():
    m = nn.Sequential(
        nn.Conv2d(8, 16, 3, groups=4),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, groups=16, padding=1),
        nn.Conv2d(16, 8, 1, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    record(
        "conv_grouped",
        train(m, torch.randn(4, 8, 12, 12), torch.randint(0, 4, (4,)), torch.optim.SGD(m.parameters(), 0.01, momentum=0.9)),
    )


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n, self.h = nn.LayerNorm(d), h
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(x)))


class Gpt(nn.Module):
    def __init__(self, layers=2, d=32):
        super().__init__()
        self.e = nn.Embedding(64, d)
        self.b = nn.ModuleList(Block(d, 4) for _ in range(layers))
        self.head = nn.Linear(d, 64)

    def forward(self, i):
        x = self.e(i)
        for b in self.b:
            x = b(x)
        return self.head(x).flatten(0, 1)


def gpt(opt, name, steps=3, options=ALL):
    m = Gpt()
    x = torch.randint(0, 64, (2, 16))
    record(name, train(m, x, x.flatten(), opt(m.parameters())), steps, options)


def sdpa():
    gpt(lambda p: torch.optim.AdamW(p), "transformer_sdpa")


def foreach():
    gpt(lambda p: torch.optim.AdamW(p, foreach=True), "adamw_foreach")


def fused():
    gpt(lambda p: torch.optim.AdamW(p, fused=True), "adamw_fused")


def plain():
    gpt(lambda p: torch.optim.SGD(p, 0.1, foreach=False), "transformer_plain", 8, PLAIN)


def lstm():
    m = nn.LSTM(8, 16, num_layers=2, batch_first=True, bidirectional=True)
    x = torch.randn(2, 5, 8)
    g = nn.GRU(32, 8)

    def step(n):
        y, _ = m(x)
        z, _ = g(y)
        z.sum().backward()

    record("lstm_gru", step)


def bags():
    m = nn.ModuleDict(
        dict(
            a=nn.EmbeddingBag(50, 8, mode="sum"),
            b=nn.EmbeddingBag(50, 8, mode="mean", sparse=True),
            e=nn.Embedding(50, 8, padding_idx=0),
        )
    )
    i = torch.randint(0, 50, (12,))
    o = torch.tensor([0, 3, 7, 9])

    def step(n):
        (m["a"](i, o) + m["b"](i, o) + m["e"](i[:4])).pow(2).mean().backward()

    record("embedding_bag", step)


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, n):
        time.sleep(0.012)
        return torch.randn(16), n % 4


def loader():
    m = nn.Linear(16, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)
    data = iter(torch.utils.data.DataLoader(Slow(), batch_size=8, num_workers=1, prefetch_factor=2))

    def step(n):
        x, y = next(data)
        opt.zero_grad()
        F.cross_entropy(m(x), y).backward()
        opt.step()

    record("cpu_loader_workers", step, 4)


def items():
    m = nn.Linear(32, 32)
    x = torch.randn(8, 32)
    losses = []

    def step(n):
        loss = m(x).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
        if torch.isnan(loss):
            raise ValueError
        x[x > 2].numpy()

    record("item_each_step", step, 4)


def leak():
    m = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    x = torch.randn(128, 64)
    kept = []

    def step(n):
        loss = (m(x) - x).pow(2).mean()
        kept.append(loss)

    record("cpu_leak", step, 5)


def compiled():
    m = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    c = torch.compile(m)
    x = torch.randn(4, 16)
    c(x).sum().backward()

    def step(n):
        c(x).sum().backward()

    record("compiled", step)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


def custom():
    w = nn.Parameter(torch.ones(16))
    m = nn.Linear(16, 16)
    x = torch.randn(4, 16)

    def step(n):
        with record_function("custom part"):
            y = Scale.apply(m(x), w)
        torch.utils.checkpoint.checkpoint(m, y, use_reentrant=False).sum().backward()

    record("autograd_function", step)


def threads():
    m = nn.Linear(32, 32)
    x = torch.randn(16, 32)

    def work():
        for _ in range(5):
            m(x).relu().sum().backward()

    with profile(**ALL) as prof:
        ts = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in ts]
        work()
        [t.join() for t in ts]
    prof.export_chrome_trace(f"{OUT}/threads.json")
    truth(prof, "threads", 0, {})


def linalg():
    a = torch.randn(3, 8, 8)
    b = torch.randn(3, 8, 4, dtype=torch.float64)

    def step(n):
        torch.baddbmm(torch.zeros(3, 8, 4), a, b.float())
        torch.einsum("bij,bjk->bik", a, b.float())
        torch.linalg.svd(a)
        torch.fft.rfft(a)
        a.matmul(b[0, :, 0].float())
        torch.addmm(torch.zeros(8, 4), a[0], b[0].float())
        F.conv1d(a, torch.randn(8, 8, 3), padding=1)
        F.conv_transpose2d(torch.randn(1, 4, 5, 5), torch.randn(4, 2, 3, 3), stride=2, groups=1)
        F.conv3d(torch.randn(1, 2, 4, 4, 4), torch.randn(2, 2, 3, 3, 3))
        a.to(torch.bfloat16) @ a.to(torch.bfloat16)
        a.sort(-1)
        torch.topk(a, 2)
        a.cumsum(0)
        torch.cat([a, a])
        a.index_select(0, torch.tensor([0, 2]))
        a.gather(0, torch.zeros(1, 8, 8, dtype=torch.long))
        F.pad(a, (1, 1))
        a.masked_fill(a > 0, 0.0)
        F.interpolate(a[None], scale_factor=2)
        F.grid_sample(a[None], torch.zeros(1, 2, 2, 2), align_corners=False)
        F.group_norm(a, 4)
        a.std()
        torch.where(a > 0, a, 1.0)
        torch.bucketize(a, torch.arange(4.0))
        F.one_hot(torch.arange(3))
        torch.histc(a)
        a.unique()
        torch.scatter(a, 0, torch.zeros(1, 8, 8, dtype=torch.long), 1.0)

    record("many_ops", step)


def gloo():
    import torch.multiprocessing as mp

    mp.spawn(gloo_rank, (2,), 2)


def gloo_rank(rank, n):
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    dist.init_process_group("gloo", rank=rank, world_size=n)
    m = nn.parallel.DistributedDataParallel(nn.Linear(32, 32))
    x = torch.randn(8, 32)

    def step(k):
        if rank == 1:
            time.sleep(0.02)
        m(x).sum().backward()

    record(f"gloo_rank{rank}", step)
    dist.destroy_process_group()


def long():
    m = nn.Linear(8, 8)
    x = torch.randn(2, 8)
    record(
        "schedule_40_steps",
        lambda n: (time.sleep(0.01) if n == 20 else None, m(x).sum()),
        40,
        dict(PLAIN, record_shapes=True),
        wait=2,
        warmup=2,
    )


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    for chosen in sys.argv[1:]:
        globals()[chosen]()
