/// \file
/// Reads and writes safetensors files: 8 bytes little-endian length, that many bytes of JSON
/// (`name: {dtype, shape, data_offsets}`), then the tensors' bytes without gaps.
/// Format: https://github.com/huggingface/safetensors
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// The element types of the format, by their names in it.
enum class ElementType : std::uint8_t { Bool, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };

/// The name in a file's header, for example "F32".
std::string_view name_of(ElementType type);

/// Bytes of one element.
std::size_t size_of(ElementType type);

/// The C++ types that a tensor is made from and converted to.
template <class T>
concept TensorElement = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::uint8_t> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

/// One tensor: its shape, and its elements in row-major order.
struct Tensor {
    ElementType type = ElementType::F32;
    std::vector<std::size_t> shape; ///< empty for a scalar
    std::vector<std::uint8_t> bytes;

    /// The product of the shape: 1 for a scalar, 0 when a side is 0.
    [[nodiscard]] std::size_t count() const;

    /// The elements as `T`. A floating type may lose precision; a whole-number type never changes a value.
    /// \throws BadInput when floating-point numbers are asked for as whole ones, when a value does not fit in
    /// `T`,
    ///         and for F16 and BF16, which are carried as bytes only
    template <TensorElement T>
    [[nodiscard]] std::vector<T> as() const;

    /// A tensor of `values`, whose number must be the product of `shape`.
    /// \throws std::invalid_argument when it is not
    template <TensorElement T>
    static Tensor of(std::vector<std::size_t> shape, std::span<const T> values);
};

/// Named tensors, and the file's free-form remarks (`__metadata__`).
struct Safetensors {
    std::map<std::string, Tensor, std::less<>> tensors;
    std::map<std::string, std::string, std::less<>> metadata;

    [[nodiscard]] bool contains(std::string_view name) const { return tensors.contains(name); }

    /// \throws BadInput when there is no tensor of that name
    [[nodiscard]] const Tensor& at(std::string_view name) const;

    /// Names in alphabetical order; only those that begin with `prefix`.
    [[nodiscard]] std::vector<std::string> names(std::string_view prefix = {}) const;
};

/// Reads a file. Sizes, bounds, overlaps and gaps are checked before a tensor is made.
/// \throws BadInput, naming the file and the tensor, when anything is not as the format says
Safetensors read_safetensors(const std::filesystem::path& path);

/// Reads a file's bytes; `name` stands for the file in errors.
Safetensors parse_safetensors(std::span<const std::uint8_t> bytes, const std::string& name);

/// A file's bytes: tensors by falling element size, then by name, so that each is aligned for its type.
/// \throws std::invalid_argument when a tensor's bytes do not fit its shape and type
std::vector<std::uint8_t> safetensors_bytes(const Safetensors& content);

/// Writes a file, whole or not at all.
/// \throws BadInput when it cannot be written
void write_safetensors(const Safetensors& content, const std::filesystem::path& path);

} // namespace examples
