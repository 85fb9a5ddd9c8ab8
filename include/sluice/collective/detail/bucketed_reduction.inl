// Bodies of bucketed_reduction.hpp.
#pragma once

#include <string>

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
    if (sizes.empty())
        throw Error("bucketed reduction: expected at least one part, and there is none");
    const DeviceGuard<B> guard(communicator.device());
    reduced_ = BasicEvent<B>();
    std::size_t total = 0;
    parts_.reserve(sizes.size());
    for (const std::size_t size : sizes) {
        if (buckets_.empty() || buckets_.back().size * sizeof(T) >= options.bytes)
            buckets_.push_back({.begin = total});
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
    return memory_.span().subspan(parts_.at(i).begin, parts_[i].size);
}

template <class T, Backend B>
void BucketedReduction<T, B>::ready(BasicStreamRef<B> stream, std::size_t i) {
    if (i >= parts_.size() || parts_[i].ready) {
        throw Error("bucketed reduction: part " + std::to_string(i) + " of " + std::to_string(parts_.size()) +
                    " is ready; expected each part once between two calls of join");
    }
    parts_[i].written.record(stream);
    parts_[i].ready = true;
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
    if (next_ != buckets_.size()) {
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (!parts_[i].ready)
                throw Error("bucketed reduction: join was called before part " + std::to_string(i) +
                            " was ready");
        }
    }
    next_ = 0;
    for (Part& part : parts_)
        part.ready = false;
    for (Bucket& bucket : buckets_)
        bucket.missing = bucket.parts;
    reduced_.record(stream_);
    stream.wait(reduced_);
    communicator_->fail_with_group(stream);
}

} // namespace sluice
