/// \file
/// The program live as a user runs it.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <turbojpeg.h>
#include <vector>

#include <images/resize.hpp>
#include <nn/models/resnet18.hpp>

#include "program.hpp"
#include "support/doctest.hpp"

namespace examples_live {

using nlohmann::json;
using sluice_test::Bytes;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;
using sluice_test::word;

namespace {

const sluice_test::Program program(LIVE);
const std::string photographs = SLUICE_PHOTOGRAPHS_DIR;
const std::string small = " --image 32 --channels 8";

std::vector<json> lines_of(const std::filesystem::path& file) {
    const Bytes bytes = sluice_test::contents(file);
    std::istringstream text(std::string(bytes.begin(), bytes.end()));
    std::vector<json> lines;
    for (std::string line; std::getline(text, line);)
        lines.push_back(json::parse(line));
    return lines;
}

// That each camera's frames are in order; how many there are.
std::size_t check_order(const std::vector<json>& lines) {
    std::map<int, int> last;
    for (const json& line : lines) {
        const int camera = line.at("camera"), frame = line.at("frame");
        CHECK((!last.contains(camera) || last[camera] < frame));
        last[camera] = frame;
        CHECK(line.at("age_ms").get<double>() > 0);
    }
    return lines.size();
}

// That each frame that was captured has become something.
void check_counts(const json& run) {
    INFO(run.dump());
    const auto of = [&](const char* name) { return run.at(name).get<std::size_t>(); };
    CHECK(of("captured") == of("done") + of("dropped") + of("missed") + of("bad"));
    CHECK(of("with_other_classes") == 0);
}

// The three best classes of a photograph, without a pipeline, and the resizing that the sources of other examples call.
std::vector<std::pair<std::size_t, double>> best_of(const std::string& photograph) {
    const Bytes jpeg = sluice_test::contents(std::filesystem::path(photographs) / photograph);
    std::vector<std::uint8_t> pixels(std::size_t{3} * 640 * 427);
    const tjhandle decoder = tjInitDecompress();
    REQUIRE(tjDecompress2(decoder, jpeg.data(), jpeg.size(), pixels.data(), 640, 0, 427, TJPF_RGB, 0) == 0);
    tjDestroy(decoder);
    std::vector<float> numbers(std::size_t{3} * 32 * 32);
    images::ResizeScratch scratch;
    images::resize_image(images::BilinearWeights({3, 427, 640}, 32, 32), scratch, pixels.data(),
                         numbers.data(), images::Layout::interleaved, images::Normalize(0.449f, 0.226f));
    nn::ResNet18Options options;
    options.height = options.width = 32;
    options.base_channels = 8;
    options.trainable = false;
    options.seed = 1;
    nn::ResNet18<sluice::Host> network(options);
    const auto input = nn::to_device<sluice::Host>(numbers);
    sluice::DeviceBuffer<float, sluice::Host> logits(1000);
    std::vector<float> values;
    nn::on_own_stream<sluice::Host>([&](sluice::HostStreamRef stream) {
        network.infer(stream, input.span(), logits);
        values = nn::to_host(stream, logits);
    });
    double sum = 0;
    for (const float value : values)
        sum += std::exp(double{value});
    std::vector<std::pair<std::size_t, double>> best;
    while (best.size() < 3) {
        const auto at = std::max_element(values.begin(), values.end());
        best.emplace_back(static_cast<std::size_t>(at - values.begin()), std::exp(double{*at}) / sum);
        *at = -HUGE_VALF;
    }
    return best;
}

} // namespace

TEST_CASE("live gives the network's classes of each frame, in order, the same under each schedule") {
    const ScratchFolder scratch;
    const std::vector<std::vector<std::pair<std::size_t, double>>> expected{best_of("china.jpg"),
                                                                            best_of("flower.jpg")};
    CHECK(expected[0] != expected[1]);
    std::vector<json> first;
    for (const char* schedule : {"serial", "overlapped", "graphed"}) {
        INFO(schedule);
        const std::string output = scratch.path() / schedule;
        const Outcome outcome = program.run(small + " --rate 0 --frames 7 --cameras 3 --schedule " +
                                            schedule + " --output " + word(output));
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        const json& run = outcome.report.at("runs")[0];
        check_counts(run);
        CHECK(run.at("done") == 21);
        CHECK(run.at("latency_frames") == 21);
        std::vector<json> lines = lines_of(output);
        REQUIRE(check_order(lines) == 21);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            CHECK(lines[i].at("camera") == i % 3); // in turns, since no clock decides
            CHECK(lines[i].at("frame") == i / 3);
            const json& best = lines[i].at("best");
            REQUIRE(best.size() == 3);
            for (std::size_t at = 0; at < 3 && sluice_test::on_host(); ++at) {
                const auto& [number, score] = expected[(i / 3 + i % 3) % 2][at];
                CHECK(best[at][0] == number);
                CHECK(best[at][1].get<double>() == doctest::Approx(score).epsilon(1e-4));
            }
            CHECK(lines[i].at("schedule") == schedule);
            lines[i].erase("schedule");
            lines[i].erase("age_ms");
        }
        if (first.empty())
            first = lines;
        CHECK(lines == first);
    }
}

TEST_CASE("live writes the results of all schedules into one file") {
    const ScratchFolder scratch;
    const std::string output = scratch.path() / "results";
    const Outcome outcome = program.run(
        small + " --rate 0 --frames 5 --cameras 2 --schedule serial,graphed,overlapped --output " +
        word(output));
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    std::vector<std::string> schedules;
    for (const json& line : lines_of(output))
        schedules.push_back(line.at("schedule"));
    std::vector<std::string> expected;
    for (const char* schedule : {"serial", "graphed", "overlapped"})
        expected.insert(expected.end(), 10, schedule);
    CHECK(schedules == expected);
}

TEST_CASE("live counts each frame of cameras that are too fast") {
    const ScratchFolder scratch;
    const std::string output = scratch.path() / "results", timeline = scratch.path() / "timeline.html";
    for (const char* in_flight : {"1", "3"}) {
        const Outcome outcome =
            program.run(small + " --rate 20000 --frames 4000 --cameras 2 --report --in-flight " + in_flight +
                        " --output " + word(output) + " --timeline " + word(timeline));
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        const json& run = outcome.report.at("runs")[0];
        check_counts(run);
        CHECK(run.at("captured") == 8000);
        CHECK(run.at("missed") > 0); // a frame each 50 us, while decoding takes more
        CHECK(check_order(lines_of(output)) == run.at("done").get<std::size_t>());
        CHECK(std::filesystem::file_size(timeline) > 1000);
        CHECK(run.at("notes").back().get<std::string>().ends_with('.'));
    }
}

TEST_CASE("live leaves a bad photograph out, says so in a sentence, and ends where all are bad") {
    const ScratchFolder scratch;
    const Bytes china = sluice_test::contents(photographs + "/china.jpg");
    const std::string good = scratch.file("a.jpg", china);
    (void)scratch.file("b.jpg", Bytes(china.begin(), china.begin() + 20'000));
    (void)scratch.file("c.jpg", Bytes(100, 7));
    const std::string output = scratch.path() / "results";
    for (const char* rate : {"0", "200"}) {
        const Outcome outcome = program.run(small + " --frames 9 --cameras 2 --data " + word(scratch.path()) +
                                            " --output " + word(output) + " --rate " + rate);
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        const json& run = outcome.report.at("runs")[0];
        check_counts(run);
        CHECK(run.at("bad") > 0);
        if (rate[0] == '0')
            CHECK(run.at("bad") == 12);
        const std::string note = run.at("notes")[0];
        CHECK(note.find(" frames were left out; the first: frame ") != std::string::npos);
        CHECK(note.find(".jpg cannot be decoded: ") != std::string::npos);
        const std::vector<json> lines = lines_of(output);
        CHECK(check_order(lines) == run.at("done").get<std::size_t>());
        for (const json& line : lines)
            CHECK((line.at("camera").get<int>() + line.at("frame").get<int>()) % 3 == 0); // a.jpg
    }
    std::filesystem::remove(good);
    for (const char* rate : {"0", "500"}) {
        const Outcome outcome =
            program.run(small + " --frames 100 --data " + word(scratch.path()) + " --rate " + rate);
        CHECK(outcome.code == 1);
        CHECK(outcome.errors.find("10 batches in a row were left out") != std::string::npos);
        CHECK(outcome.errors.find('\n') == outcome.errors.size() - 1);
    }
}

TEST_CASE("live loses no finished frame at Ctrl-C, or when a service is stopped") {
    const ScratchFolder scratch;
    for (const auto& [rate, signal] : {std::pair{"0", "INT"}, {"100", "INT"}, {"100", "TERM"}}) {
        const std::filesystem::path output = scratch.path() / (std::string("results") + rate + signal),
                                    report = scratch.path() / (std::string("report") + rate + signal);
        const std::string file = word(output);
        const std::string command = "touch " + file + "; " + word(LIVE) + " --backend " +
                                    sluice_test::backend + small + " --frames 1000000 --rate " + rate +
                                    " --output " + file + " --json " + word(report) +
                                    " >/dev/null & while kill -0 $! && [ \"$(wc -l <" + file +
                                    ")\" -lt 9 ]; do sleep 0.02; done; kill -" + signal + " $! && wait $!";
        REQUIRE(std::system(command.c_str()) == 0);
        const Bytes bytes = sluice_test::contents(report);
        const json run = json::parse(bytes.begin(), bytes.end()).at("runs")[0];
        check_counts(run);
        CHECK(run.at("captured") < 4'000'000);
        CHECK(run.at("done") >= 9);
        CHECK(check_order(lines_of(output)) == run.at("done").get<std::size_t>());
    }
}

TEST_CASE("live refuses what it cannot do in one sentence") {
    const ScratchFolder scratch;
    program.check_refused(" --rate 0", "--rate: expected --frames with 0");
    program.check_refused(" --frames 3 --seconds 2", "--seconds: expected without --frames");
    program.check_refused(" --cameras 0", "--cameras: expected a whole number from 1 to 64");
    program.check_refused(" --decoder hand", "--decoder: expected cpu or gpu, not \"hand\"");
    program.check_refused(" --data " + word(scratch.path()),
                          "--data: expected a folder of JPEG files (*.jpg)");
    if (sluice_test::on_host())
        program.check_refused(" --decoder gpu", "--decoder: expected --backend cuda for gpu");
    (void)scratch.file("a.jpg", Bytes(10, 0));
    program.check_refused(" --data " + word(scratch.path()), "holds no JPEG photograph that can be decoded");
}

} // namespace examples_live
