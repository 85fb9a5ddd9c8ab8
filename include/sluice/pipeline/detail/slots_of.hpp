/// \file
/// The slots of one stage's output.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <sluice/pipeline/detail/faults.hpp>

namespace sluice::detail {

/// The slots of one stage's output.
template <class T>
class SlotsOf {
public:
    using value_type = T;
    template <class Make>
    void make(Make& maker, int count, const std::string& stage) {
        slots_.reserve(static_cast<std::size_t>(count));
        for (int slot = 0; slot < count; ++slot) {
            try {
                slots_.push_back(std::unique_ptr<T>(new T(maker(slot))));
            } catch (...) {
                throw_maker_failure(stage, slot);
            }
        }
    }
    T& operator[](std::size_t slot) noexcept { return *slots_[slot]; }
    const T& operator[](std::size_t slot) const noexcept { return *slots_[slot]; }
    std::size_t size() const noexcept { return slots_.size(); }

private:
    // A slot may be immovable, so that each has a place of its own.
    std::vector<std::unique_ptr<T>> slots_;
};

} // namespace sluice::detail
