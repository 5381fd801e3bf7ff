"""Steps of `pairs.py`, recorded without stacks and sizes."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import DEV, GPT, ids, run, trace, train_step

torch.manual_seed(0)


def plain(name, step, **kw):
    trace(name, step, stack=False, shapes=False, flops=False, modules=False, **kw)


def attention():
    for kind, naive in [("naive", True), ("sdpa", False)]:
        m = GPT(d=1024, layers=4, heads=16, naive=naive).to(DEV)
        o = torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
        plain(f"attention_{kind}_plain", train_step(m, o, ids(8192, 4, 1024)), steps=2)


def fuse():
    m = GPT(d=1024, layers=4, heads=16).to(DEV).bfloat16().eval()
    b = ids(8192, 8, 512)

    def eager(i):
        with torch.no_grad():
            m(b)

    plain("fuse_eager_plain", eager, steps=2)


def conv():
    import torchvision

    for kind, last in [("nchw", False), ("nhwc", True)]:
        m = torchvision.models.resnet18().to(DEV)
        x = torch.randn(128, 3, 224, 224, device=DEV)
        y = torch.randint(0, 1000, (128,), device=DEV)
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

        plain(f"conv_{kind}_plain", step, steps=2)


def zero():
    for kind, to_none in [("before", False), ("after", True)]:
        m = GPT(d=1024, layers=6, heads=16).to(DEV)
        o = torch.optim.SGD(m.parameters(), lr=1e-4, foreach=True)
        plain(f"zero_{kind}_plain", train_step(m, o, ids(8192, 8, 1024), set_to_none=to_none), steps=2)


def copies():
    m = nn.Sequential(
        nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    ).to(DEV)
    host = [torch.randn(64, 3, 224, 224) for _ in range(4)]
    pinned = [h.pin_memory() for h in host]
    for kind, batches in [("pageable", host), ("pinned", pinned)]:

        def step(i):
            x = batches[i % 4].to(DEV, non_blocking=kind == "pinned")
            m(x).sum().backward()
            m.zero_grad()

        plain(f"copy_{kind}_plain", step)


def decode():
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

    plain("decode_eager_plain", fwd, steps=3)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(globals()[name])
