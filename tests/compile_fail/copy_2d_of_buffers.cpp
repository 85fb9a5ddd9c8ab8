// Buffers whose rows are of no known width.
// FIRST: sluice::copy_2d: copies between PitchedSpans, as in copy_2d(stream, PitchedSpan{to, columns, rows}
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

void upload(const sluice::HostStream& stream, sluice::DeviceBuffer<float, sluice::Host>& tile,
            const sluice::PinnedBuffer<float, sluice::Host>& image) {
#if MISUSE
    sluice::copy_2d(stream, tile, image);
    sluice::copy_2d(stream.ref(), sluice::PitchedSpan{tile, 4, 4}, image.span());
#else
    sluice::copy_2d(stream, sluice::PitchedSpan{tile, 4, 4}, sluice::PitchedSpan{image, 4, 4, 16});
#endif
}
