// Graphs of pipeline steps, each under a key that tells what its work read on the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/capture_core.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/detail/replay_hooks.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>
#include <sluice/pipeline/detail/core/key_numbers.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// What had been captured when each stage was through, for each key: where captures are compared. It remembers the last 512 keys.
template <Backend B, class Key>
class CapturePlaces {
public:
    struct Place {
        std::size_t stage;
        std::size_t batch;
        std::uint64_t signature; // of all that had been captured by then
    };

    /// A capture begins, or a run without one.
    void begin() noexcept { now_.clear(); }
    /// `stage` has been called for `batch`, and its work is being captured on `stream`.
    void note(std::size_t stage, std::size_t batch, BasicStreamRef<B> stream) {
        std::vector<const void*> own;
        if (const ReplayHooks<B>* const hooks = replay_hooks<B>()) {
            for (const auto& hook : *hooks)
                hook->append_own_memory(own);
        }
        now_.push_back({stage, batch, B::signature(B::capturing_graph(stream.get()), own)});
    }
    /// The capture, if there was one, is what is replayed under `key`.
    void keep(const Key& key) {
        if (now_.empty())
            return;
        for (Kept& kept : kept_) {
            if (kept.key == key) {
                kept.places = now_;
                return;
            }
        }
        if (kept_.size() < most)
            kept_.push_back({key, now_});
        else
            kept_[oldest_++ % most] = {key, now_};
    }
    /// Where the capture began to differ from the one that is replayed under `key`; null where it did not, or nothing is known.
    const Place* changed(const Key& key) const noexcept {
        for (const Kept& kept : kept_) {
            if (!(kept.key == key))
                continue;
            for (std::size_t i = 0; i < now_.size(); ++i) {
                if (i >= kept.places.size() || now_[i].signature != kept.places[i].signature)
                    return &now_[i];
            }
        }
        return nullptr;
    }
    void clear() noexcept { kept_.clear(); }

private:
    static constexpr std::size_t most = 512;
    struct Kept {
        Key key;
        List<Place> places;
    };
    List<Place> now_;
    List<Kept> kept_;
    std::size_t oldest_ = 0;
};

/// Runs steps as graphs. To the key that the caller gives comes the state of the slots. Work that changes its slots on
/// the host runs eagerly for good, since a replay would not change them.
template <Backend B>
class StepGraphs {
    using Ref = BasicStreamRef<B>;
    using Core = StageCore<B>;

public:
    explicit StepGraphs(const GraphOptions& options) : graphs_(options, key_ops<StepKey>) {}

    /// The stages whose work it captures are these, for messages.
    void set_stages(const Core& core, std::size_t first, std::size_t last) {
        const std::string name = "stage '" + core.name(first) + "'";
        graphs_.set_owner(first == last ? name : name + " to '" + core.name(last) + "'");
    }

    /// While it captures: `stage` has been called for batch `number`, which is captured on `stream`.
    void stage_captured(std::size_t stage, std::size_t number, Ref stream) {
        if (*graphs_.options().check) [[unlikely]]
            places_.note(stage, number, stream);
    }

    /// The key of the next `run`, of `length` steps of which the first comes at `phase`: append to it.
    StepKey& new_key(Core& core, std::size_t phase, std::size_t length) {
        key_.clear();
        key_.push_back(core.slots_number());
        key_.push_back((static_cast<std::uint64_t>(phase) << 32) + length);
        return key_;
    }

    /// Launches the graph of the key, where there is one that may be launched as it is.
    template <class BeforeLaunch>
    bool replay(Ref stream, BeforeLaunch&& before_launch) {
        return graphs_.replay(stream, &key_, before_launch);
    }

    /// Enqueues the step of the key in the order of `stream`, and says whether as a graph: `capture(stream)` hands its
    /// work to a stream that is being captured, `eager()` to its own streams. `before_launch()` is called before each
    /// launch. `append_kind(bytes)` appends what steps have in common whose work calls the same libraries, or says false:
    /// once a step of a kind has run eagerly, others need not do so before they are captured.
    template <class Capture, class Eager, class AppendKind, class BeforeLaunch>
    bool run(Core& core, Ref stream, Capture&& capture, Eager&& eager, AppendKind&& append_kind,
             BeforeLaunch&& before_launch) {
        if (graphs_.replay(stream, &key_, before_launch)) [[likely]]
            return true;
        bool ran_eagerly = false;
        const auto run_eagerly = [&](bool) {
            ran_eagerly = true;
            const std::uint64_t before = core.slots_number();
            eager();
            if (core.slots_number() != before)
                note_changing();
            else
                note_kind(before, append_kind);
        };
        const auto capture_unless_changing = [&](Ref origin) {
            // Before any stage is called: an attempt that is given up leaves other numbers in the slots, and stages that
            // are behind may have to read the former ones.
            if (holds(changing_, key_))
                throw changes_slots();
            places_.begin(); // It may be another attempt.
            const std::uint64_t before = core.slots_number();
            capture(origin);
            if (core.slots_number() != before)
                throw changes_slots();
        };
        const auto is_warm = [&] {
            return make_kind(core.slots_number(), append_kind) && holds(kinds_, kind_);
        };
        const auto run_or = [&] {
            graphs_.run_or(stream, &key_, capture_unless_changing, run_eagerly, is_warm, before_launch);
        };
        if (*graphs_.options().check) [[unlikely]]
            checked(core, run_or);
        else
            run_or();
        return !ran_eagerly;
    }

    const GraphCounters& counters() const noexcept { return graphs_.counters(); }
    const std::string& first_refusal() const noexcept { return graphs_.first_refusal(); }
    std::optional<Ref> capture_stream() const noexcept { return graphs_.capture_stream(); }
    /// Forgets all graphs, and the failure of a stream that was captured. What has been launched is done.
    void reset() noexcept {
        graphs_.clear();
        graphs_.clear_failure();
        places_.clear();
    }

private:
    template <class T>
    static bool holds(const List<T>& all, const T& one) noexcept {
        for (const T& each : all) {
            if (each == one)
                return true;
        }
        return false;
    }
    // A change that is found is the stage's whose work has changed.
    void checked(Core& core, CallRef<void()> run) {
        places_.begin();
        try {
            run();
        } catch (...) {
            const auto* const changed = core.current_stage() < 0 ? places_.changed(key_) : nullptr;
            if (changed != nullptr)
                core.enter_stage(changed->stage, changed->batch);
            throw;
        }
        places_.keep(key_);
    }
    static NotCapturable changes_slots() {
        return NotCapturable("a stage changes its slot on the host, which a replay would not do", true);
    }
    void note_changing() {
        if (holds(changing_, key_))
            return;
        if (changing_.size() < most_changing)
            changing_.push_back(key_);
        else
            changing_[next_changing_++ % most_changing] = key_;
    }
    template <class AppendKind>
    bool make_kind(std::uint64_t slots, AppendKind&& append_kind) {
        kind_.clear();
        append_scalar(kind_, slots);
        return append_kind(kind_);
    }
    template <class AppendKind>
    void note_kind(std::uint64_t slots, AppendKind&& append_kind) {
        if (kinds_.size() < most_kinds && make_kind(slots, append_kind) && !holds(kinds_, kind_))
            kinds_.push_back(kind_);
    }

    CaptureCore<B> graphs_;
    StepKey key_;
    CapturePlaces<B, StepKey> places_; // where captures are checked
    // Libraries load kernels and make workspaces in their first calls.
    static constexpr std::size_t most_kinds = 64;
    List<KeyBytes> kinds_;
    KeyBytes kind_;
    // Keys whose work changes slots, seen when it ran eagerly.
    static constexpr std::size_t most_changing = 256;
    List<StepKey> changing_;
    std::size_t next_changing_ = 0;
};

/// Counts work that runs eagerly although no `GraphCapture` was asked for it, by reason, and tells once what is a refusal.
class Refusals {
public:
    explicit Refusals(RefusalHandler handler) noexcept : handler_(handler) {}
    void untold_batches() {
        if (eager_.untold++ == 0 && handler_ != nullptr)
            handler_(untold);
    }
    EagerRuns& eager() noexcept { return eager_; }
    /// Where to count a step that runs eagerly; null where that was done.
    std::uint64_t* step(bool blocking, bool whole) noexcept {
        return blocking ? &eager_.blocking : whole ? nullptr : &eager_.ends;
    }
    /// Another reason, once each.
    void tell(std::string reason) {
        ++told_;
        if (first_.empty())
            first_ = reason;
        if (handler_ != nullptr)
            handler_(reason.c_str());
    }
    GraphCounters added_to(GraphCounters counters) const noexcept {
        counters.refusals += eager_.untold + told_;
        counters.eager += eager_;
        return counters;
    }
    /// `earlier`, or where that is empty what was told; empty while that was nothing.
    std::string first_after(const std::string& earlier) const {
        if (!earlier.empty())
            return earlier;
        return eager_.untold > 0 ? untold : first_;
    }

private:
    static constexpr const char* untold =
        "capture refused: batches are told apart by what their members hold on the host, and this "
        "type does not show its members, or a container in it has more than 4,096 elements; write a "
        "graph_key(const Batch&) for it";

    RefusalHandler handler_;
    EagerRuns eager_;
    std::uint64_t told_ = 0; // reasons besides `untold`
    std::string first_;
};

} // namespace sluice::detail
