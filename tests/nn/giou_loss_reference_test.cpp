// The box losses against PyTorch's: names, shapes and values come from the reference file.
#include <common/safetensors.hpp>

#include "nn/giou_loss_case.hpp"
#include "support/reference.hpp"

namespace nn_giou_loss_reference {

using namespace nn_test;

namespace {

const examples::Safetensors& reference() {
    static const examples::Safetensors file = examples::read_safetensors(sluice_test::reference_path());
    return file;
}

/// Numbers of the rows [N, 4] whose gradient the file vouches for.
std::vector<double> chosen(const std::vector<double>& numbers) {
    const auto rows = reference().at("giou/gradient_rows").as<std::uint8_t>();
    std::vector<double> result;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (rows.at(i / 4) != 0)
            result.push_back(numbers[i]);
    }
    return result;
}

/// The value of each box by itself, and the gradient of their sum.
template <class Formula>
void check_pairs(Formula formula, const std::string& value_name, const std::string& gradient_name) {
    const Stream stream;
    const auto predictions = device(boxes_of(reference().at("giou/pred").as<float>()));
    const auto targets = device(boxes_of(reference().at("giou/target").as<float>()));
    const std::size_t count = reference().at("giou/pred").shape.at(0);
    const Buffer<std::int64_t> one_offset = device(std::vector<std::int64_t>{0, 1});
    const Buffer<sluice::RaggedCounts> one_row = device(std::vector<sluice::RaggedCounts>{{1, 1, 1, 0}});
    Buffer<float> values = poisoned<float>(stream, count);
    nn::GiouScratch<B> scratch(count);
    for (std::size_t i = 0; i < count; ++i) {
        const sluice::RaggedView<const nn::Box<float>> target{targets.data() + i, one_offset.data(),
                                                              one_row.data(), 1, 1};
        const nn::PaddedBoxes<const float, B> prediction{predictions.span().subspan(i, 1), 1, 1};
        nn::giou_mean_ragged(stream.ref(), formula, prediction, target,
                             nn::GiouResult<float, B>{values.span().subspan(i, 1)}, scratch);
    }
    CHECK(relative_error(host(stream, values), reference().at(value_name).as<double>()) <= 1e-6);

    const auto all = static_cast<std::int64_t>(count);
    std::vector<std::int64_t> every;
    for (std::int64_t i = 0; i <= all; ++i)
        every.push_back(i);
    const Buffer<std::int64_t> offsets = device(every);
    const Buffer<sluice::RaggedCounts> counts = device(std::vector<sluice::RaggedCounts>{{all, all, 1, 0}});
    Buffer<nn::Box<float>> gradient = poisoned<nn::Box<float>>(stream, count);
    nn::giou_mean_ragged(
        stream.ref(), formula, nn::PaddedBoxes<const float, B>{predictions.span(), count, 1},
        sluice::RaggedView<const nn::Box<float>>{targets.data(), offsets.data(), counts.data(), all, all},
        nn::GiouResult<float, B>{{}, gradient.span(), static_cast<float>(count)}, scratch);
    CHECK(relative_error(chosen(numbers_of(host(stream, gradient))),
                         chosen(reference().at(gradient_name).as<double>())) <= 1e-6);
}

} // namespace

TEST_CASE("reference: the article's GIoU, box by box, and its gradient") {
    check_pairs(nn::ArticleGiou{}, "giou/article", "giou/article_grad_pred");
}

TEST_CASE("reference: torchvision's GIoU loss, box by box, and its gradient") {
    check_pairs(nn::TorchvisionGiouLoss{}, "giou/torchvision_loss", "giou/torchvision_loss_grad_pred");
}

TEST_CASE("reference: the mean over ragged boxes and its gradient, by every variant") {
    const Stream stream;
    const auto values = boxes_of(reference().at("ragged/values").as<std::uint8_t>());
    const auto offsets = reference().at("ragged/offsets").as<std::int64_t>();
    BoxCase<float, std::uint8_t> boxes;
    boxes.width = reference().at("ragged/pred").shape.at(1);
    boxes.predictions = boxes_of(reference().at("ragged/pred").as<float>());
    for (std::size_t r = 0; r + 1 < offsets.size(); ++r)
        boxes.targets.emplace_back(values.begin() + offsets[r], values.begin() + offsets[r + 1]);
    REQUIRE(boxes.rows() == reference().at("ragged/pred").shape.at(0));
    // The file's padded form is that of its ragged form.
    const auto padded = boxes_of(reference().at("ragged/padded").as<std::uint8_t>());
    const auto mask = boxes.mask();
    for (std::size_t i = 0; i < padded.size(); ++i) {
        if (mask[i] != 0)
            REQUIRE(corners(padded[i]) == corners(boxes.padded()[i]));
    }
    const double mean = reference().at("ragged/article_mean").as<double>().at(0);
    const auto gradient = reference().at("ragged/article_mean_grad_pred").as<double>();
    for_all_variants<float>(stream, nn::ArticleGiou{}, boxes, 1.0f,
                            [&](const std::string& name, const Found& found, double allowed) {
                                CAPTURE(name);
                                CHECK(std::abs(static_cast<double>(found.mean) - mean) <=
                                      allowed * std::abs(mean));
                                CHECK(relative_error(found.gradient, gradient) <= allowed);
                            });
}

} // namespace nn_giou_loss_reference
