#include <nn/dnn/detail/conv_operands.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include <nn/core/float16.hpp>
#include <sluice/memory/copy.hpp>

namespace nn::detail {
namespace {

using Span = StreamOrderCheck::Span;
using Bytes = std::span<const std::byte>;

/// Fills `to` with random numbers, a prime number of them over and over, so that no two rows or channels are alike.
void fill_randomly(const StreamOrderCheck::Stream& stream, Span to, std::size_t element_bytes,
                   std::mt19937& random) {
    constexpr std::size_t most = 65'521;
    std::vector<std::byte> numbers(std::min(to.size(), most * element_bytes));
    for (std::size_t at = 0; at + element_bytes <= numbers.size(); at += element_bytes) {
        const float value = static_cast<float>(random() >> 8) * 0x1p-27f - 0x1p-4f;
        const Half half(value);
        std::memcpy(&numbers[at], element_bytes == 2 ? static_cast<const void*>(&half) : &value,
                    element_bytes);
    }
    sluice::copy_and_wait(stream, to.first(numbers.size()), std::as_const(numbers));
    for (std::size_t done = numbers.size(); done < to.size();) {
        const std::size_t count = std::min(done, to.size() - done);
        sluice::copy(stream, to.subspan(done, count),
                     sluice::DeviceSpan<const std::byte, sluice::Cuda>(to.first(count)));
        done += count;
    }
}

double element(Bytes bytes, std::size_t at, std::size_t element_bytes) {
    if (element_bytes == 2) {
        Half value;
        std::memcpy(&value, &bytes[at], sizeof value);
        return static_cast<double>(static_cast<float>(value));
    }
    float value = 0.0f;
    std::memcpy(&value, &bytes[at], sizeof value);
    return static_cast<double>(value);
}

/// Whether the difference is at most 1 % of the norm. What neither of them has written is the same.
bool is_close(Bytes expected, Bytes found, std::size_t element_bytes) {
    double difference = 0.0, norm = 0.0;
    for (std::size_t at = 0; at + element_bytes <= expected.size(); at += element_bytes) {
        const bool is_same = std::memcmp(&expected[at], &found[at], element_bytes) == 0;
        const double number = element(expected, at, element_bytes);
        const double error = is_same ? 0.0 : element(found, at, element_bytes) - number;
        difference += error * error;
        norm += is_same && number != number ? 0.0 : number * number;
    }
    return difference <= 1e-4 * norm; // false for NaN
}

} // namespace

std::size_t ConvOperands::bytes_of_all(ConvGraph kind, const Conv2dShape& shape, std::size_t element_bytes,
                                       bool written) {
    std::size_t bytes = 0;
    for (std::int64_t i = in_tensor; i < tensor_end; ++i) {
        const auto tensor = static_cast<Tensor>(i);
        if (uses(kind, tensor) && writes(kind, tensor) == written)
            bytes += rounded_up(bytes_of(shape, tensor, element_bytes));
    }
    return bytes;
}

ConvOperands::ConvOperands(ConvGraph kind, const Conv2dShape& shape, std::size_t element_bytes)
    : memory_(bytes_of_all(kind, shape, element_bytes, false),
              bytes_of_all(kind, shape, element_bytes, true)) {
    const StreamOrderCheck::Stream stream;
    std::mt19937 random(7);                          // NOLINT: the same numbers each time
    sluice::fill_bytes(stream, memory_.inputs(), 0); // also what lies between tensors
    std::size_t inputs = 0, outputs = 0;
    // Maps come last, so that sums are among the outputs that are compared.
    for (std::int64_t i = tensor_end - 1; i >= in_tensor; --i) {
        const auto tensor = static_cast<Tensor>(i);
        if (!uses(kind, tensor))
            continue;
        const std::size_t bytes = bytes_of(shape, tensor, element_bytes);
        const std::size_t size = element_bytes_of(tensor, element_bytes);
        std::size_t& offset = writes(kind, tensor) ? outputs : inputs;
        const Span span =
            (writes(kind, tensor) ? memory_.outputs() : memory_.inputs()).subspan(offset, bytes);
        if (writes(kind, tensor))
            outputs_.push_back({offset, bytes, size});
        else
            fill_randomly(stream, span, size, random);
        addresses_[static_cast<std::size_t>(i)] = span.data();
        offset += rounded_up(bytes);
    }
    stream.sync();
}

bool ConvOperands::keeps_stream_order(const StreamOrderCheck::Stream& stream, bool is_deterministic,
                                      const StreamOrderCheck::Call& call) {
    if (is_deterministic)
        return memory_.keeps_stream_order(stream, call);
    return memory_.keeps_stream_order(stream, call, [this](Bytes expected, Bytes found) {
        return std::all_of(outputs_.begin(), outputs_.end(), [&](const Part& part) {
            const std::size_t begin = std::min(part.offset, expected.size());
            const std::size_t count = std::min(part.bytes, expected.size() - begin);
            return is_close(expected.subspan(begin, count), found.subspan(begin, count), part.element_bytes);
        });
    });
}

} // namespace nn::detail
