#include <nn/dnn/detail/stream_order.hpp>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <sluice/memory/copy.hpp>

namespace nn::detail {
namespace {

constexpr int rounds = 3;
constexpr unsigned char poison = 0xFF; // NaN in floating point

LateWrite::Region region(StreamOrderCheck::Span span) { return {span.data(), span.size()}; }

} // namespace

bool can_check_stream_order() {
    bool can = false;
    SLUICE_CUDA_CHECK(late_writer_triggers(can));
    return can;
}

StreamOrderCheck::StreamOrderCheck(std::size_t input_bytes, std::size_t output_bytes)
    : inputs_(rounded_up(input_bytes)), outputs_(rounded_up(output_bytes)) {}

StreamOrderCheck::Span StreamOrderCheck::workspace(std::size_t bytes) {
    const std::size_t needed = rounded_up(bytes);
    workspace_bytes_ = 0;
    if (needed > workspace_.size()) {
        workspace_ = Buffer(); // freed first: it may be large
        workspace_ = Buffer(needed);
    }
    workspace_bytes_ = needed;
    return workspace_.first(needed);
}

bool StreamOrderCheck::same_bits(std::span<const std::byte> expected, std::span<const std::byte> found) {
    return std::equal(expected.begin(), expected.end(), found.begin(), found.end());
}

void StreamOrderCheck::poison_written(const Stream& stream) {
    sluice::fill_bytes(stream, outputs_, poison);
    if (workspace_bytes_ > 0)
        sluice::fill_bytes(stream, workspace_.first(workspace_bytes_), poison);
}

bool StreamOrderCheck::waits_for_late_writer(const Stream& stream, const Call& call) {
    LateFlags& flags = *flags_.data();
    flags = {};
    LateWrite work;
    work.inputs = region(inputs_);
    work.kept = kept_.data();
    work.outputs = region(outputs_);
    work.workspace = region(workspace_.first(workspace_bytes_));
    work.flags = &flags;
    SLUICE_CUDA_CHECK(launch_late_writer(stream.ref().get(), work));
    const std::atomic_ref<unsigned> is_enqueued(flags.is_enqueued);
    try {
        call();
    } catch (...) {
        is_enqueued.store(1);
        wait_for_late_writer(stream);
        throw;
    }
    is_enqueued.store(1);
    wait_for_late_writer(stream);
    return std::atomic_ref<unsigned>(flags.was_early).load() == 0;
}

/// The stream alone does not do: it may wait for its last kernel only, which ends first if it does not wait.
void StreamOrderCheck::wait_for_late_writer(const Stream& stream) {
    stream.sync();
    for (unsigned& has_ended : flags_.data()->has_ended) {
        while (std::atomic_ref<unsigned>(has_ended).load() == 0)
            std::this_thread::yield();
    }
}

std::vector<std::byte> StreamOrderCheck::result(const Stream& stream) {
    std::vector<std::byte> bytes(std::min(outputs_.size(), most_compared));
    sluice::copy_and_wait(stream, bytes, std::as_const(outputs_).first(bytes.size()));
    return bytes;
}

bool StreamOrderCheck::keeps_stream_order(const Stream& stream, const Call& call, const Compare& is_same) {
    if (kept_.empty())
        kept_ = Buffer(inputs_.size());
    sluice::copy(stream, kept_, inputs_);
    poison_written(stream);
    stream.sync();
    call();
    const std::vector<std::byte> expected = result(stream);
    for (int round = 0; round < rounds; ++round) {
        poison_written(stream);
        sluice::fill_bytes(stream, inputs_, poison);
        if (!waits_for_late_writer(stream, call) || !is_same(expected, result(stream)))
            return false;
    }
    return true;
}

} // namespace nn::detail
