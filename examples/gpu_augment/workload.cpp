#include <gpu_augment/workload.hpp>

#include <algorithm>

#include <common/canvas.hpp>
#include <sluice/random/philox.hpp>

namespace gpu_augment {
namespace {

// What a run of random numbers is for.
enum Purpose : std::uint16_t { images_purpose = 201, labels_purpose = 202 };

// Parts of a training with a rate each, and in how many of them, the last ones, it falls to 0.
constexpr std::size_t rate_stages = 20;
constexpr std::size_t falling_stages = 14;

// The epochs of the composed digits: two sets of samples that never meet.
constexpr std::uint32_t training_epoch = 0;
constexpr std::uint32_t held_out_epoch = 1;

template <class T>
void copy_part(const std::vector<T>& from, std::size_t part, std::span<T> to) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(part * to.size()), to.size(), to.begin());
}

} // namespace

float Plan::rate_at(std::size_t step) const {
    if (!rate_falls)
        return learning_rate;
    const std::size_t left = rate_stages - rate_stages * step / steps();
    return learning_rate * static_cast<float>(std::min(left, falling_stages)) /
           static_cast<float>(falling_stages);
}

SyntheticWorkload::SyntheticWorkload(const Options& options, const Amount& amount) {
    plan_.height = plan_.width = options.side.value_or(256);
    // 1×1 pixels are left, whatever the side.
    std::size_t channels = 16;
    for (std::size_t side = plan_.width; side > 0; side /= 2, channels *= 2)
        plan_.channels.push_back(channels);
    plan_.learning_rate = 1e-3f;
    plan_.amount = amount;

    images_.resize(pool * amount.batch * plan_.image_bytes());
    labels_.resize(pool * amount.batch);
    const auto draw = [&](std::vector<std::uint8_t>& bytes, std::uint16_t purpose, std::size_t bound) {
        constexpr std::size_t chunk = 4096; // numbers of one key, far fewer than a key holds
        for (std::size_t begin = 0; begin < bytes.size(); begin += chunk) {
            sluice::CountedRandom random({.seed = options.seed, .sample = begin, .operation = purpose});
            const std::size_t end = std::min(begin + chunk, bytes.size());
            for (std::size_t i = begin; i < end; ++i)
                bytes[i] = static_cast<std::uint8_t>(random.below(static_cast<std::uint32_t>(bound)));
        }
    };
    draw(images_, images_purpose, 256);
    draw(labels_, labels_purpose, plan_.classes);
}

void SyntheticWorkload::fill(std::size_t index, BatchView out) const {
    copy_part(images_, index % pool, out.images);
    copy_part(labels_, index % pool, out.labels);
    for (std::size_t i = 0; i < out.samples.size(); ++i)
        out.samples[i] = {.sample = index * out.samples.size() + i};
}

DigitWorkload::DigitWorkload(const Options& options, const Amount& amount) : seed_(options.seed) {
    const examples::DigitSet digits = examples::load_digit_set(options.data);
    plan_.height = plan_.width = 32;
    plan_.channels = {16, 32, 64, 128, 256};
    // At 0.2, one training in ten or so without augmentation ends with all units dead.
    plan_.learning_rate = 0.15f;
    plan_.rate_falls = true;
    // Without momentum, first weights as small as PyTorch's leave the network on a plateau for hundreds of steps.
    plan_.first_weight_gain = 1.5f;
    plan_.amount = amount;
    training_ = compose(digits.train, training_epoch);
    held_out_ = compose(digits.test, held_out_epoch);
}

DigitWorkload::Canvases DigitWorkload::compose(const examples::IdxSplit& split, std::uint32_t epoch) const {
    const examples::CanvasSpec canvas{
        .height = plan_.height, .width = plan_.width, .cell = plan_.height, .digit = 28, .presence = 1.0f};
    Canvases canvases;
    canvases.labels.resize(split.labels.values.size());
    canvases.images.resize(canvases.labels.size() * plan_.image_bytes());
    for (std::size_t i = 0; i < canvases.labels.size(); ++i) {
        canvases.labels[i] = examples::compose_classification(
            split, canvas, seed_, epoch, i,
            std::span(canvases.images).subspan(i * plan_.image_bytes(), plan_.image_bytes()));
    }
    return canvases;
}

void DigitWorkload::fill(std::size_t index, BatchView out) const {
    const std::size_t digits = training_.labels.size();
    for (std::size_t i = 0; i < out.samples.size(); ++i) {
        const std::size_t shown = index * out.samples.size() + i;
        const std::size_t digit = examples::canvas::shuffled(seed_, training_epoch, shown, digits);
        out.samples[i] = {.sample = digit, .epoch = static_cast<std::uint32_t>(shown / digits)};
        out.labels[i] = training_.labels[digit];
        copy_part(training_.images, digit, out.images.subspan(i * plan_.image_bytes(), plan_.image_bytes()));
    }
}

} // namespace gpu_augment
