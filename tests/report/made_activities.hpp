// Activities of a device that were made up.
#pragma once

#include <cstdint>

#include <sluice/report/device_activity.hpp>

namespace sluice::test {

inline constexpr double zero = 5000; // of timelines, on the steady clock

inline DeviceActivity made(ActivityKind kind, double begin, double end, std::uint32_t stream = 7,
                           std::uint32_t name = 0) {
    DeviceActivity activity;
    activity.kind = kind;
    activity.begin = zero + begin;
    activity.end = zero + end;
    activity.stream = stream;
    activity.name = name;
    return activity;
}

} // namespace sluice::test
