#include <frozen_encoder/workload.hpp>

#include <algorithm>

#include <common/fnv1a.hpp>
#include <common/text.hpp>
#include <sluice/random/philox.hpp>

namespace frozen_encoder {
namespace {

// What a run of random numbers is for.
enum Purpose : std::uint16_t { images_purpose = 101, labels_purpose = 102 };

// The epochs of the composed digits: two sets of samples that never meet.
constexpr std::uint32_t training_epoch = 0;
constexpr std::uint32_t held_out_epoch = 1;

} // namespace

std::string Plan::rates_text() const {
    std::string text = std::to_string(learning_rate);
    if (rate_decay > 0)
        text += ", falling by " + std::to_string(rate_decay) + " of it over " +
                examples::counted(warmup + steps, "step");
    return text;
}

std::string hash_of_data(const Workload& workload) {
    const Plan& plan = workload.plan();
    std::vector<std::uint8_t> images(plan.batch * plan.image_bytes());
    std::vector<std::uint8_t> labels(plan.batch * plan.label_bytes());
    workload.fill(0, images, labels);
    examples::Fnv1a hash;
    hash.add(images);
    hash.add(labels);
    return hash.text();
}

SyntheticWorkload::SyntheticWorkload(const Options& options) : seed_(options.seed) {
    plan_.height = plan_.width = static_cast<std::size_t>(options.image);
    for (int halvings = 0; halvings <= options.depth; ++halvings)
        plan_.channels.push_back(std::size_t{16} << halvings);
    plan_.classes = 10;
    plan_.image_scale = 1.0f;
    plan_.learning_rate = 1e-3f;
    plan_.batch = static_cast<std::size_t>(options.batch.value_or(8));
    plan_.steps = static_cast<std::size_t>(options.steps.value_or(100));
    plan_.warmup = static_cast<std::size_t>(options.warmup.value_or(10));
    // The same whole batches for any number of GPUs that share them.
    plan_.distinct = pool * static_cast<std::size_t>(options.ranks());
}

void SyntheticWorkload::draw() {
    images_.resize(plan_.distinct * plan_.batch * plan_.image_bytes());
    labels_.resize(plan_.distinct * plan_.batch * plan_.label_bytes());
    const auto draw = [&](std::vector<std::uint8_t>& bytes, std::uint16_t purpose, std::uint32_t bound) {
        constexpr std::size_t chunk = 4096; // numbers of one key, far fewer than a key holds
        for (std::size_t begin = 0; begin < bytes.size(); begin += chunk) {
            sluice::CountedRandom random({.seed = seed_, .sample = begin, .operation = purpose});
            const std::size_t end = std::min(begin + chunk, bytes.size());
            for (std::size_t i = begin; i < end; ++i)
                bytes[i] = static_cast<std::uint8_t>(random.below(bound));
        }
    };
    draw(images_, images_purpose, 256);
    draw(labels_, labels_purpose, static_cast<std::uint32_t>(plan_.classes));
}

void SyntheticWorkload::fill(std::size_t index, std::span<std::uint8_t> images,
                             std::span<std::uint8_t> labels) const {
    const std::size_t slot = index % plan_.distinct;
    std::copy_n(images_.begin() + static_cast<std::ptrdiff_t>(slot * images.size()), images.size(),
                images.begin());
    std::copy_n(labels_.begin() + static_cast<std::ptrdiff_t>(slot * labels.size()), labels.size(),
                labels.begin());
}

DigitWorkload::DigitWorkload(const Options& options)
    : digits_(examples::load_digit_set(options.data)), seed_(options.seed) {
    canvas_ = {.height = 48, .width = 48, .cell = 16, .digit = 14, .presence = 0.75f};
    plan_.height = canvas_.height;
    plan_.width = canvas_.width;
    plan_.channels = {16, 32, 64, 128, 256}; // four halvings: one place of the features sees one cell
    plan_.classes = examples::segmentation_classes;
    plan_.image_scale = 1.0f / 255.0f;
    plan_.learning_rate = 1.0f;
    plan_.rate_decay = 0.9f;
    // Without momentum, first weights as small as PyTorch's leave so narrow a decoder on a plateau for hundreds of
    // steps.
    plan_.first_weight_gain = 2.5f;
    plan_.batch = static_cast<std::size_t>(options.batch.value_or(8));
    plan_.steps = static_cast<std::size_t>(options.steps.value_or(1500));
    plan_.warmup = static_cast<std::size_t>(options.warmup.value_or(10));
}

void DigitWorkload::fill(std::size_t index, std::span<std::uint8_t> images,
                         std::span<std::uint8_t> labels) const {
    for (std::size_t i = 0; i < plan_.batch; ++i) {
        examples::compose_segmentation(digits_.train, canvas_, seed_, training_epoch, index * plan_.batch + i,
                                       images.subspan(i * plan_.image_bytes(), plan_.image_bytes()),
                                       labels.subspan(i * plan_.label_bytes(), plan_.label_bytes()));
    }
}

void DigitWorkload::fill_held_out(std::size_t index, std::span<std::uint8_t> image,
                                  std::span<std::uint8_t> labels) const {
    examples::compose_segmentation(digits_.test, canvas_, seed_, held_out_epoch, index, image, labels);
}

} // namespace frozen_encoder
