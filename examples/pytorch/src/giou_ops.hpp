/// \file
/// The operators `sluice::giou_loss…`, for whatever device `Run` computes on: from tensors to giou.hpp, and back.
///
/// `Run::forward(like, torchvision, arguments)`, `Run::backward(like, arguments)` and `Run::both(like, torchvision, arguments)`
/// enqueue the work on the device of `like`; `Run::on_cpu` says that offsets can be read at once.
#pragma once

#include <string>
#include <tuple>

#include "giou.hpp"
#include "tensors.hpp"

namespace sluice_torch {

inline bool is_torchvision(const char* op, const std::string& formula) {
    if (formula != "article" && formula != "torchvision")
        refuse(op, "formula is '" + formula + "', expected 'article' or 'torchvision'");
    return formula == "torchvision";
}

inline Reduction reduction_of(const char* op, const std::string& name) {
    if (name == "mean")
        return Reduction::mean;
    if (name == "sum")
        return Reduction::sum;
    if (name == "row_mean")
        return Reduction::row_mean;
    if (name == "row_sum")
        return Reduction::row_sum;
    refuse(op, "reduction is '" + name + "', expected 'mean', 'sum', 'row_mean' or 'row_sum'");
}

inline Number prediction_type(const char* op, const Tensor& predictions) {
    const auto type = number_of(predictions.scalar_type());
    if (!type || *type > Number::float16) {
        refuse(op, "predictions is of " + text_of(predictions.scalar_type()) +
                       ", expected float32, float64, bfloat16 or float16");
    }
    return *type;
}

inline Number target_type(const char* op, const Tensor& targets, const Tensor& predictions) {
    require_same_device(op, "targets", targets, "predictions", predictions);
    const auto type = number_of(targets.scalar_type());
    if (!type) {
        refuse(op, "targets is of " + text_of(targets.scalar_type()) +
                       ", expected float32, float64, bfloat16, float16, uint8, int32 or int64");
    }
    return *type;
}

/// float64 where the predictions are, otherwise float32.
inline ScalarType real_type(const Tensor& predictions) {
    return predictions.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

/// What all forms of the loss allocate; `run(torchvision)` enqueues it.
template <class Run>
std::tuple<Tensor, Tensor> run_forward(GiouForward& all, const char* op, const Tensor& predictions,
                                       const Tensor& targets, const std::string& formula,
                                       const std::string& reduction, bool with_gradient, const Run& run) {
    const bool torchvision = is_torchvision(op, formula);
    const Number type = prediction_type(op, predictions);
    const Number of_targets = target_type(op, targets, predictions);
    all.reduction = reduction_of(op, reduction);
    const Tensor held_predictions = packed(predictions, box_alignment(type));
    const Tensor held_targets = packed(targets, box_alignment(of_targets));
    all.predictions = {held_predictions.const_data_ptr(), type};
    all.targets = {held_targets.const_data_ptr(), of_targets};
    const ScalarType real = real_type(predictions);
    std::vector<std::int64_t> shape{0, 4};
    if (with_gradient)
        shape = {targets.sizes().begin(), targets.sizes().end()};
    Tensor gradient = empty_on(predictions, shape, real);
    if (with_gradient)
        all.gradient = {gradient.mutable_data_ptr(), *number_of(real)};
    std::vector<std::int64_t> loss_shape;
    if (is_by_row(all.reduction))
        loss_shape = {all.boxes.rows};
    Tensor loss = empty_on(predictions, loss_shape, real);
    all.loss = {loss.mutable_data_ptr(), real == ScalarType::Double};
    Tensor sums = empty_on(predictions, {is_by_row(all.reduction) ? 0 : all.boxes.rows}, ScalarType::Double);
    all.sums = static_cast<double*>(sums.mutable_data_ptr());
    run(torchvision);
    return {loss, gradient};
}

/// The rows of ragged targets, `offsets` of which are without gaps, and of their predictions.
template <class Run>
BoxRows ragged_rows(const char* op, const Tensor& predictions, const Tensor& targets, const Tensor& offsets) {
    const std::int64_t rows = offsets.numel() - 1;
    if (targets.dim() != 2 || targets.size(1) != 4)
        refuse(op, "targets has shape " + text_of_shape(targets) + ", expected [boxes, 4]");
    const bool padded = predictions.dim() == 3;
    if ((predictions.dim() != 2 && !padded) || predictions.size(predictions.dim() - 1) != 4) {
        refuse(op, "predictions has shape " + text_of_shape(predictions) +
                       ", expected [rows, width, 4], or [boxes, 4] like targets");
    }
    if (padded ? predictions.size(0) != rows : predictions.size(0) != targets.size(0)) {
        refuse(op, "predictions has shape " + text_of_shape(predictions) + ", expected " +
                       (padded ? sluice::detail::counted(rows, "row") + ", as offsets says"
                               : std::to_string(targets.size(0)) +
                                     (targets.size(0) == 1 ? " box" : " boxes") + ", as targets has"));
    }
    if (padded && predictions.size(1) == 0 && targets.size(0) > 0)
        refuse(op,
               "predictions has shape " + text_of_shape(predictions) + ", expected a width of at least 1");
    BoxRows boxes;
    boxes.rows = rows;
    boxes.width = padded ? predictions.size(1) : 0;
    boxes.values = targets.size(0);
    boxes.offsets = static_cast<const std::int64_t*>(offsets.const_data_ptr());
    if (Run::on_cpu)
        require_offsets(op, boxes.offsets, rows, boxes.values, boxes.width);
    return boxes;
}

template <class Run>
std::tuple<Tensor, Tensor> giou_loss(Tensor predictions, Tensor targets, Tensor offsets, std::string formula,
                                     std::string reduction, bool with_gradient) {
    constexpr const char* op = "giou_loss";
    const Tensor held = offsets_of(op, offsets, "predictions", predictions);
    GiouForward all;
    all.boxes = ragged_rows<Run>(op, predictions, targets, held);
    return run_forward(all, op, predictions, targets, formula, reduction, with_gradient,
                       [&](bool torchvision) { Run::forward(predictions, torchvision, all); });
}

/// Both as one kernel, for a loss that nothing follows.
template <class Run>
std::tuple<Tensor, Tensor> giou_loss_and_gradient(Tensor predictions, Tensor targets, Tensor offsets,
                                                  std::string formula, std::string reduction, double scale) {
    constexpr const char* op = "giou_loss_and_gradient";
    if (reduction != "mean" && reduction != "sum")
        refuse(op, "reduction is '" + reduction + "', expected 'mean' or 'sum'");
    const Tensor held = offsets_of(op, offsets, "predictions", predictions);
    GiouBoth all;
    all.forward.boxes = ragged_rows<Run>(op, predictions, targets, held);
    all.scale = scale;
    Tensor gradient = empty_on(predictions, {predictions.sizes().begin(), predictions.sizes().end()},
                               predictions.scalar_type());
    all.gradient = {gradient.mutable_data_ptr(), prediction_type(op, predictions)};
    const auto [loss, none] =
        run_forward(all.forward, op, predictions, targets, formula, reduction, false,
                    [&](bool torchvision) { Run::both(predictions, torchvision, all); });
    return {loss, gradient};
}

template <class Run>
std::tuple<Tensor, Tensor, Tensor> giou_loss_masked(Tensor predictions, Tensor targets, Tensor mask,
                                                    std::string formula, std::string reduction,
                                                    bool with_gradient) {
    constexpr const char* op = "giou_loss_masked";
    require_type(op, "mask", mask, ScalarType::Bool);
    require_same_device(op, "mask", mask, "predictions", predictions);
    if (mask.dim() != 2)
        refuse(op, "mask has shape " + text_of_shape(mask) + ", expected [rows, width]");
    for (const auto& [name, tensor] :
         {std::pair("predictions", predictions), std::pair("targets", targets)}) {
        if (tensor.dim() != 3 || tensor.size(0) != mask.size(0) || tensor.size(1) != mask.size(1) ||
            tensor.size(2) != 4) {
            refuse(op, std::string(name) + " has shape " + text_of_shape(tensor) + ", expected [" +
                           std::to_string(mask.size(0)) + ", " + std::to_string(mask.size(1)) +
                           ", 4], as mask says");
        }
    }
    const Tensor held = torch::stable::contiguous(mask);
    GiouForward all;
    all.boxes.rows = mask.size(0);
    all.boxes.width = mask.size(1);
    all.boxes.mask = static_cast<const bool*>(held.const_data_ptr());
    all.boxes.masked = true;
    Tensor counts = empty_on(predictions, {all.boxes.rows + 1}, ScalarType::Long);
    all.counts = static_cast<std::int64_t*>(counts.mutable_data_ptr());
    const auto [loss, gradient] =
        run_forward(all, op, predictions, targets, formula, reduction, with_gradient,
                    [&](bool torchvision) { Run::forward(predictions, torchvision, all); });
    return {loss, gradient, counts};
}

/// The end of both backward passes.
template <class Run>
Tensor run_backward(GiouBackward& all, const char* op, const Tensor& incoming, const Tensor& gradient,
                    const std::string& reduction, ScalarType type) {
    all.reduction = reduction_of(op, reduction);
    const auto number = number_of(type);
    if (!number || *number > Number::float16)
        refuse(op, "the gradient is wanted in " + text_of(type) + ", expected a floating-point type");
    require_same_device(op, "the incoming gradient", incoming, "the saved one", gradient);
    const auto of_incoming = number_of(incoming.scalar_type());
    const bool by_row = is_by_row(all.reduction);
    if (!of_incoming || *of_incoming > Number::float16 ||
        (by_row ? incoming.dim() != 1 || incoming.numel() != all.boxes.rows : incoming.numel() != 1)) {
        refuse(op, "the incoming gradient has shape " + text_of_shape(incoming) + " and is of " +
                       text_of(incoming.scalar_type()) + ", expected " +
                       (by_row ? "a floating-point number for each of " +
                                     sluice::detail::counted(all.boxes.rows, "row")
                               : std::string("one floating-point number")));
    }
    all.incoming = {incoming.const_data_ptr(), *of_incoming,
                    by_row && incoming.numel() > 1 ? incoming.stride(0) : 0};
    all.gradient = {gradient.const_data_ptr(), *number_of(gradient.scalar_type())};
    std::vector<std::int64_t> shape{all.boxes.values, 4};
    if (all.boxes.width > 0 || all.boxes.masked)
        shape = {all.boxes.rows, all.boxes.width, 4};
    Tensor result = empty_on(gradient, shape, type);
    all.result = {result.mutable_data_ptr(), *number};
    Run::backward(gradient, all);
    return result;
}

inline Tensor saved_gradient(const char* op, const Tensor& gradient, std::int64_t boxes) {
    const bool real =
        gradient.scalar_type() == ScalarType::Float || gradient.scalar_type() == ScalarType::Double;
    if (!real || gradient.numel() != 4 * boxes) {
        refuse(op, "the saved gradient has shape " + text_of_shape(gradient) + " and is of " +
                       text_of(gradient.scalar_type()) +
                       ", expected what a forward pass with with_gradient=True returned");
    }
    return packed(gradient, box_alignment(*number_of(gradient.scalar_type())));
}

/// `width` 0: of ragged predictions.
template <class Run>
Tensor giou_loss_backward(Tensor incoming, Tensor gradient, Tensor offsets, std::string reduction,
                          std::int64_t width, ScalarType type) {
    constexpr const char* op = "giou_loss_backward";
    const Tensor held = offsets_of(op, offsets, "the saved gradient", gradient);
    const Tensor saved = saved_gradient(op, gradient, gradient.dim() > 0 ? gradient.size(0) : 0);
    if (width < 0)
        refuse(op, "width is " + std::to_string(width) + ", expected 0 or more");
    GiouBackward all;
    all.boxes.rows = held.numel() - 1;
    all.boxes.width = width;
    all.boxes.values = gradient.size(0);
    all.boxes.offsets = static_cast<const std::int64_t*>(held.const_data_ptr());
    if (Run::on_cpu)
        require_offsets(op, all.boxes.offsets, all.boxes.rows, all.boxes.values, width);
    return run_backward<Run>(all, op, incoming, saved, reduction, type);
}

template <class Run>
Tensor giou_loss_masked_backward(Tensor incoming, Tensor gradient, Tensor mask, Tensor counts,
                                 std::string reduction, ScalarType type) {
    constexpr const char* op = "giou_loss_masked_backward";
    require_type(op, "mask", mask, ScalarType::Bool);
    require_same_device(op, "mask", mask, "the saved gradient", gradient);
    if (mask.dim() != 2)
        refuse(op, "mask has shape " + text_of_shape(mask) + ", expected [rows, width]");
    require_type(op, "counts", counts, ScalarType::Long);
    require_same_device(op, "counts", counts, "the saved gradient", gradient);
    if (counts.numel() != mask.size(0) + 1)
        refuse(op, "counts has shape " + text_of_shape(counts) + ", expected [rows + 1]");
    const Tensor saved = saved_gradient(op, gradient, mask.numel());
    const Tensor held = torch::stable::contiguous(mask);
    const Tensor held_counts = torch::stable::contiguous(counts);
    GiouBackward all;
    all.boxes.rows = mask.size(0);
    all.boxes.width = mask.size(1);
    all.boxes.mask = static_cast<const bool*>(held.const_data_ptr());
    all.boxes.masked = true;
    all.counts = static_cast<const std::int64_t*>(held_counts.const_data_ptr());
    return run_backward<Run>(all, op, incoming, saved, reduction, type);
}

template <class Run>
void register_giou(torch::stable::detail::StableLibrary& library) {
    library.impl("giou_loss", TORCH_BOX(&giou_loss<Run>));
    library.impl("giou_loss_masked", TORCH_BOX(&giou_loss_masked<Run>));
    library.impl("giou_loss_and_gradient", TORCH_BOX(&giou_loss_and_gradient<Run>));
    library.impl("giou_loss_backward", TORCH_BOX(&giou_loss_backward<Run>));
    library.impl("giou_loss_masked_backward", TORCH_BOX(&giou_loss_masked_backward<Run>));
}

} // namespace sluice_torch
