// A blur of a size below one.
// EXPECT: augment::Blur: the size must be odd and positive, such as Blur<7>
// AT-MOST: 1 errors
#include <augment/chain.hpp>

#if MISUSE
using Blur = augment::Blur<-1>;
#else
using Blur = augment::Blur<7>;
#endif

augment::ImageShape shape(const augment::Chain<Blur>& chain) { return chain.output_shape({3, 64, 64}); }
