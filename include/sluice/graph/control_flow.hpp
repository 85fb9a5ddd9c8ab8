/// \file
/// Branches and loops whose condition is found on the device; the same code runs at once or is captured.
#pragma once

#include <type_traits>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/cuda/device_conditions.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/graph_names.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/capture_scope.hpp>
#include <sluice/memory/buffer.hpp>

namespace sluice {

namespace detail {
template <GraphBackend B>
struct ControlFlow;
}

/// What work on the device decides a condition with. Passed by value: to a kernel, or into a host task.
struct ConditionSetter {
    unsigned* word = nullptr;      ///< The number, in device memory.
    unsigned long long handle = 0; ///< Of the conditional node that it decides; 0 outside of a graph.
    bool kernels_only = false;     ///< Whether the host may not use it, as on CUDA.

    /// Decides for `value`. Only one thread of a kernel may call it: concurrent calls are undefined. On the host, of a
    /// condition of CUDA's or of none, throws `Error`; `get` does, too.
    SLUICE_HOST_DEVICE void set(unsigned value) const {
        detail::require_kernel(kernels_only, word);
        *word = value;
        detail::set_condition(handle, value);
    }

    /// What was decided last, by work earlier in the stream's order.
    SLUICE_HOST_DEVICE unsigned get() const {
        detail::require_kernel(kernels_only, word);
        return *word;
    }
};

/// How `while_nonzero` runs.
struct WhileOptions {
    /// How often the body runs for each look at the condition. A look costs a few microseconds; a body that does
    /// nothing once `ConditionSetter::get()` is 0 gives the same results for every number here.
    int unroll = 1;
};

/// Calls `then(s)` if the condition is not 0. `s` is the stream to enqueue on. Waits for `stream` outside of a capture.
///
/// Throws `Error` when the condition has no setter given out since it was last used, is moved from, or belongs to another
/// device than `stream`, and what a body throws; outside of a capture also for a fault of the stream. On a stream that has a
/// share of a device a capture is refused: what a condition decides in a graph belongs to the whole device. The same holds for
/// the three functions below.
template <GraphBackend B, class Then>
void if_nonzero(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Then&& then);

/// Calls `then(s)` if the condition is not 0, and `otherwise(s)` if it is. See `if_nonzero`.
template <GraphBackend B, class Then, class Otherwise>
void if_else(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Then&& then,
             Otherwise&& otherwise);

/// Calls the body whose place the condition is, counted from 0, and none if there is no such body. See `if_nonzero`.
template <GraphBackend B, class... Bodies>
void select(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Bodies&&... bodies);

/// Runs `body(s)` as long as the condition is not 0. With a setter given out before, it looks first; with none, the
/// body runs once before the first look, and the setter that it asks for itself decides. Each run of the body
/// must call `set`, or the loop goes on. In a capture, how often `body` is called says nothing of how often it
/// runs. See `if_nonzero`; throws `Error` also when `options.unroll` is below 1, and where no setter was given out before and
/// the body asks for none, since such a loop would never end.
template <GraphBackend B, class Body>
void while_nonzero(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Body&& body,
                   const WhileOptions& options = {});

/// A number that work on the device sets and the functions above look at.
///
/// In a capture they make conditional nodes, and the host is not asked again. Outside they bring the number to
/// the host, wait for it, and call the bodies that it asks for. The results are the same. On CUDA, capturing
/// `if_else` and `select` needs version 12.8 of driver and toolkit, the others 12.4, and throws `Error` before.
///
/// Get a setter, enqueue work that calls `set` in every run, then branch. One setter serves one branch: each
/// `if_nonzero`, `if_else` and `select` needs a new one, given out for the same stream or one that the same
/// capture holds. Inside the body of a `while_nonzero` the setter decides whether it goes on.
///
/// Bodies are called as `body(BasicStreamRef<B>)` and enqueue on that stream, which in a capture is the
/// condition's own. A body that branches again needs another condition. A `BasicGraphBuilder` makes the same nodes by
/// hand. On CUDA a captured body may hold kernels, copies and fills of device memory, and branches, but no host function.
///
/// Belongs to the device that was current when it was made. Move-only; a moved-from condition may only be
/// assigned to or destroyed. Driven by one thread. Must outlive the work and the graphs that use it.
///
/// \code
/// sluice::Condition again;
/// sluice::while_nonzero(stream, again, [&](sluice::StreamRef s) {
///     iterate<<<blocks, threads, 0, s>>>(x, residual);
///     decide<<<1, 1, 0, s>>>(residual, again.setter(s)); // setter.set(*residual > 1e-6f)
/// });
/// \endcode
template <GraphBackend B>
class BasicCondition {
public:
    /// Without a value at first. Throws `Error`.
    BasicCondition();

    /// Setters that the argument has given out stay good.
    BasicCondition(BasicCondition&&) noexcept = default;
    /// Setters that the argument has given out stay good.
    BasicCondition& operator=(BasicCondition&&) noexcept = default;

    /// What work on `stream` decides with. Throws `Error` for a stream of another device, inside a body of the
    /// condition's own `if_nonzero`, `if_else` or `select`, and where the driver knows no conditional nodes.
    ConditionSetter setter(BasicStreamRef<B> stream);

private:
    friend struct detail::ControlFlow<B>;

    // Where a setter serves: outside of a capture, or in the graph that a capture fills.
    using GraphScope = detail::CaptureScope<B>;
    // Of which of the condition's own bodies a call comes out.
    enum class Within { none, branch, loop };

    void check(BasicStreamRef<B> stream, const char* caller) const;
    void check_current(const char* caller) const;
    void require_memory(const char* caller) const;

    DeviceBuffer<unsigned, B> word_;
    PinnedBuffer<unsigned, B> seen_;
    int device_;
    // For the bodies: the caller's stream is being captured already. Made when it is first needed.
    detail::Owned<BasicStream<B>> body_stream_;
    ConditionSetter setter_;
    GraphScope scope_;
    bool pending_ = false; // a setter was given out, and nothing has used it
    Within within_ = Within::none;
    bool asked_ = false; // by the body of the loop around it, for its setter
};

} // namespace sluice

#include <sluice/graph/detail/control_flow.inl>
