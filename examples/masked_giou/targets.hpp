/// \file
/// The targets of a batch in each form that a variant wants, and the copies that bring them to the device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <masked_giou/box_data.hpp>
#include <nn/losses/boxes/giou_loss.hpp>
#include <sluice/ragged/buckets.hpp>
#include <sluice/ragged/packer.hpp>
#include <sluice/sluice.hpp>

namespace masked_giou {

/// Boxes padded to equal rows, and a byte for each that says whether it is one, in one block: one copy brings
/// both.
template <sluice::Backend B>
class PaddedTargets {
public:
    PaddedTargets(std::size_t rows, std::size_t width)
        : rows_(rows), width_(width), host_(bytes()), device_(bytes()) {}

    /// Writes the rows into pinned memory, with zeros behind them. None may be longer than the width.
    void pack(const BoxRows& boxes) {
        std::memset(host_.data(), 0, bytes());
        for (std::size_t row = 0; row < boxes.rows.size(); ++row) {
            const auto& from = boxes.rows[row];
            std::copy(from.begin(), from.end(), row_of(row));
            std::memset(host_.data() + mask_at() + row * width_, 1, from.size());
        }
    }
    void copy_to_device(sluice::BasicStreamRef<B> stream) { sluice::copy(stream, device_, host_); }

    nn::MaskedBoxes<const std::uint8_t, B> view() const {
        const auto block = device_.span();
        return {nn::PaddedBoxes<const std::uint8_t, B>(block.first(mask_at()), rows_, width_),
                block.last(rows_ * width_)};
    }
    std::size_t bytes() const { return 5 * rows_ * width_; }
    sluice::DeviceSpan<std::uint8_t, B> block() { return device_; }

private:
    std::size_t mask_at() const { return 4 * rows_ * width_; }
    TargetBox* row_of(std::size_t row) { return reinterpret_cast<TargetBox*>(host_.data()) + row * width_; }

    std::size_t rows_;
    std::size_t width_;
    sluice::PinnedBuffer<std::uint8_t, B> host_;
    sluice::DeviceBuffer<std::uint8_t, B> device_;
};

/// Boxes as the rows of a ragged batch, in the smallest bucket that holds them.
template <sluice::Backend B>
class PackedTargets {
public:
    PackedTargets(std::size_t rows, std::size_t width, const BoxRows& boxes)
        : PackedTargets(sluice::RaggedBuckets({.rows = as_count(rows), .values = as_count(rows)},
                                              {.rows = as_count(rows), .values = as_count(rows * width)})
                            .bucket_for({.rows = as_count(rows), .values = as_count(boxes.boxes())})) {}

    void pack(const BoxRows& boxes) { packer_.pack(boxes.rows); }
    void copy_to_device(sluice::BasicStreamRef<B> stream) { packer_.copy_to(stream, batch_); }

    sluice::RaggedView<const TargetBox> view() const { return std::as_const(batch_).view(); }
    const sluice::RaggedPacker<TargetBox, B>& packer() const { return packer_; }
    sluice::RaggedBatch<TargetBox, B>& batch() { return batch_; }

private:
    explicit PackedTargets(sluice::RaggedCapacity capacity) : packer_(capacity), batch_(capacity) {}
    static std::int64_t as_count(std::size_t count) { return static_cast<std::int64_t>(count); }

    sluice::RaggedPacker<TargetBox, B> packer_;
    sluice::RaggedBatch<TargetBox, B> batch_;
};

/// Boxes row by row, each row in a place of its own in pinned memory, brought over with a copy for each row
/// that is not empty. Offsets are not copied: the published loop knows its lengths on the host.
template <sluice::Backend B>
class SeparateTargets {
public:
    SeparateTargets(std::size_t rows, std::size_t width, const BoxRows& boxes)
        : width_(width), host_(rows * width), device_(boxes.boxes()) {
        lengths_.reserve(rows);
    }

    void pack(const BoxRows& boxes) {
        lengths_.clear();
        for (std::size_t row = 0; row < boxes.rows.size(); ++row) {
            const auto& from = boxes.rows[row];
            std::copy(from.begin(), from.end(), host_.data() + row * width_);
            lengths_.push_back(from.size());
        }
    }
    void copy_to_device(sluice::BasicStreamRef<B> stream) {
        std::size_t to = 0;
        for (std::size_t row = 0; row < lengths_.size(); ++row) {
            if (lengths_[row] == 0)
                continue;
            sluice::copy(stream, device_.span().subspan(to, lengths_[row]),
                         host_.span().subspan(row * width_, lengths_[row]));
            to += lengths_[row];
        }
    }
    std::size_t copies() const {
        return static_cast<std::size_t>(
            std::count_if(lengths_.begin(), lengths_.end(), [](std::size_t length) { return length > 0; }));
    }
    sluice::DeviceSpan<TargetBox, B> values() { return device_; }

private:
    std::size_t width_;
    sluice::PinnedBuffer<TargetBox, B> host_;
    sluice::DeviceBuffer<TargetBox, B> device_;
    std::vector<std::size_t> lengths_;
};

} // namespace masked_giou
