// CPU stages between GPU stages: a callable without a stream runs on a thread of its own, in the same order.
#include <cstddef>
#include <cstdio>

#include "for_each.hpp"

constexpr std::size_t size = 1000;

using Batch = sluice::PinnedBuffer<int>;
struct Squares { // pinned, so that both the GPU and the CPU reach it
    sluice::PinnedBuffer<int> values{size};
};
struct Prefix {
    sluice::PinnedBuffer<int> values{size};
};
struct Total {
    sluice::PinnedBuffer<int> value{1};
};

SLUICE_HOST_DEVICE void square(std::size_t i, int* values) { values[i] *= values[i]; }
SLUICE_HOST_DEVICE void take_last(std::size_t, int* out, const int* values) { out[0] = values[size - 1]; }

int main() {
    // Each is used by one stage alone, which has one stream, so batches take turns.
    sluice::DeviceBuffer<int> before{size}, after{size}, last{1};

    sluice::Stage squares{"squares", [&](sluice::StreamRef stream, const Batch& in, Squares& out) {
                              sluice::copy(stream, before, in);
                              for_each<square>(stream, size, before.data());
                              sluice::copy(stream, out.values, before);
                          }};
    // On the CPU, once the values are there. Later stages wait for it; the thread that submits does not.
    sluice::Stage prefix{"prefix", [](const Squares& in, Prefix& out) {
                             int sum = 0;
                             for (std::size_t i = 0; i < size; ++i)
                                 out.values[i] = sum += in.values[i];
                         }};
    sluice::Stage total{"total", [&](sluice::StreamRef stream, const Prefix& in, Total& out) {
                            sluice::copy(stream, after, in.values);
                            for_each<take_last>(stream, 1, last.data(), after.data());
                            sluice::copy(stream, out.value, last);
                        }};
    int batches = 0;
    bool right = true;
    sluice::Stage report{"report", [&](const Total& in) { // batches come in order
                             right = right && in.value[0] == 1000 * batches * batches;
                             ++batches;
                         }};

    sluice::Pipeline pipeline{sluice::Stages{squares, prefix, total, report},
                              sluice::Slots{[](int) { return Squares{}; }, [](int) { return Prefix{}; },
                                            [](int) { return Total{}; }}};
    Batch batch{size};
    for (int i = 0; i < 30; ++i) {
        for (int& value : batch)
            value = i;
        pipeline.submit(batch).wait(); // returns when `squares` has read the batch
    }
    pipeline.finish(); // after this, `right` and `batches` may be read here

    right = right && batches == 30;
    std::printf("%d batches through GPU, CPU, GPU and CPU stages: %s\n", batches, right ? "right" : "WRONG");
    return exit_code(right);
}
