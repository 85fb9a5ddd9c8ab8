// Stages that can be captured: they keep nothing on the host, and what they remember shows any batch that is lost,
// doubled, late or torn.
#pragma once

#include <cstddef>
#include <vector>

#include "pipeline/chain.hpp"

namespace sluice::test {

/// The numbers of `count` batches, of which `distinct` differ and come again and again.
inline std::vector<std::size_t> repeating(std::size_t count, std::size_t distinct) {
    std::vector<std::size_t> batches(count);
    for (std::size_t i = 0; i < count; ++i)
        batches[i] = i % distinct;
    return batches;
}

/// Two or three stages without any state on the host: what they remember is all that they leave behind. Must outlive
/// its pipelines.
template <Backend B>
struct CapturableStages {
    using Ref = BasicStreamRef<B>;
    using Cells = DeviceBuffer<Word, B>;

    explicit CapturableStages(std::size_t count) : words(count), all(3 * count), staging(count), out(count) {
        clear();
    }
    /// Forgets all batches. No pipeline of these stages may have work in flight.
    void clear() {
        BasicStream<B> stream;
        fill_bytes(stream, all, 0);
        stream.sync();
    }
    auto first() {
        return [this](Ref stream, PinnedSpan<const Word, B> in, Cells& to) {
            copy(stream, staging, in);
            ops::step(stream.get(), to.data(), staging.data(), all.data(), words);
        };
    }
    auto middle() {
        return [this](Ref stream, Cells& in, Cells& to) {
            ops::step(stream.get(), to.data(), in.data(), all.data() + words, words);
        };
    }
    auto last(std::size_t index) {
        return [this, index](Ref stream, Cells& in) {
            ops::step(stream.get(), out.data(), in.data(), all.data() + index * words, words);
        };
    }
    auto make_cells() const {
        return [count = words](int) { return Cells(count); };
    }
    std::vector<Word> values() {
        BasicStream<B> stream;
        std::vector<Word> result(all.size());
        copy_and_wait(stream, result, all);
        return result;
    }

    std::size_t words;
    Cells all, staging, out;
};

/// What two or three stages remember after `batches`.
inline std::vector<Word> expected_memories(int stages, std::size_t words,
                                           const std::vector<std::size_t>& batches) {
    const auto all = chain_results(stages, words, batches);
    std::vector<Word> memories(all.begin() + static_cast<std::ptrdiff_t>(batches.size() * words), all.end());
    memories.resize(3 * words, 0);
    return memories;
}

} // namespace sluice::test
