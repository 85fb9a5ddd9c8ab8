/// \file
/// The groups of cases of ports; main.cpp says what each shows. All need a device.
#pragma once

#include <cstddef>
#include <random>
#include <string>

#include <sluice/backend/error.hpp>

namespace bench {

void add_overlap_add(); ///< where there is cuFFT
void add_integration();
void add_token_loop();

/// Adds the device and the versions of CUDA to the context that is printed. False, with a word, where there is none.
bool describe();

/// Other numbers in each run.
inline std::mt19937& fresh_random() {
    static std::mt19937 random{std::random_device{}()};
    return random;
}

/// Runs `steps` steps, waits, and has `is_right()` look at what came out. Throws where it is wrong.
template <class Subject, class IsRight>
void expect_right(const std::string& name, Subject& subject, int steps, IsRight is_right) {
    for (int step = 0; step < steps; ++step)
        subject.step();
    subject.sync();
    if (!is_right())
        throw sluice::Error(name + ": the results differ from the CPU's");
}

} // namespace bench
