// The slots of a pipeline's stages.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/memory/detail/allocations.hpp>
#include <sluice/pipeline/detail/boundary/batch_ops.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/core/faults.hpp>
#include <sluice/pipeline/detail/core/stage_rates.hpp>

namespace sluice::detail {

/// The slots of all stages, those for the same batch side by side.
class SlotTable {
public:
    /// For so many slot makers, and so many slots of each.
    SlotTable(std::size_t makers, std::size_t count)
        : makers_(makers), count_(count), ops_(makers), places_(makers * count), bytes_(makers) {}
    SlotTable& operator=(SlotTable&&) = delete;
    ~SlotTable() {
        for (std::size_t maker = makers_; maker-- > 0;) {
            for (std::size_t slot = 0; slot < count_; ++slot) {
                if (void* const made = at(maker, slot))
                    ops_[maker]->destroy(made);
            }
        }
    }

    /// Makes a stage's slot. What its maker throws is nested in an `Error` that names the stage and the slot.
    void make(std::size_t maker, std::size_t slot, const SlotOps& ops, void* with, const std::string& stage) {
        ops_[maker] = &ops;
        const MemoryBytes& now = Allocations::of_thread();
        const MemoryBytes before = now;
        try {
            places_[slot * makers_ + maker] = ops.make(with, static_cast<int>(slot));
            bytes_[maker].device += now.device - before.device;
            bytes_[maker].pinned += now.pinned - before.pinned;
        } catch (...) {
            throw_after("making slot " + std::to_string(slot) + " failed: ", stage);
        }
    }

    /// Before rows are laid out, for each stage: how many lanes it has, where it is told.
    void add_lanes(int count) {
        first_lanes_.push_back(lanes_.size());
        for (int index = 0; index < count; ++index)
            lanes_.push_back(Lane{index, count});
    }
    std::size_t count() const noexcept { return count_; }
    void* at(std::size_t maker, std::size_t slot) const noexcept { return places_[slot * makers_ + maker]; }
    /// The slots number `slot`, one a maker.
    void* const* of(std::size_t slot) const noexcept { return places_.data() + slot * makers_; }

    /// Once all are made, and when `rates` begin anew: lays out what stages are handed for a batch, where that is more than the slots number so and so.
    void lay_out_rows(const PlanData& plan, const StageRates& rates) {
        bool any_told = false;
        std::size_t lanes = 1; // After so many batches all stages that are told are at the same one.
        for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
            any_told = any_told || plan.stages[stage].takes_turn || plan.stages[stage].takes_lane;
            if (plan.stages[stage].takes_lane && lanes <= most_rows)
                lanes = common_multiple(lanes, lanes_of(stage));
        }
        if (plan.most_window <= 1 && !rates.any() && !any_told)
            return;
        rows_.clear();
        begin_ = rates.begin();
        first_rows_ = (plan.most_window - 1) * rates.period();
        later_rows_ = count_ * rates.period();
        if (lanes <= most_rows && later_rows_ <= most_rows)
            later_rows_ = common_multiple(later_rows_, lanes);
        if (lanes > most_rows || later_rows_ > most_rows || first_rows_ > most_rows) {
            throw Error("a pipeline of " + std::to_string(count_) +
                        " slots: with StageOptions::every, lanes that are told, and PipelineOptions::slots, "
                        "work repeats after more than " +
                        std::to_string(most_rows) + " batches; expected fewer of one");
        }
        for (std::size_t row = 0; row < first_rows_ + later_rows_; ++row) {
            // Of the first batches, those before are missing.
            const bool early = row < first_rows_;
            const std::size_t batch = begin_ + (early ? row : row - first_rows_);
            const auto place = [&](std::size_t maker, std::size_t back) {
                const std::size_t content = rates.content_of(maker, batch);
                if (early && back > content)
                    return static_cast<void*>(nullptr);
                return at(maker, (content + back * (count_ - 1)) % count_);
            };
            for (std::size_t maker = 0; maker < makers_; ++maker)
                rows_.push_back(place(maker, 0));
            for (std::size_t maker = 0; maker < makers_; ++maker) {
                for (std::size_t back = 0; plan.windows[maker] > 1 && back < plan.windows[maker]; ++back)
                    rows_.push_back(place(maker, back));
            }
            for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
                if (plan.stages[stage].takes_turn)
                    rows_.push_back(const_cast<Turn*>(rates.turn_of(stage, batch)));
                if (plan.stages[stage].takes_lane)
                    rows_.push_back(&lanes_[first_lanes_[stage] + batch % lanes_of(stage)]);
            }
        }
        row_size_ = rows_.size() / (first_rows_ + later_rows_);
    }
    /// What stages are handed for a batch, whose slots are number `slot` where all change with each batch: the slots; behind
    /// them those of the batches before that are taken, maker by maker; and behind these, which of several batches it is, and its lane.
    void* const* row(std::size_t batch, std::size_t slot) const noexcept {
        if (rows_.empty()) [[likely]]
            return of(slot);
        const std::size_t at = batch - begin_;
        return rows_.data() + (at < first_rows_ ? at : first_rows_ + at % later_rows_) * row_size_;
    }
    /// A number for what a stage is handed for a batch, where stages run at several rates.
    std::size_t phase_of(const PlanData& plan, const StageRates& rates, std::size_t stage,
                         std::size_t batch) const noexcept {
        const StagePlan& own = plan.stages[stage];
        std::size_t phase = own.takes_turn ? static_cast<std::size_t>(rates.turn_of(stage, batch)->index) : 0;
        for (const int from : own.takes) {
            if (from < 0)
                continue;
            const int maker = plan.stages[static_cast<std::size_t>(from)].maker;
            phase = phase * count_ + rates.content_of(static_cast<std::size_t>(maker), batch) % count_;
        }
        return phase;
    }
    /// At most so many such numbers come up.
    std::size_t ways_of(const PlanData& plan, const StageRates& rates, std::size_t stage) const noexcept {
        const StagePlan& own = plan.stages[stage];
        const std::size_t most = later_rows() / rates.batches_a_run(stage);
        std::size_t ways = own.takes_turn ? most : 1;
        for (const int from : own.takes)
            ways = from < 0 || ways >= most ? ways : ways * count_;
        return smaller(ways, most);
    }
    /// After so many batches, stages are handed the same again.
    std::size_t later_rows() const noexcept { return rows_.empty() ? count_ : later_rows_; }
    /// Of so many batches at first, some before are missing.
    std::size_t first_rows() const noexcept { return first_rows_; }
    const SlotOps& ops(std::size_t maker) const noexcept { return *ops_[maker]; }
    /// What the maker has allocated for its slots, in buffers of sluice's.
    const MemoryBytes& bytes(std::size_t maker) const noexcept { return bytes_[maker]; }

private:
    static constexpr std::size_t most_rows = std::size_t{1} << 26;
    // Of a stage that is told.
    std::size_t lanes_of(std::size_t stage) const noexcept {
        return static_cast<std::size_t>(lanes_[first_lanes_[stage]].count);
    }

    std::size_t makers_;
    std::size_t count_;
    List<const SlotOps*> ops_;
    List<void*> places_;
    List<Lane> lanes_; // stage by stage of those that are told
    List<std::size_t> first_lanes_;
    List<void*> rows_;
    std::size_t row_size_ = 0;
    std::size_t first_rows_ = 0;
    std::size_t later_rows_ = 0;
    std::size_t begin_ = 0; // The first row's batch.
    List<MemoryBytes> bytes_;
};

} // namespace sluice::detail
