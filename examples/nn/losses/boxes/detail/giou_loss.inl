// The box losses up to their kernels: checks, and the choice of what to run.

#include <algorithm>
#include <string>

#include <nn/core/ceil_div.hpp>
#include <nn/core/device.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>

namespace nn {
namespace detail {

// Defined for each backend, in giou_loss_host.cpp and giou_loss_cuda.cu.
template <class Formula, class P, class U, class G, sluice::Backend B>
void run_rows(sluice::BasicStreamRef<B> stream, const RowArguments<P, U, G>& arguments);
template <class Formula, class P, class U, class G, sluice::Backend B>
void run_loop(sluice::BasicStreamRef<B> stream, const RowArguments<P, U, G>& arguments);
template <class Formula, class P, class U, class G, sluice::Backend B>
void run_values(sluice::BasicStreamRef<B> stream, const ValueArguments<P, U, G>& arguments);
template <class Formula, class P, class U, class G, sluice::Backend B>
void run_masked(sluice::BasicStreamRef<B> stream, const MaskArguments<P, U, G>& arguments, Invalid invalid);
template <class Formula, class P, class U, class G, sluice::Backend B>
void run_steps(sluice::BasicStreamRef<B> stream, const MaskArguments<P, U, G>& arguments,
               const StepArguments& steps);
/// `packed[i]` = the prediction of value i.
template <class P, class U, sluice::Backend B>
void run_gather(sluice::BasicStreamRef<B> stream, const Box<P>* predictions, std::size_t width,
                sluice::RaggedView<const Box<U>> shape, Box<P>* packed);
/// The inverse, with 0 elsewhere.
template <class G, class U, sluice::Backend B>
void run_scatter(sluice::BasicStreamRef<B> stream, const Box<G>* packed,
                 sluice::RaggedView<const Box<U>> shape, Box<G>* padded, std::size_t rows, std::size_t width);

/// The `T` of a `Box<T>` or `const Box<T>`.
template <class T>
struct CoordinateOf;
template <class T>
struct CoordinateOf<Box<T>> {
    using type = T;
};
template <class T>
struct CoordinateOf<const Box<T>> {
    using type = T;
};
template <class T>
using Coordinate = typename CoordinateOf<T>::type;

inline void require_at_most(const char* what, std::size_t actual, std::size_t most) {
    if (actual > most) {
        throw sluice::Error(std::string(what) + ": " + std::to_string(actual) +
                            " were given, expected at most " + std::to_string(most));
    }
}

template <class P, class G, sluice::Backend B>
void require_result(const GiouResult<G, B>& result, std::size_t boxes, unsigned work) {
    static_assert(std::is_same_v<G, P> || std::is_same_v<G, float>,
                  "nn::GiouResult: the gradient is of the predictions' type or of float");
    if (result.mean.empty() && result.gradient.empty())
        throw sluice::Error("giou_mean: neither the mean nor the gradient is asked for");
    if (!result.mean.empty())
        require_size("giou_mean: elements of the mean", result.mean.size(), 1);
    if (!result.gradient.empty())
        require_size("giou_mean: boxes of the gradient", result.gradient.size(), boxes);
    if (work == 0)
        throw sluice::Error("giou_mean: work is 0, expected at least 1");
    if (work != 1 && !result.gradient.empty())
        throw sluice::Error("giou_mean: work is for the mean alone, and a gradient is asked for");
}

/// Rows for a tile: few where they may be long, so that many tiles share the work. Each tile takes a ticket from the same
/// place, so that light work is not dealt out to all tiles that there could be.
inline std::int64_t rows_of_tile(std::int64_t rows, std::int64_t value_capacity, unsigned work) {
    const bool light = work == 1;
    const std::int64_t values = light ? values_at_once / 2 : values_at_once;
    const std::int64_t filling = values * rows / std::max<std::int64_t>(1, value_capacity);
    const std::int64_t wanted = light ? std::max(filling, ceil_div(rows, most_light_tiles)) : filling;
    const std::int64_t least = ceil_div(rows, most_tiles);
    return least <= rows_at_once ? std::max(std::clamp<std::int64_t>(wanted, 1, rows_at_once), least)
                                 : rows_at_once * ceil_div(least, rows_at_once);
}

template <class P, class T, class G, sluice::Backend B>
RowArguments<std::remove_const_t<P>, Coordinate<T>, G>
row_arguments(const PaddedBoxes<P, B>& predictions, const sluice::RaggedView<T>& targets,
              const GiouResult<G, B>& result, GiouScratch<B>& scratch, unsigned work) {
    require_result<std::remove_const_t<P>>(result, predictions.size(), work);
    require_at_most("giou_mean: rows that there is room for in the targets",
                    static_cast<std::size_t>(targets.row_capacity()), predictions.rows());
    require_at_most("giou_mean: rows for this scratch memory", predictions.rows(), scratch.rows());
    const auto rows = static_cast<std::int64_t>(predictions.rows());
    return {.predictions = predictions.data(),
            .rows = rows,
            .width = static_cast<std::int64_t>(predictions.width()),
            .targets = targets,
            .gradient = result.gradient.data(),
            .mean = result.mean.data(),
            .partials = scratch.partials(),
            .ticket = scratch.ticket(),
            .scale = result.scale,
            .work = work,
            .rows_per_tile = rows_of_tile(rows, targets.value_capacity(), work)};
}

template <class P, class U, class G, sluice::Backend B>
MaskArguments<std::remove_const_t<P>, std::remove_const_t<U>, G>
mask_arguments(const PaddedBoxes<P, B>& predictions, const MaskedBoxes<U, B>& targets,
               const GiouResult<G, B>& result, GiouScratch<B>& scratch, unsigned work) {
    require_result<std::remove_const_t<P>>(result, predictions.size(), work);
    require_size("giou_mean: padded targets", targets.boxes.size(), predictions.size());
    require_size("giou_mean: elements of the mask", targets.mask.size(), predictions.size());
    return {.predictions = predictions.data(),
            .targets = targets.boxes.data(),
            .mask = targets.mask.data(),
            .boxes = static_cast<std::int64_t>(predictions.size()),
            .gradient = result.gradient.data(),
            .mean = result.mean.data(),
            .partials = scratch.partials(),
            .count = scratch.count(),
            .ticket = scratch.ticket(),
            .scale = result.scale,
            .work = work};
}

} // namespace detail

template <sluice::Backend B>
GiouScratch<B>::GiouScratch(std::size_t rows)
    : rows_(rows), partials_(std::max(rows, 2 * static_cast<std::size_t>(detail::most_tiles)) + 1),
      ticket_(1) {
    on_own_stream<B>([this](sluice::BasicStreamRef<B> stream) { sluice::fill_bytes(stream, ticket_, 0); });
}

template <sluice::Backend B>
GiouSteps<B>::GiouSteps(std::size_t boxes)
    : predictions_(boxes), targets_(boxes), gradient_(boxes), extents_(detail::step_extents * boxes),
      numbers_(detail::step_numbers * boxes) {}

template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_ragged(sluice::BasicStreamRef<B> stream, Formula, PaddedBoxes<P, B> predictions,
                      sluice::RaggedView<T> targets, GiouResult<G, B> result, GiouScratch<B>& scratch,
                      unsigned work) {
    detail::run_rows<Formula>(stream, detail::row_arguments(predictions, targets, result, scratch, work));
}

template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_ragged(sluice::BasicStreamRef<B> stream, Formula, sluice::RaggedView<P> predictions,
                      sluice::RaggedView<T> targets, GiouResult<G, B> result, GiouScratch<B>& scratch,
                      unsigned work) {
    using Predicted = detail::Coordinate<P>;
    detail::require_result<Predicted>(result, static_cast<std::size_t>(predictions.value_capacity()), work);
    require_size("giou_mean: boxes that there is room for in the targets",
                 static_cast<std::size_t>(targets.value_capacity()),
                 static_cast<std::size_t>(predictions.value_capacity()));
    detail::run_values<Formula>(stream, detail::ValueArguments<Predicted, detail::Coordinate<T>, G>{
                                            predictions, targets, result.gradient.data(), result.mean.data(),
                                            scratch.partials(), scratch.ticket(), result.scale, work});
}

template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_looped(sluice::BasicStreamRef<B> stream, Formula, PaddedBoxes<P, B> predictions,
                      sluice::RaggedView<T> targets, GiouResult<G, B> result, GiouScratch<B>& scratch) {
    auto arguments = detail::row_arguments(predictions, targets, result, scratch, 1);
    arguments.rows_per_tile = 1;
    detail::run_loop<Formula>(stream, arguments);
}

template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_concatenated(sluice::BasicStreamRef<B> stream, Formula formula, PaddedBoxes<P, B> predictions,
                            sluice::RaggedView<T> targets,
                            SpanArgument<Box<std::remove_const_t<P>>, B> packed,
                            SpanArgument<Box<G>, B> packed_gradient, GiouResult<G, B> result,
                            GiouScratch<B>& scratch) {
    using Predicted = std::remove_const_t<P>;
    const auto capacity = static_cast<std::size_t>(targets.value_capacity());
    detail::row_arguments(predictions, targets, result, scratch, 1); // for its checks
    require_size("giou_mean_concatenated: packed boxes", packed.size(), capacity);
    const bool backward = !result.gradient.empty();
    if (backward)
        require_size("giou_mean_concatenated: boxes of the packed gradient", packed_gradient.size(),
                     capacity);
    const sluice::RaggedView<const Box<detail::Coordinate<T>>> shape = targets;
    detail::run_gather(stream, static_cast<const Box<Predicted>*>(predictions.data()), predictions.width(),
                       shape, packed.data());
    const sluice::RaggedView<const Box<Predicted>> gathered =
        targets.over(static_cast<const Box<Predicted>*>(packed.data()));
    GiouResult<G, B> of_packed = result;
    of_packed.gradient = backward ? packed_gradient : sluice::DeviceSpan<Box<G>, B>{};
    giou_mean_ragged(stream, formula, gathered, shape, of_packed, scratch);
    if (backward) {
        detail::run_scatter(stream, static_cast<const Box<G>*>(packed_gradient.data()), shape,
                            result.gradient.data(), predictions.rows(), predictions.width());
    }
}

template <BoxFormula Formula, class P, class U, class G, sluice::Backend B>
void giou_mean_padded(sluice::BasicStreamRef<B> stream, Formula, PaddedBoxes<P, B> predictions,
                      MaskedBoxes<U, B> targets, GiouResult<G, B> result, GiouSteps<B>& steps,
                      GiouScratch<B>& scratch) {
    detail::require_at_most("giou_mean_padded: boxes for this memory", predictions.size(), steps.boxes());
    detail::run_steps<Formula>(stream, detail::mask_arguments(predictions, targets, result, scratch, 1),
                               detail::StepArguments{.predictions = steps.predictions(),
                                                     .targets = steps.targets(),
                                                     .gradient = steps.gradient(),
                                                     .shared = steps.extents(0),
                                                     .enclosing = steps.extents(1),
                                                     .prediction_area = steps.numbers(0),
                                                     .target_area = steps.numbers(1),
                                                     .intersection = steps.numbers(2),
                                                     .united = steps.numbers(3),
                                                     .enclosing_area = steps.numbers(4),
                                                     .value = steps.numbers(5)});
}

template <BoxFormula Formula, class P, class U, class G, sluice::Backend B>
void giou_mean_fused(sluice::BasicStreamRef<B> stream, Formula, PaddedBoxes<P, B> predictions,
                     MaskedBoxes<U, B> targets, Invalid invalid, GiouResult<G, B> result,
                     GiouScratch<B>& scratch, unsigned work) {
    detail::run_masked<Formula>(stream, detail::mask_arguments(predictions, targets, result, scratch, work),
                                invalid);
}

} // namespace nn
