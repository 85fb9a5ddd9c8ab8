/// \file
/// How many threads fill batches where the options do not say.
#pragma once

#include <algorithm>
#include <thread>

namespace examples {

/// Half of the `hardware` threads that `others`, the program's other threads, leave: 1 to `most`.
[[nodiscard]] inline int workers_among(int hardware, int others, int most = 8) {
    return std::clamp((hardware - others) / 2, 1, most);
}

/// The same for this machine.
[[nodiscard]] inline int workers_for_machine(int others, int most = 8) {
    return workers_among(static_cast<int>(std::thread::hardware_concurrency()), others, most);
}

/// The threads beside a source's: the one that submits, and on the Host backend the streams' of `stages`, which compute.
[[nodiscard]] inline int other_threads(bool on_host, int stages) { return on_host ? 1 + stages : 1; }

} // namespace examples
