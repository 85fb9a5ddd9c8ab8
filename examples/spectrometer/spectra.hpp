/// \file
/// Where spectra go: to a file, and into their mean, which is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <common/files.hpp>
#include <common/fnv1a.hpp>

namespace spectrometer {

/// Writes spectra of `bins` values, the lowest frequency first, to a file of the ending .npy or .csv, which is there when all of
/// them are: the header says how many follow, and what an earlier run wrote stays when this one is interrupted.
class SpectrumFile {
public:
    /// Writes to nowhere where `path` is empty. \throws BadInput when it cannot be written, as `add` and `close` do
    SpectrumFile(const std::string& path, std::size_t spectra, std::size_t bins);

    void add(const std::vector<float>& power);
    void close();

private:
    void write(const std::string& text);

    bool csv_;
    std::optional<examples::WholeFile> file_;
};

/// What one run gave, as far as memory must hold it.
class Summary {
public:
    explicit Summary(std::size_t bins) : sum_(bins, 0) {}

    void add(const std::vector<float>& power);

    [[nodiscard]] std::size_t spectra() const { return spectra_; }
    /// Tells runs with other bits apart.
    [[nodiscard]] std::uint64_t digest() const { return digest_.value(); }
    /// Of all spectra, in dB of the power of a tone at full scale.
    [[nodiscard]] std::vector<double> decibels() const;

private:
    std::vector<double> sum_;
    std::size_t spectra_ = 0;
    examples::Fnv1a digest_;
};

/// Cycles a sample of bin `bin`: -0.5 for the first one, 0 in the middle.
inline double frequency_of(std::size_t bin, std::size_t bins) {
    return static_cast<double>(bin) / static_cast<double>(bins) - 0.5;
}

/// Draws a spectrum as an SVG file. \throws BadInput when it cannot be written
void draw(const std::vector<double>& decibels, const std::string& path);

} // namespace spectrometer
