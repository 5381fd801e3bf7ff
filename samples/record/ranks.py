"""Two processes on one GPU, with gloo: collectives of CUDA tensors go over the host."""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from common import DEV, trace


def main(rank, world, backend):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577")
    dist.init_process_group(backend, rank=rank, world_size=world)
    torch.manual_seed(0)
    from torch.nn.parallel import DistributedDataParallel as DDP

    m = DDP(nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).to(DEV), device_ids=[0])
    o = torch.optim.SGD(m.parameters(), lr=0.01)

    def step(i):
        x = torch.randn(256, 512, device=DEV)
        if rank == 1:
            time.sleep(0.004)
        m(x).pow(2).mean().backward()
        o.step()
        o.zero_grad()

    trace(f"gpu_gloo_rank{rank}", step, steps=3, timed=5)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "gloo")
