// Bucketed reductions whose steps end half way, and parts that a step does not make.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <sluice/graph.hpp>

#include "collective/ranks.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/self_move.hpp"

namespace collective_buckets {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Gradient = BucketedReduction<float, B>;
using Values = std::vector<float>;

// Part `i` holds its number, 1 or 2, times `step`.
void fill_part(Ref stream, Gradient& gradient, std::size_t i, float step) {
    fill(stream, gradient.part(i), static_cast<float>(i + 1) * step);
}
void make(Ref stream, Gradient& gradient, std::size_t i, float step) {
    fill_part(stream, gradient, i, step);
    gradient.ready(stream, i);
}
Values read(const BasicStream<B>& stream, Gradient& gradient) {
    Values values(gradient.all().size());
    copy_and_wait(stream, values, gradient.all());
    return values;
}
Values whole_step(const BasicStream<B>& stream, Gradient& gradient, float step) {
    make(stream, gradient, 0, step);
    make(stream, gradient, 1, step);
    gradient.join(stream);
    return read(stream, gradient);
}

// One bucket for each part, and one for both.
constexpr std::size_t bucket_bytes[] = {0, 1 << 10};

/// A gradient of two parts on one rank, whose work is captured when it runs first.
struct Captured {
    explicit Captured(std::size_t bytes) : gradient{ends[0], {2, 1}, {.bytes = bytes}} {}

    std::vector<Comm> ends = communicators(1);
    Gradient gradient;
    const BasicStream<B> stream;
    GraphCapture<int, B> graphs{GraphOptions{.warmup = 0, .on_refusal = nullptr}};

    void make(Ref s, std::size_t i, float step) { collective_buckets::make(s, gradient, i, step); }
    /// Captures the work, and then replays it.
    template <class Work>
    void capture_and_replay(const Work& work) {
        (void)graphs.run(stream, 1, work);
        CHECK(graphs.refusal(1) == "");
        CHECK(graphs.run(stream, 1, work).replayed());
        stream.sync();
    }
};

} // namespace

TEST_CASE(
    "a capture that is refused half way through a gradient leaves none of it, and the work runs eagerly") {
    if (!enough_devices(1))
        return;
    for (const std::size_t bytes : bucket_bytes) {
        CAPTURE(bytes);
        Captured of{bytes};
        // Refused after one part, and after all of it.
        for (const int parts : {1, 2}) {
            CAPTURE(parts);
            const auto work = [&](Ref s) {
                of.make(s, 0, 3);
                if (parts == 1)
                    s.sync(); // which no capture takes
                of.make(s, 1, 3);
                if (parts == 2)
                    s.sync();
                of.gradient.join(s);
            };
            CHECK_FALSE(of.graphs.run(of.stream, parts, work).replayed());
            CHECK(of.graphs.refusal(parts) != "");
            CHECK(read(of.stream, of.gradient) == Values{3, 3, 6});
        }
        CHECK(whole_step(of.stream, of.gradient, 5) == Values{5, 5, 10});
        // Nor can it be joined.
        CHECK(text_of([&] {
                  (void)capture(of.stream, [&](Ref s) {
                      of.make(s, 0, 3);
                      of.make(s, 1, 3);
                      s.sync();
                  });
              }) != "");
        CHECK(text_of([&] { of.gradient.join(of.stream); }) ==
              "bucketed reduction: join was called before part 0 was ready");
    }
}

TEST_CASE("a gradient that began before a capture is not continued in it, and goes on outside") {
    if (!enough_devices(1))
        return;
    Captured of{0};
    of.make(of.stream, 0, 3);
    (void)of.graphs.run(of.stream, 1, [&](Ref s) {
        of.make(s, 1, 3);
        of.gradient.join(s);
    });
    CHECK(
        contains(of.graphs.refusal(1), "a part became ready before the capture; expected all of a gradient"));
    CHECK(read(of.stream, of.gradient) == Values{3, 3, 6});
}

TEST_CASE("a step that throws between two parts is left by reset") {
    if (!enough_devices(1))
        return;
    for (const std::size_t bytes : bucket_bytes) {
        CAPTURE(bytes);
        std::vector<Comm> ends = communicators(1);
        Gradient gradient{ends[0], {2, 1}, {.bytes = bytes}};
        const BasicStream<B> stream;
        const auto step = [&] {
            make(stream, gradient, 0, 3);
            throw std::runtime_error("no loss");
        };
        CHECK_THROWS_WITH_AS(step(), "no loss", std::runtime_error);
        CHECK(
            text_of([&] { gradient.ready(stream, 0); }) ==
            "bucketed reduction: part 0 of 2 is ready; expected each part once between two calls of join, or "
            "reset after a step that ended before its join");
        gradient.reset(stream);
        CHECK(whole_step(stream, gradient, 5) == Values{5, 5, 10});
        gradient.reset(stream); // of nothing
        CHECK(whole_step(stream, gradient, 7) == Values{7, 7, 14});
    }
}

TEST_CASE("reset in a capture makes what comes after it wait for the reductions that have begun") {
    if (!enough_devices(1))
        return;
    Captured of{0};
    of.capture_and_replay([&](Ref s) {
        of.gradient.reset(s); // of nothing
        of.make(s, 0, 3);
        of.gradient.reset(s); // joins the reduction of part 0
        of.make(s, 0, 4);
        of.make(s, 1, 4);
        of.gradient.join(s);
    });
    CHECK(read(of.stream, of.gradient) == Values{4, 4, 8});
}

TEST_CASE("reset in a capture joins the one reduction that has begun, so that the capture can end there") {
    if (!enough_devices(1))
        return;
    Captured of{0};
    of.capture_and_replay([&](Ref s) {
        of.make(s, 0, 3);
        of.gradient.reset(s);
    });
}

TEST_CASE("reset in a capture waits for no reduction of before, where the capture has only begun a bucket") {
    if (!enough_devices(1))
        return;
    Captured of{1 << 20}; // one bucket for both parts
    CHECK(whole_step(of.stream, of.gradient, 2) == Values{2, 2, 4});
    of.capture_and_replay([&](Ref s) {
        of.make(s, 0, 3);
        of.gradient.reset(s);
        of.make(s, 0, 4);
        of.make(s, 1, 4);
        of.gradient.join(s);
    });
    CHECK(read(of.stream, of.gradient) == Values{4, 4, 8});
}

TEST_CASE("a part that a rank does not make counts as zeros") {
    if (!enough_devices(2))
        return;
    for (const std::size_t bytes : bucket_bytes) {
        CAPTURE(bytes);
        std::vector<Values> found(2);
        const std::vector<std::string> thrown = on_ranks(communicators(2), [&](Comm rank) {
            Gradient gradient{rank, {2, 1}, {.bytes = bytes}};
            const BasicStream<B> stream;
            (void)whole_step(stream, gradient, 9);
            make(stream, gradient, 1, 3);
            if (rank.rank() == 0)
                make(stream, gradient, 0, 3);
            else
                gradient.none(stream, 0);
            gradient.join(stream);
            found[static_cast<std::size_t>(rank.rank())] = read(stream, gradient);
        });
        for (const std::string& text : thrown)
            CHECK(text == "");
        for (const Values& values : found)
            CHECK(values == Values{3, 3, 12});
    }
}

TEST_CASE("a bucket takes parts until it has as many bytes as were asked for") {
    if (!enough_devices(1))
        return;
    std::vector<Comm> ends = communicators(1);
    constexpr std::size_t element = sizeof(float);
    struct Case {
        std::vector<std::size_t> sizes;
        std::size_t bytes;
        std::size_t buckets;
    };
    const Case cases[] = {{{4, 4, 4}, 4 * element - 1, 3}, {{4, 4, 4}, 4 * element, 3},
                          {{4, 4, 4}, 4 * element + 1, 2}, {{4, 4, 4}, 8 * element, 2},
                          {{4, 4, 4}, 8 * element + 1, 1}, {{4, 4, 4}, 0, 3},
                          {{0, 4, 4}, 4 * element, 2},     {{9}, 1, 1}};
    for (const Case& each : cases) {
        CAPTURE(each.bytes);
        const Gradient gradient{ends[0], each.sizes, {.bytes = each.bytes}};
        CHECK(gradient.buckets() == each.buckets);
        CHECK(gradient.parts() == each.sizes.size());
    }
    CHECK(text_of([&] {
              Gradient{ends[0], std::vector<std::size_t>{}};
          }) == "bucketed reduction: expected at least one part, and there is none");
    constexpr std::size_t most = ~std::size_t{0} / sizeof(float);
    CHECK(text_of([&] {
              Gradient{ends[0], std::vector<std::size_t>{3, most}};
          }) == "bucketed reduction: a part of " + std::to_string(most) +
                    " elements behind 3 is larger than any memory");
}

TEST_CASE("a communicator and a bucketed reduction stay what they are when moved into themselves") {
    if (!enough_devices(1))
        return;
    std::vector<Comm> ends = communicators(1);
    move_into_itself(ends[0]);
    const BasicStream<B> stream;
    Gradient gradient{ends[0], {2, 1}, {.bytes = 0}};
    move_into_itself(gradient);
    CHECK(gradient.parts() == 2);
    CHECK(gradient.buckets() == 2);
    make(stream, gradient, 0, 1.0f);
    move_into_itself(gradient);
    make(stream, gradient, 1, 1.0f);
    gradient.join(stream);
    CHECK(read(stream, gradient) == Values{1, 1, 2});
}

TEST_CASE("a communicator and a bucketed reduction that were moved from are refused") {
    if (!enough_devices(1))
        return;
    const auto check_refused = [](const char* what, const auto& use) {
        CHECK(text_of(use) == moved_from(what));
    };
    std::vector<Comm> ends = communicators(1);
    const BasicStream<B> stream;
    DeviceBuffer<float, B> memory(4);
    Gradient gradient{ends[0], {2, 1}};
    Gradient taken = std::move(gradient);
    check_refused("bucketed reduction", [&] { (void)gradient.part(0); });
    check_refused("bucketed reduction", [&] { (void)gradient.all(); });
    check_refused("bucketed reduction", [&] { gradient.ready(stream, 0); });
    check_refused("bucketed reduction", [&] { gradient.none(stream, 0); });
    check_refused("bucketed reduction", [&] { gradient.join(stream); });
    check_refused("bucketed reduction", [&] { gradient.reset(stream); });
    check_refused("stream", [&] { (void)gradient.stream(); });
    gradient = std::move(taken);
    gradient.ready(stream, 0);
    taken = std::move(gradient); // in the middle of a gradient, and used in a capture
    BasicStream<B> other;
    (void)text_of([&] {
        (void)capture(other, [&](BasicStreamRef<B> s) {
            fill_bytes(s, memory, 0);
            check_refused("bucketed reduction", [&] { gradient.ready(s, 0); });
        });
    });
    gradient = std::move(taken);
    gradient.reset(stream);
    make(stream, gradient, 0, 3);
    make(stream, gradient, 1, 3);
    gradient.join(stream);
    stream.sync();

    Comm moved = std::move(ends[0]);
    ends[0].abort("not heard: it was moved from");
    check_refused("communicator", [&] { (void)ends[0].rank(); });
    check_refused("communicator", [&] { (void)ends[0].ranks(); });
    check_refused("communicator", [&] { (void)ends[0].device(); });
    check_refused("communicator", [&] { ends[0].require_alive(); });
    check_refused("communicator", [&] { ends[0].fail_with_group(stream); });
    check_refused("communicator", [&] { all_reduce(stream, ends[0], memory); });
    check_refused("communicator", [&] { Gradient(ends[0], {1}); });
    moved.require_alive();
}

TEST_CASE(
    "none is refused where zeros would change the result, and for a part that is ready or does not exist") {
    if (!enough_devices(1))
        return;
    std::vector<Comm> ends = communicators(1);
    const BasicStream<B> stream;
    Gradient least{ends[0], {2}, {.reduction = Reduction::minimum}};
    CHECK(text_of([&] { least.none(stream, 0); }) == "bucketed reduction: zeros for part 0 would change the "
                                                     "minimum of the other ranks; expected a sum or an "
                                                     "average");
    Gradient gradient{ends[0], {2, 1}};
    make(stream, gradient, 0, 3);
    CHECK(contains(text_of([&] { gradient.none(stream, 0); }), "part 0 of 2 is ready"));
    CHECK(text_of([&] { gradient.none(stream, 2); }) ==
          "bucketed reduction: there is no part 2 of 2; expected one of them, from 0");
    CHECK(text_of([&] { (void)gradient.part(2); }) ==
          "bucketed reduction: there is no part 2 of 2; expected one of them, from 0");
    // What it refused has not been cleared.
    gradient.none(stream, 1);
    gradient.join(stream);
    CHECK(read(stream, gradient) == Values{3, 3, 0});
}

} // namespace collective_buckets
