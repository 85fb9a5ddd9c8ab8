/// \file
/// A number in device memory that the host changes between launches.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

namespace sluice {

/// One value in device memory. A graph keeps the arguments that its kernels were captured with; a kernel that
/// takes `data()` instead reads what `set` put there before this launch: a learning rate, a step, a size.
///
/// Move-only; its address moves with it. A moved-from scalar may only be assigned to or destroyed. Belongs to
/// the device that was current when it was made. Not synchronised: one thread at a time. Must outlive all
/// work that reads it; destroying it waits for the copies that `set` has enqueued, and for nothing else.
///
/// \code
/// sluice::DeviceScalar<float> rate{1e-3f};
/// for (int step = 0; step < steps; ++step) {
///     rate.set(stream, schedule(step)); // not part of the graph
///     graph.run(stream, [&](sluice::StreamRef s) { update<<<blocks, threads, 0, s>>>(weights, rate.data()); });
/// }
/// \endcode
template <class T, Backend B = DefaultBackend>
class DeviceScalar {
    static_assert(
        std::is_same_v<T, std::remove_cvref_t<T>>,
        "sluice::DeviceScalar: the type is neither const nor a reference, since set() changes the value");
    static_assert(std::is_trivially_copyable_v<T>,
                  "sluice::DeviceScalar: the type must be trivially copyable");

public:
    using backend = B;    ///< Where the value lives.
    using value_type = T; ///< Trivially copyable.

    /// Waits until the device holds `initial`. `slots` values can be on their way at once. Throws `Error` when `slots` is
    /// below 1, or there is not enough memory.
    explicit DeviceScalar(T initial = {}, int slots = 8);

    /// The address goes along.
    DeviceScalar(DeviceScalar&&) noexcept = default;
    /// Waits for the copies that `set` has enqueued to the former value.
    DeviceScalar& operator=(DeviceScalar&& other) noexcept;

    /// Work that is enqueued on `stream` from here on reads `value`; work enqueued earlier reads the earlier one. Waits
    /// only when all slots are on their way, for the oldest. The caller orders uses on several streams. Throws `Error`,
    /// also while `stream` is being captured. A fault of the stream that an earlier value went to is reported by that
    /// stream, and does not keep later values from being set.
    void set(BasicStreamRef<B> stream, T value);

    /// The value that work enqueued on `stream` now would read. Waits for the stream. Throws `Error`, also while `stream`
    /// is being captured.
    T value_and_wait(BasicStreamRef<B> stream) const;

    /// One element. Not of a temporary scalar, whose memory is freed before the span could be used.
    DeviceSpan<T, B> span() & noexcept { return value_.span(); }
    /// One element, to read.
    DeviceSpan<const T, B> span() const& noexcept { return value_.span(); }
    void span() && = delete;
    void span() const&& = delete;
    /// Device memory, the same in the scalar's whole life.
    T* data() noexcept { return value_.data(); }
    /// Device memory, the same in the scalar's whole life.
    const T* data() const noexcept { return value_.data(); }

private:
    struct Slot; // pinned memory that a value leaves from

    // Waits until the slot's copy is over, however it ended.
    static void wait_for(const Slot& slot);
    void require_usable(BasicStreamRef<B> stream, const char* call, const char* why) const;

    DeviceBuffer<T, B> value_;
    detail::List<detail::Owned<Slot>> slots_;
    std::size_t next_ = 0;
};

} // namespace sluice

#include <sluice/graph/detail/device_scalar.inl>
