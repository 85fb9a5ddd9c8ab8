// Readers of files: bytes are refused in a sentence, or give what they say.
#include <algorithm>
#include <cstring>
#include <string>

#include <common/bad_input.hpp>
#include <common/idx.hpp>
#include <common/ppm.hpp>
#include <common/safetensors.hpp>

#include "fuzz/files_in_memory.hpp"

namespace {

using sluice::fuzz::file_in_memory;

/// Calls `read()`, and expects a sentence that names the file where it refuses.
template <class Read>
void refused_or_read(Read&& read) {
    try {
        read();
    } catch (const examples::BadInput& error) {
        const std::string text = error.what();
        SLUICE_FUZZ_EXPECT(text.starts_with("file: "));
        SLUICE_FUZZ_EXPECT(text.size() > 10);
    }
}

} // namespace

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_idx)
SLUICE_FUZZ_TARGET(idx) {
    file_in_memory() = input;
    refused_or_read([&] {
        const examples::IdxImages images = examples::read_idx_images("file");
        SLUICE_FUZZ_EXPECT(images.count > 0);
        SLUICE_FUZZ_EXPECT(images.pixels.size() == images.count * images.rows * images.columns);
        SLUICE_FUZZ_EXPECT(
            std::equal(images.pixels.begin(), images.pixels.end(), input.begin() + 16, input.end()));
    });
    refused_or_read([&] {
        const examples::IdxLabels labels = examples::read_idx_labels("file");
        if (input[2] == 0x08) {
            SLUICE_FUZZ_EXPECT(
                std::equal(labels.values.begin(), labels.values.end(), input.begin() + 8, input.end()));
            return;
        }
        // 32-bit integers, of which the last byte counts.
        SLUICE_FUZZ_EXPECT(input.size() == 8 + 4 * labels.values.size());
        for (std::size_t i = 0; i < labels.values.size(); ++i) {
            const auto integer = input.subspan(8 + 4 * i, 4);
            SLUICE_FUZZ_EXPECT(integer[0] == 0 && integer[1] == 0 && integer[2] == 0);
            SLUICE_FUZZ_EXPECT(integer[3] == labels.values[i]);
        }
    });
}
#endif

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_ppm)
SLUICE_FUZZ_TARGET(ppm) {
    file_in_memory() = input;
    refused_or_read([&] {
        const examples::PlanarImage image = examples::read_ppm("file");
        const std::size_t plane = image.height * image.width;
        SLUICE_FUZZ_EXPECT(plane > 0);
        SLUICE_FUZZ_EXPECT(image.planes.size() == 3 * plane);
        SLUICE_FUZZ_EXPECT(image.planes.back() == input.back());
        SLUICE_FUZZ_EXPECT(image.planes.front() == input[input.size() - 3 * plane]);
        // The header ends in white space, which may end a comment.
        const std::uint8_t last = input[input.size() - 3 * plane - 1];
        SLUICE_FUZZ_EXPECT(last == ' ' || (last >= '\t' && last <= '\r'));
    });
}
#endif

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_safetensors)
SLUICE_FUZZ_TARGET(safetensors) {
    refused_or_read([&] {
        const examples::Safetensors content = examples::parse_safetensors(input, "file");
        // All of the header was read: a NUL within it would have ended it.
        std::uint64_t header = 0;
        std::memcpy(&header, input.data(), sizeof(header));
        const auto text = input.subspan(sizeof(header), static_cast<std::size_t>(header));
        SLUICE_FUZZ_EXPECT(!text.empty() && text.front() == '{');
        SLUICE_FUZZ_EXPECT(std::find(text.begin(), text.end(), 0) == text.end());
        // What is written of it reads back as the same.
        const auto written = examples::safetensors_bytes(content);
        const examples::Safetensors again = examples::parse_safetensors(written, "file");
        SLUICE_FUZZ_EXPECT(again.metadata == content.metadata);
        SLUICE_FUZZ_EXPECT(again.names() == content.names());
        for (const std::string& name : content.names()) {
            const examples::Tensor& before = content.at(name);
            const examples::Tensor& after = again.at(name);
            SLUICE_FUZZ_EXPECT(before.type == after.type && before.shape == after.shape);
            SLUICE_FUZZ_EXPECT(before.bytes == after.bytes);
            SLUICE_FUZZ_EXPECT(before.bytes.size() == before.count() * examples::size_of(before.type));
            try {
                (void)before.as<float>();
                (void)before.as<std::int64_t>();
            } catch (const examples::BadInput&) {
                // Values that the type does not hold.
            }
        }
    });
}
#endif
