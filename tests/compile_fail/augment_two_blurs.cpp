// A blur of what is blurred.
// EXPECT: augment::Chain: after a blur only operators on single values can follow
// AT-MOST: 1 errors
#include <augment/chain.hpp>

using augment::Blur;
using augment::Scale;

augment::ImageShape shape() {
#if MISUSE
    const augment::Chain chain{Blur<7>{}, Scale{2.0f}, Blur<7>{}};
#else
    const augment::Chain chain{Blur<7>{}, Scale{2.0f}};
#endif
    return chain.output_shape({3, 64, 64});
}
