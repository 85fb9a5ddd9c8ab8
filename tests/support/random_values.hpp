// Values that a wrong copy cannot hit by chance.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace sluice::test {

/// `count` elements of random bytes, others for another `seed`.
template <class T>
std::vector<T> random_values(std::size_t count, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::vector<unsigned char> bytes(count * sizeof(T));
    for (unsigned char& byte : bytes)
        byte = static_cast<unsigned char>(engine());
    std::vector<T> values(count);
    if (count > 0)
        std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

/// Whether two ranges hold the same bytes, NaN or not.
template <class Left, class Right>
bool same_bytes(const Left& left, const Right& right) {
    if (left.size() != right.size())
        return false;
    return left.size() == 0 ||
           std::memcmp(left.data(), right.data(), left.size() * sizeof(*left.data())) == 0;
}

} // namespace sluice::test
