/// \file
/// Clocks and durations of std::chrono. The functions that these two headers declare take them, so they bring them along;
/// <chrono> itself adds calendars, time zones and their streams, a tenth of what including sluice takes.
#pragma once

#include <condition_variable>
#include <thread>
