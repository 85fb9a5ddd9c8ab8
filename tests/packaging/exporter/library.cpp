// Nothing but that it compiles with sluice and is linked.
#include <sluice/memory/buffer.hpp>

namespace uses_sluice {

std::size_t floats(std::size_t count) { return sluice::PinnedBuffer<float, sluice::Host>(count).size(); }

} // namespace uses_sluice
