"""What PyTorch has to know of the operators beside their kernels: shapes, gradients, derivatives forward, and autocast.

Shapes serve `torch.compile`, gradients autograd, derivatives forward `torch.func.jvp`.
"""

from sluice._registration import boxes, images, rows

__all__ = ["boxes", "images", "rows"]
