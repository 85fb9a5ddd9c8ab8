// Memory that a stream may still read is freed at the very end: nothing is left that could throw.
#include <optional>

#include <sluice/backend.hpp>
#include <sluice/memory.hpp>

int main() {
    using sluice::Host; // checked, in a program that is compiled with -DSLUICE_CHECKED=1
    const sluice::BasicStream<Host> stream;
    sluice::DeviceBuffer<float, Host> copied(8);
    std::optional<sluice::DeviceBuffer<float, Host>> weights(8);
    sluice::name_buffer(*weights, "weights");
    sluice::fill(stream, *weights, 1.0f);
    sluice::copy(stream, copied, *weights);
    // In fact the copy is over, which the checker does not know.
    sluice::UncheckedHost::synchronize_stream(stream.get());
    weights.reset();
}
