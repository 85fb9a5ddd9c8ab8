"""Pipelines: stages of Python callables over a loader's batches, race-free by construction.

Plain Python over PyTorch's own streams, events and graphs: a batch costs some tens of microseconds of it, less than the launches
of a training step, and everything that PyTorch knows of these objects (its allocator's pools, captures, profilers) goes on
working.
"""

from sluice.pipelines.pipeline import Pipeline, pipeline
from sluice.pipelines.prefetch import Prefetch, prefetch
from sluice.pipelines.report import Report
from sluice.pipelines.stages import Stage, StageError, stage
from sluice.pipelines.verify import VerifyError, verify_schedules

__all__ = ["Pipeline", "Prefetch", "Report", "Stage", "StageError", "VerifyError", "pipeline", "prefetch", "stage",
           "verify_schedules"]
