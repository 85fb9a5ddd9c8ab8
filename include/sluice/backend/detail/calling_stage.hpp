// Which stage's callable a thread is in.
#pragma once

#include <string>
#include <utility>

namespace sluice::detail {

/// As long as it is there, its thread is within a call of a pipeline, whose stages it may call.
class CallingPipeline {
public:
    /// The name of the stage that `core` is calling; null between stages.
    using StageOf = const std::string* (*)(const void* core);

    CallingPipeline(const void* core, StageOf stage_of) noexcept : core_(core), stage_of_(stage_of) {}
    /// The thread of a CPU stage, which it calls.
    CallingPipeline(const void* core, const std::string& stage) noexcept
        : core_(core), thread_stage_(&stage) {}
    CallingPipeline& operator=(CallingPipeline&&) = delete;
    ~CallingPipeline() { innermost() = outer_; }

    /// Whether a CPU stage of the same pipeline has made this call.
    bool is_of_own_stage() const noexcept { return is_stage_of(core_, outer_); }
    /// Whether this thread is in a CPU stage of the pipeline of `core`.
    static bool is_in_stage_of(const void* core) noexcept { return is_stage_of(core, innermost()); }

    /// Whether this thread is in a CPU stage of any pipeline.
    static bool is_in_cpu_stage() noexcept {
        const CallingPipeline* of = innermost();
        while (of != nullptr && of->thread_stage_ == nullptr)
            of = of->outer_;
        return of != nullptr;
    }

    /// The name of the stage whose callable this thread is in; null where it is in none.
    static const std::string* stage() {
        const CallingPipeline* const now = innermost();
        if (now == nullptr || now->thread_stage_ != nullptr)
            return now == nullptr ? nullptr : now->thread_stage_;
        return now->stage_of_(now->core_);
    }

private:
    static bool is_stage_of(const void* core, const CallingPipeline* of) noexcept {
        while (of != nullptr && (of->core_ != core || of->thread_stage_ == nullptr))
            of = of->outer_;
        return of != nullptr;
    }
    static const CallingPipeline*& innermost() noexcept {
        thread_local const CallingPipeline* pipeline = nullptr;
        return pipeline;
    }

    const void* core_;
    StageOf stage_of_ = nullptr;
    const std::string* thread_stage_ = nullptr;
    const CallingPipeline* outer_ = std::exchange(innermost(), this);
};

} // namespace sluice::detail
