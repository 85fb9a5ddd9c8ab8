"""A rank of a data-parallel training on the CPU: `ranks_program.py RANK RANKS STORE`."""

import os
import sys

import torch
from torch import distributed, nn

import sluice
from sluice.pipelines.trees import same_bits


class Training:
    def __init__(self) -> None:
        torch.manual_seed(3)
        self.encoder = nn.Linear(6, 8).requires_grad_(False)
        layers = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
        self.model = nn.parallel.DistributedDataParallel(layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 0.01)
        self.steps = 0
        torch.manual_seed(4 + distributed.get_rank())

    def encode(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.encoder(x), y

    def train(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.steps % 2 == 1:  # accumulated without the others
            with self.model.no_sync():
                loss = nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                return loss.detach()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def end(self) -> list[torch.Tensor]:
        return [t.clone() for t in self.model.state_dict().values()]


def main(rank: int, ranks: int, store: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    samples = torch.utils.data.TensorDataset(torch.randn(60, 6, generator=torch.Generator().manual_seed(1)), torch.arange(60) % 3)

    def epochs():
        sampler = torch.utils.data.DistributedSampler(samples, ranks, rank, seed=5)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            yield torch.utils.data.DataLoader(samples, batch_size=6, sampler=sampler)

    plain = Training()
    expected = [plain.train(*plain.encode(*batch)) for loader in epochs() for batch in loader]
    for schedule in ("serial", "overlapped", "graphed", "automatic"):
        training = Training()
        run = sluice.pipeline(training.encode, training.train, schedule=schedule, device="cpu")
        found = [loss.clone() for loader in epochs() for loss in run(loader)]
        assert len(found) == len(expected) and all(map(same_bits, found, expected)), f"rank {rank}: losses of {schedule} differ"
        assert all(map(same_bits, training.end(), plain.end())), f"rank {rank}: weights of {schedule} differ"
    ahead = Training()
    found = [ahead.train(*ahead.encode(*batch)) for loader in epochs() for batch in sluice.prefetch(loader, "cpu")]
    assert all(map(same_bits, found, expected)) and all(map(same_bits, ahead.end(), plain.end())), f"rank {rank}: prefetch differs"
    weights = torch.cat([t.double().reshape(-1) for t in plain.model.parameters()])
    all_of_them = [torch.empty_like(weights) for _ in range(ranks)]
    distributed.all_gather(all_of_them, weights.detach())
    assert all(other.equal(weights) for other in all_of_them), f"rank {rank}: the ranks have other weights than each other"
    distributed.barrier()
    distributed.destroy_process_group()
    print("all schedules gave the bits of the plain loop", flush=True)
    os._exit(0)  # threads of gloo's that have not ended yet would end the process by force


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
