// A stage on a stream of the caller's own, and a library's handle in a stage: cuBLAS, or on a CPU a plain loop.
#include <cstddef>
#include <cstdio>
#include <string>

#include "for_each.hpp"

#if SLUICE_HAS_CUDA
#include <cublas_v2.h>

class Blas {
public:
    Blas() { check(cublasCreate(&handle_)); }
    Blas(const Blas&) = delete;
    Blas& operator=(const Blas&) = delete;
    ~Blas() { cublasDestroy(handle_); }

    // y += alpha * x. A handle has one stream at a time, so each call names its own.
    void axpy(sluice::StreamRef stream, int count, float alpha, const float* x, float* y) {
        check(cublasSetStream(handle_, stream));
        check(cublasSaxpy(handle_, count, &alpha, x, 1, y, 1));
    }

private:
    static void check(cublasStatus_t status) { // what a stage throws comes back from the pipeline
        if (status != CUBLAS_STATUS_SUCCESS)
            throw sluice::Error(std::string("cuBLAS: ") + cublasGetStatusString(status));
    }
    cublasHandle_t handle_ = nullptr;
};
#else
struct Blas {
    void axpy(sluice::StreamRef stream, int count, float alpha, const float* x, float* y) {
        stream.enqueue([=] {
            for (int i = 0; i < count; ++i)
                y[i] += alpha * x[i];
        });
    }
};
#endif

SLUICE_HOST_DEVICE void set(std::size_t i, float* to, float value) { to[i] = value; }
SLUICE_HOST_DEVICE void twice(std::size_t i, float* values) { values[i] *= 2; }

int main() {
    constexpr std::size_t size = 1000;
    constexpr int count = 20;
    using Batch = sluice::PinnedBuffer<float>;
    using Copy = sluice::DeviceBuffer<float>;

    const sluice::Stream mine; // a cudaStream_t of any other origin does as well
    Blas blas;
    sluice::DeviceBuffer<float> sum{size};
    for_each<set>(mine, size, sum.data(), 100.0f); // before the pipeline's first batch

    sluice::Stage load{
        "load", [](sluice::StreamRef stream, const Batch& in, Copy& out) { sluice::copy(stream, out, in); }};
    sluice::Stage add{"add",
                      [&](sluice::StreamRef stream, const Copy& in) {
                          blas.axpy(stream, static_cast<int>(size), 0.5f, in.data(), sum.data());
                      },
                      {.stream = mine}};
    sluice::TwoStreamPipeline pipeline{load, add, [](int /*slot*/) { return Copy{size}; }};

    Batch batch{size};
    for (int i = 0; i < count; ++i) {
        for (float& value : batch)
            value = static_cast<float>(2 * i);
        pipeline.submit(batch).wait();
    }
    pipeline.flush(); // what is enqueued on `mine` from here on comes after all batches

    sluice::PinnedBuffer<float> result{size};
    for_each<twice>(mine, size, sum.data());
    sluice::copy_and_wait(mine, result, sum);

    const float expected = 2 * (100 + count * (count - 1) / 2);
    bool right = true;
    for (const float value : result)
        right = right && value == expected;
    std::printf("100 + 0 + 1 + … + %d, twice: %.0f: %s\n", count - 1, static_cast<double>(result[0]),
                right ? "right" : "WRONG");
    return exit_code(right);
}
