// A stage whose callable is no callable at all.
// EXPECT: sluice::Pipeline: a stage's callable is no callable: it has no operator()
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};
struct Decoder {
    void step(sluice::HostStreamRef, Slot&);
#if !MISUSE
    void operator()(sluice::HostStreamRef stream, Slot& in) { step(stream, in); }
#endif
};

void make(Decoder decoder) {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage train{"train", decoder, sluice::StageOptions<sluice::Host>{}};
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Slot{}; }};
}
