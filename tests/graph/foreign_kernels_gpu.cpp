// Captures of kernels that this program's CUDA runtime does not know. Those of libraries that bring a runtime of their
// own are such, and so is one that the driver's API launches, as here.
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_foreign_kernels {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr char add_amount[] = R"(
.version 6.3
.target sm_75
.address_size 64
.visible .entry add_amount(.param .u64 value, .param .u32 amount) {
    .reg .u64 %at;
    .reg .u32 %sum, %amount;
    ld.param.u64 %at, [value];
    ld.param.u32 %amount, [amount];
    ld.u32 %sum, [%at];
    add.u32 %sum, %sum, %amount;
    st.u32 [%at], %sum;
    ret;
})";

// So that the program needs no driver to start.
template <class Function>
Function* driver_function(const char* name) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    REQUIRE(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found) ==
            cudaSuccess);
#else
    REQUIRE(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found) == cudaSuccess);
#endif
    REQUIRE(found == cudaDriverEntryPointSuccess);
    return reinterpret_cast<Function*>(address);
}

class ForeignKernel {
public:
    ForeignKernel() {
        REQUIRE(cudaFree(nullptr) == cudaSuccess); // the driver's API wants a context that is there
        REQUIRE(driver_function<decltype(cuModuleLoadData)>("cuModuleLoadData")(&module_, add_amount) ==
                CUDA_SUCCESS);
        REQUIRE(driver_function<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(
                    &kernel_, module_, "add_amount") == CUDA_SUCCESS);
    }
    ~ForeignKernel() { driver_function<decltype(cuModuleUnload)>("cuModuleUnload")(module_); }
    ForeignKernel(const ForeignKernel&) = delete;
    ForeignKernel& operator=(const ForeignKernel&) = delete;

    void operator()(CudaStreamRef stream, int* value, int amount) const {
        void* arguments[] = {&value, &amount};
        REQUIRE(launch_(kernel_, 1, 1, 1, 1, 1, 1, 0, stream.get(), arguments, nullptr) == CUDA_SUCCESS);
    }

private:
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
    decltype(cuLaunchKernel)* launch_ = driver_function<decltype(cuLaunchKernel)>("cuLaunchKernel");
};

std::string told;
void listen(const char* reason) { told += reason; }

} // namespace

TEST_CASE("kernels that the runtime does not know are captured, replayed and checked") {
    const ForeignKernel add;
    const CudaStream stream;
    DeviceBuffer<int, Cuda> number(1);
    copy_and_wait(stream, number, std::vector<int>{0});
    told.clear();

    GraphOptions options;
    options.check = true;
    options.on_refusal = &listen;
    GraphCapture<NoKey, Cuda> graphs{options};
    for (int run = 0; run < 5; ++run)
        graphs.run(stream, [&](CudaStreamRef s) { add(s, number.data(), 3); });
    CHECK(told == "");
    CHECK(graphs.counters().refusals == 0);
    CHECK(graphs.counters().replays == 4);

    // How many there are is seen still.
    const std::string refusal = text_of([&] {
        graphs.run(stream, [&](CudaStreamRef s) {
            add(s, number.data(), 3);
            add(s, number.data(), 3);
        });
    });
    CHECK(contains(refusal, "from 1 operation to 2"));

    std::vector<int> value(1);
    copy_and_wait(stream, value, number);
    CHECK(value[0] == 15);
}

} // namespace graph_foreign_kernels
