// What overlapped, and what set the pace: a report and a picture of a pipeline's last batches.
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <sluice/report.hpp>

#include "for_each.hpp"

constexpr std::size_t size = 512;

struct Values {
    sluice::DeviceBuffer<float> all{size};
};

// Some work that takes a while, on element i.
SLUICE_HOST_DEVICE void refine(std::size_t i, float* roots, int rounds) {
    const float x = static_cast<float>(i + 1);
    float root = 1;
    for (int round = 0; round < rounds; ++round)
        root = 0.5f * (root + x / root);
    roots[i] = root;
}

sluice::Timeline run(sluice::Schedule schedule) {
    sluice::Stage encode{"encode", [](sluice::StreamRef stream, const int& rounds, Values& out) {
                             for_each<refine>(stream, size, out.all.data(), rounds);
                         }};
    sluice::Stage train{"train", [](sluice::StreamRef stream, Values& in) {
                            for_each<refine>(stream, size, in.all.data(), 6000);
                        }};
    // The last 16 batches are noted. Without `timed_batches` nothing is, and it costs nothing.
    sluice::TwoStreamPipeline pipeline{
        encode, train, [](int /*slot*/) { return Values{}; }, {.schedule = schedule, .timed_batches = 16}};
    for (int step = 0; step < 40; ++step)
        pipeline.submit(3000);
    pipeline.finish();
    return sluice::timeline_of(pipeline, to_string(schedule));
}

int main(int count, char** arguments) {
    const sluice::Timeline serial = run(sluice::Schedule::serial);
    const sluice::Timeline overlapped = run(sluice::Schedule::overlapped);
    std::printf("%s\n", sluice::to_table(sluice::report_of(overlapped)).c_str());
    // A file for the picture, serial above and overlapped below, or for a page that compares the two.
    const std::string file = count > 1 ? arguments[1] : "";
    if (file.ends_with(".html"))
        sluice::write_html({&serial, &overlapped}, file);
    else if (!file.empty())
        sluice::write_svg({&serial, &overlapped}, file);

    const sluice::TimelineReport alone = sluice::report_of(serial);
    const bool right =
        alone.batches == 16 && alone.overlap < 0.01 && sluice::report_of(overlapped).batches == 16;
    std::printf("%s\n", right ? "right" : "WRONG");
    return exit_code(right);
}
