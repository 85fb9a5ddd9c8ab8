"""Pipelines: stages of Python callables over a loader's batches, race-free by construction.

A pipeline (`pipeline`) has streams that its stages run on (`layout`), a loop over batches (`iteration`), what is enqueued for one of
them (`submission`), and memory that may be referred to when one is over (`memory`).

What waits for what is a table (`plan`), made once for a pipeline. A moment of it is one call of the operators' library
(`compiled`, src/steps_cuda.cpp) where that was built with CUDA, and a few of PyTorch's own elsewhere; a whole batch is one, if
it is flat (src/functions.hpp). Streams, events and graphs are PyTorch's all the same, and everything that it knows of them (its
allocator's pools, captures, profilers) goes on working.
"""

from sluice.pipelines.pipeline import Pipeline, pipeline
from sluice.pipelines.prefetch import Prefetch, prefetch
from sluice.pipelines.report import Report
from sluice.pipelines.stages import Stage, StageError, stage
from sluice.pipelines.verify import VerifyError, verify_schedules

__all__ = ["Pipeline", "Prefetch", "Report", "Stage", "StageError", "VerifyError", "pipeline", "prefetch", "stage",
           "verify_schedules"]
