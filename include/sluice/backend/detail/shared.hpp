// Owners that share one value: what std::shared_ptr and std::weak_ptr would be, whose header takes a compiler a sixth of what
// including sluice does.
#pragma once

#include <cstddef>
#include <new>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/atomic.hpp>

namespace sluice::detail {

/// Beside a value: how many share it, and what ends it. Those that watch hold the memory; the owners together are one of these.
class ShareCount {
public:
    explicit ShareCount(void (*act)(ShareCount*, bool free) noexcept) noexcept : act_(act) {}

    void own() noexcept { owners_.add(1); }
    void watch() noexcept { watchers_.add(1); }
    /// Whether the value was still there: one more owns it then.
    bool own_if_there() noexcept {
        std::size_t owners = owners_.load();
        while (owners != 0) {
            if (owners_.replace(owners, owners + 1))
                return true;
        }
        return false;
    }
    bool has_owners() const noexcept { return owners_.load() != 0; }
    void disown() noexcept {
        if (owners_.subtract(1, __ATOMIC_ACQ_REL) != 0)
            return;
        act_(this, false);
        unwatch();
    }
    void unwatch() noexcept {
        if (watchers_.subtract(1, __ATOMIC_ACQ_REL) == 0)
            act_(this, true);
    }

private:
    Atomic<std::size_t> owners_{1};
    Atomic<std::size_t> watchers_{1};
    void (*act_)(ShareCount*, bool free) noexcept; // ends the value, or frees its memory
};

template <class T>
struct SharedValue : ShareCount {
    template <class... Args>
    explicit SharedValue(Args&&... args) : ShareCount(&act) {
        ::new (static_cast<void*>(&value)) T(static_cast<Args&&>(args)...);
    }
    ~SharedValue() {}
    static void act(ShareCount* self, bool free) noexcept {
        auto* const shared = static_cast<SharedValue*>(self);
        if (free)
            delete shared;
        else
            shared->value.~T();
    }
    union {
        T value;
    };
};

template <class T>
class Watched;

/// One of those who own a value that `make_shared_value` made, or of nothing.
template <class T>
class Shared {
public:
    SLUICE_ALWAYS_INLINE Shared() noexcept {}
    SLUICE_ALWAYS_INLINE Shared(std::nullptr_t) noexcept {}
    /// Of one owner's value, whose part `value` is.
    SLUICE_ALWAYS_INLINE Shared(T* value, ShareCount* owned) noexcept : value_(value), count_(owned) {}
    SLUICE_ALWAYS_INLINE Shared(const Shared& other) noexcept : value_(other.value_), count_(other.count_) {
        if (count_ != nullptr)
            count_->own();
    }
    SLUICE_ALWAYS_INLINE Shared(Shared&& other) noexcept : value_(other.value_), count_(other.give()) {}
    /// Of a base class's, a constant's, or without a type.
    template <class Other>
    requires requires(Other* from, T*& to) { to = from; }
    SLUICE_ALWAYS_INLINE Shared(const Shared<Other>& other) noexcept
        : value_(other.value_), count_(other.count_) {
        if (count_ != nullptr)
            count_->own();
    }
    template <class Other>
    requires requires(Other* from, T*& to) { to = from; }
    SLUICE_ALWAYS_INLINE Shared(Shared<Other>&& other) noexcept
        : value_(other.value_), count_(other.give()) {}
    /// Of a part of the other's value.
    template <class Whole>
    Shared(const Shared<Whole>& whole, T* part) noexcept : value_(part), count_(whole.count_) {
        if (count_ != nullptr)
            count_->own();
    }
    /// What it had may end once it has the other's.
    Shared& operator=(Shared other) noexcept {
        T* const value = other.value_;
        ShareCount* const former = count_;
        count_ = other.give();
        value_ = value;
        if (former != nullptr)
            former->disown();
        return *this;
    }
    SLUICE_ALWAYS_INLINE ~Shared() {
        if (count_ != nullptr)
            count_->disown();
    }

    SLUICE_ALWAYS_INLINE T* get() const noexcept { return value_; }
    SLUICE_ALWAYS_INLINE auto& operator*() const noexcept { return *value_; }
    SLUICE_ALWAYS_INLINE T* operator->() const noexcept { return value_; }
    SLUICE_ALWAYS_INLINE explicit operator bool() const noexcept { return value_ != nullptr; }
    SLUICE_ALWAYS_INLINE friend bool operator==(const Shared& shared, std::nullptr_t) noexcept {
        return shared.value_ == nullptr;
    }

private:
    template <class>
    friend class Shared;
    friend class Watched<T>;

    SLUICE_ALWAYS_INLINE ShareCount* give() noexcept {
        ShareCount* const count = count_;
        value_ = nullptr;
        count_ = nullptr;
        return count;
    }

    T* value_ = nullptr;
    ShareCount* count_ = nullptr;
};

template <class T, class... Args>
Shared<T> make_shared_value(Args&&... args) {
    auto* const made = new SharedValue<T>(static_cast<Args&&>(args)...);
    return Shared<T>(&made->value, made);
}

/// A value that others own, as long as they do.
template <class T>
class Watched {
public:
    Watched() noexcept {}
    Watched(const Shared<T>& shared) noexcept : value_(shared.value_), count_(shared.count_) { watch(); }
    Watched(const Watched& other) noexcept : value_(other.value_), count_(other.count_) { watch(); }
    Watched& operator=(Watched other) noexcept {
        T* const value = other.value_;
        ShareCount* const count = other.count_;
        other.value_ = value_;
        other.count_ = count_;
        value_ = value;
        count_ = count;
        return *this;
    }
    ~Watched() {
        if (count_ != nullptr)
            count_->unwatch();
    }
    /// Whether it was there a moment ago.
    bool is_there() const noexcept { return count_ != nullptr && count_->has_owners(); }
    /// One more owner of it; null where it has ended.
    Shared<T> lock() const noexcept {
        return count_ != nullptr && count_->own_if_there() ? Shared<T>(value_, count_) : Shared<T>();
    }

private:
    void watch() const noexcept {
        if (count_ != nullptr)
            count_->watch();
    }

    T* value_ = nullptr;
    ShareCount* count_ = nullptr;
};

} // namespace sluice::detail
