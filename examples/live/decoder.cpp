#include <live/decoder.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include <common/bad_input.hpp>
#include <common/files.hpp>

#if LIVE_HAS_TURBOJPEG
#include <turbojpeg.h>
#endif

namespace live {

#if LIVE_HAS_TURBOJPEG
namespace {

class TurboJpeg : public Decoder {
public:
    TurboJpeg() : handle_(tjInitDecompress()) {
        if (handle_ == nullptr)
            throw sluice::Error("libjpeg-turbo: no decoder could be made");
    }
    TurboJpeg(const TurboJpeg&) = delete;
    TurboJpeg& operator=(const TurboJpeg&) = delete;
    ~TurboJpeg() override { tjDestroy(handle_); }

    augment::ImageShape shape_of(std::span<const std::uint8_t> jpeg) override {
        int width = 0, height = 0, subsampling = 0, colours = 0;
        check(tjDecompressHeader3(handle_, jpeg.data(), bytes_of(jpeg), &width, &height, &subsampling,
                                  &colours));
        return {3, height, width};
    }
    void decode(std::span<const std::uint8_t> jpeg, augment::ImageShape shape,
                std::uint8_t* pixels) override {
        check(tjDecompress2(handle_, jpeg.data(), bytes_of(jpeg), pixels, shape.width, 0, shape.height,
                            TJPF_RGB, 0));
    }

private:
    static unsigned long bytes_of(std::span<const std::uint8_t> jpeg) {
        return static_cast<unsigned long>(jpeg.size());
    }
    // Warnings, too: a frame with a grey half is no frame.
    void check(int result) const {
        if (result != 0)
            throw sluice::Error(tjGetErrorStr2(handle_));
    }

    tjhandle handle_;
};

} // namespace

std::unique_ptr<Decoder> make_cpu_decoder() { return std::make_unique<TurboJpeg>(); }
#else
std::unique_ptr<Decoder> make_cpu_decoder() { return nullptr; }
#endif
#if !LIVE_HAS_NVJPEG
std::unique_ptr<Decoder> make_gpu_decoder() { return nullptr; }
#endif

DecoderKind choose_decoder(std::optional<DecoderKind> wanted, bool on_host) {
    const DecoderKind kind =
        wanted.value_or(LIVE_HAS_TURBOJPEG || on_host ? DecoderKind::cpu : DecoderKind::gpu);
    if (kind == DecoderKind::gpu && on_host)
        throw examples::BadInput("--decoder: expected --backend cuda for gpu, since nvJPEG decodes there");
    if (kind == DecoderKind::cpu ? !LIVE_HAS_TURBOJPEG : !LIVE_HAS_NVJPEG) {
        throw examples::BadInput(kind == DecoderKind::cpu
                                     ? "--decoder: this program was built without libjpeg-turbo, for cpu"
                                     : "--decoder: this program was built without nvJPEG, for gpu");
    }
    return kind;
}

Photographs::Photographs(const std::string& folder, Decoder& decoder) {
    std::error_code error;
    std::vector<std::filesystem::path> paths;
    for (std::filesystem::directory_iterator entry(folder, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
        if (entry->path().extension() == ".jpg")
            paths.push_back(entry->path());
    }
    if (error || paths.empty()) {
        throw examples::BadInput("--data: expected a folder of JPEG files (*.jpg), not \"" + folder +
                                 (error ? "\": " + error.message() : "\""));
    }
    std::sort(paths.begin(), paths.end());
    std::string reason;
    for (const auto& path : paths) {
        files_.push_back(
            {path.filename().string(),
             examples::read_bytes(path, std::numeric_limits<std::uintmax_t>::max(), "a JPEG photograph")});
        if (shape_.channels > 0)
            continue;
        try {
            const augment::ImageShape shape = decoder.shape_of(files_.back().bytes);
            augment::detail::require_image("a photograph", shape);
            shape_ = shape;
        } catch (const sluice::Error& bad) {
            reason = bad.what();
        }
    }
    if (shape_.channels == 0)
        throw examples::BadInput(folder + ": holds no JPEG photograph that can be decoded: " + reason);
}

void Photographs::decode(std::size_t index, Decoder& decoder, std::uint8_t* pixels) const {
    const File& file = files_[index];
    try {
        const augment::ImageShape found = decoder.shape_of(file.bytes);
        if (!(found == shape_)) {
            throw sluice::Error("expected 3x" + std::to_string(shape_.height) + "x" +
                                std::to_string(shape_.width) + " bytes as of the first one, found " +
                                augment::detail::text_of(found));
        }
        decoder.decode(file.bytes, shape_, pixels);
    } catch (const sluice::Error& bad) {
        throw sluice::Error(file.name + " cannot be decoded: " + bad.what());
    }
}

} // namespace live
