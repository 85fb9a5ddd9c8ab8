// A number under a tag.
// EXPECT: sluice::Tagged: what is tagged must be a class, since a Tagged derives from it
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Loss {
    float value = 0;
};
struct First;

#if MISUSE
using Tagged = sluice::Tagged<First, float>;
#else
using Tagged = sluice::Tagged<First, Loss>;
#endif

float loss_of(const Tagged& loss);

void make() {
    const Tagged loss{};
    (void)loss_of(loss);
}
