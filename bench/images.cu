/// \file
/// The input of a network for images on CUDA, beside copies. See images.hpp.
#include "images.hpp"
#include "support/copy_of_bytes.cuh"

namespace {

using namespace bench;
using images::Images;
using images::ImageShape;
using images::Layout;
using sluice::Cuda;

/// Images on the device, and room for what becomes of them.
template <class Out>
class ImageWork {
public:
    ImageWork(int count, ImageShape in, Layout layout)
        : in_shape_(in), layout_(layout), in_(static_cast<std::size_t>(count) * numbers_in(in)),
          out_(static_cast<std::size_t>(count) * numbers_in(enlarged_shape)) {
        sluice::copy_and_wait(stream_, in_, random_bytes(in_.size()));
    }
    void sync() { stream_.sync(); }

protected:
    Images<const std::uint8_t, Cuda> in() const { return {in_, in_shape_, Layout::interleaved}; }
    Images<Out, Cuda> out() { return {out_, enlarged_shape, layout_}; }
    sluice::CudaStreamRef stream() { return stream_.ref(); }

private:
    ImageShape in_shape_;
    Layout layout_;
    sluice::DeviceBuffer<std::uint8_t, Cuda> in_;
    sluice::DeviceBuffer<Out, Cuda> out_;
    sluice::BasicStream<Cuda> stream_;
};

template <class Out>
class Enlarge : public ImageWork<Out> {
public:
    Enlarge(int count, Layout layout) : ImageWork<Out>(count, small_shape, layout) {}
    void step() { resize(this->stream(), weights_, this->in(), this->out()); }
    static constexpr ImageShape shape = small_shape;

private:
    images::Resize<Cuda> weights_{images::BilinearWeights(small_shape, enlarged_side, enlarged_side)};
};

template <class Out>
class Normalize : public ImageWork<Out> {
public:
    Normalize(int count, Layout layout) : ImageWork<Out>(count, enlarged_shape, layout) {}
    void step() { images::normalize(this->stream(), {}, this->in(), this->out()); }
    static constexpr ImageShape shape = enlarged_shape;
};

template <template <class> class Work, class Out>
void add_work(int count, const std::string& name, Layout layout) {
    Effort effort{count <= 32 ? 100 : 20, 8, 5};
    effort.bytes = static_cast<std::size_t>(count) *
                   (numbers_in(Work<Out>::shape) + sizeof(Out) * numbers_in(enlarged_shape));
    add_timed(
        "cuda/batch:" + std::to_string(count) + "/" + name + "/beside_copy", effort, Cuda::counts(),
        [=] { return Work<Out>(count, layout); }, [=] { return CopyOfBytes(effort.bytes); });
}

} // namespace

void bench::add_cuda_benchmarks() {
    if (!describe_device())
        return;
    for (const int count : {32, 512, 1024}) {
        add_work<Enlarge, std::uint8_t>(count, "enlarge", Layout::interleaved);
        add_work<Enlarge, nn::Half>(count, "enlarge_half", Layout::interleaved);
        add_work<Enlarge, nn::Half>(count, "enlarge_half_planar", Layout::planar);
        add_work<Enlarge, float>(count, "enlarge_float", Layout::interleaved);
        add_work<Enlarge, float>(count, "enlarge_float_planar", Layout::planar);
        add_work<Normalize, nn::Half>(count, "normalize_half", Layout::interleaved);
        add_work<Normalize, nn::Half>(count, "normalize_half_planar", Layout::planar);
        add_work<Normalize, float>(count, "normalize_float", Layout::interleaved);
        add_work<Normalize, float>(count, "normalize_float_planar", Layout::planar);
    }
}
