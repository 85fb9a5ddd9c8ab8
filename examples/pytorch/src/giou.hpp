/// \file
/// The GIoU loss of rows of boxes: what a row contributes, and its gradient. The same in kernels and on the CPU.
///
/// Targets are ragged (values and offsets) or padded (a mask says which are real). Arithmetic is in float64. The gradient
/// that the forward pass saves is each box's own; the backward pass multiplies it with what comes in, and with one over
/// the count of boxes where the reduction is a mean.
#pragma once

#include <cmath>
#include <cstdint>

#include <nn/losses/boxes/giou.hpp>

#include "numbers.hpp"

namespace sluice_torch {

enum class Reduction : std::uint8_t { mean, sum, row_mean, row_sum };

SLUICE_HOST_DEVICE constexpr bool is_by_row(Reduction reduction) {
    return reduction == Reduction::row_mean || reduction == Reduction::row_sum;
}
SLUICE_HOST_DEVICE constexpr bool is_mean(Reduction reduction) {
    return reduction == Reduction::mean || reduction == Reduction::row_mean;
}

/// What a sum over `count` boxes is multiplied by.
SLUICE_HOST_DEVICE constexpr double share_of(Reduction reduction, std::int64_t count) {
    return is_mean(reduction) && count > 1 ? 1.0 / static_cast<double>(count) : 1.0;
}

/// Where the boxes of a row are.
struct BoxRows {
    std::int64_t rows = 0;
    std::int64_t width = 0;                ///< predictions in a row; 0: they are ragged as well
    std::int64_t values = 0;               ///< ragged targets that there are
    const std::int64_t* offsets = nullptr; ///< of ragged targets
    const bool* mask = nullptr;            ///< of padded targets, [rows, width]
    bool masked = false; ///< whether there is a mask, which has no address where there are no rows
};

/// The targets of a row. One whose offsets make no sense has none, and `valid` is false: nothing is read for it.
struct RowRange {
    std::int64_t begin = 0;
    std::int64_t length = 0;
    bool valid = true;
};

SLUICE_HOST_DEVICE inline RowRange range_of(const BoxRows& boxes, std::int64_t row) {
    if (boxes.masked)
        return {row * boxes.width, boxes.width, true};
    const std::int64_t begin = boxes.offsets[row];
    const std::int64_t end = boxes.offsets[row + 1];
    const std::int64_t most = boxes.width > 0 ? boxes.width : boxes.values;
    if ((row == 0 && begin != 0) || begin < 0 || end < begin || end > boxes.values || end - begin > most)
        return {0, 0, false};
    return {begin, end - begin, true};
}

struct GiouForward {
    BoxRows boxes;
    BoxReader predictions;
    BoxReader targets;
    BoxWriter gradient; ///< no data: not wanted
    Reduction reduction = Reduction::mean;
    RealWriter loss;                ///< one number, or one a row
    double* sums = nullptr;         ///< one a row, unless the loss is by row
    std::int64_t* counts = nullptr; ///< with a mask: one a row, then all
};

/// What some boxes add up to.
struct BoxSum {
    double sum = 0.0;
    std::int64_t count = 0;
};

/// The boxes `lane`, `lane + lanes`, … of a row. Row `rows`, after the last, is what no row holds: its gradient is 0.
template <class Formula>
SLUICE_HOST_DEVICE BoxSum sum_of_row(const GiouForward& all, std::int64_t row, int lane, int lanes) {
    const BoxRows& boxes = all.boxes;
    BoxSum result;
    if (row == boxes.rows) {
        if (!boxes.masked && all.gradient.data != nullptr) {
            const std::int64_t end = boxes.offsets[boxes.rows] < 0 ? 0 : boxes.offsets[boxes.rows];
            for (std::int64_t i = end + lane; i < boxes.values; i += lanes)
                all.gradient.put(i, nn::Box<double>{0.0, 0.0, 0.0, 0.0});
        }
        return result;
    }
    const RowRange range = range_of(boxes, row);
    if (!range.valid) {
        result.sum = NAN;
        return result;
    }
    for (std::int64_t j = lane; j < range.length; j += lanes) {
        const std::int64_t at = range.begin + j;
        if (boxes.masked && !boxes.mask[at]) {
            if (all.gradient.data != nullptr)
                all.gradient.put(at, nn::Box<double>{0.0, 0.0, 0.0, 0.0});
            continue;
        }
        const nn::Box<double> prediction = all.predictions[boxes.width > 0 ? row * boxes.width + j : at];
        const nn::Box<double> target = all.targets[at];
        if (all.gradient.data != nullptr) {
            nn::Box<double> gradient;
            result.sum += Formula{}(prediction, target, gradient);
            all.gradient.put(at, gradient);
        } else {
            result.sum += Formula{}(prediction, target);
        }
        ++result.count;
    }
    return result;
}

/// Keeps what all boxes of a row add up to.
SLUICE_HOST_DEVICE inline void keep_row(const GiouForward& all, std::int64_t row, const BoxSum& of_row) {
    if (is_by_row(all.reduction)) {
        all.loss.put(row, of_row.sum * share_of(all.reduction, of_row.count));
    } else {
        all.sums[row] = of_row.sum;
    }
    if (all.counts != nullptr)
        all.counts[row] = of_row.count;
}

/// The boxes of all ragged rows.
SLUICE_HOST_DEVICE inline std::int64_t ragged_count(const BoxRows& boxes) {
    return boxes.offsets[boxes.rows];
}

/// Keeps what all rows add up to.
SLUICE_HOST_DEVICE inline void keep_total(const GiouForward& all, const BoxSum& total) {
    if (!is_by_row(all.reduction))
        all.loss.put(0, total.sum * share_of(all.reduction, total.count));
    if (all.counts != nullptr)
        all.counts[all.boxes.rows] = total.count;
}

struct GiouBackward {
    BoxRows boxes;
    NumberReader incoming; ///< one number, or one a row
    BoxReader gradient;    ///< what the forward pass saved
    Reduction reduction = Reduction::mean;
    const std::int64_t* counts = nullptr;
    BoxWriter result; ///< as large as the predictions
};

/// The gradient of the predictions `lane`, `lane + lanes`, … of a row; of row `rows`, of what no row holds.
SLUICE_HOST_DEVICE inline void write_row(const GiouBackward& all, std::int64_t row, int lane, int lanes) {
    const BoxRows& boxes = all.boxes;
    const nn::Box<double> zero{0.0, 0.0, 0.0, 0.0};
    if (row == boxes.rows) {
        if (!boxes.masked && boxes.width == 0) {
            const std::int64_t end = boxes.offsets[boxes.rows] < 0 ? 0 : boxes.offsets[boxes.rows];
            for (std::int64_t i = end + lane; i < boxes.values; i += lanes)
                all.result.put(i, zero);
        }
        return;
    }
    const RowRange range = range_of(boxes, row);
    const std::int64_t own = all.counts != nullptr ? all.counts[row] : range.length;
    const std::int64_t total = all.counts != nullptr ? all.counts[boxes.rows] : boxes.offsets[boxes.rows];
    const bool by_row = is_by_row(all.reduction);
    const double factor = all.incoming[by_row ? row : 0] * share_of(all.reduction, by_row ? own : total);
    const std::int64_t written = boxes.width > 0 ? boxes.width : range.length;
    for (std::int64_t j = lane; j < written; j += lanes) {
        const std::int64_t at = range.begin + j;
        nn::Box<double> box = zero;
        if (j < range.length && (!boxes.masked || boxes.mask[at])) {
            box = all.gradient[at];
            box = {box.x1 * factor, box.y1 * factor, box.x2 * factor, box.y2 * factor};
        }
        all.result.put(boxes.width > 0 ? row * boxes.width + j : at, box);
    }
}

/// The loss over all boxes of ragged targets, and its gradient in one go: the count that it is divided by is known before.
struct GiouBoth {
    GiouForward forward; ///< whose own gradient is not wanted; a mean or sum over all boxes
    BoxWriter gradient;  ///< as large as the predictions
    double scale = 1.0;
};

/// What the gradient is multiplied by.
SLUICE_HOST_DEVICE inline double factor_of(const GiouBoth& all) {
    return all.scale * share_of(all.forward.reduction, ragged_count(all.forward.boxes));
}

/// The gradient of prediction `i` of all, which belongs to target `at`.
template <class Formula>
SLUICE_HOST_DEVICE void write_prediction(const GiouBoth& all, std::int64_t i, std::int64_t at,
                                         double factor) {
    nn::Box<double> box;
    Formula{}(all.forward.predictions[i], all.forward.targets[at], box);
    all.gradient.put(i, {box.x1 * factor, box.y1 * factor, box.x2 * factor, box.y2 * factor});
}

/// The gradient of the predictions `lane`, `lane + lanes`, … of a padded row. Zeros wait for no box, so they go first.
template <class Formula>
SLUICE_HOST_DEVICE void write_row(const GiouBoth& all, std::int64_t row, int lane, int lanes, double factor) {
    const std::int64_t width = all.forward.boxes.width;
    const RowRange range = range_of(all.forward.boxes, row);
    for (std::int64_t j = lane; j < width; j += lanes) {
        if (j >= range.length)
            all.gradient.put(row * width + j, nn::Box<double>{0.0, 0.0, 0.0, 0.0});
    }
    for (std::int64_t j = lane; j < range.length; j += lanes)
        write_prediction<Formula>(all, row * width + j, range.begin + j, factor);
}

/// Part `part` of `parts` of the gradient of ragged predictions.
template <class Formula>
SLUICE_HOST_DEVICE void write_ragged(const GiouBoth& all, std::int64_t part, std::int64_t parts,
                                     double factor) {
    const std::int64_t count = ragged_count(all.forward.boxes);
    for (std::int64_t i = part; i < all.forward.boxes.values; i += parts) {
        if (i < count) {
            write_prediction<Formula>(all, i, i, factor);
        } else {
            all.gradient.put(i, nn::Box<double>{0.0, 0.0, 0.0, 0.0});
        }
    }
}

/// Calls `work(Formula{})`.
template <class Work>
void with_formula(bool torchvision, const Work& work) {
    if (torchvision) {
        work(nn::TorchvisionGiouLoss{});
    } else {
        work(nn::ArticleGiou{});
    }
}

} // namespace sluice_torch
