/// \file
/// What the operators share: checks of tensors, each of one sentence, and the memory that kernels are handed.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <sluice/backend/error.hpp>

#include "numbers.hpp"

namespace sluice_torch {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

/// Ends an operator with one sentence, which Python gets as a RuntimeError.
[[noreturn]] inline void refuse(const std::string& op, const std::string& what) {
    throw sluice::Error("sluice." + op + ": " + what);
}

inline std::string text_of(ScalarType type) {
    switch (type) {
    case ScalarType::Float:
        return "float32";
    case ScalarType::Double:
        return "float64";
    case ScalarType::BFloat16:
        return "bfloat16";
    case ScalarType::Half:
        return "float16";
    case ScalarType::Byte:
        return "uint8";
    case ScalarType::Char:
        return "int8";
    case ScalarType::Short:
        return "int16";
    case ScalarType::Int:
        return "int32";
    case ScalarType::Long:
        return "int64";
    case ScalarType::Bool:
        return "bool";
    case ScalarType::UInt16:
        return "uint16";
    case ScalarType::UInt32:
        return "uint32";
    case ScalarType::UInt64:
        return "uint64";
    case ScalarType::ComplexHalf:
        return "complex32";
    case ScalarType::ComplexFloat:
        return "complex64";
    case ScalarType::ComplexDouble:
        return "complex128";
    case ScalarType::Float8_e5m2:
    case ScalarType::Float8_e4m3fn:
    case ScalarType::Float8_e5m2fnuz:
    case ScalarType::Float8_e4m3fnuz:
    case ScalarType::Float8_e8m0fnu:
        return "float8";
    default:
        return "another type";
    }
}

inline std::string text_of_shape(const Tensor& tensor) {
    std::string text = "[";
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(tensor.size(i));
    return text + "]";
}

inline std::string text_of_device(const Tensor& tensor) {
    if (tensor.is_cpu())
        return "the CPU";
    return (tensor.is_cuda() ? "CUDA device " : "device ") + std::to_string(tensor.get_device_index());
}

/// The type of a tensor's numbers; nothing for one that no operator takes.
inline std::optional<Number> number_of(ScalarType type) {
    switch (type) {
    case ScalarType::Float:
        return Number::float32;
    case ScalarType::Double:
        return Number::float64;
    case ScalarType::BFloat16:
        return Number::bfloat16;
    case ScalarType::Half:
        return Number::float16;
    case ScalarType::Byte:
        return Number::uint8;
    case ScalarType::Int:
        return Number::int32;
    case ScalarType::Long:
        return Number::int64;
    default:
        return std::nullopt;
    }
}

inline void require_type(const char* op, const char* name, const Tensor& tensor, ScalarType wanted) {
    if (tensor.scalar_type() != wanted) {
        refuse(op, std::string(name) + " is of " + text_of(tensor.scalar_type()) + ", expected " +
                       text_of(wanted));
    }
}

inline void require_same_device(const char* op, const char* name, const Tensor& tensor, const char* other,
                                const Tensor& like) {
    if (tensor.is_cpu() != like.is_cpu() ||
        (!like.is_cpu() && tensor.get_device_index() != like.get_device_index())) {
        refuse(op, std::string(name) + " is on " + text_of_device(tensor) + ", expected it on " +
                       text_of_device(like) + ", where " + other + " is");
    }
}

/// The tensor itself, or a copy that lies without gaps from a multiple of `alignment` bytes on.
inline Tensor packed(const Tensor& tensor, std::size_t alignment) {
    Tensor result = torch::stable::contiguous(tensor);
    if (reinterpret_cast<std::uintptr_t>(result.const_data_ptr()) % alignment != 0)
        result = torch::stable::clone(result);
    return result;
}

/// What `make` returns, a new tensor. Of PyTorch's own exception only the log has the words: its C interface tells that there was one.
template <typename Make>
Tensor made(const std::vector<std::int64_t>& shape, ScalarType type, const Make& make) {
    try {
        return make();
    } catch (const std::exception&) {
        std::string text;
        for (std::int64_t extent : shape)
            text += (text.empty() ? "" : ", ") + std::to_string(extent);
        throw sluice::Error("sluice: PyTorch made no tensor of shape [" + text + "] and " + text_of(type) +
                            ", expected memory for it; its log says why");
    }
}

inline Tensor empty_on(const Tensor& like, const std::vector<std::int64_t>& shape, ScalarType type) {
    return made(shape, type, [&] { return torch::stable::new_empty(like, shape, type); });
}

/// Offsets of rows: [rows + 1] of int64 on the device of `like`, without gaps.
inline Tensor offsets_of(const char* op, const Tensor& offsets, const char* other, const Tensor& like) {
    require_type(op, "offsets", offsets, ScalarType::Long);
    require_same_device(op, "offsets", offsets, other, like);
    if (offsets.dim() != 1 || offsets.numel() < 1) {
        refuse(op, "offsets has shape " + text_of_shape(offsets) +
                       ", expected [rows + 1]: where each row begins, and the end of the last");
    }
    return torch::stable::contiguous(offsets);
}

/// Reads offsets on the CPU, where that costs nothing: from 0 on, never less than before, at most `values`; no row longer
/// than `width`, unless that is 0.
inline void require_offsets(const char* op, const std::int64_t* offsets, std::int64_t rows,
                            std::int64_t values, std::int64_t width = 0) {
    if (offsets[0] != 0)
        refuse(op, "offsets begins with " + std::to_string(offsets[0]) + ", expected 0");
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t length = offsets[r + 1] - offsets[r];
        if (length < 0) {
            refuse(op, "offsets decreases from " + std::to_string(offsets[r]) + " to " +
                           std::to_string(offsets[r + 1]) + " at row " + std::to_string(r) +
                           ", expected each to be at least the one before");
        }
        if (width > 0 && length > width) {
            refuse(op, "row " + std::to_string(r) + " has " + std::to_string(length) +
                           " targets, expected at most " + std::to_string(width) +
                           ", as many as there are predictions");
        }
    }
    if (offsets[rows] > values) {
        refuse(op, "offsets ends at " + std::to_string(offsets[rows]) + ", expected at most " +
                       std::to_string(values) + ", as many as there are values");
    }
}

} // namespace sluice_torch
