// A class with a pipeline as a member. Stopping early, and destroying it with work under way, is safe.
#include <cstddef>
#include <cstdio>

#include "for_each.hpp"

constexpr std::size_t size = 256;

struct Batch {
    sluice::PinnedBuffer<float> values{size};
};
struct Features {
    sluice::DeviceBuffer<float> values{size};
};

SLUICE_HOST_DEVICE void add(std::size_t i, float* sum, const float* x) { sum[i] += x[i]; }

class Trainer {
public:
    explicit Trainer(sluice::Schedule schedule)
        : pipeline_{
              sluice::Stages{
                  sluice::Stage{"load", [](sluice::StreamRef stream, const Batch& in,
                                           Features& out) { sluice::copy(stream, out.values, in.values); }},
                  sluice::Stage{"train",
                                [this](sluice::StreamRef stream, const Features& in) { train(stream, in); }}},
              sluice::Slots{[](int /*slot*/) { return Features{}; }},
              {.schedule = schedule}} {
        sluice::fill_bytes(stream_, sum_, 0);
        stream_.sync();
    }
    Trainer(const Trainer&) = delete; // nor may it move: its stages refer to it
    Trainer& operator=(const Trainer&) = delete;

    void step(const sluice::SourceBatch<Batch>& batch) { pipeline_.submit(batch); }
    std::size_t steps() const { return pipeline_.submitted(); }

    float sum() {
        sluice::PinnedBuffer<float> result{size};
        pipeline_.flush(stream_); // what comes on this stream comes after all batches
        sluice::copy_and_wait(stream_, result, sum_);
        return result[size - 1];
    }

private:
    void train(sluice::StreamRef stream, const Features& in) {
        for_each<add>(stream, size, sum_.data(), in.values.data());
    }

    sluice::Stream stream_;
    sluice::DeviceBuffer<float> sum_{size};
    // Last, so that it is destroyed first: its stages use the members above.
    sluice::AnyPipeline<Batch> pipeline_;
};

int main() {
    bool right = true;
    for (const auto schedule : {sluice::Schedule::overlapped, sluice::Schedule::graphed}) {
        sluice::Source source{[](int /*slot*/) { return Batch{}; },
                              [](std::size_t index, Batch& batch) {
                                  for (float& value : batch.values)
                                      value = static_cast<float>(index);
                              },
                              {.workers = 2}}; // never ends
        Trainer trainer{schedule};
        for (const auto& batch : source) {
            trainer.step(batch);
            if (trainer.steps() == 50)
                break;
        }
        right = right && trainer.sum() == 49 * 50 / 2;

        Trainer abandoned{schedule};
        for (int i = 0; i < 20; ++i)
            abandoned.step(source.next());
        // Work is still under way here. Its destructor waits for it; then the source's stops the workers.
    }
    std::printf("50 batches of an endless source, then one destroyed with work under way: %s\n",
                right ? "right" : "WRONG");
    return exit_code(right);
}
