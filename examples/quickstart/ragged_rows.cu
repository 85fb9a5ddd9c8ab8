// Rows of uneven length: packed on the host, brought over with one copy, and worked on without padding.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <sluice/ragged.hpp>

#include "for_each.hpp"

#if SLUICE_HAS_CUDA
#include <sluice/ragged/reductions.cuh> // the reductions' kernels
#else
#include <sluice/ragged/reductions.hpp>
#endif

// Subtracts from each value of row r the first value of the row.
SLUICE_HOST_DEVICE void subtract_first(std::size_t r, sluice::RaggedView<float> rows) {
    const auto index = static_cast<std::int64_t>(r);
    if (index >= rows.rows())
        return; // the batch has room for more rows than it holds
    const sluice::RowSpan<float> row = rows.row(index);
    const float first = row.empty() ? 0 : row[0];
    for (float& value : row)
        value -= first;
}

int main() {
    constexpr std::size_t most_rows = 100;
    constexpr sluice::RaggedCapacity room{.rows = most_rows, .values = 1000};
    sluice::RaggedPacker<float> packer{room};           // pinned
    sluice::RaggedBatch<float> batch{room};             // on the device
    sluice::DeviceBuffer<float> device_sums{most_rows}; // one for each row that there is room for
    sluice::PinnedBuffer<float> sums{most_rows};
    const sluice::Stream stream;
    sluice::GraphCapture<> graph; // one graph serves every batch that fits

    bool right = true;
    for (std::size_t rows = 10; rows <= 60; rows += 10) {
        packer.clear(); // waits while the copy of the last batch is under way
        for (std::size_t r = 0; r < rows; ++r) {
            std::vector<float> row(r % 7); // some are empty
            for (std::size_t i = 0; i < row.size(); ++i)
                row[i] = static_cast<float>(r + i);
            packer.add_row(row);
        }

        graph.run(stream, [&](sluice::StreamRef s) {
            packer.copy_to(s, batch); // counts, offsets and values at once
            for_each<subtract_first>(s, most_rows, batch.view());
            sluice::ragged::sum(s, device_sums, batch);
            sluice::copy(s, sums, device_sums);
        });
        packer.mark_in_use(stream); // the packer cannot see a replay
        stream.sync();

        for (std::size_t r = 0; r < rows; ++r) { // 0 + 1 + 2 + …
            const std::size_t length = r % 7;
            right = right && sums[r] == static_cast<float>(length == 0 ? 0 : length * (length - 1) / 2);
        }
    }
    std::printf("sums of 10 to 60 rows, %d of 6 batches by the same graph: %s\n",
                static_cast<int>(graph.counters().replays), right ? "right" : "WRONG");
    return exit_code(right);
}
