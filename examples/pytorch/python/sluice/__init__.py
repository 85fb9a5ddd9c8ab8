"""sluice for PyTorch: pipelines of stages that overlap without races, and operators on ragged rows and images.

    prefetch, pipeline, stage, verify_schedules    pipelines: see sluice/pipelines
    giou_loss, giou_loss_and_gradient              the masked GIoU loss of rows of boxes
    row_sum, row_mean, row_max, row_min, row_softmax, row_log_softmax, row_sort, row_expand
                                                   operations by row, of values and offsets or nested tensors
    augment, augment_parameters                    crop, resize, rotation, blur and normalisation as one kernel

The operators are `torch.ops.sluice.*`, on the CPU and on CUDA devices, always on the current stream of the tensors' device.
"""

from sluice import _library

_library.load()

from sluice import _registration as _registration  # noqa: E402  (the operators must be there)
from sluice.boxes import giou_loss, giou_loss_and_gradient  # noqa: E402
from sluice.images import augment, augment_parameters, sample_ids  # noqa: E402
from sluice.pipelines import (  # noqa: E402
    Pipeline, Prefetch, Report, Stage, StageError, VerifyError, pipeline, prefetch, stage, verify_schedules)
from sluice.rows import (  # noqa: E402
    row_expand, row_log_softmax, row_max, row_mean, row_min, row_softmax, row_sort, row_sum)

__version__ = "0.1.0"
__all__ = [
    "Pipeline", "Prefetch", "Report", "Stage", "StageError", "VerifyError", "augment", "augment_parameters", "giou_loss",
    "giou_loss_and_gradient", "pipeline", "prefetch", "row_expand", "row_log_softmax", "row_max", "row_mean", "row_min",
    "row_softmax", "row_sort", "row_sum", "sample_ids", "stage", "verify_schedules",
]
