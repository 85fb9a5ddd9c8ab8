"""A training of two stages, its batches, and its plain loop."""

import torch

import sluice

SCHEDULES = ["serial", "overlapped", "graphed", "automatic"]


class Training:
    """A frozen encoder and a decoder that learns, from the same weights each time."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(3)
        self.encoder = torch.nn.Linear(6, 8).to(device).requires_grad_(False)
        self.decoder = torch.nn.Linear(8, 1).to(device)
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=0.1, momentum=0.9)

    def encode(self, samples: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.encoder(samples.float()).relu(), labels

    def train(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = (self.decoder(features).squeeze(1) - labels).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def pipeline(self, device: str, schedule: str, **options) -> sluice.Pipeline:
        return sluice.pipeline(self.encode, self.train, schedule=schedule, device=device, **options)


def batches(count: int, last: int = 5) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    sizes = [5] * (count - 1) + [last] * min(count, 1)
    return [(torch.randint(0, 9, (size, 6), generator=generator, dtype=torch.uint8),
             torch.rand(size, generator=generator)) for size in sizes]


def plain_loop(device: str, data: list) -> list[float]:
    training = Training(device)
    return [training.train(*training.encode(*(t.to(device) for t in batch))).item() for batch in data]
