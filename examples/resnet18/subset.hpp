/// \file
/// The first images of a set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <images/image_set.hpp>

namespace resnet18 {

/// The first `size` images of another set, or all where it has fewer.
class FirstImages : public images::ImageSet {
public:
    /// `size` is at least 1.
    FirstImages(std::unique_ptr<const images::ImageSet> set, std::size_t size)
        : set_(std::move(set)), size_(std::min(size, set_->size())) {}

    std::size_t size() const override { return size_; }
    std::size_t classes() const override { return set_->classes(); }
    std::uint8_t load(std::size_t index, std::span<std::uint8_t> pixels) const override {
        return set_->load(index, pixels);
    }

private:
    std::unique_ptr<const images::ImageSet> set_;
    std::size_t size_;
};

} // namespace resnet18
