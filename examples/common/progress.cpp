#include <common/progress.hpp>

#include <unistd.h>

#include <iostream>
#include <utility>

namespace examples {

Progress::Progress(std::string title, std::int64_t total)
    : Progress{std::move(title), total, std::cerr, ::isatty(STDERR_FILENO) == 1} {}

Progress::Progress(std::string title, std::int64_t total, std::ostream& out, bool shown)
    : title_{std::move(title)}, total_{total}, out_{out}, shown_{shown} {}

Progress::~Progress() {
    if (drawn_)
        out_ << "\r\x1b[K" << std::flush;
}

void Progress::update(std::int64_t done, const std::string& note) {
    if (!shown_)
        return;
    const Clock::time_point now = Clock::now();
    if (drawn_ && now < next_ && done != total_)
        return;
    next_ = now + std::chrono::milliseconds{100};
    drawn_ = true;
    out_ << '\r' << title_ << ": " << done << " of " << total_;
    if (total_ > 0)
        out_ << " (" << done * 100 / total_ << " %)";
    if (!note.empty())
        out_ << ", " << note;
    out_ << "\x1b[K" << std::flush;
}

} // namespace examples
