// A rotation of what is blurred, for which the blurred image would have to be there.
// EXPECT: augment::Chain: after a blur only operators on single values can follow
// AT-MOST: 1 errors
#include <augment/chain.hpp>

using augment::Blur;
using augment::Rotate;

augment::ImageShape shape() {
#if MISUSE
    const augment::Chain chain{Blur<7>{}, Rotate<augment::Nearest>{}};
#else
    const augment::Chain chain{Rotate<augment::Nearest>{}, Blur<7>{}};
#endif
    return chain.output_shape({3, 64, 64});
}
