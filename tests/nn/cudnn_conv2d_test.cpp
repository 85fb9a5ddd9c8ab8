// What only cuDNN's convolutions do: autotuned plans that a file keeps, captures, and probes.
#include <nn/dnn/cudnn.hpp>

#include "examples/scratch.hpp"
#include "nn/conv_engines.hpp"

#if NN_HAS_CUDNN
#include <fstream>

#include <sluice/graph/graph_capture.hpp>

namespace nn_cudnn_conv2d {

using namespace nn_test;
using nn::Half;
using sluice_test::ScratchFolder;

namespace {

constexpr nn::Conv2dShape shape{4, 14, 14, 32, 64, 3, 2, 1};

std::size_t lines_of(const std::string& path) {
    std::ifstream file(path);
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);)
        ++count;
    return count;
}

} // namespace

TEST_CASE("cuDNN: an autotuned plan is kept in a file, and another object takes it from there") {
    NN_TEST_RANDOM(random);
    const ScratchFolder scratch;
    const std::string path = (scratch.path() / "plans.txt").string();
    const Stream stream;
    const Buffer<Half> in = device(rounded<Half>(random.numbers(shape.in_size())));
    const Buffer<Half> weights = device(rounded<Half>(random.numbers(shape.weight_size(), 0.2f)));
    Buffer<Half> out = poisoned<Half>(stream, shape.out_size());
    std::vector<std::vector<float>> results;
    for (int object = 0; object < 2; ++object) {
        nn::CudnnConv2d<Half> conv({.algorithms = nn::Algorithms::autotune, .plan_file = path});
        conv.forward(stream, shape, in, weights, out);
        results.push_back(floats(host(stream, out)));
        CHECK(lines_of(path) == 1);
    }
    CHECK(results[0] == results[1]);
    nn::CudnnConv2d<Half> conv({.algorithms = nn::Algorithms::autotune, .plan_file = path});
    conv.prepare(shape.with_images(5));
    CHECK(lines_of(path) == 2);
}

TEST_CASE("cuDNN: a first call cannot be captured, later ones can") {
    NN_TEST_RANDOM(random);
    const Stream stream;
    const Buffer<Half> in = device(rounded<Half>(random.numbers(shape.in_size())));
    const Buffer<Half> weights = device(rounded<Half>(random.numbers(shape.weight_size(), 0.2f)));
    Buffer<Half> out = poisoned<Half>(stream, shape.out_size());
    nn::CudnnConv2d<Half> conv;
    const auto capture = [&] {
        SLUICE_CUDA_CHECK(cudaStreamBeginCapture(stream.ref().get(), cudaStreamCaptureModeThreadLocal));
        const std::string error = error_of([&] { conv.forward(stream, shape, in, weights, out); });
        cudaGraph_t graph = nullptr;
        SLUICE_CUDA_CHECK(cudaStreamEndCapture(stream.ref().get(), &graph));
        std::size_t nodes = 0;
        SLUICE_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
        SLUICE_CUDA_CHECK(cudaGraphDestroy(graph));
        return std::pair(error, nodes);
    };
    CHECK(capture().first.find("the first call makes its plan and cannot be captured") != std::string::npos);
    conv.forward(stream, shape, in, weights, out);
    stream.sync();
    CHECK(capture().second >= 1);
}

TEST_CASE("cuDNN: sizes that do not fit are refused in one sentence") {
    const Stream stream;
    Buffer<Half> map(shape.in_size());
    nn::CudnnConv2d<Half> conv;
    CHECK(error_of([&] { conv.forward(stream, shape, map, map.span().first(7), map); }) ==
          "convolution: elements of the weights: 7 were given, expected 18432");
}

} // namespace nn_cudnn_conv2d
#endif
