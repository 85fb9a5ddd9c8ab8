// A stage on a stream whose parameter refers to a converted copy of the number in the slot.
// EXPECT: sluice::Pipeline: a stage on a stream takes a slot's number by a reference to another type
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#if MISUSE
using Read = double;
#else
using Read = float;
#endif

void make() {
    sluice::Stage compute{"compute", [](sluice::HostStreamRef stream, const int& in, float& out) {
                              stream.enqueue([in, &out] { out = static_cast<float>(in); });
                          }};
    sluice::Stage look{"look", [](sluice::HostStreamRef stream, const Read& in) {
                           stream.enqueue([&in] { (void)(in == 0); });
                       }};
    sluice::Pipeline pipeline{sluice::Stages{compute, look}, sluice::Slots{[](int) { return 0.0f; }}};
    const int batch = 1;
    pipeline.submit(batch);
}
