#include <common/safetensors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <common/bad_input.hpp>
#include <common/files.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian elements");

struct TypeInfo {
    std::string_view name;
    std::size_t size;
};

// In the order of ElementType.
constexpr std::array<TypeInfo, 13> types{{{"BOOL", 1},
                                          {"U8", 1},
                                          {"I8", 1},
                                          {"U16", 2},
                                          {"I16", 2},
                                          {"F16", 2},
                                          {"BF16", 2},
                                          {"U32", 4},
                                          {"I32", 4},
                                          {"F32", 4},
                                          {"U64", 8},
                                          {"I64", 8},
                                          {"F64", 8}}};

template <class To, class From>
To converted(From value) {
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
        if (!std::in_range<To>(value)) {
            throw BadInput("a tensor holds " + std::to_string(value) + ", which does not fit in " +
                           std::to_string(8 * sizeof(To)) + " bits");
        }
    }
    return static_cast<To>(value);
}

template <class To, class From>
std::vector<To> convert_all(const std::vector<std::uint8_t>& bytes) {
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
        throw BadInput("a tensor holds floating-point numbers; whole ones were expected");
    } else {
        std::vector<To> values(bytes.size() / sizeof(From));
        for (std::size_t i = 0; i < values.size(); ++i) {
            From value;
            std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
            values[i] = converted<To>(value);
        }
        return values;
    }
}

template <class T>
constexpr ElementType type_of() {
    if constexpr (std::is_same_v<T, float>)
        return ElementType::F32;
    if constexpr (std::is_same_v<T, double>)
        return ElementType::F64;
    if constexpr (std::is_same_v<T, std::uint8_t>)
        return ElementType::U8;
    if constexpr (std::is_same_v<T, std::int32_t>)
        return ElementType::I32;
    if constexpr (std::is_same_v<T, std::int64_t>)
        return ElementType::I64;
}

} // namespace

std::string_view name_of(ElementType type) { return types[static_cast<std::size_t>(type)].name; }

std::size_t size_of(ElementType type) { return types[static_cast<std::size_t>(type)].size; }

std::size_t Tensor::count() const {
    std::size_t product = 1;
    for (const std::size_t side : shape)
        product *= side;
    return product;
}

template <TensorElement T>
std::vector<T> Tensor::as() const {
    switch (type) {
    case ElementType::Bool:
    case ElementType::U8:
        return convert_all<T, std::uint8_t>(bytes);
    case ElementType::I8:
        return convert_all<T, std::int8_t>(bytes);
    case ElementType::U16:
        return convert_all<T, std::uint16_t>(bytes);
    case ElementType::I16:
        return convert_all<T, std::int16_t>(bytes);
    case ElementType::U32:
        return convert_all<T, std::uint32_t>(bytes);
    case ElementType::I32:
        return convert_all<T, std::int32_t>(bytes);
    case ElementType::F32:
        return convert_all<T, float>(bytes);
    case ElementType::U64:
        return convert_all<T, std::uint64_t>(bytes);
    case ElementType::I64:
        return convert_all<T, std::int64_t>(bytes);
    case ElementType::F64:
        return convert_all<T, double>(bytes);
    case ElementType::F16:
    case ElementType::BF16:
        break;
    }
    throw BadInput("a tensor holds " + std::string{name_of(type)} +
                   "; 16-bit floating-point elements are carried as bytes, not converted");
}

template <TensorElement T>
Tensor Tensor::of(std::vector<std::size_t> shape, std::span<const T> values) {
    Tensor tensor{type_of<T>(), std::move(shape), std::vector<std::uint8_t>(values.size_bytes())};
    if (tensor.count() != values.size()) {
        throw std::invalid_argument("a tensor's shape holds " + counted(tensor.count(), "element") +
                                    ", but " + counted(values.size(), "value") +
                                    (values.size() == 1 ? " was given" : " were given"));
    }
    if (!values.empty())
        std::memcpy(tensor.bytes.data(), values.data(), values.size_bytes());
    return tensor;
}

template std::vector<float> Tensor::as<float>() const;
template std::vector<double> Tensor::as<double>() const;
template std::vector<std::uint8_t> Tensor::as<std::uint8_t>() const;
template std::vector<std::int32_t> Tensor::as<std::int32_t>() const;
template std::vector<std::int64_t> Tensor::as<std::int64_t>() const;
template Tensor Tensor::of<float>(std::vector<std::size_t>, std::span<const float>);
template Tensor Tensor::of<double>(std::vector<std::size_t>, std::span<const double>);
template Tensor Tensor::of<std::uint8_t>(std::vector<std::size_t>, std::span<const std::uint8_t>);
template Tensor Tensor::of<std::int32_t>(std::vector<std::size_t>, std::span<const std::int32_t>);
template Tensor Tensor::of<std::int64_t>(std::vector<std::size_t>, std::span<const std::int64_t>);

const Tensor& Safetensors::at(std::string_view name) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
        throw BadInput("there is no tensor \"" + std::string{name} + "\" among the " +
                       std::to_string(tensors.size()) + " of the file");
    }
    return found->second;
}

std::vector<std::string> Safetensors::names(std::string_view prefix) const {
    std::vector<std::string> list;
    for (const auto& [name, tensor] : tensors) {
        if (name.starts_with(prefix))
            list.push_back(name);
    }
    return list;
}

} // namespace examples
