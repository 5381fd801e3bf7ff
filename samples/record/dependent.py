"""A Triton kernel that may start while the kernel before it still runs (programmatic dependent launch)."""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, PDL: tl.constexpr, BLOCK: tl.constexpr, LOOPS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if PDL:
        tl.extra.cuda.gdc_wait()
    v = tl.load(x + i, mask=i < n, other=0.0)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    for _ in range(LOOPS):
        v = v * 0.999 + 0.001
    tl.store(y + i, v, mask=i < n)
