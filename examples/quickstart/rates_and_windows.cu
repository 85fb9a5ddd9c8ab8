// Stages that don't run in step: one takes the block before as well, one changes its input in place, and one adds 16 blocks up.
#include <cstddef>
#include <cstdio>
#include <vector>

#include "for_each.hpp"

constexpr std::size_t block_size = 256;
constexpr int blocks_a_sum = 16;
constexpr int blocks = 100; // so that the last sum is of 4

struct Block {
    sluice::DeviceBuffer<int> values{block_size};
};
struct Change : Block {}; // another type than what it is made of
struct Sum {
    sluice::PinnedBuffer<int> values{block_size}; // which the host reads
    int blocks = 0;
};

SLUICE_HOST_DEVICE void number(std::size_t i, int* out, int block) { out[i] = block + static_cast<int>(i); }
SLUICE_HOST_DEVICE void double_it(std::size_t i, int* values) { values[i] *= 2; }
SLUICE_HOST_DEVICE void difference(std::size_t i, const int* now, const int* before, int* out) {
    out[i] = before == nullptr ? now[i] : now[i] - before[i];
}
SLUICE_HOST_DEVICE void add(std::size_t i, const int* in, int* out, bool first) {
    out[i] = first ? in[i] : out[i] + in[i];
}

int main() {
    const auto make_block = [](int /*slot*/) { return Block{}; };
    sluice::Stage read{"read", [](sluice::StreamRef stream, const int& block, Block& out) {
                           for_each<number>(stream, block_size, out.values.data(), block);
                       }};
    sluice::Stage scale{"scale", [](sluice::StreamRef stream, sluice::InPlace<Block>& block) {
                            for_each<double_it>(stream, block_size, block->values.data());
                        }};
    sluice::Stage change{
        "change", [](sluice::StreamRef stream, const sluice::Last<2, Block>& of, Change& out) {
            const int* before = of.size() == 2 ? of[1].values.data() : nullptr;
            for_each<difference>(stream, block_size, of[0].values.data(), before, out.values.data());
        }};
    sluice::Stage integrate{"integrate",
                            [](sluice::StreamRef stream, const Change& in, Sum& out, sluice::Turn turn) {
                                out.blocks = turn.index + 1;
                                for_each<add>(stream, block_size, in.values.data(), out.values.data(),
                                              turn.first());
                            },
                            {.every = blocks_a_sum}};
    sluice::Pipeline pipeline{
        sluice::Stages{read, scale, change, integrate},
        sluice::Slots{make_block, [](int /*slot*/) { return Change{}; }, [](int /*slot*/) { return Sum{}; }}};

    std::vector<int> numbers;
    for (int block = 0; block < blocks; ++block)
        numbers.push_back(block * block);
    std::size_t sums = 0;
    int seen = 0;
    bool right = true;
    for (const Sum& sum : pipeline.run(numbers)) { // one for 16 blocks, and one for those that are left
        seen += sum.blocks;
        const int last = (seen - 1) * (seen - 1), before = (seen - sum.blocks - 1) * (seen - sum.blocks - 1);
        for (std::size_t i = 0; i < block_size; ++i) {
            const int first = static_cast<int>(i); // The first block has none before it.
            right = right && sum.values[i] == 2 * (sums == 0 ? last + first : last - before);
        }
        ++sums;
    }
    right = right && seen == blocks && sums == 7;
    std::printf("%zu sums of %d blocks: %s\n", sums, seen, right ? "right" : "WRONG");
    return exit_code(right);
}
