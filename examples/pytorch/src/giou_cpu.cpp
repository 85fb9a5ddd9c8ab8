// The GIoU loss on the CPU. Threads share the rows; sums are added up in the order of rows, whatever their number.
#include "giou_ops.hpp"

namespace sluice_torch {
namespace {

constexpr std::int64_t rows_a_thread = 64;

struct Cpu {
    static constexpr bool on_cpu = true;

    static void forward(const Tensor&, bool torchvision, const GiouForward& all) {
        with_formula(torchvision, [&]<class Formula>(Formula) {
            const auto some = [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row)
                    keep_row(all, row, sum_of_row<Formula>(all, row, 0, 1));
            };
            torch::stable::parallel_for(0, all.boxes.rows, rows_a_thread, some);
            sum_of_row<Formula>(all, all.boxes.rows, 0, 1);
        });
        BoxSum total;
        for (std::int64_t row = 0; row < all.boxes.rows; ++row) {
            total.sum += is_by_row(all.reduction) ? 0.0 : all.sums[row];
            total.count += all.counts != nullptr ? all.counts[row] : 0;
        }
        if (!all.boxes.masked)
            total.count = ragged_count(all.boxes);
        keep_total(all, total);
    }

    static void both(const Tensor& like, bool torchvision, const GiouBoth& all) {
        forward(like, torchvision, all.forward);
        const double factor = factor_of(all);
        with_formula(torchvision, [&]<class Formula>(Formula) {
            const auto some = [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row)
                    write_row<Formula>(all, row, 0, 1, factor);
            };
            if (all.forward.boxes.width > 0) {
                torch::stable::parallel_for(0, all.forward.boxes.rows, rows_a_thread, some);
            } else {
                write_ragged<Formula>(all, 0, 1, factor);
            }
        });
    }

    static void backward(const Tensor&, const GiouBackward& all) {
        const auto some = [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row)
                write_row(all, row, 0, 1);
        };
        torch::stable::parallel_for(0, all.boxes.rows, rows_a_thread, some);
        write_row(all, all.boxes.rows, 0, 1);
    }
};

} // namespace

STABLE_TORCH_LIBRARY_IMPL(sluice, CPU, library) { register_giou<Cpu>(library); }

} // namespace sluice_torch
