#include "hazards/pipelines.hpp"

namespace sluice::test {

void encode_batch(Ref stream, const Batch& in, Slot& out) {
    copy(stream, out.features, in.images);
    copy(stream, out.labels, in.labels);
}

Stage<Encode, B> encode(StageOptions<B> options, Encode callable, const char* name) {
    if (!callable)
        callable = encode_batch;
    return {name, std::move(callable), options};
}

Stage<Train, B> train(StageOptions<B> options, Train callable, const char* name) {
    if (!callable)
        callable = [](Ref s, const Batch&, Slot& in) { copy(s, in.scores, in.features); };
    return {name, std::move(callable), options};
}

} // namespace sluice::test
