// Which stage's callable a thread is in.
#pragma once

#include <string>

namespace sluice::detail {

/// As long as it is there, its thread is within a call of a pipeline, whose stages it may call.
class CallingPipeline {
public:
    /// The name of the stage that `core` is calling; null between stages.
    using StageOf = const std::string* (*)(const void* core);

    CallingPipeline(const void* core, StageOf stage_of) noexcept
        : core_(core), stage_of_(stage_of), outer_(innermost()) {
        innermost() = this;
    }
    CallingPipeline& operator=(CallingPipeline&&) = delete;
    ~CallingPipeline() { innermost() = outer_; }

    /// The name of the stage whose callable this thread is in; null where it is in none.
    static const std::string* stage() {
        const CallingPipeline* const now = innermost();
        return now == nullptr ? nullptr : now->stage_of_(now->core_);
    }

private:
    static const CallingPipeline*& innermost() noexcept {
        thread_local const CallingPipeline* pipeline = nullptr;
        return pipeline;
    }

    const void* core_;
    StageOf stage_of_;
    const CallingPipeline* outer_;
};

} // namespace sluice::detail
