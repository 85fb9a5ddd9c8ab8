/// \file
/// A program as a user runs it: its exit code, its errors and its report.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace sluice_test {

/// The backend that programs run on, "host" or "cuda": a test of a program is compiled once for both.
extern const char* const backend;
inline bool on_host() { return std::string(backend) == "host"; }

/// A path as a word for a shell, whatever is in it.
inline std::string word(const std::string& path) {
    std::string quoted = "'";
    for (const char letter : path)
        quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    return quoted + "'";
}

/// What one run of a program gave.
struct Outcome {
    int code = -1;         ///< the exit code; -1 when the program did not end by itself
    std::string errors;    ///< what it wrote to stderr
    nlohmann::json report; ///< what it wrote with --json; null unless it succeeded
};

/// A program, with the options that all its runs have.
class Program {
public:
    /// \param options those that all runs have, as a shell takes them
    /// \param environment such as `NAME=value`
    explicit Program(const std::string& file, const std::string& options = {},
                     const std::string& environment = {})
        : command_(environment + ' ' + word(file) + options + " --backend " + backend) {}

    /// Runs the program to its end, with `--json` and then `arguments`, its own output thrown away, or written to `output`.
    [[nodiscard]] Outcome run(const std::string& arguments, const std::string& output = "/dev/null") const {
        const ScratchFolder scratch;
        const std::filesystem::path errors = scratch.path() / "errors";
        const std::filesystem::path json = scratch.path() / "report.json";
        const std::string command =
            command_ + " --json " + word(json) + arguments + " >" + word(output) + " 2>" + word(errors);
        const int status = std::system(command.c_str());
        Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(errors), nullptr};
        if (outcome.code == 0)
            outcome.report = nlohmann::json::parse(text_of(json));
        return outcome;
    }

    /// Runs the program with `--json` and then `arguments` until its own output has a line that begins with `line`,
    /// then cuts it off. The report as it was then; null when there was none, or no such line.
    [[nodiscard]] nlohmann::json report_at(const std::string& line, const std::string& arguments) const {
        const ScratchFolder scratch;
        const std::filesystem::path json = scratch.path() / "report.json";
        std::FILE* output = popen((command_ + " --json " + word(json) + arguments).c_str(), "r");
        REQUIRE(output != nullptr);
        nlohmann::json report;
        char buffer[1024];
        while (std::fgets(buffer, sizeof buffer, output) != nullptr) {
            if (std::string(buffer).starts_with(line)) {
                if (std::filesystem::exists(json))
                    report = nlohmann::json::parse(text_of(json));
                break;
            }
        }
        // The program ends at what it would write next.
        (void)pclose(output);
        return report;
    }

    /// Runs the program with `arguments`, its output thrown away, until `enough()` is true, and kills it a while later.
    /// False when it ended by itself before.
    template <class Enough>
    [[nodiscard]] bool kill_when(const std::string& arguments, std::chrono::microseconds later,
                                 const Enough& enough) const {
        const std::string line = "exec " + command_ + arguments + " >/dev/null 2>&1";
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
            ::_exit(127);
        }
        const auto lives = [&] { return ::waitpid(child, nullptr, WNOHANG) == 0; };
        bool was_alive = lives();
        while (was_alive && !enough()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            was_alive = lives();
        }
        if (!was_alive)
            return false;
        std::this_thread::sleep_for(later);
        ::kill(child, SIGKILL);
        int status = 0;
        return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status);
    }

    /// Checks that the program refuses `arguments` with exit code 2 and one line, which says `expected`.
    void check_refused(const std::string& arguments, const std::string& expected) const {
        const Outcome outcome = run(arguments);
        INFO(arguments, ": ", outcome.errors);
        CHECK(outcome.code == 2);
        CHECK(outcome.errors.find(expected) != std::string::npos);
        CHECK(outcome.errors.find('\n') == outcome.errors.size() - 1);
    }

private:
    static std::string text_of(const std::filesystem::path& path) {
        const Bytes bytes = contents(path);
        return {bytes.begin(), bytes.end()};
    }

    std::string command_;
};

} // namespace sluice_test
