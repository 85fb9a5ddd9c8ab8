#include <common/scaled_digit.hpp>

#include <algorithm>

#include <common/idx.hpp>

namespace examples {

ScaledDigit::ScaledDigit(std::span<const std::uint8_t> digit, std::size_t rows, std::size_t columns,
                         std::size_t side)
    : digit_(digit), rows_(rows), columns_(columns), side_(side),
      support_down_(2 * static_cast<std::int64_t>(std::max(rows, side))),
      support_across_(2 * static_cast<std::int64_t>(std::max(columns, side))) {
    for (std::size_t x = 0; x < side; ++x)
        across_[x] = place(columns, support_across_, x);
}

std::int64_t ScaledDigit::weight(std::int64_t support, std::int64_t centre, std::int64_t source) const {
    const std::int64_t offset = 2 * static_cast<std::int64_t>(side_) * source - centre;
    return std::max<std::int64_t>(0, support - (offset < 0 ? -offset : offset));
}

ScaledDigit::Place ScaledDigit::place(std::size_t length, std::int64_t support, std::size_t at) const {
    const auto side = static_cast<std::int64_t>(side_);
    const auto count = static_cast<std::int64_t>(length);
    Place result{};
    result.centre = (2 * static_cast<std::int64_t>(at) + 1) * count - side;
    result.first = std::max<std::int64_t>(0, (result.centre - support) / (2 * side));
    result.last = std::min(count - 1, (result.centre + support) / (2 * side));
    for (std::int64_t source = result.first; source <= result.last; ++source)
        result.sum += weight(support, result.centre, source);
    return result;
}

std::span<const std::uint8_t> ScaledDigit::row(std::size_t y) {
    const Place down = place(rows_, support_down_, y);
    std::array<std::int64_t, largest_image_side> columns; // filtered along y
    std::fill_n(columns.begin(), columns_, 0);
    for (std::int64_t row = down.first; row <= down.last; ++row) {
        const std::int64_t factor = weight(support_down_, down.centre, row);
        const std::uint8_t* const pixels = digit_.data() + static_cast<std::size_t>(row) * columns_;
        for (std::size_t column = 0; column < columns_; ++column)
            columns[column] += factor * pixels[column];
    }
    for (std::size_t x = 0; x < side_; ++x) {
        const Place& across = across_[x];
        std::int64_t sum = 0;
        for (std::int64_t column = across.first; column <= across.last; ++column)
            sum += weight(support_across_, across.centre, column) * columns[static_cast<std::size_t>(column)];
        const std::int64_t weights = down.sum * across.sum;
        row_[x] = static_cast<std::uint8_t>((sum + weights / 2) / weights);
    }
    return {row_.data(), side_};
}

} // namespace examples
