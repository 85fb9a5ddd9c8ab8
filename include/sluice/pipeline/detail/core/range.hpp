// Named ranges for a listener.
#pragma once

#include <atomic>
#include <string>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// Called for the ranges that stages run in, on the thread that drives the pipeline.
struct RangeListener {
    void (*begin)(const char* name) noexcept;
    void (*end)() noexcept;
};

/// The program's listener; null: there is none. `pipeline/nvtx.hpp` puts one here.
inline std::atomic<const RangeListener*> range_listener{nullptr};

/// Tells the listener, if there is one, that the scope runs under `name`.
class Range {
public:
    explicit Range(const std::string& name) noexcept
        : listener_(range_listener.load(std::memory_order_acquire)) {
        if (listener_ != nullptr) [[unlikely]]
            listener_->begin(name.c_str());
    }
    Range& operator=(Range&&) = delete;
    ~Range() {
        if (listener_ != nullptr) [[unlikely]]
            listener_->end();
    }

private:
    const RangeListener* listener_;
};

} // namespace sluice::detail
