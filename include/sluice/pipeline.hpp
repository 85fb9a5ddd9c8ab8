/// \file
/// Stages, pipelines, sources, samplers, zips and results.
#pragma once

#include <sluice/pipeline/any_pipeline.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/pipeline/readback.hpp>
#include <sluice/pipeline/sampler.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/source.hpp>
#include <sluice/pipeline/stage.hpp>
#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/pipeline/verify.hpp>
#include <sluice/pipeline/zip.hpp>
