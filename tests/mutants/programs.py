"""The test programs that mutants are compiled into: how they are built, run, and which places they reach."""
import hashlib
import os
import pathlib
import subprocess
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent

# Right programs that the race checker alone judges: one that fails has something that was found.
JUDGE = "hazards/right_waits"

SWITCH = r"""#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
namespace sluice_mutants {
inline const int chosen = std::getenv("SLUICE_MUTANT") != nullptr ? std::atoi(std::getenv("SLUICE_MUTANT")) : -1;
inline std::atomic<bool> reached[@COUNT@]{};
inline const struct Report {
    Report() {
        std::atexit([] {
            const char* const path = std::getenv("SLUICE_MUTANTS_REACHED");
            std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
            for (int number = 0; file != nullptr && number < @COUNT@; ++number) {
                if (reached[number].load(std::memory_order_relaxed))
                    std::fprintf(file, "%d\n", number);
            }
            if (file != nullptr)
                std::fclose(file);
        });
    }
} report;
inline bool kept(int number) {
    if (!reached[number].load(std::memory_order_relaxed))
        reached[number].store(true, std::memory_order_relaxed);
    return number != chosen;
}
// What is computed at compile time stays as it is.
constexpr bool keep(int number) { return std::is_constant_evaluated() || kept(number); }
template <class Mutex>
std::unique_lock<Mutex> locked(Mutex& mutex, bool locks) {
    return locks ? std::unique_lock<Mutex>(mutex) : std::unique_lock<Mutex>();
}
} // namespace sluice_mutants
"""


def digest(paths, flags):
    sum_ = hashlib.sha1(" ".join(flags).encode())
    for path in sorted(paths):
        sum_.update(str(path).encode())
        sum_.update(path.read_bytes())
    return sum_.hexdigest()


class Program:
    """One test file with doctest's main, compiled from the mutated headers."""

    def __init__(self, test, work, flags, checker=None):
        self.test = test
        self.checker = checker
        self.judges = test == JUDGE
        self.source = TESTS / (test + ".cpp")
        self.binary = work / test.replace("/", "_")
        self.flags = flags
        self.reached = set()
        self.seconds = 0.0
        self.problem = ""

    def build(self, include, common):
        sources = [str(self.source), str(TESTS / ("support" if self.checker is None else "mutants") / "main.cpp")]
        if self.checker is not None:
            sources.append(str(self.checker))
        if self.source.parent.name == "hazards":
            sources += [str(TESTS / "hazards" / name) for name in ("hazards.cpp", "pipelines.cpp")]
        text = self.source.read_text()
        if "heap_count.hpp" in text or "steady_case.hpp" in text:
            sources.append(str(TESTS / "support" / "heap_count.cpp"))
        key = common + digest([self.source], self.flags)
        note = self.binary.with_suffix(".key")
        if self.binary.exists() and note.exists() and note.read_text() == key:
            return
        command = ["clang++", "-std=c++20", "-O0", "-w", "-DSLUICE_HAS_CUDA=0",
                   f'-DSLUICE_TEST_DATA_DIR="{TESTS}/data"', "-include", str(include / "sluice_mutants.hpp"),
                   f"-I{include}", f"-I{TESTS}", *self.flags, *sources, "-pthread", "-o", str(self.binary)]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0:
            self.problem = "does not compile:\n" + built.stderr[:3000]
        else:
            note.write_text(key)

    def run(self, number, limit):
        """What notices mutant `number`, -1 for none: an exit status, 'hangs', or nothing."""
        environment = dict(os.environ, SLUICE_MUTANT=str(number), SLUICE_HOST_DEVICES="3",
                           SLUICE_TEST_EXPECTED_DEVICES="3")
        environment["TSAN_OPTIONS"] = "halt_on_error=1"
        reached = self.binary.with_suffix(".reached")
        if number < 0:
            environment["SLUICE_MUTANTS_REACHED"] = str(reached)
            reached.unlink(missing_ok=True)
        found = self.binary.with_suffix(f".{number}.found")
        if self.checker is not None:
            environment["SLUICE_MUTANTS_FOUND"] = str(found)
        begun = time.monotonic()
        try:
            ended = subprocess.run([str(self.binary)], env=environment, timeout=limit, capture_output=True)
        except subprocess.TimeoutExpired:
            return "" if self.checker is not None else "hangs"
        if number < 0:
            self.seconds = time.monotonic() - begun
            if reached.exists():
                self.reached = {int(line) for line in reached.read_text().split()}
        if self.checker is not None and not self.judges:
            text = found.read_text() if found.exists() else ""
            found.unlink(missing_ok=True)
            return text[:60].partition("\n")[0]
        return "" if ended.returncode == 0 else f"exit {ended.returncode}"

    def limit(self):
        return 5 + 5 * self.seconds
