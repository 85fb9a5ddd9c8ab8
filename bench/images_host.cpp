/// \file
/// The input of a network for images, on one core of the CPU. See images.hpp.
#include "images.hpp"

namespace {

using namespace bench;

/// As many images in turn as a batch has, so that results are written to memory as those of a batch are.
constexpr std::size_t images_in_turn = 64;

class DrawRandom {
public:
    void step() { set_.load(step_++ % set_.size(), pixels_); }
    void sync() {}

private:
    images::RandomImages set_;
    std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(images::ImageSet::image_bytes);
    std::size_t step_ = 0;
};

template <class Out>
class Enlarge {
public:
    void step() {
        const std::size_t image = step_++ % images_in_turn;
        resize_image(weights_, scratch_, in_.data() + image * numbers_in(small_shape),
                     out_.data() + image * numbers_in(enlarged_shape));
    }
    void sync() {}

private:
    images::BilinearWeights weights_{small_shape, enlarged_side, enlarged_side};
    images::ResizeScratch scratch_;
    std::vector<std::uint8_t> in_ = random_bytes(images_in_turn * numbers_in(small_shape));
    std::vector<Out> out_ = std::vector<Out>(images_in_turn * numbers_in(enlarged_shape));
    std::size_t step_ = 0;
};

template <class Subject>
void add_host(const char* name) {
    add_timed(
        std::string("host/") + name,
        {.steps = static_cast<int>(images_in_turn), .bursts = 20, .repetitions = 3}, sluice::Host::counts(),
        [] { return Subject(); }, [] { return NoBaseline{}; });
}

} // namespace

void bench::add_host_benchmarks() {
    add_host<DrawRandom>("draw_random");
    add_host<Enlarge<std::uint8_t>>("enlarge");
    add_host<Enlarge<float>>("enlarge_float");
}
