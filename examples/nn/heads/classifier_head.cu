#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <cuda_runtime.h>

#include <nn/core/ceil_div.hpp>
#include <nn/heads/classifier_head.hpp>

namespace nn {
namespace {

constexpr unsigned most_classes = 16;
constexpr unsigned logit_threads = 640;
constexpr unsigned slices = 8;       // parts of a sum of a logit
constexpr unsigned step_rows = 32;   // of the weights, for a block
constexpr unsigned step_groups = 8;  // of images, which a block's threads share
constexpr unsigned step_images = 64; // at a time

/// Adds up over a warp; every lane gets the sum.
__device__ float warp_sum(float value) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

/// A block is a part of an image's features. Neighbouring threads take neighbouring weights, and so a class each.
/// `parts` [images, slices, classes]; the first slice has the bias in it.
__global__ void __launch_bounds__(logit_threads)
    logits_kernel(const float* features, unsigned inputs, const float* weights, const float* bias,
                  unsigned classes, float* parts) {
    __shared__ float sums[logit_threads];
    const unsigned rows = logit_threads / classes;
    const unsigned thread = threadIdx.x;
    const unsigned slice = blockIdx.x % slices;
    const unsigned image = blockIdx.x / slices;
    const unsigned length = ceil_div(inputs, slices);
    const unsigned last = min(inputs, (slice + 1) * length);
    const float* const mine = features + static_cast<std::size_t>(image) * inputs;
    float sum = 0.0f;
    if (thread < rows * classes) {
        for (unsigned row = slice * length + thread / classes; row < last; row += rows)
            sum = fmaf(mine[row], weights[row * classes + thread % classes], sum);
    }
    sums[thread] = sum;
    __syncthreads();
    const unsigned lane = thread % 32;
    const unsigned warp = thread / 32;
    if (warp >= classes)
        return;
    float part = 0.0f;
    for (unsigned row = lane; row < rows; row += 32)
        part += sums[row * classes + warp];
    part = warp_sum(part);
    if (lane == 0)
        parts[blockIdx.x * classes + warp] = slice == 0 ? part + bias[warp] : part;
}

/// The gradients of the mean loss of some images, from number `first` on, and each thread's part of their losses' sum.
__device__ float fill_gradients(float (&gradients)[step_images][most_classes], const float* parts,
                                const std::uint8_t* labels, unsigned classes, unsigned images, unsigned first,
                                unsigned count) {
    for (unsigned i = threadIdx.x; i < count * most_classes; i += step_rows * step_groups) {
        const unsigned c = i % most_classes;
        float logit = 0.0f;
        if (c < classes) {
#pragma unroll
            for (unsigned slice = 0; slice < slices; ++slice)
                logit += parts[((first + i / most_classes) * slices + slice) * classes + c];
        }
        gradients[i / most_classes][c] = logit;
    }
    __syncthreads();
    float loss = 0.0f;
    if (threadIdx.x < count) {
        float(&mine)[most_classes] = gradients[threadIdx.x];
        const unsigned label = labels[first + threadIdx.x];
        const bool known = label < classes;
        const float chosen = known ? mine[label] : NAN;
        float greatest = mine[0];
        for (unsigned c = 1; c < classes; ++c)
            greatest = mine[c] > greatest ? mine[c] : greatest;
        float total = 0.0f;
        for (unsigned c = 0; c < classes; ++c) {
            mine[c] = expf(mine[c] - greatest);
            total += mine[c];
        }
        loss = logf(total) - (chosen - greatest);
        const float scale = 1.0f / static_cast<float>(images);
        for (unsigned c = 0; c < classes; ++c)
            mine[c] = known ? (mine[c] / total - (c == label ? 1.0f : 0.0f)) * scale : 0.0f;
    }
    __syncthreads();
    return loss;
}

/// Adds to `step` what every `step_groups`-th of `count` images contributes, from number `group` on, and stores the gradient of
/// its feature, which is at `place(image)`.
template <class Place>
__device__ __forceinline__ void add_images(float (&step)[most_classes], const float (&weight)[most_classes],
                                           const float (&gradients)[step_images][most_classes],
                                           const float* features, float* features_gradient,
                                           const Place& place, unsigned group, unsigned count) {
    constexpr unsigned batch = 4; // under way at once
    for (unsigned start = group; start < count; start += batch * step_groups) {
        float mine[batch];
#pragma unroll
        for (unsigned j = 0; j < batch; ++j) {
            const unsigned i = start + j * step_groups;
            mine[j] = i < count ? features[place(i)] : 0.0f;
        }
#pragma unroll
        for (unsigned j = 0; j < batch; ++j) {
            const unsigned i = start + j * step_groups;
            if (i >= count)
                break;
            float sum = 0.0f;
#pragma unroll
            for (unsigned c = 0; c < most_classes; ++c) {
                sum = fmaf(gradients[i][c], weight[c], sum);
                step[c] = fmaf(gradients[i][c], mine[j], step[c]);
            }
            features_gradient[place(i)] = sum;
        }
    }
}

/// A block owns some rows of the weights, a thread one of them, for some of the images.
__global__ void __launch_bounds__(step_rows* step_groups)
    step_kernel(const float* features, unsigned inputs, unsigned images, const float* logits,
                const std::uint8_t* labels, unsigned classes, const float* factors, float* weights,
                float* bias, float* features_gradient, float* loss) {
    __shared__ float gradients[step_images][most_classes];
    __shared__ float parts[step_groups][step_rows][most_classes + 1];
    const unsigned column = threadIdx.x % step_rows;
    const unsigned group = threadIdx.x / step_rows;
    const unsigned row = blockIdx.x * step_rows + column;
    const bool inside = row < inputs;
    float weight[most_classes];
    float step[most_classes];
#pragma unroll
    for (unsigned c = 0; c < most_classes; ++c) {
        weight[c] = inside && c < classes ? weights[row * classes + c] : 0.0f;
        step[c] = 0.0f;
    }
    float bias_sum = 0.0f;
    float loss_sum = 0.0f;
    for (unsigned first = 0; first < images; first += step_images) {
        const unsigned count = min(images - first, step_images);
        __syncthreads();
        loss_sum += fill_gradients(gradients, logits, labels, classes, images, first, count);
        if (inside) {
            const auto place = [&](unsigned image) {
                return static_cast<std::size_t>(first + image) * inputs + row;
            };
            add_images(step, weight, gradients, features, features_gradient, place, group, count);
        }
        if (blockIdx.x == 0 && threadIdx.x < classes) {
            for (unsigned i = 0; i < count; ++i)
                bias_sum += gradients[i][threadIdx.x];
        }
    }
#pragma unroll
    for (unsigned c = 0; c < most_classes; ++c)
        parts[group][column][c] = step[c];
    __syncthreads();
    const float alpha = factors[0];
    const float beta = factors[1];
    for (unsigned i = threadIdx.x; i < step_rows * classes; i += step_rows * step_groups) {
        const std::size_t place = static_cast<std::size_t>(blockIdx.x) * step_rows * classes + i;
        if (place >= static_cast<std::size_t>(inputs) * classes)
            break;
        float sum = 0.0f;
#pragma unroll
        for (unsigned part = 0; part < step_groups; ++part)
            sum += parts[part][i / classes][i % classes];
        weights[place] = fmaf(alpha, sum, beta * weights[place]);
    }
    if (blockIdx.x != 0)
        return;
    if (threadIdx.x < classes)
        bias[threadIdx.x] = fmaf(alpha, bias_sum, beta * bias[threadIdx.x]);
    // Each of the first threads has the losses of its images.
    __shared__ float losses[step_images];
    if (threadIdx.x < step_images)
        losses[threadIdx.x] = loss_sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        const float sum = warp_sum(losses[threadIdx.x] + losses[threadIdx.x + 32]);
        if (threadIdx.x == 0)
            *loss = sum / static_cast<float>(images);
    }
}

/// Throws unless the sizes fit, and the kernels can count them.
void check(const Matrix<const float, sluice::Cuda>& features, const Matrix<float, sluice::Cuda>& weights,
           std::size_t bias) {
    if (weights.rows() != features.columns() || bias != weights.columns() ||
        !supports_classifier_head(weights.columns()) || features.rows() == 0 ||
        std::max({features.size(), weights.size(), classifier_scratch(features.rows(), bias)}) >
            std::numeric_limits<std::int32_t>::max()) {
        throw sluice::Error("classifier_step: features of [" + std::to_string(features.rows()) + ", " +
                            std::to_string(features.columns()) + "], weights of [" +
                            std::to_string(weights.rows()) + ", " + std::to_string(weights.columns()) +
                            "] and a bias of " + std::to_string(bias) +
                            " elements; expected [N, K], [K, C] and C, where C is at most 16");
    }
}

} // namespace

void classifier_step(sluice::CudaStreamRef stream, Matrix<const float, sluice::Cuda> features,
                     sluice::DeviceSpan<const std::uint8_t, sluice::Cuda> labels,
                     sluice::DeviceSpan<const float, sluice::Cuda> factors,
                     Matrix<float, sluice::Cuda> weights, sluice::DeviceSpan<float, sluice::Cuda> bias,
                     Matrix<float, sluice::Cuda> features_gradient,
                     sluice::DeviceSpan<float, sluice::Cuda> loss,
                     sluice::DeviceSpan<float, sluice::Cuda> scratch) {
    check(features, weights, bias.size());
    const std::size_t classes = bias.size();
    require_size("classifier_step: labels", labels.size(), features.rows());
    require_size("classifier_step: factors", factors.size(), 2);
    require_size("classifier_step: elements of the features' gradient", features_gradient.size(),
                 features.size());
    require_size("classifier_step: elements of the loss", loss.size(), 1);
    static_assert(slices * most_classes == classifier_scratch(1, most_classes));
    require_size("classifier_step: scratch memory", scratch.size(),
                 classifier_scratch(features.rows(), classes));
    const auto images = static_cast<unsigned>(features.rows());
    const auto inputs = static_cast<unsigned>(features.columns());
    logits_kernel<<<images * slices, logit_threads, 0, stream.get()>>>(
        features.data(), inputs, weights.data(), bias.data(), static_cast<unsigned>(classes), scratch.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    step_kernel<<<ceil_div(inputs, step_rows), step_rows * step_groups, 0, stream.get()>>>(
        features.data(), inputs, images, scratch.data(), labels.data(), static_cast<unsigned>(classes),
        factors.data(), weights.data(), bias.data(), features_gradient.data(), loss.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace nn
