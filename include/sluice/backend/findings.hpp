/// \file
/// What a checked backend has found.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/checked/interface.hpp>

namespace sluice::checked {

/// What is wrong.
enum class Mistake {
    race,      ///< Two accesses, one of which writes, and nothing that orders them.
    host_race, ///< The same, where one of them is the host's own: a slot or a batch touched while in flight.
    use_after_free,     ///< Memory that is used after it was freed, or freed while it may still be used.
    uninitialized_read, ///< Device memory that is read and that nothing has written.
    default_stream,     ///< Work on the legacy default stream from within a stage.
    unnecessary_wait,   ///< A wait that never orders anything that is not ordered already. Never thrown.
};

/// One of two accesses, or of two ends of a wait.
struct Access {
    std::string stage;                         ///< Empty: no stage's.
    std::optional<std::size_t> batch;          ///< That the stage worked on.
    std::string operation;                     ///< Such as "copy", "fill", "its slot", "declared".
    std::string stream;                        ///< Such as "stream 3", or "the host".
    bool writes = false;                       ///< Whether it changes the bytes.
    std::optional<std::size_t> latest_batch{}; ///< As `batch`, when it was met last.
};

/// One mistake.
struct Finding {
    Mistake mistake = Mistake::race; ///< What kind.
    std::string message{};           ///< All of it, in words.
    Access first{};                  ///< The access that was known earlier.
    Access second{};                 ///< The one that met it.
    std::string buffer{};          ///< By its name, or as "8192 bytes at 0x…", with the slot it belongs to.
    const void* address = nullptr; ///< Where the bytes begin that both touch,
    std::size_t bytes = 0;         ///< and how many they are.
    /// What should be ordered after what, and where that can be said. Empty: nothing.
    std::string missing_edge{};
    std::size_t count = 1; ///< How often it was met.
};

/// What has been found since the program began or `forget` was called: each once, with a count. Waits that were
/// unnecessary each time come last, as they are now. Any thread may call it.
SLUICE_BODY std::vector<Finding> findings();

/// The same, one below the other; empty where there is none.
SLUICE_BODY std::string report();

/// Forgets what was found, and what is still to be thrown. What is known of streams and memory stays. For tests.
SLUICE_BODY void forget();

/// Whether mistakes are thrown as `Error` (which is so at first) or only collected. Returns what it was.
SLUICE_BODY bool throw_mistakes(bool throws);

/// Tells that all work of all streams is known to be over, as after `cudaDeviceSynchronize` called directly.
SLUICE_BODY void synced();

} // namespace sluice::checked
