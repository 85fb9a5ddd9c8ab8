/// \file
/// The decode loop of a small transformer: each token is one launch of one graph, whose kernels take the token or the position as
/// an argument.
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <sluice/sluice.hpp>

#include "ports.hpp"
#include "support/rounds.hpp"
#include "support/two_stages_by_hand.cuh"

namespace {

using sluice::DeviceBuffer;
using sluice::StreamRef;

constexpr int width = 256;
constexpr int heads = 4;
constexpr int head_width = width / heads;
constexpr int positions = 128; ///< then from the beginning
constexpr int vocabulary = 512;
constexpr int rows_per_block = 8; ///< a warp each

__global__ void embed(const float* embedding, int token, float* x) {
    x[threadIdx.x] = embedding[token * width + static_cast<int>(threadIdx.x)];
}

__device__ float sum_of_warp(float value) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value += __shfl_xor_sync(~0U, value, lanes);
    return value;
}

/// Query, key and value of the normalised `x`; the latter two into the cache.
__global__ void project(const float* weights, const float* x, float* query, float* keys, float* values,
                        int position) {
    const int row = static_cast<int>(blockIdx.x) * rows_per_block + static_cast<int>(threadIdx.x) / 32;
    float dot = 0, squares = 0;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < width; i += 32) {
        dot += weights[row * width + i] * x[i];
        squares += x[i] * x[i];
    }
    dot = sum_of_warp(dot) * rsqrtf(sum_of_warp(squares) / width + 1e-6F);
    if (threadIdx.x % 32 != 0)
        return;
    if (row < width)
        query[row] = dot;
    else if (row < 2 * width)
        keys[position * width + row - width] = dot;
    else
        values[position * width + row - 2 * width] = dot;
}

/// One block a head, one thread a position.
__global__ void attend(const float* query, const float* keys, const float* values, float* out, int position) {
    __shared__ float weights[positions];
    const int first = static_cast<int>(blockIdx.x) * head_width, thread = static_cast<int>(threadIdx.x);
    float score = 0;
    for (int i = 0; i < head_width && thread <= position; ++i)
        score += query[first + i] * keys[thread * width + first + i];
    weights[thread] =
        thread <= position ? expf(score / head_width) : 0.0F; // small enough without the maximum
    __syncthreads();
    if (thread >= head_width)
        return;
    float sum = 0, all = 0;
    for (int at = 0; at <= position; ++at) {
        sum += weights[at] * values[at * width + first + thread];
        all += weights[at];
    }
    out[first + thread] = sum / all;
}

__global__ void add_product(const float* weights, const float* in, float* x) {
    const int row = static_cast<int>(blockIdx.x) * rows_per_block + static_cast<int>(threadIdx.x) / 32;
    float dot = 0;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < width; i += 32)
        dot += weights[row * width + i] * in[i];
    dot = sum_of_warp(dot);
    if (threadIdx.x % 32 == 0)
        x[row] += dot;
}

__global__ void emit(const float* x, float* outputs, int position) {
    outputs[position * width + static_cast<int>(threadIdx.x)] = x[threadIdx.x];
}

constexpr unsigned project_blocks = 3 * width / rows_per_block;
constexpr unsigned product_blocks = width / rows_per_block;
constexpr unsigned warps = 32 * rows_per_block;

/// Floats of one of the equal parts of a layer's, or a step's.
std::size_t part(int number, int count) {
    return static_cast<std::size_t>(number) * static_cast<std::size_t>(count);
}

/// The weights, the tokens, and what the CPU makes of them.
class Model {
    int layers_; // first, since others have sizes by it

public:
    explicit Model(int layers) : layers_(layers) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        const auto draw = [&](std::size_t count, float scale) {
            std::vector<float> drawn(count);
            for (float& value : drawn)
                value = uniform(bench::fresh_random()) * scale;
            return drawn;
        };
        embedding_ = draw(vocabulary * width, 1);
        weights_ = draw(part(layers, 4 * width * width), std::sqrt(3.0F / width));
        for (int i = 0; i < positions; ++i)
            tokens.push_back(static_cast<int>(bench::fresh_random()() % vocabulary));
        const sluice::Stream stream;
        copy_and_wait(stream, embedding, embedding_);
        copy_and_wait(stream, weights, weights_);
    }

    int layers() const { return layers_; }
    /// Of a layer: query, key and value, and then the product.
    const float* weights_of(int layer) const { return weights.data() + part(layer, 4 * width * width); }

    bool is_right(const DeviceBuffer<float>& outputs) const {
        std::vector<float> got(outputs.size());
        copy_and_wait(sluice::Stream(), got, outputs);
        const std::vector<double> expected = expected_outputs();
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (!(std::abs(got[i] - expected[i]) <= 1e-3 * (1 + std::abs(expected[i]))))
                return false;
        }
        return true;
    }

    DeviceBuffer<float> embedding{vocabulary * width};
    DeviceBuffer<float> weights{part(layers_, 4 * width * width)};
    std::vector<int> tokens;

private:
    std::vector<double> expected_outputs() const {
        std::vector<double> outputs;
        const std::size_t cache = part(layers_, positions * width);
        std::vector<double> keys(cache), values(cache);
        for (int position = 0; position < positions; ++position) {
            const float* const embedded =
                embedding_.data() + tokens[static_cast<std::size_t>(position)] * width;
            std::vector<double> x(embedded, embedded + width);
            for (int layer = 0; layer < layers_; ++layer) {
                const auto dot = [&](int row, const std::vector<double>& with) {
                    const float* const from = weights_.data() + part(4 * width * layer + row, width);
                    double sum = 0;
                    for (int i = 0; i < width; ++i)
                        sum += static_cast<double>(from[i]) * with[static_cast<std::size_t>(i)];
                    return sum;
                };
                double squares = 0;
                for (const double value : x)
                    squares += value * value;
                const double scale = 1 / std::sqrt(squares / width + 1e-6);
                double* const layer_keys = keys.data() + part(layer, positions * width);
                double* const layer_values = values.data() + part(layer, positions * width);
                std::vector<double> query(width), attended(width);
                for (int i = 0; i < width; ++i) {
                    query[static_cast<std::size_t>(i)] = dot(i, x) * scale;
                    layer_keys[position * width + i] = dot(width + i, x) * scale;
                    layer_values[position * width + i] = dot(2 * width + i, x) * scale;
                }
                for (int first = 0; first < width; first += head_width) {
                    double all = 0;
                    for (int at = 0; at <= position; ++at) {
                        double score = 0;
                        for (int i = first; i < first + head_width; ++i)
                            score += query[static_cast<std::size_t>(i)] * layer_keys[at * width + i];
                        const double weight = std::exp(score / head_width);
                        all += weight;
                        for (int i = first; i < first + head_width; ++i)
                            attended[static_cast<std::size_t>(i)] += weight * layer_values[at * width + i];
                    }
                    for (int i = first; i < first + head_width; ++i)
                        attended[static_cast<std::size_t>(i)] /= all;
                }
                for (int i = 0; i < width; ++i)
                    x[static_cast<std::size_t>(i)] += dot(3 * width + i, attended);
            }
            outputs.insert(outputs.end(), x.begin(), x.end());
        }
        return outputs;
    }

    std::vector<float> embedding_, weights_;
};

/// What one side changes.
struct State {
    explicit State(int layers) : keys(part(layers, positions * width)), values(keys.size()) {}
    float* keys_of(int layer) { return keys.data() + part(layer, positions * width); }
    float* values_of(int layer) { return values.data() + part(layer, positions * width); }
    DeviceBuffer<float> x{width}, query{width}, attended{width}, keys, values, outputs{positions * width};
};

/// A graph of typed nodes, of which those with a token or a position are set before each launch.
class TokensByHand {
public:
    explicit TokensByHand(const Model& model) : model_(model), state_(model.layers()) {
        CHECK(cudaGraphCreate(&graph_, 0));
        add(embed, 1, width, true, model.embedding.data(), &token_, state_.x.data());
        for (int layer = 0; layer < model.layers(); ++layer) {
            const float* const weights = model.weights_of(layer);
            float* const keys = state_.keys_of(layer);
            float* const values = state_.values_of(layer);
            add(project, project_blocks, warps, true, weights, state_.x.data(), state_.query.data(), keys,
                values, &position_);
            add(attend, heads, positions, true, state_.query.data(), keys, values, state_.attended.data(),
                &position_);
            add(add_product, product_blocks, warps, false, weights + 3 * width * width,
                state_.attended.data(), state_.x.data());
        }
        add(emit, 1, width, true, state_.x.data(), state_.outputs.data(), &position_);
        CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
        CHECK(cudaGraphUpload(executable_, stream_));
        CHECK(cudaStreamSynchronize(stream_));
    }
    TokensByHand(const TokensByHand&) = delete;
    TokensByHand& operator=(const TokensByHand&) = delete;
    ~TokensByHand() {
        cudaGraphExecDestroy(executable_);
        cudaGraphDestroy(graph_);
        cudaStreamDestroy(stream_);
    }
    const DeviceBuffer<float>& outputs() const { return state_.outputs; }

    void step() {
        token_ = model_.tokens[static_cast<std::size_t>(position_)];
        for (const Node& node : changing_)
            CHECK(cudaGraphExecKernelNodeSetParams(executable_, node.node, &node.params));
        CHECK(cudaGraphLaunch(executable_, stream_));
        position_ = (position_ + 1) % positions;
    }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    struct Node {
        cudaGraphNode_t node;
        cudaKernelNodeParams params;
    };

    // A number that changes is given by its address, and so kept; a pointer is kept here.
    void* argument(const int* number) { return const_cast<int*>(number); }
    void* argument(const float* pointer) {
        pointers_.push_back(std::make_unique<const float*>(pointer));
        return pointers_.back().get();
    }
    template <class... Params, class... Arguments>
    void add(void (*kernel)(Params...), unsigned grid, unsigned block, bool changes, Arguments... given) {
        static_assert(sizeof...(Params) == sizeof...(Arguments));
        arguments_.push_back({argument(given)...});
        Node node{};
        node.params.func = reinterpret_cast<void*>(kernel);
        node.params.gridDim = dim3(grid);
        node.params.blockDim = dim3(block);
        node.params.kernelParams = arguments_.back().data();
        CHECK(cudaGraphAddKernelNode(&node.node, graph_, &last_, last_ != nullptr ? 1 : 0, &node.params));
        last_ = node.node;
        if (changes)
            changing_.push_back(node);
    }

    const Model& model_;
    State state_;
    int position_ = 0, token_ = 0;
    cudaStream_t stream_ = bench::make_stream();
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
    cudaGraphNode_t last_ = nullptr;
    std::vector<std::unique_ptr<const float*>> pointers_;
    std::vector<std::vector<void*>> arguments_;
    std::vector<Node> changing_;
};

/// The same with sluice.
class Tokens {
public:
    explicit Tokens(const Model& model) : model_(model), state_(model.layers()) {}
    const DeviceBuffer<float>& outputs() const { return state_.outputs; }
    std::size_t replays() const { return graph_.counters().replays; }

    void step() {
        graph_.run(stream_, [this](StreamRef s) { enqueue(s); });
        position_ = (position_ + 1) % positions;
    }
    void sync() { stream_.sync(); }

private:
    void enqueue(StreamRef s) {
        sluice::launch_with(s, {.grid = 1, .block = width}, embed, [this] {
            return std::tuple(model_.embedding.data(), model_.tokens[static_cast<std::size_t>(position_)],
                              state_.x.data());
        });
        for (int layer = 0; layer < model_.layers(); ++layer) {
            const float* const weights = model_.weights_of(layer);
            float* const keys = state_.keys_of(layer);
            float* const values = state_.values_of(layer);
            sluice::launch_with(s, {.grid = project_blocks, .block = warps}, project, [=, this] {
                return std::tuple(weights, state_.x.data(), state_.query.data(), keys, values, position_);
            });
            sluice::launch_with(s, {.grid = heads, .block = positions}, attend, [=, this] {
                return std::tuple(state_.query.data(), keys, values, state_.attended.data(), position_);
            });
            add_product<<<product_blocks, warps, 0, s>>>(weights + 3 * width * width, state_.attended.data(),
                                                         state_.x.data());
        }
        sluice::launch_with(s, {.grid = 1, .block = width}, emit,
                            [this] { return std::tuple(state_.x.data(), state_.outputs.data(), position_); });
    }

    const Model& model_;
    State state_;
    int position_ = 0;
    sluice::Stream stream_;
    sluice::GraphCapture<> graph_;
};

void decode(benchmark::State& state, int layers, const bench::Burst& burst, const std::string& aim) {
    const Model model(layers);
    TokensByHand by_hand(model);
    Tokens tokens(model);
    bench::expect_right("by hand", by_hand, 2 * positions, [&] { return model.is_right(by_hand.outputs()); });
    bench::expect_right("sluice", tokens, 2 * positions, [&] { return model.is_right(tokens.outputs()); });
    const std::size_t replays = tokens.replays();
    bench::Rounds rounds;
    rounds.add("by hand", by_hand, burst);
    rounds.add("sluice", tokens, burst, bench::Counted::yes);
    rounds.compare("by hand", "sluice", aim);
    rounds.run(state, sluice::Cuda::counts());
    if (replays < positions || tokens.replays() == replays)
        throw sluice::Error("the tokens are not launched as a graph");
}

} // namespace

void bench::add_token_loop() {
    for (const int layers : {1, 4, 16}) {
        const Burst done{.stages = 1, .steps = positions, .until = Until::done};
        const Burst enqueued{.stages = 1, .steps = 32}; // few, so that the driver has room for them
        const std::string name = "token_loop/" + std::to_string(layers) + " layers";
        add_rounds(
            name, [=](benchmark::State& state) { decode(state, layers, done, ">= 0.99"); }, 25);
        add_rounds(
            name + ", host", [=](benchmark::State& state) { decode(state, layers, enqueued, ""); }, 25);
    }
}
