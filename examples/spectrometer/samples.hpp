/// \file
/// Where samples come from.
#pragma once

#include <cstddef>
#include <fstream>
#include <span>

#include <spectrometer/options.hpp>

namespace spectrometer {

/// How many samples there are.
/// \throws BadInput when they do not fill one block
std::size_t count_samples(const Options& options);

/// Reads samples from anywhere in the file, or generates them: sample n is the same for each thread. Each thread has its own.
class SampleReader {
public:
    /// \throws BadInput when the file cannot be opened
    explicit SampleReader(const Options& options);

    /// Fills `out` with whole samples from number `first` on. \throws BadInput when the file cannot be read, or has samples of
    /// which no power can be taken: infinite ones, NaN, or such that their squares would be infinite
    void read(std::size_t first, std::span<std::byte> out);

private:
    Options options_;
    std::ifstream file_;
};

} // namespace spectrometer
