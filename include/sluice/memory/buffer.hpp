/// \file
/// Owners of device and of pinned memory.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/owned_memory.hpp>
#include <sluice/memory/span.hpp>

namespace sluice {

/// Owns `size()` elements in the memory of the device that was current when it was made. Their values are
/// undefined at first. Move-only; a moved-from buffer is empty and may be assigned to.
///
/// Made with a stream, it is allocated and freed in that stream's order: work enqueued there later may use it
/// at once, work on other streams must wait for the stream, and the stream must outlive the buffer. Made
/// without, any stream may use it at once, and it must outlive all work that uses it.
///
/// Not synchronised: one thread at a time, as for a `std::vector`.
template <class T, Backend B = DefaultBackend>
class DeviceBuffer {
    static_assert(std::is_same_v<T, std::remove_cvref_t<T>>,
                  "sluice::DeviceBuffer: elements are neither const nor references; what is only read is a "
                  "DeviceSpan<const T>");
    static_assert(std::is_trivially_copyable_v<T>,
                  "sluice::DeviceBuffer: elements must be trivially copyable");
    static_assert(
        alignof(T) <= detail::allocation_alignment,
        "sluice::DeviceBuffer: elements must not be aligned to more than 256 bytes, as allocations are");

public:
    using backend = B;    ///< Whose device memory it is.
    using value_type = T; ///< Of the elements.

    /// No elements, no memory.
    DeviceBuffer() noexcept = default;

    /// Allocates `count` elements. Throws `Error` when there is not enough memory.
    explicit DeviceBuffer(std::size_t count) : memory_(count), device_(B::current_device()) {}

    /// Allocates `count` elements in the order of `stream`, without waiting. Throws `Error` when there is not enough
    /// memory.
    DeviceBuffer(std::size_t count, BasicStreamRef<B> stream)
        : memory_(count, detail::DeviceAllocator<B>(stream.get())),
          device_(detail::device_of_memory(stream)) {}

    /// Does not compile.
    template <class Values>
    requires requires(const Values& values) {
        values.data();
        values.size();
    }
    explicit DeviceBuffer(const Values&) requires(!std::is_same_v<Values, DeviceBuffer>) {
        static_assert(sizeof(Values) == 0, "sluice::DeviceBuffer: it is made of a number of elements, and "
                                           "filled then, as by copy_and_wait(stream, buffer, values)");
    }

    /// Leaves the other buffer empty. Assigning frees what was here.
    /// @{
    DeviceBuffer(DeviceBuffer&&) noexcept = default;
    DeviceBuffer& operator=(DeviceBuffer&&) noexcept = default;
    /// @}

    /// The device whose memory it is; of a buffer that never had any, -1.
    int device() const noexcept { return device_; }
    /// Device addresses: host code must not follow them, except on the Host backend's own stream.
    /// @{
    T* data() noexcept { return memory_.data(); }
    const T* data() const noexcept { return memory_.data(); }
    /// @}
    /// Elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// Bytes of all elements.
    std::size_t bytes() const noexcept { return size() * sizeof(T); }
    /// Whether there are no elements.
    bool empty() const noexcept { return size() == 0; }

    /// All elements. Not of a temporary buffer, whose memory is freed before the span could be used.
    /// @{
    DeviceSpan<T, B> span() & noexcept { return {data(), size()}; }
    DeviceSpan<const T, B> span() const& noexcept { return {data(), size()}; }
    operator DeviceSpan<T, B>() & noexcept { return span(); }
    operator DeviceSpan<const T, B>() const& noexcept { return span(); }
    void span() && = delete;
    void span() const&& = delete;
    operator DeviceSpan<T, B>() && = delete;
    operator DeviceSpan<const T, B>() const&& = delete;
    /// @}

    /// `count` elements from `offset` on. Throws `Error` when they are not all there. Not of a temporary buffer.
    /// @{
    DeviceSpan<T, B> subspan(std::size_t offset, std::size_t count) & {
        return span().subspan(offset, count);
    }
    DeviceSpan<const T, B> subspan(std::size_t offset, std::size_t count) const& {
        return span().subspan(offset, count);
    }
    void subspan(std::size_t offset, std::size_t count) && = delete;
    void subspan(std::size_t offset, std::size_t count) const&& = delete;
    /// @}

    /// The first `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    /// @{
    DeviceSpan<T, B> first(std::size_t count) & { return span().first(count); }
    DeviceSpan<const T, B> first(std::size_t count) const& { return span().first(count); }
    void first(std::size_t count) && = delete;
    void first(std::size_t count) const&& = delete;
    /// @}

    /// The last `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    /// @{
    DeviceSpan<T, B> last(std::size_t count) & { return span().last(count); }
    DeviceSpan<const T, B> last(std::size_t count) const& { return span().last(count); }
    void last(std::size_t count) && = delete;
    void last(std::size_t count) const&& = delete;
    /// @}

private:
    detail::OwnedMemory<T, detail::DeviceAllocator<B>> memory_;
    int device_ = -1;
};

/// Owns `size()` elements of host memory that devices copy from and to without a detour. Their values are
/// undefined at first. Move-only; a moved-from buffer is empty and may be assigned to.
///
/// A copy reads or writes it when the stream gets there: leave it alone until then. `Source` and `Readback`
/// do so by themselves. Not synchronised: one thread at a time, as for a `std::vector`.
template <class T, Backend B = DefaultBackend>
class PinnedBuffer {
    static_assert(std::is_same_v<T, std::remove_cvref_t<T>>,
                  "sluice::PinnedBuffer: elements are neither const nor references; what is only read is a "
                  "PinnedSpan<const T>");
    static_assert(std::is_trivially_copyable_v<T>,
                  "sluice::PinnedBuffer: elements must be trivially copyable");
    static_assert(
        alignof(T) <= detail::allocation_alignment,
        "sluice::PinnedBuffer: elements must not be aligned to more than 256 bytes, as allocations are");

public:
    using backend = B;    ///< Whose devices copy from and to it.
    using value_type = T; ///< Of the elements.

    /// No elements, no memory.
    PinnedBuffer() noexcept = default;

    /// Allocates `count` elements. Throws `Error` when there is not enough memory.
    explicit PinnedBuffer(std::size_t count) : memory_(count) {}
    /// The same, as `options` say.
    PinnedBuffer(std::size_t count, const PinnedOptions& options) : memory_(count, {}, options) {}

    /// Does not compile.
    template <class Values>
    requires requires(const Values& values) {
        values.data();
        values.size();
    }
    explicit PinnedBuffer(const Values&) requires(!std::is_same_v<Values, PinnedBuffer>) {
        static_assert(sizeof(Values) == 0, "sluice::PinnedBuffer: it is made of a number of elements, and "
                                           "filled then, as by std::copy or a loop");
    }

    /// Leaves the other buffer empty. Assigning frees what was here.
    /// @{
    PinnedBuffer(PinnedBuffer&&) noexcept = default;
    PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;
    /// @}

    /// Host addresses.
    /// @{
    T* data() noexcept(is_quiet) {
        touch(address(), size(), false, true);
        return address();
    }
    const T* data() const noexcept { return address(); }
    /// @}
    /// Elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// Bytes of all elements.
    std::size_t bytes() const noexcept { return size() * sizeof(T); }
    /// Whether there are no elements.
    bool empty() const noexcept { return size() == 0; }

    /// Element `index`, which is not checked.
    /// @{
    T& operator[](std::size_t index) noexcept(is_quiet) {
        touch(address() + index, 1, true, true);
        return address()[index];
    }
    const T& operator[](std::size_t index) const noexcept(is_quiet) {
        touch(address() + index, 1, true, false);
        return address()[index];
    }
    /// @}
    /// The elements as a contiguous range.
    /// @{
    T* begin() noexcept(is_quiet) {
        touch(address(), size(), true, true);
        return address();
    }
    T* end() noexcept { return address() + size(); }
    const T* begin() const noexcept(is_quiet) {
        touch(address(), size(), true, false);
        return address();
    }
    const T* end() const noexcept { return address() + size(); }
    /// @}

    /// All elements. Not of a temporary buffer, whose memory is freed before the span could be used.
    /// @{
    PinnedSpan<T, B> span() & noexcept { return {address(), size()}; }
    PinnedSpan<const T, B> span() const& noexcept { return {address(), size()}; }
    operator PinnedSpan<T, B>() & noexcept { return span(); }
    operator PinnedSpan<const T, B>() const& noexcept { return span(); }
    void span() && = delete;
    void span() const&& = delete;
    operator PinnedSpan<T, B>() && = delete;
    operator PinnedSpan<const T, B>() const&& = delete;
    /// @}

    /// `count` elements from `offset` on. Throws `Error` when they are not all there. Not of a temporary buffer.
    /// @{
    PinnedSpan<T, B> subspan(std::size_t offset, std::size_t count) & {
        return span().subspan(offset, count);
    }
    PinnedSpan<const T, B> subspan(std::size_t offset, std::size_t count) const& {
        return span().subspan(offset, count);
    }
    void subspan(std::size_t offset, std::size_t count) && = delete;
    void subspan(std::size_t offset, std::size_t count) const&& = delete;
    /// @}

    /// The first `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    /// @{
    PinnedSpan<T, B> first(std::size_t count) & { return span().first(count); }
    PinnedSpan<const T, B> first(std::size_t count) const& { return span().first(count); }
    void first(std::size_t count) && = delete;
    void first(std::size_t count) const&& = delete;
    /// @}

    /// The last `count` elements. Throws `Error` when there are fewer. Not of a temporary buffer.
    /// @{
    PinnedSpan<T, B> last(std::size_t count) & { return span().last(count); }
    PinnedSpan<const T, B> last(std::size_t count) const& { return span().last(count); }
    void last(std::size_t count) && = delete;
    void last(std::size_t count) const&& = delete;
    /// @}

private:
    // Where races are looked for, what the host touches while work may still use it is an `Error`.
    using Checks = detail::ObjectChecks<B>;
    static constexpr bool is_quiet = !Checks::on;
    static void touch(const T* begin, std::size_t count, bool reads, bool may_write) noexcept(is_quiet) {
        Checks::host_touches(begin, count * sizeof(T), reads, may_write);
    }
    T* address() const noexcept { return memory_.data(); }

    detail::OwnedMemory<T, detail::PinnedAllocator<B>> memory_;
};

} // namespace sluice
