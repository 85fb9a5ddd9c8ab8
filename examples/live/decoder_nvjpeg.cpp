#include <live/decoder.hpp>

#include <nvjpeg.h>
#include <sluice/sluice.hpp>

namespace live {
namespace {

void check(nvjpegStatus_t status, const char* call) {
    if (status != NVJPEG_STATUS_SUCCESS)
        throw sluice::Error(std::string(call) + ": nvJPEG's error " + std::to_string(status));
}

/// Has a stream of its own, so that cameras decode beside each other and beside the pipeline.
class NvJpeg : public Decoder {
public:
    NvJpeg() {
        check(nvjpegCreateSimple(&handle_), "nvjpegCreateSimple");
        if (const nvjpegStatus_t status = nvjpegJpegStateCreate(handle_, &state_);
            status != NVJPEG_STATUS_SUCCESS) {
            nvjpegDestroy(handle_);
            check(status, "nvjpegJpegStateCreate");
        }
    }
    NvJpeg(const NvJpeg&) = delete;
    NvJpeg& operator=(const NvJpeg&) = delete;
    ~NvJpeg() override {
        nvjpegJpegStateDestroy(state_);
        nvjpegDestroy(handle_);
    }

    augment::ImageShape shape_of(std::span<const std::uint8_t> jpeg) override {
        int components = 0;
        int widths[NVJPEG_MAX_COMPONENT] = {}, heights[NVJPEG_MAX_COMPONENT] = {};
        nvjpegChromaSubsampling_t subsampling{};
        check(
            nvjpegGetImageInfo(handle_, jpeg.data(), jpeg.size(), &components, &subsampling, widths, heights),
            "nvjpegGetImageInfo");
        return {3, heights[0], widths[0]};
    }
    void decode(std::span<const std::uint8_t> jpeg, augment::ImageShape shape,
                std::uint8_t* pixels) override {
        nvjpegImage_t image{};
        image.channel[0] = pixels;
        image.pitch[0] = 3 * static_cast<std::size_t>(shape.width);
        const auto decode_once = [&] {
            const nvjpegStatus_t status = nvjpegDecode(handle_, state_, jpeg.data(), jpeg.size(),
                                                       NVJPEG_OUTPUT_RGBI, &image, stream_.ref());
            stream_.sync(); // also behind an error, since the slot is filled again
            return status;
        };
        nvjpegStatus_t status = decode_once();
        // Seen at the first image of each of several decoders that began at once; the second call had its memory.
        if (status == NVJPEG_STATUS_ALLOCATOR_FAILURE)
            status = decode_once();
        check(status, "nvjpegDecode");
    }

private:
    sluice::BasicStream<sluice::Cuda> stream_;
    nvjpegHandle_t handle_ = nullptr;
    nvjpegJpegState_t state_ = nullptr;
};

} // namespace

std::unique_ptr<Decoder> make_gpu_decoder() { return std::make_unique<NvJpeg>(); }

} // namespace live
