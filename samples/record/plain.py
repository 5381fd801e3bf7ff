"""Steps of `pairs.py`, recorded without stacks and sizes."""

import sys

import pairs
from common import run, trace


def plain(name, step, **kw):
    trace(f"{name}_plain", step, stack=False, shapes=False, flops=False, modules=False, **kw)


def attention():
    pairs.attention(plain)


def fuse():
    pairs.fuse(plain, compiled=False)


def conv():
    pairs.conv(plain, batch=128)


def zero():
    pairs.zero(plain, batch=8, length=1024)


def copies():
    pairs.copies(plain, prefetched=False)


def decode():
    _, fwd = pairs.llama()
    plain("decode_eager", fwd, steps=3)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(globals()[name])
