// What the tests of the box losses share: boxes and rows of random lengths, and the formulas once more, in
// plain loops in float64.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include <nn/losses/boxes/giou_loss.hpp>
#include <sluice/ragged/packer.hpp>
#include <sluice/ragged/ragged_batch.hpp>

#include "nn/support.hpp"

namespace nn_test {

template <class T>
using Targets = sluice::RaggedBatch<nn::Box<T>, B>;
using Corners = std::array<double, 4>;

template <class T>
Corners corners(const nn::Box<T>& box) {
    const nn::Box<double> wide = nn::box_as<double>(box);
    return {wide.x1, wide.y1, wide.x2, wide.y2};
}

inline double plain_area(const Corners& a) { return (a[2] - a[0]) * (a[3] - a[1]); }
inline double plain_shared(const Corners& a, const Corners& b, int axis) {
    const auto at = static_cast<std::size_t>(axis);
    return std::min(a[at + 2], b[at + 2]) - std::max(a[at], b[at]);
}
inline double plain_around(const Corners& a, const Corners& b) {
    return (std::max(a[2], b[2]) - std::min(a[0], b[0])) * (std::max(a[3], b[3]) - std::min(a[1], b[1]));
}

inline double plain(nn::ArticleGiou, const Corners& a, const Corners& b) {
    const double shared = plain_shared(a, b, 0) * plain_shared(a, b, 1);
    const double united = plain_area(a) + plain_area(b) - shared;
    const double around = std::max(plain_around(a, b), 1e-5);
    return shared / std::max(united, 1e-5) - (around - united) / around;
}
inline double plain(nn::TorchvisionGiouLoss, const Corners& a, const Corners& b) {
    const double width = plain_shared(a, b, 0);
    const double height = plain_shared(a, b, 1);
    const double shared = width > 0 && height > 0 ? width * height : 0.0;
    const double united = plain_area(a) + plain_area(b) - shared;
    const double around = plain_around(a, b);
    return 1.0 - (shared / (united + 1e-7) - (around - united) / (around + 1e-7));
}

/// By central differences, which give half of each side where two edges meet.
template <class Formula>
Corners plain_gradient(Formula formula, const Corners& a, const Corners& b) {
    constexpr double step = 0x1p-24; // moves no union of 0 beyond the article's 1e-5
    Corners result{};
    for (std::size_t i = 0; i < 4; ++i) {
        Corners more = a;
        Corners less = a;
        more[i] += step;
        less[i] -= step;
        result[i] = (plain(formula, more, b) - plain(formula, less, b)) / (2 * step);
    }
    return result;
}

/// Padded predictions, and targets in rows, on the host.
template <class P, class U>
struct BoxCase {
    std::size_t width = 0;
    std::vector<nn::Box<P>> predictions;          // [rows, width]
    std::vector<std::vector<nn::Box<U>>> targets; // of each row

    std::size_t rows() const { return targets.size(); }
    std::size_t count() const {
        std::size_t sum = 0;
        for (const auto& row : targets)
            sum += row.size();
        return sum;
    }
    const nn::Box<P>& prediction(std::size_t row, std::size_t position) const {
        return predictions[row * width + position];
    }

    template <class Formula>
    double mean(Formula formula) const {
        double sum = 0.0;
        for (std::size_t r = 0; r < rows(); ++r) {
            for (std::size_t p = 0; p < targets[r].size(); ++p)
                sum += plain(formula, corners(prediction(r, p)), corners(targets[r][p]));
        }
        return sum / std::max(1.0, static_cast<double>(count()));
    }
    /// Of `scale` times the mean, [rows, width, 4].
    template <class Formula>
    std::vector<double> gradient(Formula formula, double scale) const {
        std::vector<double> result(4 * predictions.size(), 0.0);
        const double factor = scale / std::max(1.0, static_cast<double>(count()));
        for (std::size_t r = 0; r < rows(); ++r) {
            for (std::size_t p = 0; p < targets[r].size(); ++p) {
                const Corners slope =
                    plain_gradient(formula, corners(prediction(r, p)), corners(targets[r][p]));
                for (std::size_t i = 0; i < 4; ++i)
                    result[4 * (r * width + p) + i] = factor * slope[i];
            }
        }
        return result;
    }

    sluice::RaggedCapacity capacity(std::int64_t spare = 0) const {
        return {static_cast<std::int64_t>(rows()), static_cast<std::int64_t>(count()) + spare};
    }
    Targets<U> ragged(const Stream& stream, sluice::RaggedCapacity room) const {
        Targets<U> batch(room);
        sluice::RaggedPacker<nn::Box<U>, B> packer(room);
        packer.pack(targets);
        packer.copy_to(stream, batch);
        stream.sync();
        return batch;
    }
    /// Padding is NaN where it can be, so that a kernel that adds it in shows.
    std::vector<nn::Box<U>> padded() const {
        nn::Box<U> nothing{};
        if constexpr (std::is_floating_point_v<U>)
            nothing.y1 = std::numeric_limits<U>::quiet_NaN();
        std::vector<nn::Box<U>> result(predictions.size(), nothing);
        for (std::size_t r = 0; r < rows(); ++r)
            std::copy(targets[r].begin(), targets[r].end(),
                      result.begin() + static_cast<std::ptrdiff_t>(r * width));
        return result;
    }
    std::vector<std::uint8_t> mask() const {
        std::vector<std::uint8_t> result(predictions.size(), 0);
        for (std::size_t r = 0; r < rows(); ++r)
            std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(r * width), targets[r].size(),
                        std::uint8_t{1});
        return result;
    }
};

/// A box with edges at whole numbers plus `fraction` from 0 to 59, with sides of at least 4. All types hold a
/// half exactly there.
template <class T>
nn::Box<T> random_box(Random& random, float fraction) {
    const auto edge = [&](std::size_t least, std::size_t most) {
        return static_cast<float>(random.between(least, most)) + fraction;
    };
    const float x1 = edge(0, 50);
    const float y1 = edge(0, 50);
    return nn::box_as<T>(nn::Box<float>{x1, y1, x1 + static_cast<float>(random.between(4, 9)),
                                        y1 + static_cast<float>(random.between(4, 9))});
}

/// Predictions lie between the targets' edges, so that no two edges meet. Half of them overlap their target,
/// or all: the article's formula is steep for the others, and its gradient more than a `Half` holds.
template <class P, class U>
BoxCase<P, U> random_case(Random& random, std::size_t rows, std::size_t width, bool all_overlap = false) {
    BoxCase<P, U> result;
    result.width = width;
    for (std::size_t r = 0; r < rows; ++r) {
        // Many empty rows, some full ones.
        const std::size_t kind = random.between(0, 3);
        const std::size_t length = kind == 0 ? 0 : (kind == 1 ? width : random.between(0, width));
        auto& row = result.targets.emplace_back();
        for (std::size_t p = 0; p < width; ++p) {
            nn::Box<P> prediction = random_box<P>(random, 0.5f);
            if (p < length) {
                row.push_back(random_box<U>(random, 0.0f));
                if (all_overlap || random.between(0, 1) == 0) {
                    nn::Box<float> near = nn::box_as<float>(row.back());
                    prediction = nn::box_as<P>(
                        nn::Box<float>{near.x1 + 0.5f, near.y1 + 1.5f, near.x2 - 1.5f, near.y2 + 2.5f});
                }
            }
            result.predictions.push_back(prediction);
        }
    }
    return result;
}

/// Boxes of numbers, as in a reference file.
template <class T>
std::vector<nn::Box<T>> boxes_of(const std::vector<T>& numbers) {
    std::vector<nn::Box<T>> result;
    for (std::size_t i = 0; i + 3 < numbers.size(); i += 4)
        result.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
    return result;
}

template <class T>
std::vector<double> numbers_of(const std::vector<nn::Box<T>>& boxes) {
    std::vector<double> result;
    for (const nn::Box<T>& box : boxes) {
        for (const double corner : corners(box))
            result.push_back(corner);
    }
    return result;
}

template <class G>
nn::GiouResult<G, B> result_of(Buffer<float>& mean, Buffer<nn::Box<G>>& gradient, float scale = 1.0f) {
    return {mean.span(), gradient.span(), scale};
}

/// What a variant gave.
struct Found {
    float mean;
    std::vector<double> gradient;
};

/// Runs `variant(predictions, result)` with poisoned outputs.
template <class G, class P, class U, class Variant>
Found found_by(const Stream& stream, const BoxCase<P, U>& boxes, float scale, const Variant& variant) {
    Buffer<nn::Box<P>> predictions = device(boxes.predictions);
    Buffer<float> mean = poisoned<float>(stream, 1);
    Buffer<nn::Box<G>> gradient = poisoned<nn::Box<G>>(stream, boxes.predictions.size());
    variant(nn::PaddedBoxes<P, B>{predictions.span(), boxes.rows(), boxes.width},
            result_of(mean, gradient, scale));
    const float value = host(stream, mean)[0];
    return {value, numbers_of(host(stream, gradient))};
}

/// Calls `check(name, found, tolerance)` for all six variants, each with mean and gradient, and for the ragged one with the
/// mean alone too, which a kernel of its own may compute. The tolerance is larger for the padded one, whose steps hand
/// rounded numbers to each other.
template <class G, class Formula, class P, class U, class Check>
void for_all_variants(const Stream& stream, Formula formula, const BoxCase<P, U>& boxes, float scale,
                      const Check& check) {
    nn::GiouScratch<B> scratch(boxes.rows());
    const Targets<U> targets = boxes.ragged(stream, boxes.capacity(3));
    const Buffer<nn::Box<U>> padded = device(boxes.padded());
    const Buffer<std::uint8_t> mask = device(boxes.mask());
    const nn::MaskedBoxes<const U, B> masked{{padded.span(), boxes.rows(), boxes.width}, mask.span()};
    const auto found = [&](const auto& variant) { return found_by<G>(stream, boxes, scale, variant); };
    const auto on = stream.ref();

    const auto ragged = [&](auto predictions, auto result) {
        nn::giou_mean_ragged(on, formula, predictions, targets.view(), result, scratch);
    };
    const Found both = found(ragged);
    check("ragged", both, 1e-6);
    const Found alone = found([&](auto predictions, auto result) {
        result.gradient = {};
        ragged(predictions, result);
    });
    check("ragged, the mean alone", Found{alone.mean, both.gradient}, 1e-6);
    check("looped", found([&](auto predictions, auto result) {
              nn::giou_mean_looped(on, formula, predictions, targets.view(), result, scratch);
          }),
          1e-6);
    const auto room = static_cast<std::size_t>(targets.capacity().values);
    Buffer<nn::Box<P>> packed = poisoned<nn::Box<P>>(stream, room);
    Buffer<nn::Box<G>> packed_gradient = poisoned<nn::Box<G>>(stream, room);
    check("concatenated", found([&](auto predictions, auto result) {
              nn::giou_mean_concatenated(on, formula, predictions, targets.view(), packed.span(),
                                         packed_gradient.span(), result, scratch);
          }),
          1e-6);
    nn::GiouSteps<B> steps(boxes.predictions.size());
    check("padded", found([&](auto predictions, auto result) {
              nn::giou_mean_padded(on, formula, predictions, masked, result, steps, scratch);
          }),
          1e-5);
    for (const nn::Invalid invalid : {nn::Invalid::computed, nn::Invalid::skipped}) {
        check(invalid == nn::Invalid::computed ? "fused" : "conditional",
              found([&](auto predictions, auto result) {
                  nn::giou_mean_fused(on, formula, predictions, masked, invalid, result, scratch);
              }),
              1e-6);
    }
}

} // namespace nn_test
