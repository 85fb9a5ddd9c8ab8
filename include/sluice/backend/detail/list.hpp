// A growing array. What a vector would be, of which a compiler makes five times as many functions for each type.
#pragma once

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/owned.hpp>

#include <cstddef>
#include <new>
#include <utility>

namespace sluice::detail {

/// Values one after the other. A value's move must not throw; references end when it grows.
template <class T>
class List {
public:
    SLUICE_ALWAYS_INLINE constexpr List() noexcept {}
    /// So many values as `T()` gives.
    explicit List(std::size_t count) : List() { resize(count); }
    List(std::size_t count, const T& value) : List() { assign(count, value); }
    List(const List& other) : List() { append(other); }
    List(List&& other) noexcept { swap(other); }
    /// Keeps the memory that it has, where that is enough.
    List& operator=(const List& other) {
        if (this != &other) {
            clear();
            append(other);
        }
        return *this;
    }
    /// Its own values end now, and `other` is empty.
    List& operator=(List&& other) noexcept {
        if (this != &other) {
            clear();
            swap(other);
        }
        return *this;
    }
    ~List() {
        clear();
        give_back();
    }

    SLUICE_ALWAYS_INLINE T* begin() noexcept { return data_; }
    SLUICE_ALWAYS_INLINE T* end() noexcept { return data_ + size_; }
    SLUICE_ALWAYS_INLINE const T* begin() const noexcept { return data_; }
    SLUICE_ALWAYS_INLINE const T* end() const noexcept { return data_ + size_; }
    SLUICE_ALWAYS_INLINE T* data() noexcept { return data_; }
    SLUICE_ALWAYS_INLINE const T* data() const noexcept { return data_; }
    SLUICE_ALWAYS_INLINE std::size_t size() const noexcept { return size_; }
    SLUICE_ALWAYS_INLINE bool empty() const noexcept { return size_ == 0; }
    SLUICE_ALWAYS_INLINE T& operator[](std::size_t at) noexcept { return data_[at]; }
    SLUICE_ALWAYS_INLINE const T& operator[](std::size_t at) const noexcept { return data_[at]; }
    SLUICE_ALWAYS_INLINE T& front() noexcept { return data_[0]; }
    SLUICE_ALWAYS_INLINE const T& front() const noexcept { return data_[0]; }
    SLUICE_ALWAYS_INLINE T& back() noexcept { return data_[size_ - 1]; }
    SLUICE_ALWAYS_INLINE const T& back() const noexcept { return data_[size_ - 1]; }

    template <class... Args>
    SLUICE_ALWAYS_INLINE T& emplace_back(Args&&... args) {
        return push_back(T(static_cast<Args&&>(args)...));
    }
    T& push_back(T value) {
        if (size_ == room_) [[unlikely]]
            grow(size_ + 1);
        T* const made = ::new (static_cast<void*>(data_ + size_)) T(static_cast<T&&>(value));
        ++size_;
        return *made;
    }
    SLUICE_ALWAYS_INLINE void pop_back() noexcept { data_[--size_].~T(); }
    SLUICE_ALWAYS_INLINE void reserve(std::size_t count) {
        if (count > room_)
            grow(count);
    }
    void resize(std::size_t count) {
        reserve(count);
        while (size_ > count)
            pop_back();
        for (; size_ < count; ++size_)
            ::new (static_cast<void*>(data_ + size_)) T();
    }
    void assign(std::size_t count, const T& value) {
        const T copy(value); // It may be one of these.
        clear();
        reserve(count);
        while (size_ < count)
            push_back(copy);
    }
    void insert(T* before, T value) {
        const std::size_t at = static_cast<std::size_t>(before - data_);
        push_back(static_cast<T&&>(value));
        for (std::size_t i = size_ - 1; i > at; --i)
            std::swap(data_[i], data_[i - 1]);
    }
    void erase(T* at) noexcept {
        for (; at + 1 != end(); ++at)
            *at = static_cast<T&&>(at[1]);
        pop_back();
    }
    /// The first one ends first.
    void clear() noexcept {
        for (T& value : *this)
            value.~T();
        size_ = 0;
    }
    friend bool operator==(const List& a, const List& b) noexcept {
        bool same = a.size_ == b.size_;
        for (std::size_t i = 0; same && i < a.size_; ++i)
            same = a.data_[i] == b.data_[i];
        return same;
    }

private:
    struct Value { // whose size is a value's, whatever that is
        T value;
    };
    static constexpr bool is_overaligned = alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

    void append(const List& other) {
        reserve(size_ + other.size_);
        for (const T& value : other)
            push_back(value);
    }
    SLUICE_ALWAYS_INLINE void swap(List& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(room_, other.room_);
    }
    void grow(std::size_t least) {
        const std::size_t room = least < 2 * room_ ? 2 * room_ : least;
        void* memory = nullptr;
        if constexpr (is_overaligned)
            memory = ::operator new (room * sizeof(Value), std::align_val_t{alignof(T)});
        else
            memory = ::operator new(room * sizeof(Value));
        T* const data = static_cast<T*>(memory);
        for (std::size_t i = 0; i < size_; ++i) {
            ::new (static_cast<void*>(data + i)) T(static_cast<T&&>(data_[i]));
            data_[i].~T();
        }
        give_back();
        data_ = data;
        room_ = room;
    }
    SLUICE_ALWAYS_INLINE void give_back() noexcept {
        if constexpr (is_overaligned)
            ::operator delete (data_, std::align_val_t{alignof(T)});
        else
            ::operator delete(data_);
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

/// Adds `value` at the end unless it is among `values`.
template <class Values, class Value>
SLUICE_ALWAYS_INLINE inline void add_once(Values& values, const Value& value) {
    for (const auto& other : values) {
        if (other == value)
            return;
    }
    values.push_back(value);
}

} // namespace sluice::detail
