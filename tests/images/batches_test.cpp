// Batches: every image once an epoch, the last batch shorter, the same bits whichever worker fills them; and through a pipeline.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include <images/batches.hpp>

#include "images/support.hpp"
#include "support/heap_count.hpp"

namespace images_batches_test {

using namespace images;
using namespace images_test;

namespace {

/// What a batch holds.
template <class Pixel>
struct Contents {
    std::vector<Pixel> images;
    std::vector<std::uint8_t> labels;
    friend bool operator==(const Contents&, const Contents&) = default;
};

template <class Pixel>
Contents<Pixel> contents_of(const HostBatch<Pixel, B>& batch) {
    return {{batch.images().begin(), batch.images().end()}, {batch.labels().begin(), batch.labels().end()}};
}

template <class Pixel>
std::vector<Contents<Pixel>> all_of(const Batches<Pixel, B>& batches, int workers) {
    auto source = batches.source({.workers = workers});
    std::vector<Contents<Pixel>> result;
    for (const auto& batch : source)
        result.push_back(contents_of<Pixel>(*batch));
    return result;
}

/// Images as small as they can be, so that epochs are short.
constexpr int small_side = 4;

} // namespace

TEST_CASE("batches: every image once an epoch, in an order of the epoch's own, the last batch shorter") {
    const RandomImages set(100, 3);
    const Batches<std::uint8_t, B> batches(set, {.batch = 16, .epochs = 2});
    CHECK(batches.batches_per_epoch() == 7);
    CHECK(batches.batches() == 14);
    CHECK(batches.batch_size(0) == 16);
    CHECK(batches.batch_size(6) == 4);
    CHECK(batches.batch_size(13) == 4);

    std::map<std::vector<std::uint8_t>, std::size_t> number;
    std::vector<std::uint8_t> labels;
    for (std::size_t i = 0; i < set.size(); ++i) {
        std::vector<std::uint8_t> image(ImageSet::image_bytes);
        labels.push_back(set.load(i, image));
        number[image] = i;
    }
    std::vector<std::size_t> order;
    const auto all = all_of(batches, 0);
    for (std::size_t index = 0; index < all.size(); ++index) {
        const auto& batch = all[index];
        for (std::size_t i = 0; i < batch.labels.size(); ++i) {
            const auto begin = batch.images.begin() + static_cast<std::ptrdiff_t>(i * ImageSet::image_bytes);
            order.push_back(number.at({begin, begin + static_cast<std::ptrdiff_t>(ImageSet::image_bytes)}));
            CHECK(batch.labels[i] == labels[order.back()]);
            CHECK(batches.samples(index)[i] == order.back());
        }
    }
    REQUIRE(order.size() == 200);
    std::vector<std::size_t> first(order.begin(), order.begin() + 100);
    std::vector<std::size_t> second(order.begin() + 100, order.end());
    CHECK(first != second);
    std::vector<std::size_t> counted(100);
    std::iota(counted.begin(), counted.end(), std::size_t{0});
    CHECK(first != counted);
    std::ranges::sort(first);
    std::ranges::sort(second);
    CHECK(first == counted);
    CHECK(second == counted);
}

TEST_CASE("batches: shares weigh each image the same where shards' batches differ in size") {
    const RandomImages set(7, 3);
    const auto shard = [&](std::uint64_t number) {
        return Batches<std::uint8_t, B>(set, {.batch = 2, .epochs = 2, .shard = number, .shards = 2});
    };
    // Batches of 2 and 2, and of 2 and 1.
    for (const std::size_t epoch : {std::size_t{0}, std::size_t{2}}) {
        CHECK(shard(0).share(epoch) == 1.0f);
        CHECK(shard(1).share(epoch) == 1.0f);
        CHECK(shard(0).share(epoch + 1) == 2.0f * 2 / 3);
        CHECK(shard(1).share(epoch + 1) == 2.0f / 3);
    }
}

TEST_CASE("batches: the same bits whatever the workers and the memory") {
    const RandomImages set(50, 3);
    const BatchOptions options{.batch = 8, .epochs = 2, .seed = 4, .side = small_side};
    const Batches<float, B> batches(set, options);
    const auto expected = all_of(batches, 0);
    REQUIRE(expected.size() == 14);
    for (const int workers : {1, 2, 5})
        CHECK(all_of(batches, workers) == expected);
    BatchOptions other = options;
    other.memory = HostMemory::pageable;
    CHECK(all_of(Batches<float, B>(set, other), 2) == expected);
    other.seed = 5;
    CHECK(all_of(Batches<float, B>(set, other), 2) != expected);
}

TEST_CASE("batches: images as bytes and floats, as they are and enlarged, in either layout") {
    const RandomImages set(3, 3);
    for (const int side : {32, 40}) {
        for (const Layout layout : layouts) {
            BatchOptions options{.batch = 3, .shuffle = false, .side = side, .layout = layout};
            options.normalize = Normalize(0.4f, 0.3f);
            std::vector<std::uint8_t> expected;
            ResizeScratch scratch;
            const BilinearWeights weights(set.shape(), side, side);
            for (std::size_t i = 0; i < 3; ++i) {
                std::vector<std::uint8_t> image(ImageSet::image_bytes);
                std::vector<std::uint8_t> resized(numbers_in(weights.to()));
                set.load(i, image);
                resize_image(weights, scratch, image.data(), resized.data());
                expected.insert(expected.end(), resized.begin(), resized.end());
            }
            const Batches<std::uint8_t, B> bytes(set, options);
            CHECK(bytes.shape() == weights.to());
            CHECK(all_of(bytes, 1).at(0).images == in_layout(expected, weights.to(), layout));
            const Batches<float, B> floats(set, options);
            CHECK(all_of(floats, 1).at(0).images ==
                  in_layout(converted<float>(expected, options.normalize), weights.to(), layout));
        }
    }
}

TEST_CASE("batches: filling allocates nothing once a worker has filled one") {
    const RandomImages set(20);
    const Batches<float, B> batches(set, {.batch = 8});
    Batches<float, B>::Worker worker;
    auto slot = batches.make_slot();
    batches.fill(worker, 0, slot);
    const sluice::test::HeapCount heap;
    for (std::size_t i = 0; i < batches.batches(); ++i)
        batches.fill(worker, i, slot);
    CHECK(heap.allocations() == 0);
}

namespace {

/// The labels and the enlarged images of each batch, by a pipeline that copies, and then enlarges on the device.
struct Trained {
    std::vector<std::uint8_t> labels;
    std::vector<std::uint8_t> images;
    friend bool operator==(const Trained&, const Trained&) = default;
};

constexpr std::size_t batch = 8;
constexpr int enlarged_side = 40;

Trained run_pipeline(const Batches<std::uint8_t, B>& batches, const Resize<B>& enlarge,
                     const sluice::PipelineOptions& options) {
    using Enlarged = sluice::DeviceBuffer<std::uint8_t, B>;
    const std::size_t image = numbers_in(enlarge.weights().to());
    Trained found;
    const auto append_to = [](std::vector<std::uint8_t>& to) {
        return [&to](std::size_t, std::span<const std::uint8_t> values) {
            to.insert(to.end(), values.begin(), values.end());
        };
    };
    sluice::Readback<std::uint8_t, B> labels(batch, append_to(found.labels));
    sluice::Readback<std::uint8_t, B> images(batch * image, append_to(found.images));

    using Ref = sluice::BasicStreamRef<B>;
    using Host = HostBatch<std::uint8_t, B>;
    using Device = DeviceBatch<std::uint8_t, B>;
    sluice::Stage copy{"copy", [](Ref stream, const Host& in, Device& out) { out.copy_from(stream, in); }};
    sluice::Stage train{"train", [&](Ref stream, Device& in, Enlarged& out) {
                            const auto room = out.first(in.size() * image);
                            resize(
                                stream, enlarge, in.images(),
                                Images<std::uint8_t, B>(room, enlarge.weights().to(), Layout::interleaved));
                            labels.push(stream, in.labels());
                            images.push(stream, room);
                        }};
    sluice::Pipeline pipeline{sluice::Stages{copy, train},
                              sluice::Slots{[&](int) { return Device(batch, batches.shape()); },
                                            [&](int) { return Enlarged(batch * image); }},
                              options};
    auto source = batches.source({.workers = 2, .slots = 4});
    for (const auto& each : source)
        pipeline.submit(each);
    pipeline.finish();
    labels.finish();
    images.finish();
    return found;
}

} // namespace

TEST_CASE("batches: a shorter last batch goes through a pipeline under every schedule") {
    const RandomImages set(20, 3);
    const Batches<std::uint8_t, B> batches(set, {.batch = batch, .epochs = 30});
    const Resize<B> enlarge(BilinearWeights(set.shape(), enlarged_side, enlarged_side));
    Trained expected;
    ResizeScratch scratch;
    for (const auto& each : all_of(batches, 0)) {
        expected.labels.insert(expected.labels.end(), each.labels.begin(), each.labels.end());
        for (std::size_t i = 0; i < each.labels.size(); ++i) {
            std::vector<std::uint8_t> image(numbers_in(enlarge.weights().to()));
            resize_image(enlarge.weights(), scratch, each.images.data() + i * ImageSet::image_bytes,
                         image.data());
            expected.images.insert(expected.images.end(), image.begin(), image.end());
        }
    }
    REQUIRE(expected.labels.size() == 600);
    sluice::PipelineOptions options;
    for (const auto schedule :
         {sluice::Schedule::serial, sluice::Schedule::overlapped, sluice::Schedule::graphed}) {
        options.schedule = schedule;
        for (const bool each_stage : {false, true}) {
            options.graph_each_stage = each_stage;
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(each_stage);
            CHECK(run_pipeline(batches, enlarge, options) == expected);
        }
    }
}

TEST_CASE("batches: what cannot be is refused") {
    const RandomImages set(5);
    using Bytes = Batches<std::uint8_t, B>;
    CHECK(error_of([&] { Bytes(set, {.epochs = 0}); }) ==
          "batches of no epoch were asked for; there must be at least one");
    CHECK(error_of([&] { Bytes(set, {.batch = 6, .keep_last = false}); }) ==
          "a set of 5 images has no full batch of 6, and shorter ones are to be dropped");
    CHECK(error_of([&] { Bytes(set, {.batch = 0}); }) != "(no sluice::Error was thrown)");
    HostBatch<std::uint8_t, B> slot = Bytes(set, {.batch = 4}).make_slot();
    CHECK(error_of([&] { slot.resize(5); }) ==
          "a batch with room for 4 images is to hold 5; it holds at least one");
    DeviceBatch<std::uint8_t, B> device(3, set.shape());
    const Stream stream;
    CHECK(error_of([&] { device.copy_from(stream.ref(), slot); }) ==
          "a batch of 4 images of 3x32x32 is to be copied to one of up to 3 of 3x32x32");
}

} // namespace images_batches_test
