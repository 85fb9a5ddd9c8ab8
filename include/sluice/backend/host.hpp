/// \file
/// The Host backend: streams, events and memory on the CPU, with neither GPU nor toolkit.
#pragma once

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/host/backend.hpp>
#if SLUICE_CHECKED
#include <sluice/backend/checked.hpp>
#endif

namespace sluice {

/// Streams are threads with queues, events are counters, device and pinned memory are ordinary memory, graphs are
/// recorded lists; the order of things, and what may run at the same time, are as on a device. See the concepts `Backend`,
/// `GraphBackend`, `MemoryUseBackend` and `SemaphoreBackend` for what each function does. Beyond them there are
///
/// | function | what it does |
/// | --- | --- |
/// | `enqueue(stream, callable)` | runs the callable on the stream's thread, in stream order; in a capture it is a node |
/// | `create_inline_stream(options)` | a stream without a thread: the enqueuing thread runs a task at once |
/// | `add_task`, `set_task` | a callable as a node of a graph |
///
/// There is one device, unless the environment variable `SLUICE_HOST_DEVICES` names another number, from 1 to
/// 64: then code for several devices can be tried without one. Empty, it names none. Of anything else the first pipeline, and
/// whatever else asks for their number, throws `Error`.
#if SLUICE_CHECKED
struct UncheckedHost : host::Functions {};
struct Host : Checked<UncheckedHost> {};
#else
struct Host : host::Functions {};
/// `Host` as it is where it is not checked.
using UncheckedHost = Host;
#endif

} // namespace sluice
