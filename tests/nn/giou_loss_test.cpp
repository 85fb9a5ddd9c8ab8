// The variants of the box loss against plain loops, over types and shapes.
#include "nn/giou_loss_case.hpp"

namespace nn_giou_loss {

using namespace nn_test;

namespace {

template <class PType, class UType, class GType>
struct Types {
    using P = PType;
    using U = UType;
    using G = GType;
};

/// What rounding the gradient leaves, relative to all of it.
template <class G>
double gradient_tolerance(double mean_tolerance) {
    if constexpr (std::is_same_v<G, float>)
        return 4 * mean_tolerance; // also of the differences that it is compared with
    return std::is_same_v<G, nn::Half> ? 0x1p-11 : 0x1p-8;
}

template <class Formula, class G, class P, class U>
void check_case(Formula formula, const BoxCase<P, U>& boxes, float scale) {
    const std::string formula_name = Formula::name;
    CAPTURE(formula_name);
    CAPTURE(boxes.rows());
    CAPTURE(boxes.width);
    const Stream stream;
    const double mean = boxes.mean(formula);
    const auto gradient = boxes.gradient(formula, static_cast<double>(scale));
    const auto mask = boxes.mask();
    for_all_variants<G>(stream, formula, boxes, scale,
                        [&](const std::string& name, const Found& found, double allowed) {
                            CAPTURE(name);
                            CHECK(std::abs(static_cast<double>(found.mean) - mean) <=
                                  allowed * std::max(0.1, std::abs(mean)));
                            CHECK(relative_error(found.gradient, gradient) <= gradient_tolerance<G>(allowed));
                            bool zero = true;
                            for (std::size_t i = 0; i < found.gradient.size(); ++i)
                                zero = zero && (mask[i / 4] != 0 || found.gradient[i] == 0.0);
                            CHECK(zero);
                        });
}

} // namespace

TEST_CASE_TEMPLATE("giou loss: every variant, types of predictions, targets and gradients", T,
                   Types<float, std::uint8_t, float>, Types<float, std::int32_t, float>,
                   Types<float, float, float>, Types<nn::Half, std::uint8_t, nn::Half>,
                   Types<nn::Half, std::int32_t, float>, Types<nn::Half, float, nn::Half>,
                   Types<nn::Bfloat16, std::uint8_t, nn::Bfloat16>, Types<nn::Bfloat16, std::uint8_t, float>,
                   Types<nn::Bfloat16, std::int32_t, nn::Bfloat16>, Types<nn::Bfloat16, float, float>) {
    NN_TEST_RANDOM(random);
    for (int round = 0; round < 3; ++round) {
        const auto boxes = random_case<typename T::P, typename T::U>(
            random, random.between(1, 40), random.between(1, 24), std::is_same_v<typename T::G, nn::Half>);
        // A gradient of about 1, as a scaled loss would have it, and no power of 2.
        const float scale = 1.5f * static_cast<float>(std::max<std::size_t>(1, boxes.count()));
        check_case<nn::ArticleGiou, typename T::G>(nn::ArticleGiou{}, boxes, scale);
        check_case<nn::TorchvisionGiouLoss, typename T::G>(nn::TorchvisionGiouLoss{}, boxes, scale);
    }
}

TEST_CASE("giou loss: rows that are wider than a block, and more rows than tiles") {
    NN_TEST_RANDOM(random);
    const auto wide =
        random_case<float, std::uint8_t>(random, random.between(5, 20), random.between(257, 700));
    check_case<nn::ArticleGiou, float>(nn::ArticleGiou{}, wide, 1000.0f);
    // Tiles of two rounds, the last of which is not full.
    const auto many = random_case<float, std::uint8_t>(random, random.between(8193, 9999), 2);
    check_case<nn::TorchvisionGiouLoss, float>(nn::TorchvisionGiouLoss{}, many, 1000.0f);
}

TEST_CASE("giou loss: many rows of few boxes, which one cluster of blocks adds up") {
    NN_TEST_RANDOM(random);
    for (const std::size_t rows : {random.between(20, 60), random.between(1025, 2048)}) {
        auto boxes = random_case<float, std::uint8_t>(random, rows, 90);
        for (auto& row : boxes.targets) { // some longer than what a warp looks at in one go
            const std::size_t most = random.between(0, 49) == 0 ? 90 : random.between(0, 2);
            row.resize(std::min(row.size(), most));
        }
        check_case<nn::ArticleGiou, float>(nn::ArticleGiou{}, boxes, 1000.0f);
        check_case<nn::TorchvisionGiouLoss, float>(nn::TorchvisionGiouLoss{}, boxes, 1000.0f);
    }
}

TEST_CASE("giou loss: the mean alone, the gradient alone and both keep their bits in every run, and agree") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const auto boxes = random_case<nn::Bfloat16, std::uint8_t>(random, random.between(50, 90), 40);
    const Targets<std::uint8_t> targets = boxes.ragged(stream, boxes.capacity(100));
    const auto predictions = device(boxes.predictions);
    const nn::PaddedBoxes<const nn::Bfloat16, B> rows{predictions.span(), boxes.rows(), boxes.width};
    nn::GiouScratch<B> scratch(boxes.rows());
    const nn::ArticleGiou formula;
    const auto run = [&](bool with_mean, bool with_gradient) {
        Buffer<float> mean = poisoned<float>(stream, 1);
        Buffer<nn::Box<float>> gradient = poisoned<nn::Box<float>>(stream, boxes.predictions.size());
        nn::GiouResult<float, B> result{};
        if (with_mean)
            result.mean = mean.span();
        if (with_gradient)
            result.gradient = gradient.span();
        nn::giou_mean_ragged(stream.ref(), formula, rows, targets.view(), result, scratch);
        return Found{host(stream, mean)[0], numbers_of(host(stream, gradient))};
    };
    const Found both = run(true, true);
    const Found alone = run(true, false);
    CHECK(alone.mean == both.mean);
    for (int again = 0; again < 20; ++again) {
        CHECK(run(true, false).mean == alone.mean);
        CHECK(run(false, true).gradient == both.gradient);
        CHECK(std::isnan(run(false, true).mean)); // as it was
        CHECK(run(true, true).mean == both.mean);
    }
}

TEST_CASE_TEMPLATE("giou loss: ragged predictions", T, Types<float, float, float>,
                   Types<nn::Half, std::uint8_t, float>, Types<nn::Bfloat16, std::uint8_t, nn::Bfloat16>) {
    using P = typename T::P;
    using U = typename T::U;
    using G = typename T::G;
    NN_TEST_RANDOM(random);
    const Stream stream;
    // Less than a block; on a device also more than a round of all tiles.
    for (const std::size_t count :
         {random.between(1, 255), on_device ? random.between(262'145, 300'000) : random.between(256, 3000)}) {
        CAPTURE(count);
        const auto boxes = random_case<P, U>(random, count, 1);
        std::vector<nn::Box<P>> own;
        for (std::size_t r = 0; r < boxes.rows(); ++r) {
            if (!boxes.targets[r].empty())
                own.push_back(boxes.prediction(r, 0));
        }
        own.resize(boxes.count() + 5, own.at(0));
        const Targets<U> targets = boxes.ragged(stream, boxes.capacity(5));
        const Buffer<nn::Box<P>> predictions = device(own);
        const sluice::RaggedView<const nn::Box<P>> rows = targets.view().over(predictions.data());
        nn::GiouScratch<B> scratch(1);
        Buffer<float> mean = poisoned<float>(stream, 1);
        Buffer<nn::Box<G>> gradient = poisoned<nn::Box<G>>(stream, own.size());
        const auto scale = static_cast<float>(boxes.count());
        const nn::TorchvisionGiouLoss formula;
        nn::giou_mean_ragged(stream.ref(), formula, rows, targets.view(), result_of(mean, gradient, scale),
                             scratch);
        const double expected = boxes.mean(formula);
        CHECK(std::abs(static_cast<double>(host(stream, mean)[0]) - expected) <= 1e-6 * expected);
        std::vector<double> slopes = numbers_of(host(stream, gradient));
        for (std::size_t i = 4 * boxes.count(); i < slopes.size(); ++i)
            CHECK(std::isnan(slopes[i])); // beyond the values, and left alone
        slopes.resize(4 * boxes.count());
        std::vector<double> wanted;
        const auto padded = boxes.gradient(formula, static_cast<double>(scale));
        for (std::size_t r = 0; r < boxes.rows(); ++r) {
            if (!boxes.targets[r].empty())
                wanted.insert(wanted.end(), padded.begin() + static_cast<std::ptrdiff_t>(4 * r),
                              padded.begin() + static_cast<std::ptrdiff_t>(4 * r + 4));
        }
        CHECK(relative_error(slopes, wanted) <= gradient_tolerance<G>(1e-6));

        Buffer<float> alone = poisoned<float>(stream, 1);
        nn::giou_mean_ragged(stream.ref(), formula, rows, targets.view(), nn::GiouResult<G, B>{alone.span()},
                             scratch);
        CHECK(host(stream, alone) == host(stream, mean));
    }
}

TEST_CASE("giou loss: a heavier formula is the mean over predictions that move") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const auto boxes = random_case<float, std::uint8_t>(random, random.between(10, 30), 9);
    const unsigned work = static_cast<unsigned>(random.between(2, 40));
    double expected = 0.0;
    for (unsigned k = 0; k < work; ++k) {
        auto moved = boxes;
        for (auto& box : moved.predictions) {
            box.x1 += static_cast<float>(k) / 1024.0f;
            box.x2 += static_cast<float>(k) / 1024.0f;
        }
        expected += moved.mean(nn::ArticleGiou{}) / work;
    }
    const auto predictions = device(boxes.predictions);
    const nn::PaddedBoxes<const float, B> rows{predictions.span(), boxes.rows(), boxes.width};
    const Targets<std::uint8_t> targets = boxes.ragged(stream, boxes.capacity());
    const Buffer<nn::Box<std::uint8_t>> padded = device(boxes.padded());
    const Buffer<std::uint8_t> mask = device(boxes.mask());
    const nn::MaskedBoxes<const std::uint8_t, B> masked{{padded.span(), boxes.rows(), boxes.width},
                                                        mask.span()};
    nn::GiouScratch<B> scratch(boxes.rows());
    Buffer<float> means = poisoned<float>(stream, 3);
    const auto result = [&](std::size_t i) { return nn::GiouResult<float, B>{means.span().subspan(i, 1)}; };
    const nn::ArticleGiou formula;
    nn::giou_mean_ragged(stream.ref(), formula, rows, targets.view(), result(0), scratch, work);
    nn::giou_mean_fused(stream.ref(), formula, rows, masked, nn::Invalid::computed, result(1), scratch, work);
    nn::giou_mean_fused(stream.ref(), formula, rows, masked, nn::Invalid::skipped, result(2), scratch, work);
    for (const float mean : host(stream, means))
        CHECK(std::abs(static_cast<double>(mean) - expected) <= 1e-6 * std::max(0.1, std::abs(expected)));
}

} // namespace nn_giou_loss
