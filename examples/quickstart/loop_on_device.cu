// A loop that ends on the device: Jacobi iterations until the residual is small, without asking the host.
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "for_each.hpp"

// Solves 4 x[i] - x[i - 1] - x[i + 1] = 1, with 0 beyond both ends.
constexpr std::size_t size = 64;

SLUICE_HOST_DEVICE float neighbours(const float* x, std::size_t i) {
    return (i > 0 ? x[i - 1] : 0) + (i + 1 < size ? x[i + 1] : 0);
}
SLUICE_HOST_DEVICE void iterate(std::size_t i, sluice::PingPongView<float> x) {
    x.back()[i] = (1 + neighbours(x.front(), i)) / 4;
}
// One thread looks whether another iteration is needed; `set` says so to the loop.
SLUICE_HOST_DEVICE void decide(std::size_t, sluice::PingPongView<float> x, sluice::ConditionSetter again,
                               int* iterations) {
    float residual = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const float error = 4 * x.front()[i] - neighbours(x.front(), i) - 1;
        residual = error * error > residual ? error * error : residual;
    }
    ++iterations[0];
    again.set(residual > 1e-10f && iterations[0] < 1000);
}

int main() {
    const sluice::Stream stream;
    sluice::PingPong<float> x{size}; // two buffers, of which each iteration reads one and writes the other
    sluice::DeviceBuffer<int> iterations{1};
    sluice::Condition again;

    const auto solve = [&](sluice::StreamRef s) {
        sluice::fill_bytes(s, iterations, 0);
        x.reset(s);
        sluice::fill_bytes(s, x.first(), 0);
        sluice::while_nonzero(s, again, [&](sluice::StreamRef body) {
            for_each<iterate>(body, size, x.view());
            x.swap(body);
            for_each<decide>(body, 1, x.view(), again.setter(body), iterations.data());
        });
    };

    sluice::PinnedBuffer<float> result{size};
    sluice::PinnedBuffer<int> count{1};
    const auto check = [&](const char* how) {
        sluice::copy_and_wait(stream, count, iterations);
        sluice::copy_and_wait(stream, result, x.front_and_wait(stream));
        bool right = count[0] > 5 && count[0] < 1000;
        for (std::size_t i = 0; i < size; ++i)
            right = right && std::abs(4 * result[i] - neighbours(result.data(), i) - 1) < 2e-5f;
        std::printf("%s: %d iterations, x[0] = %.6f: %s\n", how, count[0], static_cast<double>(result[0]),
                    right ? "right" : "WRONG");
        return right;
    };

    solve(stream); // outside of a graph the host looks at the condition after each iteration
    const bool eager = check("eagerly");

    const sluice::Graph graph = sluice::capture(stream, solve); // in a graph the device loops by itself
    const sluice::GraphExec executable{graph};
    executable.launch(stream);
    const bool graphed = check("as a graph");
    return exit_code(eager && graphed);
}
