/// \file
/// Timelines of what ran when, and reports on them.
#pragma once

#include <sluice/report/timeline.hpp>
#include <sluice/report/timeline_report.hpp>
