// A unit of work for a host stream.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/owned.hpp>

// Whether the compiler can make bytes that stand for nothing 0.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define SLUICE_CLEARS_PADDING 1
#endif
#endif
#ifndef SLUICE_CLEARS_PADDING
#define SLUICE_CLEARS_PADDING 0
#endif

namespace sluice::host {

/// How many bytes of a callable are its value and nothing else, so that another one of the type with other bytes does something
/// else; 0 where that is not known. One that wraps another one, as its first member, names that one's type as `Wrapped`.
template <class Callable>
constexpr std::size_t value_bytes_of() noexcept {
    if constexpr (requires { typename Callable::Wrapped; })
        return value_bytes_of<typename Callable::Wrapped>();
    else if constexpr (std::is_trivially_copyable_v<Callable> &&
                       (std::has_unique_object_representations_v<Callable> || SLUICE_CLEARS_PADDING))
        return sizeof(Callable);
    else
        return 0;
}

/// What makes the bytes between a callable's members 0; null where there are none, or that cannot be done.
template <class Callable>
constexpr auto padding_of() noexcept -> void (*)(void*) {
    if constexpr (requires { typename Callable::Wrapped; }) {
        return padding_of<typename Callable::Wrapped>();
    } else {
#if SLUICE_CLEARS_PADDING
        if constexpr (std::is_trivially_copyable_v<Callable> &&
                      !std::has_unique_object_representations_v<Callable>)
            return [](void* callable) { __builtin_clear_padding(static_cast<Callable*>(callable)); };
#endif
        return nullptr;
    }
}

/// A move-only callable without arguments. One of up to `inline_bytes` is kept in place, so that enqueueing
/// it allocates nothing; a larger one is moved to the heap.
class Task {
public:
    static constexpr std::size_t inline_bytes = 208;

    Task() noexcept = default;

    template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Task>) explicit Task(F&& callable) {
        using Callable = std::decay_t<F>;
        if constexpr (sizeof(Callable) <= storage_bytes && alignof(Callable) <= alignof(std::max_align_t) &&
                      std::is_nothrow_move_constructible_v<Callable>) {
            ::new (static_cast<void*>(storage_)) Callable(std::forward<F>(callable));
            actions_ = &actions_of<Callable>;
        } else {
            auto boxed = [inner = detail::make_owned<Callable>(std::forward<F>(callable))] { (*inner)(); };
            ::new (static_cast<void*>(storage_)) decltype(boxed)(std::move(boxed));
            actions_ = &actions_of<decltype(boxed)>;
        }
    }

    Task(Task&& other) noexcept { take(other); }
    Task& operator=(Task&& other) noexcept {
        if (this != &other) {
            clear();
            take(other);
        }
        return *this;
    }
    ~Task() { clear(); }

    void operator()() { actions_->run(storage_); }

    /// The same for all callables of one type that are kept in one way; null without a callable.
    const void* type() const noexcept { return actions_; }

    /// Calls `visit(byte)` for the bytes that tell it from other callables of its type; for none where they are not known.
    template <class Visit>
    void visit_value(Visit&& visit) const {
        if (actions_ == nullptr || actions_->value_bytes == 0)
            return;
        alignas(std::max_align_t) std::byte value[storage_bytes];
        std::memcpy(value, storage_, actions_->value_bytes);
        if (actions_->clear_padding != nullptr)
            actions_->clear_padding(value);
        for (std::size_t i = 0; i < actions_->value_bytes; ++i)
            visit(value[i]);
    }

private:
    struct Actions {
        void (*run)(void*);
        void (*move)(void* to, void* from) noexcept;
        void (*destroy)(void*) noexcept;
        std::size_t value_bytes;
        void (*clear_padding)(void*);
    };

    template <class Callable>
    static constexpr Actions actions_of{
        [](void* self) { (*static_cast<Callable*>(self))(); },
        [](void* to, void* from) noexcept { ::new (to) Callable(std::move(*static_cast<Callable*>(from))); },
        [](void* self) noexcept { static_cast<Callable*>(self)->~Callable(); }, value_bytes_of<Callable>(),
        padding_of<Callable>()};

    void take(Task& other) noexcept {
        if (other.actions_ != nullptr) {
            other.actions_->move(storage_, other.storage_);
            actions_ = other.actions_;
            other.clear();
        }
    }
    void clear() noexcept {
        if (actions_ != nullptr) {
            actions_->destroy(storage_);
            actions_ = nullptr;
        }
    }

    // A checked stream's callables have a number beside them.
    static constexpr std::size_t storage_bytes = inline_bytes + (SLUICE_CHECKED ? 16 : 0);

    const Actions* actions_ = nullptr;
    alignas(std::max_align_t) std::byte storage_[storage_bytes];
};

} // namespace sluice::host
