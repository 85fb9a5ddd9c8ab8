// The operators' schemas. What they compute is said in the Python package, which also registers shapes and gradients.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(sluice, library) {
    library.def("giou_loss(Tensor predictions, Tensor targets, Tensor offsets, str formula='torchvision', "
                "str reduction='mean', bool with_gradient=True) -> (Tensor, Tensor)");
    library.def(
        "giou_loss_masked(Tensor predictions, Tensor targets, Tensor mask, str formula='torchvision', "
        "str reduction='mean', bool with_gradient=True) -> (Tensor, Tensor, Tensor)");
    library.def("giou_loss_and_gradient(Tensor predictions, Tensor targets, Tensor offsets, str "
                "formula='torchvision', "
                "str reduction='mean', float scale=1.0) -> (Tensor, Tensor)");
    library.def(
        "giou_loss_backward(Tensor incoming, Tensor gradient, Tensor offsets, str reduction, SymInt width, "
        "ScalarType dtype) -> Tensor");
    library.def("giou_loss_masked_backward(Tensor incoming, Tensor gradient, Tensor mask, Tensor counts, "
                "str reduction, ScalarType dtype) -> Tensor");

    library.def("row_sum(Tensor values, Tensor offsets) -> Tensor");
    library.def("row_max(Tensor values, Tensor offsets) -> (Tensor, Tensor)");
    library.def("row_softmax(Tensor values, Tensor offsets) -> Tensor");
    library.def("row_sort(Tensor values, Tensor offsets, bool descending=False) -> (Tensor, Tensor)");
    library.def("row_expand(Tensor of_rows, Tensor offsets, SymInt size) -> Tensor");
    library.def("row_unsort(Tensor sorted, Tensor positions, Tensor offsets) -> Tensor");
    library.def("row_place(Tensor of_rows, Tensor positions, Tensor offsets, SymInt size) -> Tensor");

    library.def(
        "augment(Tensor images, Tensor samples, int seed, SymInt crop_height, SymInt crop_width, "
        "float least_degrees, float most_degrees, float least_sigma, float most_sigma, SymInt height, "
        "SymInt width, float fill, float mean, float deviation, ScalarType dtype) -> Tensor");
    library.def("augment_parameters(Tensor samples, SymInt count, SymInt height, SymInt width, int seed, "
                "SymInt crop_height, SymInt crop_width, float least_degrees, float most_degrees, "
                "float least_sigma, float most_sigma) -> Tensor");
}
