/// \file
/// Whether a call keeps the order of its stream. Kernels that are launched to begin early (programmatic dependent launch) have
/// to wait for the kernel before them by themselves; one that does not may even end before its predecessors, so that what
/// waits for it alone reads what is not written yet.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <nn/dnn/detail/late_writer.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

namespace nn::detail {

/// Bytes that a tensor takes beside others: a whole number of 256.
inline std::size_t rounded_up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Whether calls can be checked on the current device: false where no kernel begins early (before compute capability 9.0), and
/// in a build for such devices alone. The check then finds nothing.
bool can_check_stream_order();

/// The memory that a call reads and writes, and the check of that call. Belongs to the device that was current when it was
/// made. Each part begins at a multiple of 256 bytes.
class StreamOrderCheck {
public:
    using Stream = sluice::BasicStream<sluice::Cuda>;
    using Span = sluice::DeviceSpan<std::byte, sluice::Cuda>;
    using Call = std::function<void()>;
    /// Compares two results: the outputs, or their first `most_compared` bytes.
    using Compare =
        std::function<bool(std::span<const std::byte> expected, std::span<const std::byte> found)>;

    static constexpr std::size_t most_compared = std::size_t{16} << 20;

    /// Sizes in bytes, which are rounded up to multiples of 256. The contents are undefined.
    StreamOrderCheck(std::size_t input_bytes, std::size_t output_bytes);

    Span inputs() { return inputs_; }
    Span outputs() { return outputs_; }
    /// Memory that a call writes, too. An earlier one is invalid afterwards; no work may still use it.
    Span workspace(std::size_t bytes);

    /// Whether `call`, which enqueues work on `stream`, leaves its memory alone until the kernel before it has ended, and then gives
    /// what it gave when nothing else was going on. The kernel before it lets it begin at once, and writes its inputs late; until
    /// then all its memory is NaN. Done three times. Waits; leaves the inputs as they were. Throws what `call` throws.
    bool keeps_stream_order(const Stream& stream, const Call& call, const Compare& is_same = same_bits);

    static bool same_bits(std::span<const std::byte> expected, std::span<const std::byte> found);

private:
    using Buffer = sluice::DeviceBuffer<std::byte, sluice::Cuda>;

    void poison_written(const Stream& stream);
    bool waits_for_late_writer(const Stream& stream, const Call& call);
    void wait_for_late_writer(const Stream& stream);
    std::vector<std::byte> result(const Stream& stream);

    Buffer inputs_;
    Buffer kept_; // made when it is needed
    Buffer outputs_;
    Buffer workspace_;
    std::size_t workspace_bytes_ = 0; // of those that the call uses
    sluice::PinnedBuffer<LateFlags, sluice::Cuda> flags_{1};
};

} // namespace nn::detail
