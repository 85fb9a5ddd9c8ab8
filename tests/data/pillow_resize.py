#!/usr/bin/env python3
"""Writes images and what Pillow's `Image.resize(size, BILINEAR)` makes of them, as safetensors:

    pip install --target /tmp/pillow 'pillow<13'
    PYTHONPATH=/tmp/pillow python3 tests/data/pillow_resize.py tests/data/pillow_resize.safetensors

Pillow up to 12 always resizes along rows first. Later ones resize some images along columns first if that makes them less high,
and then round other numbers, so this wants an earlier one.
"""

import json
import random
import struct
import sys

import PIL
from PIL import Image

# (height, width) before and after.
SIZES = [
    ((32, 32), (224, 224)),
    ((8, 9), (61, 48)),
    ((47, 33), (20, 11)),
    ((7, 50), (31, 12)),
    ((64, 9), (9, 64)),
    ((12, 17), (12, 40)),
    ((30, 21), (45, 21)),
    ((1, 1), (3, 5)),
    ((2, 90), (1, 7)),
    ((5, 16), (5, 16)),
]


def main() -> int:
    if int(PIL.__version__.split(".")[0]) > 12:
        print(f"Pillow {PIL.__version__} was found; up to 12 is wanted", file=sys.stderr)
        return 2
    numbers = random.Random(7)
    tensors = {}
    for i, (before, after) in enumerate(SIZES):
        size = 3 * before[0] * before[1]
        # Of every third image all bytes are 0 or 255, whose sums are the largest there are.
        pixels = bytes(numbers.choice((0, 255)) for _ in range(size)) if i % 3 == 2 else numbers.randbytes(size)
        image = Image.frombytes("RGB", before[::-1], pixels)
        resized = image.resize(after[::-1], Image.Resampling.BILINEAR)
        tensors[f"{i}/in"] = ([*before, 3], pixels)
        tensors[f"{i}/out"] = ([*after, 3], resized.tobytes())

    header = {"__metadata__": {"pillow": PIL.__version__}}
    data = b""
    for name, (shape, pixels) in tensors.items():
        header[name] = {"dtype": "U8", "shape": shape, "data_offsets": [len(data), len(data) + len(pixels)]}
        data += pixels
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(sys.argv[1], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
