// Bodies of bucketed_reduction.hpp.
#pragma once

#include <string>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

namespace detail {

/// A stream on the communicator's device.
template <Backend B>
BasicStream<B> stream_on(int device, int priority) {
    const DeviceGuard<B> guard(device);
    return BasicStream<B>(StreamOptions{.priority = priority});
}

} // namespace detail

template <class T, Backend B>
BucketedReduction<T, B>::BucketedReduction(const Communicator<B>& communicator,
                                           std::span<const std::size_t> sizes, const BucketOptions& options)
    : communicator_(&communicator), reduction_(options.reduction),
      stream_(detail::stream_on<B>(communicator.device(), options.priority)) {
    detail::require_reduction(options.reduction);
    detail::require_average("bucketed reduction", options.reduction, detail::collective_element<T>());
    if (sizes.empty())
        throw Error("bucketed reduction: expected at least one part, and there is none");
    const DeviceGuard<B> guard(communicator.device());
    reduced_ = BasicEvent<B>();
    std::size_t total = 0;
    parts_.reserve(sizes.size());
    for (const std::size_t size : sizes) {
        if (size > ~std::size_t{0} / sizeof(T) - total)
            throw Error("bucketed reduction: a part of " + detail::counted(size, "element") + " behind " +
                        std::to_string(total) + " is larger than any memory");
        if (buckets_.empty() || buckets_.back().size * sizeof(T) >= options.bytes)
            buckets_.push_back(Bucket{.begin = total});
        Bucket& bucket = buckets_.back();
        parts_.push_back(
            Part{.begin = total, .size = size, .bucket = buckets_.size() - 1, .written = BasicEvent<B>()});
        bucket.size += size;
        ++bucket.parts;
        bucket.missing = bucket.parts;
        total += size;
    }
    memory_ = DeviceBuffer<T, B>(total);
}

template <class T, Backend B>
DeviceSpan<T, B> BucketedReduction<T, B>::part(std::size_t i) {
    require_part(i);
    return memory_.span().subspan(parts_[i].begin, parts_[i].size);
}

template <class T, Backend B>
void BucketedReduction<T, B>::require_part(std::size_t i) const {
    if (parts_.empty())
        detail::throw_moved_from("bucketed reduction");
    if (i >= parts_.size()) {
        throw Error("bucketed reduction: there is no part " + std::to_string(i) + " of " +
                    std::to_string(parts_.size()) + "; expected one of them, from 0");
    }
}

// What became ready in a capture that is over was never reduced, or goes with its graph.
template <class T, Backend B>
void BucketedReduction<T, B>::enter(BasicStreamRef<B> stream) {
    const Scope scope = Scope::of(stream);
    if (begun_ && !(scope == scope_)) {
        if (!scope_.captured) {
            throw detail::NotCapturable(
                "bucketed reduction: a part became ready before the capture; expected all of a gradient, "
                "from its first part to join, in one capture");
        }
        forget();
    }
    scope_ = scope;
}

template <class T, Backend B>
void BucketedReduction<T, B>::forget() noexcept {
    next_ = 0;
    begun_ = false;
    for (Part& part : parts_)
        part.ready = false;
    for (Bucket& bucket : buckets_)
        bucket.missing = bucket.parts;
}

template <class T, Backend B>
void BucketedReduction<T, B>::begin(BasicStreamRef<B> stream, std::size_t i) {
    require_part(i);
    enter(stream);
    if (parts_[i].ready) {
        throw Error("bucketed reduction: part " + std::to_string(i) + " of " + std::to_string(parts_.size()) +
                    " is ready; expected each part once between two calls of join, or reset after a step "
                    "that ended before its join");
    }
}

template <class T, Backend B>
void BucketedReduction<T, B>::ready(BasicStreamRef<B> stream, std::size_t i) {
    begin(stream, i);
    complete(stream, i);
}

template <class T, Backend B>
void BucketedReduction<T, B>::none(BasicStreamRef<B> stream, std::size_t i) {
    if (reduction_ != Reduction::sum && reduction_ != Reduction::average) {
        throw Error("bucketed reduction: zeros for part " + std::to_string(i) + " would change the " +
                    to_string(reduction_) + " of the other ranks; expected a sum or an average");
    }
    begin(stream, i);
    fill_bytes(stream, part(i), 0);
    complete(stream, i);
}

template <class T, Backend B>
void BucketedReduction<T, B>::complete(BasicStreamRef<B> stream, std::size_t i) {
    [[maybe_unused]] const typename detail::ObjectChecks<B>::LibraryScope library;
    parts_[i].written.record(stream);
    parts_[i].ready = true;
    begun_ = true;
    --buckets_[parts_[i].bucket].missing;
    for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
        const Bucket& bucket = buckets_[next_];
        // Not before: until a bucket is complete, the stream is free for other collectives.
        for (const Part& part : parts_) {
            if (part.bucket == next_)
                stream_.wait(part.written);
        }
        all_reduce(stream_, *communicator_, memory_.span().subspan(bucket.begin, bucket.size), reduction_);
    }
}

template <class T, Backend B>
void BucketedReduction<T, B>::join(BasicStreamRef<B> stream) {
    require_part(0);
    enter(stream);
    if (next_ != buckets_.size()) {
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (!parts_[i].ready)
                throw Error("bucketed reduction: join was called before part " + std::to_string(i) +
                            " was ready");
        }
    }
    forget();
    follow_reductions(stream);
    communicator_->fail_with_group(stream);
}

template <class T, Backend B>
void BucketedReduction<T, B>::reset(BasicStreamRef<B> stream) {
    require_part(0);
    const Scope scope = Scope::of(stream);
    // In a capture there is nothing to wait for unless it has reduced a bucket itself.
    const bool waits = !scope.captured || (begun_ && next_ > 0 && scope == scope_);
    forget();
    if (waits)
        follow_reductions(stream);
}

template <class T, Backend B>
void BucketedReduction<T, B>::follow_reductions(BasicStreamRef<B> stream) {
    [[maybe_unused]] const typename detail::ObjectChecks<B>::LibraryScope library;
    reduced_.record(stream_);
    stream.wait(reduced_);
}

} // namespace sluice
