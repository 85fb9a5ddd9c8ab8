// Rows that do not lie one behind the other, parts of them, and copies between them.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/graph.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/pitched.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/random_values.hpp"

namespace memory_pitched {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;

struct Triple {
    std::uint8_t value[3];
    friend bool operator==(const Triple&, const Triple&) = default;
};

// A picture on the host, as plain loops have it.
template <class T>
struct Picture {
    std::size_t pitch;
    std::vector<T> all;
    T& at(std::size_t column, std::size_t row) { return all[row * pitch + column]; }
};
template <class T>
Picture<T> random_picture(std::size_t pitch, std::size_t rows, std::uint32_t seed) {
    return {pitch, random_values<T>(pitch * rows, seed)};
}

/// A part of one picture goes up into another one, across into a third, and down into a fourth: what lies beside stays.
template <class T>
void check_parts(std::size_t columns, std::size_t rows) {
    CAPTURE(columns);
    CAPTURE(rows);
    const BasicStream<B> stream;
    Picture<T> pictures[] = {random_picture<T>(columns + 5, rows + 3, 1),
                             random_picture<T>(columns + 2, rows + 2, 2), random_picture<T>(columns, rows, 3),
                             random_picture<T>(columns + 9, rows + 1, 4)};
    PinnedBuffer<T, B> from(pictures[0].all.size());
    DeviceBuffer<T, B> up(pictures[1].all.size()), across(pictures[2].all.size());
    PinnedBuffer<T, B> down(pictures[3].all.size());
    std::copy(pictures[0].all.begin(), pictures[0].all.end(), from.begin());
    std::copy(pictures[3].all.begin(), pictures[3].all.end(), down.begin());
    copy_and_wait(stream, up, pictures[1].all);
    copy_and_wait(stream, across, pictures[2].all);

    const PitchedSpan from_rows{std::as_const(from), columns + 4, rows + 3, columns + 5};
    const PitchedSpan up_rows{up, columns + 2, rows + 2};
    const PitchedSpan across_rows{across.span(), columns, rows};
    const PitchedSpan down_rows{down, columns + 1, rows, columns + 9};
    copy_2d(stream, up_rows.part(2, 1, columns, rows), from_rows.part(3, 2, columns, rows));
    copy_2d(stream.ref(), across_rows, up_rows.part(2, 1, columns, rows));
    copy_2d(stream, down_rows.part(1, 0, columns, rows), across_rows);
    stream.sync();
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            const T value = pictures[0].at(column + 3, row + 2);
            pictures[1].at(column + 2, row + 1) = value;
            pictures[2].at(column, row) = value;
            pictures[3].at(column + 1, row) = value;
        }
    }
    std::vector<T> seen(up.size());
    copy_and_wait(stream, seen, up);
    CHECK(seen == pictures[1].all);
    seen.resize(across.size());
    copy_and_wait(stream, seen, across);
    CHECK(seen == pictures[2].all);
    CHECK(std::vector<T>(down.begin(), down.end()) == pictures[3].all);
    CHECK(std::vector<T>(from.begin(), from.end()) == pictures[0].all);
}

} // namespace

TEST_CASE("parts of pictures are copied up, across and down, and what lies beside them stays") {
    for (const auto& [columns, rows] :
         std::vector<std::pair<std::size_t, std::size_t>>{{1, 1}, {1, 7}, {7, 1}, {224, 33}, {31, 500}}) {
        check_parts<std::uint32_t>(columns, rows);
        check_parts<std::uint8_t>(columns, rows);
        check_parts<Triple>(columns, rows);
    }
}

TEST_CASE("rows are copied from pinned to pinned memory in the order of the stream") {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> from(6), to(6);
    for (int i = 0; i < 6; ++i) {
        from[static_cast<std::size_t>(i)] = i;
        to[static_cast<std::size_t>(i)] = -1;
    }
    copy_2d(stream, PitchedSpan{to, 2, 2, 3}, PitchedSpan{from, 2, 2, 4});
    stream.sync();
    CHECK(std::vector<int>(to.begin(), to.end()) == std::vector<int>{0, 1, -1, 4, 5, -1});
}

TEST_CASE("a copy of rows is an operation of a captured graph") {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> from(8), to(4);
    DeviceBuffer<int, B> between(4);
    for (std::size_t i = 0; i < 8; ++i)
        from[i] = static_cast<int>(i);
    const BasicGraph<B> graph = capture(stream, [&](BasicStreamRef<B> s) {
        copy_2d(s, PitchedSpan{between, 2, 2}, PitchedSpan{from, 2, 2, 6});
        copy(s, to, between);
    });
    CHECK(graph.nodes() == 2);
    const BasicGraphExec<B> executable{graph};
    for (int run = 0; run < 3; ++run) {
        from[7] = run;
        executable.launch(stream);
        stream.sync();
        CHECK(std::vector<int>(to.begin(), to.end()) == std::vector<int>{0, 1, 6, run});
    }
}

TEST_CASE("a captured copy of rows that has another pitch is other work") {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> from(12);
    DeviceBuffer<int, B> to(12);
    std::size_t from_pitch = 4, to_pitch = 4;
    GraphCapture<NoKey, B> graph{{.warmup = 0, .check = true}};
    const auto run = [&] {
        graph.run(stream.ref(), [&](BasicStreamRef<B> s) {
            copy_2d(s, PitchedSpan{to, 2, 3, to_pitch}, PitchedSpan{from, 2, 3, from_pitch});
        });
    };
    run();
    run();
    CHECK(graph.counters().replays == 2);
    from_pitch = 5;
    CHECK(contains(text_of(run), "has changed"));
    from_pitch = 4;
    run();
    to_pitch = 5;
    CHECK(contains(text_of(run), "has changed"));
    stream.sync();
}

TEST_CASE("no columns or rows: nothing is copied") {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> none, some(4);
    DeviceBuffer<int, B> device(4);
    copy_2d(stream, PitchedSpan{device, 0, 4}, PitchedSpan{none, 0, 4});
    copy_2d(stream, PitchedSpan{device, 4, 0}, PitchedSpan{some, 4, 0});
    stream.sync();
}

TEST_CASE("rows that do not fit, parts that are not there and sizes that differ are refused in a sentence") {
    DeviceBuffer<int, B> buffer(20);
    CHECK(PitchedSpan{buffer, 4, 3, 8}.row(2) ==
          buffer.data() + 16); // the last row needs no more than its columns
    CHECK(text_of([&] {
              (void)PitchedSpan{buffer, 5, 3, 8};
          }) == "a pitched span of 5 x 3 elements with a pitch of 8 does not fit into the 20 that there are");
    CHECK(text_of([&] {
              (void)PitchedSpan{buffer, 21, 1};
          }) ==
          "a pitched span of 21 x 1 elements with a pitch of 21 does not fit into the 20 that there are");
    CHECK(text_of([&] {
              (void)PitchedSpan{buffer, 4, 3, 3};
          }) == "a pitched span has rows of 4 elements, 3 apart; expected a pitch of as many or more");
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    CHECK(contains(text_of([&] { (void)PitchedSpan{buffer, 1, most, 2}; }), "does not fit"));
    const PitchedSpan rows{buffer, 4, 3, 8};
    CHECK(text_of([&] { (void)rows.part(1, 2, 4, 1); }) ==
          "a part of 4 x 1 from column 1 and row 2 on was asked for, of 4 x 3");
    CHECK(contains(text_of([&] { (void)rows.part(0, 1, 1, most); }), "was asked for"));
    CHECK(contains(text_of([&] { (void)rows.part(5, 0, 0, 0); }), "was asked for"));
    const BasicStream<B> stream;
    CHECK(text_of([&] { copy_2d(stream, rows, rows.part(0, 0, 4, 2)); }) ==
          "copy_2d: the source has 4 x 2 elements and the destination 4 x 3; both must have the same columns "
          "and rows");
    // An empty part behind the last row begins nowhere.
    CHECK(rows.part(0, 3, 4, 0).data() == nullptr);
    CHECK(rows.part(4, 2, 0, 1).data() == nullptr);
}

TEST_CASE("rows that overlap are refused, and rows side by side are not") {
    DeviceBuffer<int, B> buffer(8 * 6);
    const BasicStream<B> stream;
    fill_bytes(stream, buffer, 1);
    const PitchedSpan image{buffer, 8, 6};
    const auto text = [&](auto to, auto from) { return text_of([&] { copy_2d(stream, to, from); }); };
    CHECK(contains(text(image.part(0, 0, 7, 6), image.part(1, 0, 7, 6)), "copy_2d: the source and the"));
    CHECK(contains(text(image.part(0, 1, 8, 5), image.part(0, 0, 8, 5)), "overlap"));
    CHECK(contains(text(image.part(4, 0, 4, 3), image.part(1, 2, 4, 3)), "overlap"));
    CHECK(contains(text(PitchedSpan{buffer, 4, 3, 6}, PitchedSpan{buffer, 4, 3, 8}), "overlap"));
    copy_2d(stream, image.part(0, 0, 4, 6), image.part(4, 0, 4, 6));
    copy_2d(stream, image.part(4, 3, 4, 3), image.part(0, 0, 4, 3));
    copy_2d(stream, image.part(0, 0, 8, 3), image.part(0, 3, 8, 3));
    copy_2d(stream, image, image);
    stream.sync();
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("the checker knows which columns a copy of rows touches") {
    using C = Checked<UncheckedHost>;
    const BasicStream<C> one, other;
    DeviceBuffer<int, C> image(64);
    PinnedBuffer<int, C> left(16), right(16);
    const PitchedSpan rows{image, 8, 8};
    copy_2d(one, rows.part(0, 0, 4, 4), PitchedSpan{left, 4, 4});
    copy_2d(other, rows.part(4, 0, 4, 4), PitchedSpan{right, 4, 4}); // beside it, at the same time
    CHECK(contains(text_of([&] {
                       copy_2d(other, rows.part(3, 3, 1, 1), PitchedSpan{right, 1, 1});
                   }),
                   "race"));
    one.sync();
    other.sync();
}
#endif

} // namespace memory_pitched
