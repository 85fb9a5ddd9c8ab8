// Steps of gradient descent that several layers take together.
#include <sluice/graph/capture.hpp>
#include <sluice/graph/graph.hpp>

#include "nn/gemm_case.hpp"
#include "nn/steady.hpp"

namespace nn_gemm_updates {

using namespace nn_test;

TEST_CASE("gemm updates: several together, the same bits again, and replayed from a graph") {
    NN_TEST_RANDOM(random);
    // More than one launch takes, some with long sums.
    std::vector<LayerCase> cases = draw_cases(random);
    cases.push_back(
        make_case(random, (on_device ? 3000 : 300) + 4 * random.between(0, on_device ? 500 : 50), 132, 132));
    if (on_device) // so many pieces of a sum that threads share them, and at times such as are longer than the shortest
        cases.push_back(
            make_case(random, 65536 + 4 * random.between(1, 100000), 4 * random.between(1, 8), 36));
    for (LayerCase& c : draw_cases(random))
        cases.push_back(std::move(c));
    const Buffer<float> factors = device(std::vector<float>{-0.125f, 1.0f});
    for (const nn::Precision precision : precisions) {
        std::vector<std::vector<std::vector<float>>> first;
        for (int run = 0; run < 3; ++run) {
            nn::Gemm<B> gemm(precision);
            const Stream stream;
            std::vector<LayerOnDevice> devices;
            for (const LayerCase& c : cases)
                devices.emplace_back(stream, c);
            std::vector<nn::WeightUpdate<B>> steps;
            for (LayerOnDevice& device : devices)
                steps.push_back(device.step());
            if (run < 2) {
                gemm.update(stream, steps, factors);
            } else {
                const sluice::BasicGraphExec<B> executable(
                    sluice::capture(stream, [&](StreamRef on) { gemm.update(on, steps, factors); }));
                executable.launch(stream);
                stream.sync();
            }
            std::vector<std::vector<std::vector<float>>> results;
            for (const LayerOnDevice& device : devices)
                results.push_back(device.results(stream));
            for (std::size_t i = 0; i < cases.size(); ++i) {
                const LayerCase& c = cases[i];
                CAPTURE(c.rows);
                CAPTURE(c.inputs);
                CAPTURE(c.columns);
                CAPTURE(c.copies);
                if (run > 0) {
                    CHECK(results[i][2] == first[i][2]);
                    CHECK(results[i][3] == first[i][3]);
                    continue;
                }
                const Moved moved = expected_moves(c);
                CHECK(relative_error(difference(results[i][2], c.weights), moved.weights) <=
                      tolerance(precision));
                CHECK(relative_error(difference(results[i][3], c.bias), moved.bias) <= 1e-4);
            }
            if (run == 0)
                first = results;
        }
    }
}

} // namespace nn_gemm_updates
