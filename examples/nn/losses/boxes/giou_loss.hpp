/// \file
/// The mean of a box formula over the real boxes of a batch, and its gradient by the predictions, in six variants:
/// those of the published experiment, and one over ragged rows.
///
/// Predictions are [rows, width, 4] in float, `Half` or `Bfloat16`, read as they are. Targets are boxes of
/// `std::uint8_t`, `std::int32_t` or float. The box at position p of row r is a target of prediction [r, p]. All
/// variants give `sum / max(count, 1)` over the real boxes: 0 without any. All but `giou_mean_padded` compute in float64,
/// and add up in float64 and in a fixed order: the same bits in every run.
///
/// None waits or allocates; each can be captured, and a replay follows the rows that are then in device memory. Errors
/// that the host can see throw `sluice::Error`. A row longer than the predictions' width makes the mean NaN, and leaves
/// that row's gradient 0. For a NaN in a box see giou.hpp: the mean becomes NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/gemm/matrix.hpp>
#include <nn/losses/boxes/box.hpp>
#include <nn/losses/boxes/giou.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/ragged/view.hpp>

namespace nn {

/// What a variant writes: the mean, the gradient of `scale` times the mean, or both; what is not wanted is left empty.
/// The gradient is as large as the predictions, 0 where there is no box, and of their type or of float.
template <class G, sluice::Backend B>
struct GiouResult {
    sluice::DeviceSpan<float, B> mean{};      ///< one element
    sluice::DeviceSpan<Box<G>, B> gradient{}; ///< a box for each prediction
    float scale = 1.0f;
};

/// Device memory for partial sums, allocated once. One stream at a time.
template <sluice::Backend B>
class GiouScratch {
public:
    /// For predictions in up to `rows` rows. Waits until the memory is ready for any stream. Throws `sluice::Error`.
    explicit GiouScratch(std::size_t rows);

    std::size_t rows() const noexcept { return rows_; }
    double* partials() noexcept { return partials_.data(); }
    double* count() noexcept { return partials_.data() + partials_.size() - 1; }
    unsigned* ticket() noexcept { return ticket_.data(); }

private:
    std::size_t rows_;
    sluice::DeviceBuffer<double, B> partials_; // the last one is the count of a masked mean
    sluice::DeviceBuffer<unsigned, B> ticket_; // blocks that are done; back at 0 after each launch
};

/// Device memory for the intermediates of `giou_mean_padded`. One stream at a time.
template <sluice::Backend B>
class GiouSteps {
public:
    /// For `boxes` padded boxes. Throws `sluice::Error` when there is not enough memory.
    explicit GiouSteps(std::size_t boxes);

    std::size_t boxes() const noexcept { return predictions_.size(); }
    Box<float>* predictions() noexcept { return predictions_.data(); }
    Box<float>* targets() noexcept { return targets_.data(); }
    Box<float>* gradient() noexcept { return gradient_.data(); }
    detail::Extents<float>* extents(std::size_t which) noexcept { return extents_.data() + which * boxes(); }
    float* numbers(std::size_t which) noexcept { return numbers_.data() + which * boxes(); }

private:
    sluice::DeviceBuffer<Box<float>, B> predictions_;
    sluice::DeviceBuffer<Box<float>, B> targets_;
    sluice::DeviceBuffer<Box<float>, B> gradient_;
    sluice::DeviceBuffer<detail::Extents<float>, B> extents_;
    sluice::DeviceBuffer<float, B> numbers_;
};

/// Padded targets, and a byte for each: not 0 where there is a box.
template <class U, sluice::Backend B>
struct MaskedBoxes {
    PaddedBoxes<U, B> boxes;
    sluice::DeviceSpan<const std::uint8_t, B> mask;
};

/// Whether a fused kernel computes what the mask leaves out.
enum class Invalid { computed, skipped };

/// Over ragged targets, one kernel: mean, gradient, or both at once. Padding is not looked at; of the gradient every
/// element is written, 0 too. `targets` has room for no more rows than there are of predictions.
///
/// `work`, at least 1 and for the mean alone, repeats the formula as a stand-in for a heavier one: the result is the
/// average over k = 0 … work - 1 of the means for predictions moved to the right by k / 1024 pixels.
template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_ragged(sluice::BasicStreamRef<B> stream, Formula formula, PaddedBoxes<P, B> predictions,
                      sluice::RaggedView<T> targets, GiouResult<G, B> result, GiouScratch<B>& scratch,
                      unsigned work = 1);

/// The same for predictions that are ragged too, in rows of the same lengths as the targets', as `over` makes them. Of
/// the gradient, which is as large as the predictions' capacity, only the values in use are written. Where the two hold
/// different numbers of values the mean is NaN and the gradient 0.
template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_ragged(sluice::BasicStreamRef<B> stream, Formula formula, sluice::RaggedView<P> predictions,
                      sluice::RaggedView<T> targets, GiouResult<G, B> result, GiouScratch<B>& scratch,
                      unsigned work = 1);

/// Variant 1: a launch for each row, then one for the mean.
template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_looped(sluice::BasicStreamRef<B> stream, Formula formula, PaddedBoxes<P, B> predictions,
                      sluice::RaggedView<T> targets, GiouResult<G, B> result, GiouScratch<B>& scratch);

/// Variant 2: gathers the predictions of real boxes into `packed`, which has the targets' capacity, then computes one
/// loss over both; its gradient goes to `packed_gradient`, of that capacity too, and from there back into rows.
template <BoxFormula Formula, class P, class T, class G, sluice::Backend B>
void giou_mean_concatenated(sluice::BasicStreamRef<B> stream, Formula formula, PaddedBoxes<P, B> predictions,
                            sluice::RaggedView<T> targets,
                            SpanArgument<Box<std::remove_const_t<P>>, B> packed,
                            SpanArgument<Box<G>, B> packed_gradient, GiouResult<G, B> result,
                            GiouScratch<B>& scratch);

/// Variant 3: padded targets and a mask, step by step in float32, each step a launch that stores what it finds.
template <BoxFormula Formula, class P, class U, class G, sluice::Backend B>
void giou_mean_padded(sluice::BasicStreamRef<B> stream, Formula formula, PaddedBoxes<P, B> predictions,
                      MaskedBoxes<U, B> targets, GiouResult<G, B> result, GiouSteps<B>& steps,
                      GiouScratch<B>& scratch);

/// Variants 4 and 5: padded targets and a mask, one kernel for the mean and another for the gradient, which needs the
/// count of boxes first and so runs both. `work` as for `giou_mean_ragged`.
template <BoxFormula Formula, class P, class U, class G, sluice::Backend B>
void giou_mean_fused(sluice::BasicStreamRef<B> stream, Formula formula, PaddedBoxes<P, B> predictions,
                     MaskedBoxes<U, B> targets, Invalid invalid, GiouResult<G, B> result,
                     GiouScratch<B>& scratch, unsigned work = 1);

} // namespace nn

#include <nn/losses/boxes/detail/giou_loss.inl>
