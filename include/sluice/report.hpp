/// \file
/// What ran when, and what that says: timelines, of pipelines or your own, as numbers, a table, JSON, SVG, HTML, and a file for
/// Perfetto.
#pragma once

#include <sluice/report/advice.hpp>
#include <sluice/report/comparison.hpp>
#include <sluice/report/description.hpp>
#include <sluice/report/device_activity.hpp>
#include <sluice/report/html.hpp>
#include <sluice/report/kernel_tables.hpp>
#include <sluice/report/memory_sampler.hpp>
#include <sluice/report/merge_timelines.hpp>
#include <sluice/report/perfetto.hpp>
#include <sluice/report/pipeline_report.hpp>
#include <sluice/report/svg.hpp>
#include <sluice/report/timeline.hpp>
#include <sluice/report/timeline_report.hpp>
