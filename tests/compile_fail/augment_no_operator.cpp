// Something in a chain that is no operator.
// EXPECT: augment::Chain: each element must be an operator, such as augment::Crop
#include <augment/chain.hpp>

#if MISUSE
using Op = int;
#else
using Op = augment::Flip;
#endif

augment::ImageShape shape(const augment::Chain<Op>& chain) { return chain.output_shape({3, 64, 64}); }
