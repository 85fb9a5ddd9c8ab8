/// \file
/// A line that shows how far a long run is.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace examples {

/// Rewrites one line on stderr, at most ten times a second, and only when stderr is a terminal. Costs a look
/// at the clock per call at most. Not safe from several threads.
class Progress {
public:
    /// \param title what is being done, for example "serial"
    /// \param total how many steps there are
    Progress(std::string title, std::int64_t total);

    /// Draws on `out`, when `shown`, whatever stderr is.
    Progress(std::string title, std::int64_t total, std::ostream& out, bool shown);

    /// Erases the line.
    ~Progress();

    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Shows that `done` steps are over.
    /// \param note shown behind the count, for example the last loss
    void update(std::int64_t done, const std::string& note = {});

private:
    using Clock = std::chrono::steady_clock;

    std::string title_;
    std::int64_t total_;
    std::ostream& out_;
    bool shown_;
    bool drawn_ = false;
    Clock::time_point next_{};
};

} // namespace examples
