// A source's worker threads fill pinned batches ahead of time; the results come back in order, in a loop.
#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "for_each.hpp"

constexpr std::size_t samples = 1000;
constexpr std::size_t batch_size = 64; // so that the last batch is short

struct Batch {
    sluice::PinnedBuffer<int> values{batch_size};
    std::size_t count = 0;
};
struct Numbers {
    sluice::DeviceBuffer<int> values{batch_size};
    std::size_t count = 0;
};

SLUICE_HOST_DEVICE void square(std::size_t i, int* values) { values[i] *= values[i]; }

int main() {
    const auto make_batch = [](int /*slot*/) { return Batch{}; };
    const auto fill = [](std::size_t index, Batch& batch) { // on a worker thread
        batch.count = std::min(batch_size, samples - index * batch_size);
        for (std::size_t i = 0; i < batch.count; ++i)
            batch.values[i] = static_cast<int>(index * batch_size + i);
    };
    constexpr std::size_t batches = (samples + batch_size - 1) / batch_size;
    sluice::Source source{make_batch, fill, {.workers = 2, .batches = batches}};

    sluice::Stage compute{"compute", [](sluice::StreamRef stream, const Batch& in, Numbers& out) {
                              out.count = in.count;
                              sluice::copy(stream, out.values.span().first(in.count),
                                           in.values.span().first(in.count));
                              for_each<square>(stream, in.count, out.values.data());
                          }};
    // The last stage's slots are pinned, so that the host can read them.
    sluice::Stage fetch{"fetch", [](sluice::StreamRef stream, const Numbers& in, Batch& out) {
                            out.count = in.count;
                            sluice::copy(stream, out.values.span().first(in.count),
                                         in.values.span().first(in.count));
                        }};
    sluice::Pipeline pipeline{sluice::Stages{compute, fetch},
                              sluice::Slots{[](int) { return Numbers{}; }, make_batch}};

    std::size_t seen = 0;
    bool right = true;
    for (const Batch& result : pipeline.run(source)) { // waits for this result; the next ones are under way
        for (std::size_t i = 0; i < result.count; ++i, ++seen)
            right = right && result.values[i] == static_cast<int>(seen * seen);
    }
    right = right && seen == samples;
    std::printf("%zu of %zu results in %zu batches: %s\n", seen, samples, pipeline.submitted(),
                right ? "right" : "WRONG");
    return exit_code(right);
}
