// What the tests of readbacks share: pushes of one number, and notes of the results.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"

namespace sluice::test::readback_case {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 8;

/// Pushes the words value, value, …, made on the stream; what is pushed is overwritten at once.
template <Backend Any>
class Pusher {
public:
    explicit Pusher(BasicStreamRef<Any> stream) : stream_(stream), zeros_(words), values_(words) {
        fill_bytes(stream, zeros_, 0);
        fill_bytes(stream, values_, 0xFF);
    }
    Pusher(const Pusher&) = delete;
    Pusher& operator=(const Pusher&) = delete;
    ~Pusher() { stream_.sync(); }

    void operator()(Readback<Word, Any>& readback, Word value) {
        ops::add_racing(stream_.get(), values_.data(), zeros_.data(), value, words);
        readback.push(stream_, values_);
        fill_bytes(stream_, values_, 0xFF);
    }

private:
    BasicStreamRef<Any> stream_;
    DeviceBuffer<Word, Any> zeros_, values_;
};

/// Notes results, and checks that they come in order and whole.
struct Notes {
    std::vector<Word> values;
    std::size_t first_index = 0;

    auto handler() {
        return [this](std::size_t index, std::span<const Word> result) {
            CHECK(index == first_index + values.size());
            CHECK(result.size() == words);
            CHECK(std::vector<Word>(result.begin(), result.end()) == std::vector<Word>(words, result[0]));
            values.push_back(result[0]);
        };
    }
};

/// 0, 1, 2 …
inline std::vector<Word> numbers(Word count) {
    std::vector<Word> result;
    for (Word i = 0; i < count; ++i)
        result.push_back(i);
    return result;
}

} // namespace sluice::test::readback_case
