// Bodies of launch_with.hpp.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/detail/stream_types.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/launch.hpp>
#include <sluice/graph/detail/node_checks.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>

namespace sluice {

namespace detail {

/// What a kernel is given, as its parameters' types. No generic lambda: nvcc 12.4 loses its values.
template <class... Params, class Given, class Use, std::size_t... Places>
void use_as(const Given& given, Use& use, std::index_sequence<Places...>) {
    constexpr bool fit = (std::is_convertible_v<const std::tuple_element_t<Places, Given>&, Params> && ...);
    static_assert(fit, "sluice::launch_with: a value that `arguments()` gives does not convert to "
                       "its kernel's parameter");
    if constexpr (fit)
        use(static_cast<Params>(std::get<Places>(given))...);
}
/// Calls `use(values...)` with what `arguments()` gives, as the parameters' types.
template <class... Params, class Arguments, class Use>
void with_given(Arguments& arguments, Use&& use) {
    const auto given = arguments();
    use_as<Params...>(given, use, std::index_sequence_for<Params...>{});
}

/// A captured launch of a kernel, which has zeros for its arguments until before its first replay: so that captures of it are the
/// same whatever its arguments are.
template <Backend B, class Arguments, class... Params>
class LaunchHook final : public ReplayHook<B> {
    static constexpr std::size_t bytes = (sizeof(std::remove_cv_t<Params>) + ... + 0);
    static constexpr std::size_t largest() {
        std::size_t most = 1;
        ((most = sizeof(Params) > most ? sizeof(Params) : most), ...);
        return most;
    }

public:
    LaunchHook(BasicStreamRef<B> stream, const KernelDims& dims, void (*kernel)(Params...),
               Arguments arguments)
        : dims_(dims), kernel_(reinterpret_cast<void*>(kernel)), arguments_(std::move(arguments)) {
        alignas(std::max_align_t) std::byte zeros[largest()] = {};
        void* pointers[] = {((void)sizeof(Params), static_cast<void*>(zeros))..., nullptr};
        B::launch_kernel(stream.get(), dims_, kernel_, pointers);
        node_ = B::captured_kernel(stream.get());
    }

    void before_replay(ReplayExec<B> executable) override {
        with_given<Params...>(arguments_, [&](std::remove_cv_t<Params>... values) {
            std::byte now[bytes + 1];
            std::size_t at = 0;
            ((std::memcpy(now + at, __builtin_addressof(values), sizeof(values)), at += sizeof(values)), ...);
            if (known_ && std::memcmp(now, last_, bytes) == 0)
                return;
            void* pointers[] = {static_cast<void*>(__builtin_addressof(values))..., nullptr};
            B::set_kernel(executable, node_, dims_, kernel_, pointers);
            std::memcpy(last_, now, bytes);
            known_ = true;
        });
    }
    void after_replay(BasicStreamRef<B>) override {}
    void append_own_memory(std::vector<const void*>&) const override {}
    bool changes_nodes() const noexcept override { return true; }

private:
    KernelDims dims_;
    void* kernel_;
    Arguments arguments_;
    typename B::NativeNode node_{};
    std::byte last_[bytes + 1];
    bool known_ = false;
};

/// The same of a function that a host stream calls: the arguments of each launch wait for it in a ring.
template <Backend B, class Arguments, class... Params>
class CallHook final : public ReplayHook<B> {
    static_assert((std::is_trivially_copyable_v<std::decay_t<Params>> && ...),
                  "sluice::launch_with: a kernel's parameters must be trivially copyable");
    using Values = std::tuple<std::decay_t<Params>...>;
    class Calls {
    public:
        bool is_full() const noexcept { return pushed_ - taken_.load(__ATOMIC_ACQUIRE) == most; }
        void push(const Values& values) {
            ::new (static_cast<void*>(places_[pushed_ % most])) Values(values);
            ++pushed_;
        }
        Values next() noexcept {
            const std::size_t number = taken_.load();
            const Values values = *std::launder(reinterpret_cast<Values*>(places_[number % most]));
            taken_.store(number + 1, __ATOMIC_RELEASE);
            return values;
        }
        /// While none is being taken.
        void drop_all() noexcept { taken_.store(pushed_); }

    private:
        static constexpr std::size_t most = 128;
        alignas(Values) std::byte places_[most][sizeof(Values)];
        std::size_t pushed_ = 0; // of the thread that launches, which the stream that calls comes after
        Atomic<std::size_t> taken_;
    };

public:
    CallHook(BasicStreamRef<B> stream, void (*function)(Params...), Arguments arguments)
        : arguments_(std::move(arguments)) {
        B::enqueue(stream.get(), [function, calls = calls_] { std::apply(function, calls->next()); });
    }

    void before_replay(ReplayExec<B>) override {
        with_given<Params...>(arguments_, [&](std::decay_t<Params>... values) {
            if (calls_->is_full())
                await_former();
            // Launches on a stream that had failed have left theirs.
            if (all_over())
                calls_->drop_all();
            calls_->push(Values(values...));
        });
    }
    void after_replay(BasicStreamRef<B> stream) override { launched_.record(stream); }
    void append_own_memory(std::vector<const void*>&) const override {}

private:
    void await_former() const noexcept {
        try {
            launched_.sync();
        } catch (...) {
            // Its stream's to report.
        }
    }
    bool all_over() const noexcept {
        try {
            return launched_.is_done();
        } catch (...) {
            return true; // The fault of the work before, which is over then.
        }
    }

    Arguments arguments_;
    Shared<Calls> calls_ = make_shared_value<Calls>();
    BasicEvent<B> launched_;
};

} // namespace detail

template <GraphBackend B, class... Params, class Arguments>
void launch_with(BasicStreamRef<B> stream, const KernelDims& dims, void (*kernel)(Params...),
                 Arguments arguments) {
    constexpr bool as_many = requires {
        requires std::tuple_size<decltype(arguments())>::value == sizeof...(Params);
    };
    static_assert(as_many, "sluice::launch_with: `arguments()` must give a std::tuple of as many values as "
                           "the kernel has parameters");
    static_assert(detail::calls_functions<B> || KernelGraphBackend<B>,
                  "sluice::launch_with: the stream's backend launches no kernels");
    if constexpr (as_many) {
        detail::require_callable("launch: the kernel", kernel);
        detail::require_callable("launch_with: the function of the arguments", arguments);
        if (!B::is_capturing(stream.get())) {
            detail::with_given<Params...>(arguments, [&](std::decay_t<Params>... values) {
                detail::launch_kernel<B, Params...>(stream, dims, kernel, false, values...);
            });
            return;
        }
        detail::ReplayHooks<B>* const hooks = detail::replay_hooks<B>();
        if (hooks == nullptr) {
            throw detail::NotCapturable(
                "launch_with: a launch's arguments are not asked for in a plain capture, or in the body of a "
                "branch or a loop; use a GraphCapture or a graphed pipeline, outside of such bodies");
        }
        if constexpr (detail::calls_functions<B>)
            hooks->push_back(detail::make_shared_value<detail::CallHook<B, Arguments, Params...>>(
                stream, kernel, std::move(arguments)));
        else
            hooks->push_back(detail::make_shared_value<detail::LaunchHook<B, Arguments, Params...>>(
                stream, dims, kernel, std::move(arguments)));
    }
}

} // namespace sluice
