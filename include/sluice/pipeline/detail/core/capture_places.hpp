/// \file
/// Which stage's work differs between two captures of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>

namespace sluice::detail {

/// What had been captured when each stage was through, for each key: where captures are compared. It remembers the last 512 keys.
template <Backend B, class Key>
class CapturePlaces {
public:
    struct Place {
        std::size_t stage;
        std::size_t batch;
        std::uint64_t signature; // of all that had been captured by then
    };

    /// A capture begins, or a run without one.
    void begin() noexcept { now_.clear(); }
    /// `stage` has been called for `batch`, and its work is being captured on `stream`.
    void note(std::size_t stage, std::size_t batch, BasicStreamRef<B> stream) {
        std::vector<const void*> own;
        if (const ReplayHooks<B>* const hooks = replay_hooks<B>()) {
            for (const auto& hook : *hooks)
                hook->append_own_memory(own);
        }
        now_.push_back({stage, batch, B::signature(B::capturing_graph(stream.get()), own)});
    }
    /// The capture, if there was one, is what is replayed under `key`.
    void keep(const Key& key) {
        if (now_.empty())
            return;
        for (Kept& kept : kept_) {
            if (kept.key == key) {
                kept.places = now_;
                return;
            }
        }
        if (kept_.size() < most)
            kept_.push_back({key, now_});
        else
            kept_[oldest_++ % most] = {key, now_};
    }
    /// Where the capture began to differ from the one that is replayed under `key`; null where it did not, or nothing is known.
    const Place* changed(const Key& key) const noexcept {
        for (const Kept& kept : kept_) {
            if (!(kept.key == key))
                continue;
            for (std::size_t i = 0; i < now_.size(); ++i) {
                if (i >= kept.places.size() || now_[i].signature != kept.places[i].signature)
                    return &now_[i];
            }
        }
        return nullptr;
    }
    void clear() noexcept { kept_.clear(); }

private:
    static constexpr std::size_t most = 512;
    struct Kept {
        Key key;
        List<Place> places;
    };
    List<Place> now_;
    List<Kept> kept_;
    std::size_t oldest_ = 0;
};

} // namespace sluice::detail
