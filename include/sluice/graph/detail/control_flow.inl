// The bodies of control_flow.hpp.
#pragma once

#include <string>
#include <type_traits>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>

namespace sluice {

namespace detail {

/// How many bodies of conditional nodes the calling thread is capturing, one inside the other.
inline int& body_depth() noexcept {
    thread_local int depth = 0;
    return depth;
}

template <GraphBackend B>
struct ControlFlow {
    using Condition = BasicCondition<B>;
    using Ref = BasicStreamRef<B>;
    using Within = typename Condition::Within;
    using GraphScope = typename Condition::GraphScope;

    // Within one of the condition's bodies, also when that throws.
    struct Inside {
        Inside(Condition& inside, Within within) : condition(inside) {
            condition.within_ = within;
            condition.asked_ = false;
        }
        Inside& operator=(Inside&&) = delete;
        ~Inside() { condition.within_ = Within::none; }
        Condition& condition;
    };
    struct Deeper {
        Deeper() { ++body_depth(); }
        Deeper& operator=(Deeper&&) = delete;
        ~Deeper() { --body_depth(); }
    };

    static void check(const Condition& condition, Ref stream, const char* caller) {
        condition.check(stream, caller);
        if (condition.within_ != Within::none) {
            throw Error(std::string(caller) +
                        ": the condition is in use by the branch or loop around this one; take another");
        }
    }

    // Whether a setter was given out for this use of `stream`; it is used up.
    static bool take(Condition& condition, Ref stream) { return take(condition, GraphScope::of(stream)); }
    static bool take(Condition& condition, const GraphScope& place) {
        const bool taken = condition.pending_ && condition.scope_ == place;
        condition.pending_ = false;
        return taken;
    }

    static unsigned read_and_wait(Condition& condition, Ref stream) {
        B::copy(condition.seen_.data(), condition.word_.data(), sizeof(unsigned), CopyKind::device_to_host,
                stream.get());
        stream.sync();
        return condition.seen_[0];
    }

    template <class F>
    static void capture_body(Condition& condition, typename B::NativeGraph graph, F&& body, int times) {
        if (condition.body_stream_ == nullptr) {
            const DeviceGuard<B> guard(condition.device_);
            condition.body_stream_ = detail::make_owned<BasicStream<B>>();
        }
        const Ref stream = *condition.body_stream_;
        B::begin_capture_into(stream.get(), graph, CaptureMode::this_thread);
        try {
            const Deeper deeper;
            // A body runs as often as the device says, which no hook is told of.
            const detail::ReplayHooksScope<B> no_hooks(nullptr);
            for (int time = 0; time < times; ++time)
                body(stream);
        } catch (...) {
            try {
                B::end_capture_into(stream.get());
            } catch (...) {
                // What the body threw says more.
            }
            throw;
        }
        B::end_capture_into(stream.get());
    }

    template <class... Bodies>
    static void branch(Condition& condition, Ref stream, const char* caller, ConditionKind kind,
                       Bodies&&... bodies) {
        static_assert((std::is_invocable_v<Bodies&, Ref> && ...),
                      "sluice: each body of a branch must be callable as body(BasicStreamRef<B>)");
        constexpr int count = static_cast<int>(sizeof...(Bodies));
        (require_callable("if_nonzero, if_else or select: a body", bodies), ...);
        check(condition, stream, caller);
        if (!take(condition, stream)) {
            throw Error(std::string(caller) +
                        ": the condition has no value here; take condition.setter(stream) first, in the same "
                        "capture if there is one, and enqueue work that calls set() with it");
        }
        const Inside inside(condition, Within::branch);
        if (condition.scope_.captured) {
            require_conditions(kind, count);
            typename B::NativeGraph graphs[sizeof...(Bodies)] = {};
            B::capture_condition(stream.get(), condition.setter_.handle, kind, count, graphs);
            int next = 0;
            (capture_body(condition, graphs[next++], bodies, 1), ...);
            return;
        }
        const unsigned value = read_and_wait(condition, stream);
        const unsigned chosen = kind == ConditionKind::select ? value : (value != 0 ? 0 : 1);
        unsigned place = 0;
        ((place++ == chosen ? static_cast<void>(bodies(stream)) : static_cast<void>(0)), ...);
    }

    template <class Body>
    static void loop(Condition& condition, Ref stream, Body&& body, int unroll) {
        static_assert(std::is_invocable_v<Body&, Ref>,
                      "sluice::while_nonzero: the body must be callable as body(BasicStreamRef<B>)");
        require_callable("while_nonzero: a body", body);
        check(condition, stream, "while_nonzero");
        require_within("WhileOptions::unroll", unroll, 1, most_of_option);
        const bool look_first = take(condition, stream);
        if (!look_first) {
            // For bodies that ask get().
            B::fill_bytes(condition.word_.data(), 1, sizeof(unsigned), stream.get());
            condition.setter_ = new_setter(condition, stream);
        }
        const Inside inside(condition, Within::loop);
        const auto run = [&] {
            for (int time = 0; time < unroll; ++time)
                body(stream);
        };
        if (condition.scope_.captured) {
            // A handle starts with 1 when the whole graph is launched, and an inner loop may begin more often than
            // that: there the first run stands before the loop.
            if (!look_first && body_depth() > 0)
                run();
            typename B::NativeGraph graph{};
            B::capture_condition(stream.get(), condition.setter_.handle, ConditionKind::while_nonzero, 1,
                                 &graph);
            capture_body(condition, graph, body, unroll);
            if (!look_first)
                require_asked(condition, "while_nonzero");
            return;
        }
        try {
            if (!look_first) {
                run();
                require_asked(condition, "while_nonzero");
            }
            while (read_and_wait(condition, stream) != 0)
                run();
        } catch (...) {
            settle(stream);
            throw;
        }
    }

    // Behind an exception the condition may go, which what is under way on the stream writes. Not for semaphores that will not
    // be signalled.
    static void settle(Ref stream) noexcept {
        try {
            if constexpr (SemaphoreCalls<B>::there)
                SemaphoreWaits::instance().give_up_around(stream.get());
            stream.sync();
        } catch (...) {
            // The stream has failed, and the next wait for it reports the error.
        }
    }

    static ConditionSetter new_setter(Condition& condition, Ref stream) {
        return new_setter(condition, GraphScope::of(stream));
    }
    static ConditionSetter new_setter(Condition& condition, const GraphScope& place) {
        condition.scope_ = place;
        ConditionSetter setter{condition.word_.data(), 0, KernelGraphBackend<B>};
        if (condition.scope_.captured) {
            require_conditions(ConditionKind::if_nonzero, 1);
            setter.handle = B::create_condition(condition.scope_.graph, setter.word);
        }
        return setter;
    }

    // A setter for a branch at `place`: the one around it, one that nothing has used, or a new one.
    static ConditionSetter setter(Condition& condition, const GraphScope& place, const char* caller) {
        if (condition.within_ == Within::loop) {
            condition.asked_ = true;
            return condition.setter_;
        }
        if (condition.within_ == Within::branch) {
            throw Error(std::string(caller) +
                        ": the condition is in use by the branch around this; take another");
        }
        // Several pieces of work may decide for one branch.
        if (!condition.pending_ || condition.scope_ != place) {
            condition.setter_ = new_setter(condition, place);
            condition.pending_ = true;
        }
        return condition.setter_;
    }

    // For graphs that are built by hand. Builders have numbers of their own, which no capture has.
    static GraphScope scope_in(typename B::NativeGraph graph, unsigned long long builder) {
        return {true, graph, ~builder};
    }
    static void check_built(const Condition& condition, const char* caller) {
        condition.check_current(caller);
    }
    static void begin_loop(Condition& condition, const GraphScope& place) {
        condition.setter_ = new_setter(condition, place);
    }
    static unsigned* word_of(Condition& condition) { return condition.word_.data(); }
    static ConditionSetter setter_of(const Condition& condition) { return condition.setter_; }
    static bool in_use(const Condition& condition) { return condition.within_ != Within::none; }

    // Of a loop that its body alone decides, once that has run: work without a setter cannot end it.
    static void require_asked(const Condition& condition, const std::string& caller) {
        if (!condition.asked_)
            throw Error(caller +
                        ": the body asks for no setter of the condition, and none was given out before, so "
                        "that the loop would never end; have work in the body call set() with it");
    }

    // Work that needs a newer CUDA to be captured runs eagerly all the same.
    static void require_conditions(ConditionKind kind, int bodies) {
        try {
            B::require_conditions(kind, bodies);
        } catch (const Error& error) {
            throw NotCapturable(error.what());
        }
    }
};

} // namespace detail

template <GraphBackend B>
BasicCondition<B>::BasicCondition() : word_(1), seen_(1), device_(B::current_device()) {}

template <GraphBackend B>
void BasicCondition<B>::check(BasicStreamRef<B> stream, const char* caller) const {
    require_memory(caller);
    detail::require_same_device(stream, caller, "the condition", device_);
    if constexpr (ShareBackend<B>) {
        // A condition in a graph, what sets it and its bodies belong to one context, the device's.
        if (detail::capture_ledger().depth > 0 && B::share_of(stream.get()) != nullptr) {
            throw detail::NotCapturable(std::string(caller) +
                                        ": a condition cannot be captured on a share of a device");
        }
    }
}

template <GraphBackend B>
void BasicCondition<B>::check_current(const char* caller) const {
    require_memory(caller);
    if (const int current = B::current_device(); current != device_) {
        throw Error(std::string(caller) + ": the condition belongs to device " + std::to_string(device_) +
                    ", and device " + std::to_string(current) +
                    " is current; make a condition for each device");
    }
}

template <GraphBackend B>
void BasicCondition<B>::require_memory(const char* caller) const {
    if (word_.data() == nullptr)
        throw Error(std::string(caller) + ": the condition was moved from");
}

template <GraphBackend B>
ConditionSetter BasicCondition<B>::setter(BasicStreamRef<B> stream) {
    check(stream, "BasicCondition::setter");
    return detail::ControlFlow<B>::setter(*this, GraphScope::of(stream), "BasicCondition::setter");
}

template <GraphBackend B, class Then>
void if_nonzero(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Then&& then) {
    detail::ControlFlow<B>::branch(condition, stream, "if_nonzero", ConditionKind::if_nonzero, then);
}

template <GraphBackend B, class Then, class Otherwise>
void if_else(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Then&& then,
             Otherwise&& otherwise) {
    detail::ControlFlow<B>::branch(condition, stream, "if_else", ConditionKind::if_nonzero, then, otherwise);
}

template <GraphBackend B, class... Bodies>
void select(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition,
            Bodies&&... bodies) {
    static_assert(sizeof...(Bodies) > 0, "sluice::select: name at least one body");
    detail::ControlFlow<B>::branch(condition, stream, "select", ConditionKind::select, bodies...);
}

template <GraphBackend B, class Body>
void while_nonzero(std::type_identity_t<BasicStreamRef<B>> stream, BasicCondition<B>& condition, Body&& body,
                   const WhileOptions& options) {
    detail::ControlFlow<B>::loop(condition, stream, body, options.unroll);
}

} // namespace sluice
