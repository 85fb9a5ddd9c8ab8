// The Host backend with devices that can be shared out, as those of `Cuda` can.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>

#include "support/hooked_backend.hpp"

namespace sluice::test {

struct NoHook {
    template <class B>
    static void before(const char*) {}
    template <class B, class Native>
    static void before(const char*, Native) {}
};

/// Devices of 132 multiprocessors in groups of 8, as an H100's. It knows the share of each stream.
struct Sharing : Hooked<Host, NoHook> {
    struct Share {
        int device = 0;
        int multiprocessors = 0;
        int streams = 0;
        bool is_rest = false;
        bool alive = true;
        bool outlived = false; // by one of its streams
    };
    static constexpr int per_device = 132;
    static constexpr int unit = 8;

    static int multiprocessors() { return per_device; }
    static int share_unit() { return unit; }
    static int create_shares(const int* counts, std::size_t count, bool with_rest, void** shares) {
        const std::lock_guard lock(mutex());
        int rest = per_device;
        for (std::size_t i = 0; i < count; ++i) {
            shares[i] = add({Host::current_device(), counts[i]});
            rest -= counts[i];
        }
        if (with_rest)
            shares[count] = add({Host::current_device(), rest, 0, true});
        return rest;
    }
    static void destroy_share(void* share) noexcept {
        const std::lock_guard lock(mutex());
        Share& own = *static_cast<Share*>(share);
        own.alive = false;
        counts().shares.remove();
        own.outlived = own.streams > 0;
    }
    static void* share_of(NativeStream stream) noexcept {
        const std::lock_guard lock(mutex());
        const auto found = of_stream().find(stream);
        return found == of_stream().end() ? nullptr : found->second;
    }
    static NativeStream create_stream(const StreamOptions& options) {
        const NativeStream stream = Host::create_stream(options);
        if (options.share != nullptr) {
            const std::lock_guard lock(mutex());
            of_stream()[stream] = static_cast<Share*>(options.share);
            ++of_stream()[stream]->streams;
        }
        return stream;
    }
    static void destroy_stream(NativeStream stream) noexcept {
        {
            const std::lock_guard lock(mutex());
            const auto found = of_stream().find(stream);
            if (found != of_stream().end()) {
                --found->second->streams;
                of_stream().erase(found);
            }
        }
        Host::destroy_stream(stream);
    }

    /// Those that have been made since `forget_all`. No work is in flight.
    static std::deque<Share>& all() {
        static std::deque<Share> shares;
        return shares;
    }
    static void forget_all() { all().clear(); }

private:
    static Share* add(const Share& share) {
        counts().shares.add();
        return &all().emplace_back(share);
    }
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::map<NativeStream, Share*>& of_stream() {
        static std::map<NativeStream, Share*> streams;
        return streams;
    }
};

static_assert(ShareBackend<Sharing> && GraphBackend<Sharing> && !ShareBackend<Host>);

} // namespace sluice::test
