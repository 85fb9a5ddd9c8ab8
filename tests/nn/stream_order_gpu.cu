// The check of a call's place in its stream finds kernels that do not wait for the one before them, and no others.
#include <nn/dnn/detail/stream_order.hpp>
#include <nn/elementwise/for_each.cuh>
#include <nn/gemm/detail/gemm_tf32_launch.cuh>

#include "nn/giou_loss_case.hpp"

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

struct AddOne {
    const float* in;
    float* out;
    __device__ void operator()(std::size_t i) const { out[i] = in[i] + 1.0f; }
};

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

TEST_CASE("stream order: element-wise kernels and box losses, which begin early, are right") {
    NN_TEST_RANDOM(random);
    Case one(random);
    const AddOne add_one{one.in().data(), reinterpret_cast<float*>(one.check.outputs().data())};
    CHECK(one.check.keeps_stream_order(one.stream,
                                       [&] { nn::detail::for_each(one.stream.ref(), count, add_one); }));

    // Predictions of 300 rows, and as many rows of targets.
    constexpr std::size_t rows = 300, width = 3, predictions_at = 0, targets_at = 65536;
    StreamOrderCheck check(2 * targets_at, rows * width * sizeof(nn::Box<float>) + 256);
    std::vector<float> numbers = random.numbers(4 * rows * width);
    std::vector<std::vector<nn::Box<float>>> lists(rows);
    for (std::size_t row = 0; row < rows; ++row)
        lists[row].assign(row % (width + 1), nn::Box<float>{1.0f, 2.0f, 5.0f, 7.0f});
    sluice::RaggedPacker<nn::Box<float>, B> packer({rows, rows * width});
    packer.pack(lists);
    sluice::RaggedBatch<nn::Box<float>, B> batch({rows, rows * width});
    packer.copy_to(one.stream, batch);
    REQUIRE(batch.block().size() <= targets_at);
    const auto to = [&](std::size_t at) { return check.inputs().data() + at; };
    sluice::copy(one.stream, check.inputs().subspan(targets_at, batch.block().size()), batch.block());
    const sluice::DeviceSpan<float, B> predictions{reinterpret_cast<float*>(to(predictions_at)),
                                                   numbers.size()};
    sluice::copy_and_wait(one.stream, predictions, numbers);
    const sluice::RaggedLayout& layout = batch.layout();
    const sluice::RaggedView<const nn::Box<float>> targets(
        reinterpret_cast<const nn::Box<float>*>(to(targets_at + layout.values_at)),
        reinterpret_cast<const std::int64_t*>(to(targets_at + layout.offsets_at)),
        reinterpret_cast<const sluice::RaggedCounts*>(to(targets_at)), rows, rows * width);
    nn::GiouScratch<B> scratch(rows);
    for (const bool with_gradient : {false, true}) {
        CAPTURE(with_gradient);
        nn::GiouResult<float, B> result{{reinterpret_cast<float*>(check.outputs().data()), 1}};
        if (with_gradient)
            result.gradient = {reinterpret_cast<nn::Box<float>*>(check.outputs().data() + 256), rows * width};
        CHECK(check.keeps_stream_order(one.stream, [&] {
            nn::giou_mean_ragged(one.stream.ref(), nn::TorchvisionGiouLoss{},
                                 nn::PaddedBoxes<const float, B>{predictions, rows, width}, targets, result,
                                 scratch);
        }));
    }
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
