// Uses a little of each layer. Its own code has a warning in it, which must stay the user's affair.
#include <sluice/sluice.hpp>

#include <cstdio>

static_assert(SLUICE_HAS_CUDA == EXPECT_CUDA);
static_assert(SLUICE_COMPILED == EXPECT_COMPILED);

#if EXPECT_CUDA
int kernel_compiled();
#endif

#if defined(BOTH_KINDS)
void checked_elsewhere();
#endif

int main() {
    int unused;
#if defined(BOTH_KINDS)
    checked_elsewhere();
#endif

    sluice::HostStream stream;
    sluice::PinnedBuffer<float, sluice::Host> sent(4);
    sluice::PinnedBuffer<float, sluice::Host> received(4);
    sluice::DeviceBuffer<float, sluice::Host> device(4);
    for (int i = 0; i < 4; ++i)
        sent[i] = static_cast<float>(i);
    sluice::copy(stream, device, sent);
    sluice::copy(stream, received, device);
    stream.sync();
    float sum = 0;
    sluice::Pipeline pipeline{sluice::Stages{sluice::Stage{
        "add", [&](sluice::HostStreamRef on, const sluice::PinnedBuffer<float, sluice::Host>& in) {
            on.enqueue([&] { sum += in[3]; });
        }}}};
    pipeline.submit(received);
    pipeline.finish();
    const bool same = received[3] == 3.0f && sum == 3.0f;
#if EXPECT_CUDA
    if (kernel_compiled() != 1)
        return 1;
#endif
    std::printf("sluice %d.%d: %s\n", sluice::version_major, sluice::version_minor,
                same ? "copied" : "not copied");
    return same ? 0 : 1;
}
