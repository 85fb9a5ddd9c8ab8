#include <spectrometer/samples.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>
#include <string>

#include <common/bad_input.hpp>
#include <common/files.hpp>
#include <common/text.hpp>
#include <sluice/random/philox.hpp>

namespace spectrometer {
namespace {

/// One of the two parts, to where it belongs.
void put(double value, Format format, std::byte* to) {
    if (format == Format::int8) {
        const auto number = static_cast<std::int8_t>(std::clamp(std::round(128 * value), -128.0, 127.0));
        std::memcpy(to, &number, sizeof number);
    } else {
        const auto number = static_cast<float>(value);
        std::memcpy(to, &number, sizeof number);
    }
}

/// Of a part of a sample. Squares of such parts, added up over all that options allow, are far from float32's largest number.
constexpr float largest_part = 1e12F;

/// Throws BadInput where a part of `samples`, float32 ones from number `first` on of a file, is not a number within that.
void require_numbers(const std::string& file, std::size_t first, std::span<const std::byte> samples) {
    for (std::size_t at = 0; at < samples.size(); at += sizeof(float)) {
        float part = 0;
        std::memcpy(&part, &samples[at], sizeof part);
        if (std::abs(part) <= largest_part) // a NaN is not
            continue;
        std::array<char, 32> text{};
        (void)std::snprintf(text.data(), text.size(), "%g", double{part});
        throw examples::BadInput(file + ": sample " +
                                 examples::with_commas(first + at / bytes_of_sample(Format::float32)) +
                                 ": expected numbers from -1e12 to 1e12, found " + text.data());
    }
}

} // namespace

std::size_t count_samples(const Options& options) {
    const std::size_t block = options.block_samples();
    const std::size_t there =
        options.input.empty()
            ? options.samples.value_or(50 * block)
            : examples::size_of_file(options.input, "a file of samples") / bytes_of_sample(options.format);
    const std::size_t samples = std::min(there, options.samples.value_or(there));
    if (samples < block) {
        throw examples::BadInput("expected at least " + examples::counted(block, "sample") +
                                 ", which a block has with this --fft and these --transforms, found " +
                                 examples::with_commas(samples));
    }
    return samples;
}

SampleReader::SampleReader(const Options& options) : options_(options) {
    if (options.input.empty())
        return;
    file_.open(options.input, std::ios::binary);
    if (!file_)
        throw examples::BadInput(options.input + ": cannot be opened as a file of samples");
}

void SampleReader::read(std::size_t first, std::span<std::byte> out) {
    const std::size_t bytes = bytes_of_sample(options_.format);
    if (!options_.input.empty()) {
        file_.seekg(static_cast<std::streamoff>(first * bytes));
        file_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
        if (!file_)
            throw examples::BadInput(options_.input + ": cannot be read at sample " +
                                     examples::with_commas(first));
        if (options_.format == Format::float32)
            require_numbers(options_.input, first, out);
        return;
    }
    for (std::size_t at = 0; at < out.size(); at += bytes) {
        const std::size_t sample = first + at / bytes;
        sluice::CountedRandom random(sluice::RandomKey{.seed = options_.seed, .sample = sample});
        const auto noise = [&random] {
            const double one = random.uniform(); // two, so that small values are likelier
            return 0.02 * (one + double{random.uniform()} - 1);
        };
        double real = noise();
        double imaginary = noise();
        double amplitude = 0.5;
        for (const double tone : options_.tones) {
            const double turns = tone * static_cast<double>(sample);
            const double angle = 2 * std::numbers::pi * (turns - std::floor(turns));
            real += amplitude * std::cos(angle);
            imaginary += amplitude * std::sin(angle);
            amplitude /= 10;
        }
        put(real, options_.format, &out[at]);
        put(imaginary, options_.format, &out[at + bytes / 2]);
    }
}

} // namespace spectrometer
