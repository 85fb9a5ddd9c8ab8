// What the examples of docs/guide/ragged.md take for granted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

namespace documents_ragged {

struct Box {
    float x1, y1, x2, y2;
};
struct Image {
    std::vector<Box> boxes;
};
struct Scale {
    SLUICE_HOST_DEVICE float operator()(float value, float by) const { return value * by; }
};

inline constexpr sluice::RaggedCapacity room{.rows = 1024, .values = 16384};

void areas(sluice::StreamRef, sluice::RaggedView<const Box>, sluice::DeviceSpan<float>);
std::vector<Image> images_of(std::size_t index);
std::int64_t count_boxes(const std::vector<Image>& images);
sluice::RaggedBatch<Box>& batch_of(sluice::RaggedCapacity bucket);

extern const sluice::Stream stream;
extern std::vector<Image> images;
extern std::vector<std::vector<Image>> batches;
extern sluice::DeviceBuffer<float> result, sorted_values;
extern sluice::RaggedBatch<float> scores;
extern sluice::RaggedPacker<Box> packer;
extern sluice::RaggedBatch<Box> boxes;
extern Box box;
extern std::span<const Box> values, padded;
extern std::vector<std::int64_t> lengths, offsets, row_ids;
extern std::vector<std::vector<int>> label_rows;

} // namespace documents_ragged
