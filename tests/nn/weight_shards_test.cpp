#include <nn/layers/weight_shards.hpp>

#include <vector>

#include "nn/support.hpp"

namespace nn_weight_shards {

TEST_CASE("weight shards: parts are what is at their places, and make the whole again") {
    NN_TEST_RANDOM(random);
    const std::size_t ranks = random.between(1, 4);
    const std::vector<std::size_t> shape{ranks * random.between(1, 3), ranks * random.between(1, 3), 2, 3};
    const nn::NamedTensor whole{"a", shape, random.numbers(shape[0] * shape[1] * 6)};
    for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
        CAPTURE(axis);
        std::vector<nn::NamedTensor> parts;
        for (std::size_t rank = 0; rank < ranks; ++rank)
            parts.push_back(nn::cut_shard(whole, axis, rank, ranks));
        const std::size_t side = shape[axis] / ranks;
        const std::size_t of_whole = random.between(0, shape[axis] - 1);
        const std::size_t other = random.between(0, shape[1 - axis] - 1);
        const nn::NamedTensor& part = parts[of_whole / side];
        CHECK(part.name == "a");
        CHECK(part.shape[axis] == side);
        const auto at = [&](const nn::NamedTensor& tensor, std::size_t along) {
            const std::size_t i = axis == 0 ? along : other;
            const std::size_t j = axis == 0 ? other : along;
            return tensor.values.at((i * tensor.shape[1] + j) * 6 + 5);
        };
        CHECK(at(part, of_whole % side) == at(whole, of_whole));
        const nn::NamedTensor joined = nn::join_shards(parts, axis);
        CHECK(joined.shape == whole.shape);
        CHECK(joined.values == whole.values);
    }
}

TEST_CASE("weight shards: a side that cannot be divided is refused") {
    const nn::NamedTensor tensor{"2.weight", {4, 5}, std::vector<float>(20)};
    CHECK_THROWS_WITH_AS((void)nn::cut_shard(tensor, 1, 0, 2),
                         "weights: 2.weight has a side of 5, expected a multiple of the 2 ranks",
                         sluice::Error);
}

} // namespace nn_weight_shards
