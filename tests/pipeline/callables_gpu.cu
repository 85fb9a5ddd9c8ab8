// Stages in the forms of stream that CUDA programs use, and streams that are external as such. Compiled by nvcc,
// since a plain C++ compiler may not find CCCL.
#include "support/cccl_stream_ref.hpp"

#include <array>
#include <vector>

#include "pipeline/chain.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t words = 64;

__global__ void set_words(Word* out, Word value) { out[threadIdx.x] = value + threadIdx.x; }
__global__ void add_to_words(const Word* in, Word* out) { out[threadIdx.x] += in[threadIdx.x]; }

using Cells = DeviceBuffer<Word, Cuda>;
Cells make_cells(int) { return Cells(words); }

// What is in `sums` after three batches, by `first` and `last`.
template <class First, class Last>
bool sums_are_right(First first, Last last, Cells& sums, const CudaStream& stream) {
    fill_bytes(stream, sums, 0);
    stream.sync();
    TwoStreamPipeline pipeline{Stage{"first", first}, Stage{"last", last}, make_cells};
    for (Word batch = 0; batch < 3; ++batch)
        pipeline.submit(10 * batch);
    pipeline.finish();
    std::vector<Word> seen(words);
    copy_and_wait(stream, seen, sums);
    for (Word i = 0; i < words; ++i) {
        if (seen[i] != 30 + 3 * i)
            return false;
    }
    return true;
}

} // namespace

TEST_CASE("Callables: stages that take a cudaStream_t, a StreamRef or a cuda::stream_ref") {
    const CudaStream stream;
    Cells sums(words);
    Word* const all = sums.data();
    const auto first_native = [](cudaStream_t on, Word batch, Cells& out) {
        set_words<<<1, words, 0, on>>>(out.data(), batch);
    };
    const auto last_native = [=](cudaStream_t on, Cells& in) {
        add_to_words<<<1, words, 0, on>>>(in.data(), all);
    };
    const auto first_ref = [](StreamRef on, Word batch, Cells& out) {
        set_words<<<1, words, 0, on>>>(out.data(), batch);
    };
    const auto last_generic = [=](auto on, Cells& in) { add_to_words<<<1, words, 0, on>>>(in.data(), all); };
    CHECK(sums_are_right(first_native, last_native, sums, stream));
    CHECK(sums_are_right(first_ref, last_native, sums, stream));
    CHECK(sums_are_right(first_ref, last_generic, sums, stream));
#if SLUICE_TEST_HAS_CCCL_STREAM_REF
    const auto first_cccl = [](cuda::stream_ref on, Word batch, Cells& out) {
        set_words<<<1, words, 0, on.get()>>>(out.data(), batch);
    };
    CHECK(sums_are_right(first_cccl, last_native, sums, stream));
#endif
}

TEST_CASE("try_submit: what it returns is asked where it is named, with nvcc too") {
    PinnedBuffer<Word, Cuda> batch(words);
    Pipeline pipeline{Stages{Stage{"read", [](CudaStreamRef on, const PinnedBuffer<Word, Cuda>& in,
                                              Cells& out) { copy(on, out, in); }}},
                      Slots{make_cells}};
    bool taken = false;
    if (auto read = pipeline.try_submit(batch)) {
        read->wait();
        taken = true;
    }
    CHECK(taken);
}

TEST_CASE("External streams: CUDA's default streams, and one that belongs to CCCL") {
    constexpr std::size_t batches = 5;
    const Inputs<Cuda> inputs(batches, words);
    const CudaStream own;
    std::vector<CudaStreamRef> external{cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread};
#if SLUICE_TEST_HAS_CCCL_STREAM_REF
    external.push_back(cuda::stream_ref(own.get()));
#endif
    for (const CudaStreamRef mine : external) {
        for (std::size_t stage = 0; stage < 3; ++stage) {
            Chain<Cuda> chain(3, words, batches);
            std::array<StageOptions<Cuda>, 3> options;
            options[stage].stream = mine;
            auto pipeline = chain.pipeline<3>({}, options);
            ops::spin(mine, 2000);
            fill_bytes(mine, chain.memory(), 9);
            for (std::size_t batch = 0; batch < batches; ++batch)
                pipeline.submit(inputs[batch]).stays();
            pipeline.flush();
            CHECK(chain.results(batches, mine) ==
                  chain_results(3, words, batches_from(0, batches), 0x09090909u));
            pipeline.finish();
        }
    }
}
