// What the tests of GraphCapture share: work to capture, and what comes of it.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test::capture_case {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
inline constexpr std::size_t words = 100;

/// Some words that steps change, and what a plain loop makes of them.
struct Steps {
    Steps() : in(words, stream), out(words, stream), memory(words, stream) {
        clear();
        enqueue(stream); // loads the kernel, which a capture without warm-up would have to wait for
        clear();
    }
    void clear() {
        std::vector<Word> values(words);
        for (std::size_t i = 0; i < words; ++i)
            values[i] = static_cast<Word>(i * 31 + 7);
        copy_and_wait(stream, in, values);
        fill_bytes(stream, memory, 0);
        fill_bytes(stream, out, 0xee);
        stream.sync();
    }
    void enqueue(Ref to) { ops::step(to.get(), out.data(), in.data(), memory.data(), words); }
    auto work() {
        return [this](Ref to) { enqueue(to); };
    }
    std::vector<Word> values() {
        std::vector<Word> result(words);
        copy_and_wait(stream, result, memory);
        return result;
    }
    static std::vector<Word> expected(int runs) {
        std::vector<Word> memory(words, 0);
        for (int run = 0; run < runs; ++run) {
            for (std::size_t i = 0; i < words; ++i)
                memory[i] = next_memory(memory[i], static_cast<Word>(i * 31 + 7));
        }
        return memory;
    }

    BasicStream<B> stream;
    DeviceBuffer<Word, B> in, out, memory;
};

} // namespace sluice::test::capture_case
