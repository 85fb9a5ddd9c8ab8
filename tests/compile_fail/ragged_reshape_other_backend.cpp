// A Host stream that is to make a batch of another backend's memory.
// EXPECT: Other>
// AT-MOST: 1 error
#include <sluice/ragged/reshape.hpp>

/// The same as Host, and yet another backend.
struct Other : sluice::Host {};

void use(sluice::HostStreamRef stream, sluice::RaggedBatch<float, sluice::Host>& mine,
         sluice::RaggedBatch<float, Other>& other, sluice::RaggedView<const float> in,
         sluice::RaggedWorkspace<sluice::Host>& workspace) {
#if MISUSE
    sluice::ragged::prefix(stream, other, in, 1, workspace);
#else
    sluice::ragged::prefix(stream, mine, in, 1, workspace);
#endif
    (void)mine;
    (void)other;
}
