// Batches of two sources in one step, and the newest of the other one.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/camera.hpp"
#include "pipeline/zip_case.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"
#include "support/on_stream.hpp"

namespace pipeline_zip {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("zip: a step has one batch of each source, in order, under each schedule") {
    std::uint64_t seed = 500;
    for (const PipelineOptions& options : schedules) {
        for (const auto& [workers, slots] : {std::pair{1, 3}, std::pair{0, 2}, std::pair{2, 6}}) {
            Delay::set({.seed = ++seed, .one_in = 4, .microseconds = 200});
            auto left = words_source<0>({.workers = workers, .slots = slots, .batches = 30});
            auto right = words_source<1>({.workers = 1, .slots = 2, .batches = 30});
            auto zipped = zip(left, right);
            CHECK(zipped.slots() == 2);
            Seen seen;
            auto pipeline = seen.pipeline(options);
            std::size_t count = 0;
            for (const auto& batch : zipped) {
                CHECK(batch.index() == count++);
                pipeline.submit(batch);
            }
            pipeline.finish();
            seen.finish();
            REQUIRE(seen.both.size() == 30);
            for (std::size_t i = 0; i < 30; ++i) {
                CHECK(seen.both[i] == std::pair{word_of(0, i), word_of(1, i)});
                CHECK(seen.alone[i] == word_of(1, i));
            }
            CHECK_FALSE(zipped.left_over());
        }
    }
    Delay::set({.one_in = 0});
}

TEST_CASE("zip: steps are replayed for the slots that both batches lie in") {
    auto left = words_source<0>({.workers = 0, .slots = 2, .batches = 60});
    auto right = words_source<1>({.workers = 0, .slots = 3, .batches = 60});
    auto zipped = zip(left, right);
    Seen seen;
    auto pipeline = seen.pipeline({.schedule = Schedule::graphed});
    for (const auto& batch : zipped)
        pipeline.submit(*batch); // holds both slots as well
    pipeline.finish();
    seen.finish();
    CHECK(pipeline.graph_counters().replays > 20);
    for (std::size_t i = 0; i < 60; ++i)
        CHECK(seen.both[i] == std::pair{word_of(0, i), word_of(1, i)});
}

TEST_CASE("zip: ends with the shorter source, and keeps what it has taken of the longer one") {
    auto left = words_source<0>({.workers = 1, .batches = 5});
    auto right = words_source<1>({.workers = 1, .batches = 3});
    auto zipped = zip(left, right);
    std::size_t count = 0;
    for (const auto& batch : zipped)
        CHECK(batch->first.words[0] == word_of(0, count++));
    CHECK(count == 3);
    CHECK_FALSE(zipped.next());
    SUBCASE("for the caller") {
        const auto rest = zipped.left_over();
        CHECK(rest.index() == 3);
        CHECK(left.next().index() == 4);
    }
    SUBCASE("for when the other goes on") {
        right.rewind();
        const auto batch = zipped.next();
        CHECK(batch->first.words[1] == word_of(0, 3));
        CHECK(batch->second.words[1] == word_of(1, 0));
    }
    SUBCASE("until it is rewound") {
        zipped.rewind();
        const auto batch = zipped.next();
        CHECK(batch.index() == 0);
        CHECK(batch->first.words[1] == word_of(0, 0));
    }
    SUBCASE("and nothing is taken of the second one where the first one ends") {
        auto other = zip(right, left);
        right.rewind();
        for (count = 0; other.next(); ++count) {
        }
        CHECK(count == 1); // one of left is with the first zip
        CHECK(other.left_over().index() == 1);
    }
}

TEST_CASE("zip: what a source throws loses no batch of the other") {
    using namespace std::chrono_literals;
    auto left = words_source<0>({.workers = 1, .batches = 6});
    Camera camera;
    Source right{make_words<1>,
                 [&](std::size_t index, Right& out) {
                     camera.take();
                     if (index == 2)
                         throw std::runtime_error("no picture");
                     fill_words(index, out);
                 },
                 Options{.workers = 1, .slots = 2, .timeout = 5ms}};
    struct LetGo {
        Camera& camera;
        ~LetGo() { camera.let(1'000'000); }
    } const let_go{camera};
    auto zipped = zip(left, right);
    CHECK(contains(text_of([&] { (void)zipped.next(); }), "was not ready within 5 ms"));
    CHECK(contains(text_of([&] { (void)zipped.next(); }), "was not ready within 5 ms"));
    camera.let(3);
    for (std::size_t i = 0; i < 2; ++i) {
        std::optional<SourceBatch<Both, B>> batch;
        REQUIRE(eventually([&] {
            try {
                batch.emplace(zipped.next());
            } catch (const Error&) {
                return false;
            }
            return true;
        }));
        CHECK((*batch)->first.words[0] == word_of(0, i));
        CHECK((*batch)->second.words[0] == word_of(1, i));
    }
    CHECK(eventually([&] {
        return contains(text_of([&] { (void)zipped.next(); }), "filling batch 2 failed: no picture");
    }));
    CHECK_FALSE(zipped.next());
    CHECK(zipped.left_over().index() == 2);
}

TEST_CASE("zip: a batch holds both slots, also beyond the zip and its sources") {
    std::optional<SourceBatch<Both, B>> kept;
    SourceHold<B> hold;
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> copied(2 * words);
    {
        auto left = words_source<0>({.workers = 1, .slots = 3});
        auto right = words_source<1>({.workers = 1, .slots = 2});
        auto zipped = zip(left, right);
        kept.emplace(zipped.next());
        for (std::size_t i = 1; i < 20; ++i)
            CHECK(zipped.next()->second.words[2] == word_of(1, i));
        CHECK((*kept)->first.words[2] == word_of(0, 0));
        hold = kept->hold();
        CHECK(hold.slots() == 2);
        const auto elsewhere = hold.hold_elsewhere();
        hold.give_up();
        ops::spin(stream.get(), 2000);
        copy(stream, copied.span().first(words), (*kept)->first.words);
        copy(stream, copied.span().subspan(words, words), (*kept)->second.words);
        kept->release(stream);
        kept.reset();
        std::thread thread([elsewhere] {
            give_it_time();
            elsewhere.give_up();
        });
        for (std::size_t i = 20; i < 40; ++i) // waits for the other thread where it must
            CHECK(zipped.next()->first.words[3] == word_of(0, i));
        kept.emplace(zipped.next()); // kept while the other thread gives back what it holds
        thread.join();
    }
    CHECK((*kept)->first.words[2] == word_of(0, 40));
    CHECK((*kept)->second.words[2] == word_of(1, 40));
    kept.reset();
    std::vector<Word> seen(copied.size());
    copy_and_wait(stream, seen, copied);
    CHECK((seen.front() == word_of(0, 0) && seen.back() == word_of(1, 0)));
}

TEST_CASE("zip: waits for slots that other threads hold, and tells how many batches are ready") {
    auto left = words_source<0>({.workers = 1, .slots = 5, .batches = 20});
    auto right = words_source<1>({.workers = 1, .slots = 3, .batches = 20});
    auto zipped = zip(left, right);
    CHECK(zipped.filled() == 0);
    std::vector<SourceHold<B>> elsewhere;
    const auto hold_next = [&] {
        const auto batch = zipped.next();
        const SourceHold<B> hold = batch.hold();
        elsewhere.push_back(hold.hold_elsewhere());
        hold.give_up();
        return elsewhere.back().ready_behind();
    };
    (void)hold_next();
    REQUIRE(eventually([&] { return left.filled() == 4 && right.filled() == 2; }));
    CHECK(zipped.filled() == 2);
    CHECK(hold_next() == 1);
    CHECK(zipped.filled() == 1);
    CHECK(hold_next() == 0); // all slots of the second source are held
    std::thread thread([&] {
        give_it_time();
        for (const SourceHold<B>& hold : elsewhere)
            hold.give_up();
    });
    CHECK(zipped.next()->second.words[0] == word_of(1, 3));
    thread.join();
}

TEST_CASE("zip: what it has taken and not handed on is among the batches that are ready") {
    auto left = words_source<0>({.workers = 1, .slots = 5, .batches = 4});
    auto right = words_source<1>({.workers = 1, .batches = 2});
    bool fails = true;
    auto zipped = zip(left, right, [&](const Left& first, const Right& second) {
        if (std::exchange(fails, false))
            throw std::runtime_error("not these");
        return Zipped<Left, Right>{first, second};
    });
    CHECK_THROWS_WITH((void)zipped.next(), "not these");
    REQUIRE(eventually([&] { return left.filled() == 3 && right.filled() == 1; }));
    CHECK(zipped.filled() == 2);
    CHECK(zipped.next()->second.words[0] == word_of(1, 0));
    CHECK(zipped.filled() == 1);
}

TEST_CASE("zip: what is captured of a batch may refer to it") {
    auto left = words_source<0>({.workers = 1, .slots = 3, .batches = 40});
    auto right = words_source<1>({.workers = 2, .slots = 4, .batches = 40});
    auto zipped = zip(left, right);
    for (const PipelineOptions& options : schedules) {
        std::vector<std::pair<Word, Word>> seen;
        Stage look{"look", [&](Ref on, const Both& in) {
                       ops::spin(on.get(), 50);
                       run_on(on, [&in, &seen] { seen.emplace_back(in.first.words[5], in.second.words[5]); });
                   }};
        Pipeline pipeline{Stages{look}, options};
        zipped.rewind();
        for (const auto& batch : zipped)
            pipeline.submit(batch);
        pipeline.finish();
        REQUIRE(seen.size() == 40);
        for (std::size_t i = 0; i < 40; ++i)
            CHECK(seen[i] == std::pair{word_of(0, i), word_of(1, i)});
    }
}

TEST_CASE("zip: stages may take what a function makes of both, and of more sources") {
    struct Spans {
        PinnedSpan<const Word, B> left, right;
        std::size_t steps;
    };
    auto left = words_source<0>({.workers = 1, .batches = 10});
    auto right = words_source<1>({.workers = 1, .batches = 10});
    auto third = words_source<2>({.workers = 1, .batches = 9});
    std::size_t steps = 0;
    auto spans = zip(left, right, [&](const Left& a, const Right& b) {
        if (++steps == 4)
            throw std::runtime_error("not this time");
        return Spans{a.words, b.words, steps};
    });
    auto all = zip(spans, third);
    std::size_t count = 0;
    const auto go_on = [&] {
        for (const auto& batch : all) {
            CHECK(batch->first.left[0] == word_of(0, count));
            CHECK(batch->first.right[0] == word_of(1, count));
            CHECK(batch->second.words[0] == word_of(2, count));
            ++count;
        }
    };
    CHECK_THROWS_WITH_AS(go_on(), "not this time", std::runtime_error);
    CHECK(count == 3);
    SUBCASE("which may go on with the two that it has thrown for") {
        go_on();
        CHECK(count == 9);
        CHECK(all.left_over()->steps == 11);
    }
    SUBCASE("or without them") {
        CHECK(spans.left_over().index() == 3);
        const auto batch = all.next();
        CHECK(batch->first.left[0] == word_of(0, 4));
        CHECK(batch->first.right[0] == word_of(1, 4));
        CHECK(batch->second.words[0] == word_of(2, 3));
    }
}

TEST_CASE("zip: of a zip whose first source has more slots than its second one") {
    for (const PipelineOptions& options : schedules) {
        auto left = words_source<0>({.workers = 1, .slots = 6, .batches = 30});
        auto right = words_source<1>({.workers = 1, .slots = 2, .batches = 30});
        auto third = words_source<2>({.workers = 1, .slots = 4, .batches = 30});
        auto two = zip(left, right);
        CHECK(two.slots() == 2);
        CHECK(two.places() == 6);
        auto three = zip(two, third);
        CHECK(three.slots() == 2);
        std::vector<std::array<Word, 3>> seen;
        Stage look{"look", [](Ref on, const Zipped<Both, Words<2>>& in, PinnedBuffer<Word, B>& out) {
                       copy(on, out.span().first(1), in.first.first.words.span().first(1));
                       copy(on, out.span().subspan(1, 1), in.first.second.words.span().first(1));
                       copy(on, out.span().subspan(2, 1), in.second.words.span().first(1));
                   }};
        Pipeline pipeline{Stages{look}, Slots{[](int) { return PinnedBuffer<Word, B>(3); }}, options};
        for (const auto& out : pipeline.run(three))
            seen.push_back({out[0], out[1], out[2]});
        REQUIRE(seen.size() == 30);
        for (std::size_t i = 0; i < seen.size(); ++i)
            CHECK(seen[i] == std::array{word_of(0, i), word_of(1, i), word_of(2, i)});
    }
}

TEST_CASE("zip: of two sources of one type, which stages take as first and second") {
    for (const PipelineOptions& options : schedules) {
        auto left = words_source<0>({.workers = 2, .slots = 4, .batches = 30});
        Source right{make_words<0>, [](std::size_t index, Left& out) { fill_words<0>(index + 100, out); },
                     Options{.workers = 1, .batches = 30}};
        auto zipped = zip(left, right);
        Stage look{"look", [](Ref on, const Zipped<Left, Left>& in, PinnedBuffer<Word, B>& out) {
                       copy(on, out.span().first(1), in.first.words.span().first(1));
                       copy(on, out.span().subspan(1, 1), in.second.words.span().first(1));
                   }};
        Pipeline pipeline{Stages{look}, Slots{[](int) { return PinnedBuffer<Word, B>(2); }}, options};
        std::size_t count = 0;
        for (const auto& out : pipeline.run(zipped)) {
            CHECK(out[0] == word_of(0, count));
            CHECK(out[1] == word_of(0, 100 + count++));
        }
        CHECK(count == 30);
    }
}

TEST_CASE("zip: one source on both sides is refused, by whatever way") {
    auto left = words_source<0>({.workers = 1, .slots = 4, .batches = 4});
    auto right = words_source<1>({.workers = 1, .slots = 4, .batches = 4});
    auto other = words_source<2>({.workers = 1, .slots = 4, .batches = 4});
    auto both = zip(left, right);
    const auto is_refused = [](auto&& make) {
        return contains(text_of([&] { (void)make(); }),
                        "zip: the second source is the first one, or takes from the same one");
    };
    CHECK(is_refused([&] { return zip(left, left); }));
    CHECK(is_refused([&] { return zip(left, latest(left)); }));
    CHECK(is_refused([&] { return zip(both, both); }));
    CHECK(is_refused([&] { return zip(both, right); }));
    CHECK(is_refused([&] { return zip(left, both); }));
    auto newest = zip(other, latest(right));
    CHECK(is_refused([&] { return zip(both, newest); }));
    CHECK(is_refused([&] { return zip(newest, latest(right)); }));
    auto three = zip(both, other);
    CHECK(three.next()->second.words[0] == word_of(2, 0)); // what was refused has taken nothing
}

TEST_CASE("zip: AnyPipeline takes its batches, and run gives a result for each") {
    struct Sum {
        PinnedBuffer<Word, B> word{2};
    };
    auto left = words_source<0>({.workers = 2, .batches = 12});
    auto right = words_source<1>({.workers = 1, .batches = 20});
    auto zipped = zip(left, right);
    AnyPipeline<Both, B> pipeline{
        Stages{
            Stage{"copy",
                  [](Ref on, const Both& in, DeviceBuffer<Word, B>& out) {
                      copy(on, out.span().first(1), in.first.words.span().first(1));
                      copy(on, out.span().subspan(1, 1), in.second.words.span().first(1));
                  }},
            Stage{"show", [](Ref on, const DeviceBuffer<Word, B>& in, Sum& out) { copy(on, out.word, in); }}},
        Slots{[](int) { return DeviceBuffer<Word, B>(2); }, [](int) { return Sum{}; }}};
    std::size_t count = 0;
    for (const Sum& sum : pipeline.run<Sum>(zipped)) {
        CHECK(sum.word[0] == word_of(0, count));
        CHECK(sum.word[1] == word_of(1, count++));
    }
    CHECK(count == 12);
    CHECK(right.next().index() == 12); // none of it was taken for a step that did not come
}

} // namespace pipeline_zip
