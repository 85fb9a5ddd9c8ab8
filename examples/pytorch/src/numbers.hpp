/// \file
/// Numbers whose type is known at run time only. The same in kernels and on the CPU.
#pragma once

#include <cstdint>

#include <nn/losses/boxes/box.hpp>
#include <sluice/backend/config.hpp>

namespace sluice_torch {

enum class Number : std::uint8_t { float32, float64, bfloat16, float16, uint8, int32, int64 };

/// Bytes that a box of such numbers must be aligned to.
constexpr std::size_t box_alignment(Number type) {
    switch (type) {
    case Number::bfloat16:
    case Number::float16:
        return alignof(nn::Box<nn::Half>);
    case Number::uint8:
        return alignof(nn::Box<std::uint8_t>);
    default:
        return alignof(nn::Box<double>);
    }
}

/// Boxes that are read as float64.
struct BoxReader {
    const void* data = nullptr;
    Number type = Number::float32;

    SLUICE_HOST_DEVICE nn::Box<double> operator[](std::int64_t index) const {
        switch (type) { // the same for all threads
        case Number::float64:
            return read<double>(index);
        case Number::bfloat16:
            return read<nn::Bfloat16>(index);
        case Number::float16:
            return read<nn::Half>(index);
        case Number::uint8:
            return read<std::uint8_t>(index);
        case Number::int32:
            return read<std::int32_t>(index);
        case Number::int64:
            return read<std::int64_t>(index);
        default:
            return read<float>(index);
        }
    }

private:
    template <class T>
    SLUICE_HOST_DEVICE nn::Box<double> read(std::int64_t index) const {
        return nn::box_as<double>(static_cast<const nn::Box<T>*>(data)[index]);
    }
};

/// Boxes that are written, rounded to their type.
struct BoxWriter {
    void* data = nullptr;
    Number type = Number::float32;

    SLUICE_HOST_DEVICE void put(std::int64_t index, const nn::Box<double>& box) const {
        switch (type) {
        case Number::float64:
            return write<double>(index, box);
        case Number::bfloat16:
            return write<nn::Bfloat16>(index, box);
        case Number::float16:
            return write<nn::Half>(index, box);
        default:
            return write<float>(index, box);
        }
    }

private:
    template <class T>
    SLUICE_HOST_DEVICE void write(std::int64_t index, const nn::Box<double>& box) const {
        static_cast<nn::Box<T>*>(data)[index] = nn::box_as<T>(box);
    }
};

/// Numbers `stride` apart: 0 for one number that was expanded.
struct NumberReader {
    const void* data = nullptr;
    Number type = Number::float32;
    std::int64_t stride = 1;

    SLUICE_HOST_DEVICE double operator[](std::int64_t index) const {
        const std::int64_t at = index * stride;
        switch (type) {
        case Number::float64:
            return static_cast<const double*>(data)[at];
        case Number::bfloat16:
            return static_cast<double>(static_cast<float>(static_cast<const nn::Bfloat16*>(data)[at]));
        case Number::float16:
            return static_cast<double>(static_cast<float>(static_cast<const nn::Half*>(data)[at]));
        default:
            return static_cast<double>(static_cast<const float*>(data)[at]);
        }
    }
};

/// float32, or float64.
struct RealWriter {
    void* data = nullptr;
    bool is_double = false;

    SLUICE_HOST_DEVICE void put(std::int64_t index, double value) const {
        if (is_double) {
            static_cast<double*>(data)[index] = value;
        } else {
            static_cast<float*>(data)[index] = static_cast<float>(value);
        }
    }
};

} // namespace sluice_torch
