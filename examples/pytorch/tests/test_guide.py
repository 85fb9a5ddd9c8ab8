"""The Python blocks of the guide run as they stand."""

import re
from pathlib import Path

import pytest
import torch

import sluice

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "pytorch.md"


def names(device: str) -> dict:
    """What the blocks take for granted."""
    encoder, decoder = torch.nn.Conv2d(3, 4, 1).to(device), torch.nn.Conv2d(4, 10, 1).to(device)
    boxes = torch.rand(5, 4, device=device)
    mask = torch.tensor([[True, True, False], [True, True, True]], device=device)
    padded = torch.zeros(2, 3, 4, device=device)
    padded[mask] = boxes
    offsets = torch.tensor([0, 2, 5], device=device)
    return {"torch": torch, "encoder": encoder, "decoder": decoder, "losses": [], "step": lambda images, labels: None,
            "optimizer": torch.optim.SGD(decoder.parameters(), lr=0.1),
            "loader": [(torch.zeros(2, 3, 160, 160, dtype=torch.uint8), torch.zeros(2, 160, 160, dtype=torch.int64))] * 4,
            "predictions": torch.rand(2, 3, 4, device=device, requires_grad=True), "targets": boxes, "offsets": offsets,
            "nested_targets": torch.nested.nested_tensor_from_jagged(boxes, offsets), "padded": padded, "mask": mask,
            "scores": torch.rand(5, device=device), "indices": torch.arange(2, device=device), "epoch": 1,
            "sluice": sluice}


@pytest.mark.skipif(not GUIDE.exists(), reason="the tests are not in sluice's repository")
def test_blocks_of_the_guide(device, capsys):
    if device == "cpu" and torch.cuda.is_available():
        pytest.skip("the guide's pipelines take the GPU where there is one")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    known = names(device)
    for block in blocks:
        exec(block.replace('"cuda"', repr(device)), known)  # noqa: S102
    assert len(known["losses"]) == 4 and known["images"].shape == (2, 3, 256, 256)
    assert "overlapped on" in capsys.readouterr().out
