#include <masked_giou/workload.hpp>

namespace masked_giou {

DetectionWorkload::DetectionWorkload(const Options& options, std::size_t steps)
    : digits_(examples::load_digit_set(options.data)), seed_(options.seed) {
    spec_ = {.height = 48, .width = 48, .most = 3, .smallest = 12, .largest = 20};
    plan_.channels = {8, 16, 32};
    plan_.hidden = options.hidden.value_or(256);
    plan_.learning_rate = 0.2f;
    plan_.rate_decay = 0.9f;
    plan_.batch = static_cast<std::size_t>(options.batch.value_or(32));
    plan_.steps = options.steps ? static_cast<std::size_t>(*options.steps) : steps;
    plan_.warmup = static_cast<std::size_t>(options.warmup.value_or(10));
}

} // namespace masked_giou
