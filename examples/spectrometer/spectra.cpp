#include <spectrometer/spectra.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>

#include <common/files.hpp>

namespace spectrometer {
namespace {

template <class... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
    std::array<char, 256> text{};
    std::snprintf(text.data(), text.size(), format, numbers...);
    return text.data();
}

/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
std::string npy_header(std::size_t rows, std::size_t columns) {
    static_assert(std::endian::native == std::endian::little);
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                         std::to_string(columns) + "), }";
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' '); // so that the data are aligned
    header += '\n';
    const std::array<char, 2> size{static_cast<char>(header.size() % 256),
                                   static_cast<char>(header.size() / 256)};
    return std::string("\x93NUMPY\x01\x00", 8) + std::string(size.data(), size.size()) + header;
}

std::span<const std::uint8_t> bytes_of(const void* begin, std::size_t size) {
    return {static_cast<const std::uint8_t*>(begin), size};
}

template <class Value>
std::string csv_line(std::size_t count, Value value) {
    std::string line;
    for (std::size_t i = 0; i < count; ++i)
        line += formatted(i == 0 ? "%.9g" : ",%.9g", double{value(i)});
    return line + '\n';
}

} // namespace

SpectrumFile::SpectrumFile(const std::string& path, std::size_t spectra, std::size_t bins)
    : csv_(path.ends_with(".csv")) {
    if (path.empty())
        return;
    file_.emplace(path);
    write(csv_ ? csv_line(bins, [bins](std::size_t bin) { return frequency_of(bin, bins); })
               : npy_header(spectra, bins));
}

void SpectrumFile::add(const std::vector<float>& power) {
    if (!file_)
        return;
    if (csv_)
        write(csv_line(power.size(), [&power](std::size_t bin) { return power[bin]; }));
    else
        file_->write(bytes_of(power.data(), power.size() * sizeof(float)));
}

void SpectrumFile::close() {
    if (file_)
        file_->finish();
    file_.reset();
}

void SpectrumFile::write(const std::string& text) { file_->write(bytes_of(text.data(), text.size())); }

void Summary::add(const std::vector<float>& power) {
    for (std::size_t bin = 0; bin < sum_.size(); ++bin)
        sum_[bin] += double{power[bin]};
    digest_.add(bytes_of(power.data(), power.size() * sizeof(float)));
    ++spectra_;
}

std::vector<double> Summary::decibels() const {
    std::vector<double> decibels;
    for (const double sum : sum_)
        decibels.push_back(10 * std::log10(std::max(sum / static_cast<double>(spectra_), 1e-20)));
    return decibels;
}

void draw(const std::vector<double>& decibels, const std::string& path) {
    constexpr double width = 900, height = 300, left = 50, top = 10;
    const auto [least, most] = std::minmax_element(decibels.begin(), decibels.end());
    const double low = 10 * std::floor(*least / 10), high = 10 * std::ceil(*most / 10 + 0.1) + 0.0; // no -0
    const auto x = [](double frequency) { return left + width * (frequency + 0.5); };
    const auto y = [low, high](double value) { return top + height * (high - value) / (high - low); };

    std::string svg = formatted("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                                "font-family=\"sans-serif\" font-size=\"12\">\n"
                                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                                left + width + 20, top + height + 40);
    const auto line = [&svg](double x1, double y1, double x2, double y2) {
        svg += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", x1, y1,
                         x2, y2);
    };
    const auto text = [&svg](double at_x, double at_y, const char* anchor, const std::string& words) {
        svg += formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", at_x, at_y, anchor) + words +
               "</text>\n";
    };
    const double step = high - low > 60 ? 20 : 10;
    for (double value = high; value >= low; value -= step) {
        line(left, y(value), left + width, y(value));
        text(left - 5, y(value) + 4, "end", formatted("%.0f", value));
    }
    for (int tenth = -5; tenth <= 5; ++tenth) {
        line(x(tenth / 10.0), top, x(tenth / 10.0), top + height);
        text(x(tenth / 10.0), top + height + 16, "middle", formatted("%.1f", tenth / 10.0));
    }
    text(left + width / 2, top + height + 34, "middle", "cycles a sample; dB of a tone at full scale");

    // The highest of the bins that share a pixel, so that no tone is lost.
    svg += "<polyline fill=\"none\" stroke=\"#1f5fa8\" points=\"";
    const std::size_t points = std::min(decibels.size(), static_cast<std::size_t>(width));
    for (std::size_t point = 0; point < points; ++point) {
        const auto begin = decibels.begin() + static_cast<std::ptrdiff_t>(point * decibels.size() / points);
        const auto end =
            decibels.begin() + static_cast<std::ptrdiff_t>((point + 1) * decibels.size() / points);
        const auto highest = std::max_element(begin, end);
        const auto bin = static_cast<std::size_t>(highest - decibels.begin());
        svg += formatted("%.1f,%.1f ", x(frequency_of(bin, decibels.size())), y(*highest));
    }
    examples::write_whole_file(path, std::string_view(svg += "\"/>\n</svg>\n"));
}

} // namespace spectrometer
