/// \file
/// The hash FNV-1a of 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace examples {

/// Hashes bytes as they are added, whatever pieces they come in. Tells equal data from data that differ by accident; it is
/// no protection against forgery.
class Fnv1a {
public:
    void add(std::span<const std::uint8_t> bytes) { add(bytes.data(), bytes.size()); }

    /// A number as 8 bytes, the lowest first.
    void add(std::uint64_t number) {
        std::uint8_t bytes[8];
        for (std::size_t i = 0; i < 8; ++i)
            bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
        add(bytes, 8);
    }

    /// A text behind its length, so that "ab", "c" is not "a", "bc".
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        for (const char character : text)
            add_byte(static_cast<std::uint8_t>(character));
    }

    [[nodiscard]] std::uint64_t value() const { return value_; }

    /// The value as "0x" and 16 digits.
    [[nodiscard]] std::string text() const {
        std::string digits = "0x";
        for (int shift = 60; shift >= 0; shift -= 4)
            digits += "0123456789abcdef"[(value_ >> shift) & 15u];
        return digits;
    }

private:
    void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
    void add(const std::uint8_t* bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            add_byte(bytes[i]);
    }

    std::uint64_t value_ = 0xcbf29ce484222325u;
};

} // namespace examples
