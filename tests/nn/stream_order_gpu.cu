// The check of a call's place in its stream finds kernels that do not wait for the one before them, and no others.
#include <nn/dnn/detail/stream_order.hpp>
#include <nn/gemm/detail/gemm_tf32_launch.cuh>

#include "nn/support.hpp"

namespace nn_stream_order {

using namespace nn_test;
using nn::detail::StreamOrderCheck;

namespace {

constexpr unsigned count = 64 * 256;

/// What a kernel does before it waits for the kernel ahead of it, if it waits at all.
enum class Before { nothing, read, write_output, write_workspace, all };

struct Work {
    const float* in;
    float* out;
    float* workspace;
    Before before;
};

/// Adds 1, by way of the workspace.
__global__ void add_one_kernel(Work work) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = 0.0f;
    if (work.before == Before::read)
        value = *static_cast<const volatile float*>(work.in + i);
    if (work.before == Before::write_output)
        *static_cast<volatile float*>(work.out + i) = 0.0f;
    if (work.before == Before::write_workspace)
        *static_cast<volatile float*>(work.workspace + i) = 0.0f;
#if __CUDA_ARCH__ >= 900
    if (work.before != Before::all)
        cudaGridDependencySynchronize();
#endif
    if (work.before != Before::read)
        value = *static_cast<const volatile float*>(work.in + i);
    work.workspace[i] = value;
    work.out[i] = work.workspace[i] + 1.0f;
}

struct Case {
    Stream stream;
    StreamOrderCheck check{count * sizeof(float), count * sizeof(float)};
    float* workspace = reinterpret_cast<float*>(check.workspace(count * sizeof(float)).data());
    std::vector<float> numbers;

    explicit Case(Random& random) : numbers(random.numbers(count)) {
        sluice::copy_and_wait(stream, in(), numbers);
    }

    sluice::DeviceSpan<float, B> in() { return {reinterpret_cast<float*>(check.inputs().data()), count}; }
    Work work(Before before) {
        return {in().data(), reinterpret_cast<float*>(check.outputs().data()), workspace, before};
    }
    void launch_early(Before before) {
        nn::detail::tf32::launch_early(stream.ref(), add_one_kernel, work(before), dim3(count / 256), 256, 0);
    }
    void launch_late(Before before) {
        add_one_kernel<<<count / 256, 256, 0, stream.ref().get()>>>(work(before));
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }
    bool has_inputs() {
        std::vector<float> found(count);
        sluice::copy_and_wait(stream, found, in());
        return found == numbers;
    }
};

} // namespace

TEST_CASE("stream order: a kernel that begins before the one ahead of it has ended is found") {
    if (!nn::detail::can_check_stream_order()) {
        MESSAGE(
            "skipped: no kernel begins early before compute capability 9.0, or in a build for such devices");
        return;
    }
    NN_TEST_RANDOM(random);
    Case one(random);
    for (const Before before : {Before::all, Before::read, Before::write_output, Before::write_workspace}) {
        CAPTURE(static_cast<int>(before));
        CHECK(!one.check.keeps_stream_order(one.stream, [&] { one.launch_early(before); }));
        CHECK(one.has_inputs());
    }
    // Not only by its results.
    const auto any_result = [](auto, auto) { return true; };
    const auto out_of_order = [&] { one.launch_early(Before::all); };
    CHECK(!one.check.keeps_stream_order(one.stream, out_of_order, any_result));
}

TEST_CASE("stream order: a kernel that waits, or is launched without leave to begin early, is right") {
    NN_TEST_RANDOM(random);
    Case one(random);
    if (nn::detail::can_check_stream_order())
        CHECK(one.check.keeps_stream_order(one.stream, [&] { one.launch_early(Before::nothing); }));
    for (const Before before : {Before::nothing, Before::read, Before::write_output, Before::all})
        CHECK(one.check.keeps_stream_order(one.stream, [&] { one.launch_late(before); }));
    CHECK(one.has_inputs());
}

TEST_CASE("stream order: a call whose results differ is not right, and what it throws is passed on") {
    NN_TEST_RANDOM(random);
    Case one(random);
    int calls = 0;
    const auto other_each_time = [&] {
        one.launch_late(Before::nothing);
        sluice::fill_bytes(one.stream, one.check.outputs().first(4), static_cast<unsigned char>(++calls));
    };
    CHECK(!one.check.keeps_stream_order(one.stream, other_each_time));
    calls = 0;
    const auto fails_later = [&] {
        if (++calls == 2)
            throw sluice::Error("no such plan");
        one.launch_late(Before::nothing);
    };
    CHECK(error_of([&] { one.check.keeps_stream_order(one.stream, fails_later); }) == "no such plan");
    CHECK(one.has_inputs());
}

} // namespace nn_stream_order
