// Keys of graphs: equal where batches are, and different where they differ; and a cache of graphs against a plain model of it.
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <sluice/backend/host.hpp>
#include <sluice/graph.hpp>
#include <sluice/memory.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>
#include <sluice/pipeline/detail/core/step_graphs.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using namespace sluice;
using sluice::fuzz::Reader;

enum class Kind : std::uint8_t { one, two, three };

struct Inner {
    std::int16_t a;
    Kind kind;
    bool operator==(const Inner&) const = default;
};
struct Batch {
    std::int64_t number;
    std::uint8_t byte;
    Inner inner;
    std::array<std::int32_t, 3> sizes;
    std::optional<std::uint16_t> maybe;
    std::pair<std::int8_t, std::uint32_t> pair;
    std::tuple<bool, std::int64_t> tuple;
    PinnedSpan<const std::uint32_t, Host> words;
    std::vector<std::uint8_t> elements;
};

constexpr std::uint32_t memory[8] = {};

Batch read(Reader& reader) {
    Batch batch{};
    batch.number = reader.number();
    batch.byte = reader.byte();
    batch.inner = {static_cast<std::int16_t>(reader.number()), static_cast<Kind>(reader.byte() % 3)};
    for (std::int32_t& size : batch.sizes)
        size = static_cast<std::int32_t>(reader.number());
    if (reader.byte() % 2 != 0)
        batch.maybe = static_cast<std::uint16_t>(reader.number());
    batch.pair = {static_cast<std::int8_t>(reader.byte()), static_cast<std::uint32_t>(reader.number())};
    batch.tuple = {reader.byte() % 2 != 0, reader.number()};
    const std::size_t first = reader.byte() % 4;
    batch.words = {memory + first, reader.byte() % 4 + std::size_t{1}};
    batch.elements.reserve(8); // at a place of its own even where it is empty
    for (std::size_t count = reader.byte() % 4; count > 0; --count)
        batch.elements.push_back(reader.byte());
    return batch;
}

bool same(const Batch& a, const Batch& b) {
    return a.number == b.number && a.byte == b.byte && a.inner == b.inner && a.sizes == b.sizes &&
           a.maybe == b.maybe && a.pair == b.pair && a.tuple == b.tuple && a.words.data() == b.words.data() &&
           a.words.size() == b.words.size() && a.elements == b.elements;
}

detail::KeyBytes key_of(const Batch& batch) {
    detail::KeyBytes key;
    SLUICE_FUZZ_EXPECT(detail::append_key(key, batch));
    return key;
}

void check_batch_keys(Reader& reader) {
    Batch batch = read(reader);
    const Batch before = batch;
    const detail::KeyBytes key = key_of(batch);
    SLUICE_FUZZ_EXPECT(key == key_of(batch));
    // The same object with other members: only then do addresses stay as they are.
    Batch other = read(reader);
    std::vector<std::uint8_t> elements = other.elements;
    other.elements = {};
    batch.elements.assign(elements.begin(), elements.end());
    std::vector<std::uint8_t> kept = std::move(batch.elements);
    batch = std::move(other);
    batch.elements = std::move(kept);
    SLUICE_FUZZ_EXPECT((key == key_of(batch)) == same(batch, before));
}

void check_step_keys(Reader& reader) {
    detail::StepKey keys[2];
    std::vector<std::uint64_t> numbers[2];
    while (!reader.empty()) {
        const std::uint8_t what = reader.byte();
        const std::size_t which = what & 1u;
        if (what >= 0xf8) {
            keys[which].clear();
            numbers[which].clear();
        } else {
            keys[which].push_back(what >> 4);
            numbers[which].push_back(what >> 4);
        }
        SLUICE_FUZZ_EXPECT((keys[0] == keys[1]) == (numbers[0] == numbers[1]));
        SLUICE_FUZZ_EXPECT((keys[1] == keys[0]) == (numbers[0] == numbers[1]));
    }
    const detail::StepKey copy = keys[0];
    SLUICE_FUZZ_EXPECT(copy == keys[0]);
}

struct Thrown {};

// Whatever is asked of the cache, work runs once for each run, in order.
void check_cache(Reader& reader) {
    GraphOptions options{.capacity = static_cast<std::size_t>(reader.byte() % 3) + 1,
                         .warmup = reader.byte() % 3,
                         .on_refusal = nullptr};
    options.give_up_after = reader.byte() % 4;
    options.comparisons = reader.byte() % 2;
    options.check = false; // in programs that are checked, too: a change is no error here
    const BasicStream<Host> stream = BasicStream<Host>::make_inline();
    std::uint64_t value = 0, expected = 0;
    std::uint64_t changed[4] = {};
    GraphCapture<int, Host> graphs(options);
    Replay last;
    std::size_t steps = 0;
    while (!reader.empty() && ++steps <= 24) {
        const std::uint8_t what = reader.byte();
        const int key = what % 4;
        const auto term = static_cast<std::uint64_t>(key) + 1;
        const auto plain = [&](HostStreamRef s) { s.enqueue([&value, term] { value = value * 31 + term; }); };
        const auto expect = [&] { expected = expected * 31 + term; };
        try {
            switch (what / 4 % 8) {
            case 0:
                graphs.clear();
                break;
            case 1:
                (void)graphs.recapture(stream, key, plain);
                expect();
                break;
            case 2: {
                const bool replayed = graphs.replay(stream, key, [] {});
                SLUICE_FUZZ_EXPECT(!replayed || graphs.graph(key) != nullptr);
                if (replayed)
                    expect();
                break;
            }
            case 3:
                (void)graphs.run(stream, key, [&](HostStreamRef) {
                    ++changed[key];
                    throw Thrown{};
                });
                expect(); // it was replayed
                break;
            case 4:
                (void)graphs.run(stream, key, [&](HostStreamRef s) {
                    plain(s);
                    throw detail::NotCapturable("no");
                });
                expect();
                break;
            default:
                last = graphs.run(stream, key, plain);
                SLUICE_FUZZ_EXPECT(last.is_current());
                expect();
            }
        } catch (const Thrown&) {
        } catch (const detail::NotCapturable&) {
            // Of an eager run, which has enqueued its work before.
            expect();
        } catch (const Error&) {
            SLUICE_FUZZ_EXPECT(false);
        }
        graphs.finish();
        stream.sync();
        SLUICE_FUZZ_EXPECT(value == expected);
        SLUICE_FUZZ_EXPECT(graphs.size() <= options.capacity);
    }
}

} // namespace

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_keys)
SLUICE_FUZZ_TARGET(keys) {
    Reader reader(input);
    if (reader.byte() % 2 == 0)
        check_batch_keys(reader);
    else
        check_step_keys(reader);
}
#endif

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_cache)
SLUICE_FUZZ_TARGET(cache) {
    Reader reader(input);
    check_cache(reader);
}
#endif
