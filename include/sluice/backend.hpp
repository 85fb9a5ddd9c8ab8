/// \file
/// The default backend, with its streams, events, semaphores, devices and errors: `Cuda` where there is a toolkit,
/// otherwise `Host`. Beside CUDA, `Host` comes from <sluice/backend/host.hpp>.
#pragma once

#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/kernel_dims.hpp>
#include <sluice/backend/launch.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/backend/stress.hpp>
