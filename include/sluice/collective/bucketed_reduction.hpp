/// \file
/// Gradients reduced in buckets while the backward pass goes on.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/collective/collectives.hpp>
#include <sluice/graph/detail/capture_scope.hpp>
#include <sluice/memory/buffer.hpp>

namespace sluice {

/// How gradients are put into buckets.
struct BucketOptions {
    /// A bucket takes parts until it has at least so many bytes. 0: each part is a bucket of its own.
    std::size_t bytes = std::size_t{25} << 20;
    /// What is made of the ranks' gradients.
    Reduction reduction = Reduction::sum;
    /// The priority of the reduction's stream; lower runs first.
    int priority = 0;
};

/// Memory for the parts of a gradient, in the order in which a backward pass finishes them, and their reduction over all
/// ranks. As soon as all parts of a bucket are ready, it is reduced on a stream of its own, while the backward pass
/// goes on with other parts.
///
/// \code
/// sluice::BucketedReduction<float> gradients{communicator, {last.size(), middle.size(), first.size()}};
/// for (std::size_t i = 0; i < 3; ++i) {        // the backward pass
///     backward(stream, i, gradients.part(i));  // writes part i
///     gradients.ready(stream, i);
/// }
/// gradients.join(stream);                      // what comes now reads the reduced gradients
/// \endcode
///
/// Its buckets are reduced in one order on all ranks, whatever the order in which parts become ready. Nothing is
/// allocated after it is made. It can be captured from the first `ready` to `join`; what became ready in a capture that was
/// refused half way is forgotten, so that the work can run eagerly. The communicator outlives it; what else it is
/// used for between the first `ready` and `join` goes to `stream()`. Belongs to the communicator's device; driven by one thread.
/// Move-only; a moved-from one may be assigned to, and has no parts: what uses them throws `Error`.
template <class T, Backend B = DefaultBackend>
class BucketedReduction {
public:
    /// For parts of `sizes` elements. Throws `Error`.
    BucketedReduction(const Communicator<B>& communicator, std::span<const std::size_t> sizes,
                      const BucketOptions& options = {});
    /// The same of a list.
    BucketedReduction(const Communicator<B>& communicator, std::initializer_list<std::size_t> sizes,
                      const BucketOptions& options = {})
        : BucketedReduction(communicator, std::span<const std::size_t>(sizes.begin(), sizes.size()),
                            options) {}

    /// The memory of part `i`: written before `ready`, reduced after `join`.
    DeviceSpan<T, B> part(std::size_t i);
    /// All parts, one after another.
    DeviceSpan<T, B> all() {
        require_part(0);
        return memory_.span();
    }
    /// Parts.
    std::size_t parts() const noexcept { return parts_.size(); }
    /// Buckets.
    std::size_t buckets() const noexcept { return buckets_.size(); }

    /// The stream of the reductions, for other collectives of the communicator. What they read is waited for there, and `join` waits
    /// for them too.
    BasicStreamRef<B> stream() const { return stream_; }

    /// Part `i` is complete once `stream` gets here. Each part once, in any order and on any streams, then `join`. Throws
    /// `Error`, also for a part that is ready already, and in a capture where another part became ready before it.
    /// @{
    void ready(BasicStreamRef<B> stream, std::size_t i);
    void ready(const BasicStream<B>& stream, std::size_t i) { ready(stream.ref(), i); }
    /// @}

    /// Instead of `ready`: this step makes no part `i`, as of a parameter that the loss does not depend on. It is set to zeros
    /// in the order of `stream`, and the other ranks' count. Throws `Error` as `ready` does, and for a minimum or a maximum,
    /// which zeros would change.
    /// @{
    void none(BasicStreamRef<B> stream, std::size_t i);
    void none(const BasicStream<B>& stream, std::size_t i) { none(stream.ref(), i); }
    /// @}

    /// Makes `stream` wait until all parts are reduced. The next `ready` begins the next gradient. Throws `Error` where a
    /// part is not ready; it may be made so, and `join` called again.
    /// @{
    void join(BasicStreamRef<B> stream);
    void join(const BasicStream<B>& stream) { join(stream.ref()); }
    /// @}

    /// Forgets which parts are ready, after a step that ended between two of them, as by an exception: the next `ready` begins
    /// a gradient. `stream` waits for the reductions that have begun. Only where all ranks have begun the same ones do their
    /// next collectives fit together. Throws `Error`.
    /// @{
    void reset(BasicStreamRef<B> stream);
    void reset(const BasicStream<B>& stream) { reset(stream.ref()); }
    /// @}

private:
    using Scope = detail::CaptureScope<B>;
    struct Part {
        std::size_t begin = 0;
        std::size_t size = 0;
        std::size_t bucket = 0;
        bool ready = false;
        BasicEvent<B> written = BasicEvent<B>();
    };
    struct Bucket {
        std::size_t begin = 0;
        std::size_t size = 0;
        std::size_t missing = 0; // parts that are not ready
        std::size_t parts = 0;
    };

    void enter(BasicStreamRef<B> stream);
    void begin(BasicStreamRef<B> stream, std::size_t i);
    void complete(BasicStreamRef<B> stream, std::size_t i);
    void follow_reductions(BasicStreamRef<B> stream);
    void require_part(std::size_t i) const;
    void forget() noexcept;

    const Communicator<B>* communicator_;
    Reduction reduction_;
    detail::List<Part> parts_; // which stay where they are moved into themselves
    detail::List<Bucket> buckets_;
    std::size_t next_ = 0; // bucket to be reduced
    bool begun_ = false;   // whether a part is ready
    Scope scope_;          // where it became so
    DeviceBuffer<T, B> memory_;
    BasicStream<B> stream_;
    BasicEvent<B> reduced_;
};

} // namespace sluice

#include <sluice/collective/detail/bucketed_reduction.inl>
