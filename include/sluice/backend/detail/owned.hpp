// Owners of one value: what std::unique_ptr and std::optional would be, of which a compiler makes three to ten
// times as many functions for each type.
#pragma once

#include <sluice/backend/config.hpp>

#include <cstddef>
#include <new>

namespace sluice::detail {

/// Of a use of the owner `what`, such as "stream", that owns nothing any more.
[[noreturn]] void throw_moved_from(const char* what);

/// The handle of `what`, which has one as long as it owns something.
template <class Handle>
SLUICE_ALWAYS_INLINE inline Handle owned_by(const char* what, Handle handle) {
    if (handle == Handle{}) [[unlikely]]
        throw_moved_from(what);
    return handle;
}

/// Owns what `make_owned` made, or nothing.
template <class T>
class Owned {
public:
    SLUICE_ALWAYS_INLINE Owned() noexcept {}
    SLUICE_ALWAYS_INLINE Owned(std::nullptr_t) noexcept {}
    SLUICE_ALWAYS_INLINE explicit Owned(T* value) noexcept : value_(value) {}
    SLUICE_ALWAYS_INLINE Owned(Owned&& other) noexcept : value_(other.give()) {}
    /// Of a derived class, where `T` has a virtual destructor.
    template <class Derived>
    SLUICE_ALWAYS_INLINE Owned(Owned<Derived>&& other) noexcept : value_(other.give()) {}
    /// What it had ends once it has the other's.
    Owned& operator=(Owned&& other) noexcept {
        T* const next = other.give();
        T* const former = value_;
        value_ = next;
        delete former;
        return *this;
    }
    ~Owned() { delete value_; }

    SLUICE_ALWAYS_INLINE T* get() const noexcept { return value_; }
    SLUICE_ALWAYS_INLINE T& operator*() const noexcept { return *value_; }
    SLUICE_ALWAYS_INLINE T* operator->() const noexcept { return value_; }
    SLUICE_ALWAYS_INLINE explicit operator bool() const noexcept { return value_ != nullptr; }
    SLUICE_ALWAYS_INLINE friend bool operator==(const Owned& owned, std::nullptr_t) noexcept {
        return owned.value_ == nullptr;
    }
    void reset() noexcept { *this = Owned(); }
    /// The value, which is the caller's from here on.
    SLUICE_ALWAYS_INLINE T* give() noexcept {
        T* const value = value_;
        value_ = nullptr;
        return value;
    }

private:
    T* value_ = nullptr;
};

template <class T, class... Args>
SLUICE_ALWAYS_INLINE inline Owned<T> make_owned(Args&&... args) {
    return Owned<T>(new T(static_cast<Args&&>(args)...));
}

/// A value in place, or none. It doesn't copy.
template <class T>
class Maybe {
public:
    SLUICE_ALWAYS_INLINE Maybe() noexcept : none_{} {}
    SLUICE_ALWAYS_INLINE Maybe(std::nullptr_t) noexcept : none_{} {}
    Maybe(T&& value) noexcept : none_{} { emplace(static_cast<T&&>(value)); }
    Maybe(Maybe&& other) noexcept : none_{} { take(other); }
    Maybe& operator=(Maybe&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }
    ~Maybe() { reset(); }

    template <class... Args>
    SLUICE_ALWAYS_INLINE T& emplace(Args&&... args) {
        reset();
        T* const made = ::new (static_cast<void*>(&value_)) T(static_cast<Args&&>(args)...);
        has_value_ = true;
        return *made;
    }
    void reset() noexcept {
        if (has_value_)
            value_.~T();
        has_value_ = false;
    }
    SLUICE_ALWAYS_INLINE explicit operator bool() const noexcept { return has_value_; }
    SLUICE_ALWAYS_INLINE T& operator*() noexcept { return value_; }
    SLUICE_ALWAYS_INLINE const T& operator*() const noexcept { return value_; }
    SLUICE_ALWAYS_INLINE T* operator->() noexcept { return &value_; }
    SLUICE_ALWAYS_INLINE const T* operator->() const noexcept { return &value_; }

private:
    void take(Maybe& other) noexcept {
        if (other.has_value_)
            emplace(static_cast<T&&>(other.value_));
    }

    union {
        char none_;
        T value_;
    };
    bool has_value_ = false;
};

} // namespace sluice::detail
