/// \file
/// The program frozen_encoder as a user runs it.
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <common/safetensors.hpp>

#include "automatic.hpp"
#include "program.hpp"
#include "resumed.hpp"
#include "support/doctest.hpp"

namespace examples_frozen_encoder {

using sluice_test::backend;
using sluice_test::on_host;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;

namespace {

const std::string digits = " --data " + sluice_test::word(SLUICE_DIGITS_DIR);
// Short, but long enough for losses to fall.
const std::string brief = " --batch 4 --steps 80 --warmup 2 --encoder-steps 60";

const sluice_test::Program program(FROZEN_ENCODER);

} // namespace

TEST_CASE("frozen_encoder learns digits, with the same bits under every schedule") {
    const ScratchFolder scratch;
    const auto file = [&](const char* name) { return (scratch.path() / name).string(); };
    const Outcome first = program.run(digits + brief + " --picture " + file("digits.png") +
                                      " --save-encoder " + file("encoder"));
    INFO(first.errors);
    REQUIRE(first.code == 0);
    CHECK(first.errors.empty());

    const nlohmann::json& report = first.report;
    CHECK(report.at("experiment") == "frozen_encoder");
    CHECK(report.at("backend") == backend);
    CHECK(report.at("batch") == 4);
    CHECK(report.at("steps") == 80);
    CHECK(report.at("ink_pixel_accuracy").is_number());
    CHECK(report.at("mean_iou").is_number());
    REQUIRE(report.at("runs").size() == 4);
    CHECK(report.at("runs")[0].at("schedule") == "serial");
    CHECK(report.at("runs")[1].at("schedule") == "overlapped");
    CHECK(report.at("runs")[2].at("schedule") == "graphed");
    CHECK(report.at("runs")[3].at("schedule") == "automatic");
    for (const nlohmann::json& schedule : report.at("runs")) {
        CHECK(schedule.at("identical_to_serial") == true);
        CHECK(schedule.at("loss_last").get<double>() < 0.9 * schedule.at("loss_first").get<double>());
        CHECK(schedule.at("steps_per_second").get<double>() > 0);
    }
    CHECK(std::filesystem::file_size(file("digits.png")) > 1000);

    // The saved encoder serves as well as the one just trained.
    const Outcome second =
        program.run(digits + brief + " --schedule serial --load-encoder " + file("encoder"));
    INFO(second.errors);
    REQUIRE(second.code == 0);
    CHECK(second.report.at("runs")[0].at("loss_last") == report.at("runs")[0].at("loss_last"));

    program.check_refused(" --data synthetic --image 32 --depth 5 --batch 1 --steps 1 --load-encoder " +
                              file("encoder"),
                          file("encoder") + ": expected an encoder of this network");

    examples::Safetensors content = examples::read_safetensors(file("encoder"));
    auto& [name, tensor] = *content.tensors.begin();
    const float none = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(tensor.bytes.data(), &none, sizeof none);
    examples::write_safetensors(content, file("nan"));
    program.check_refused(digits + " --load-encoder " + file("nan"),
                          file("nan") + ": tensor \"" + name + "\" has values that are no finite numbers");
}

namespace {

void check_rows_of_ranks(const std::string& picture) {
    const sluice_test::Bytes bytes = sluice_test::contents(picture);
    const std::string drawn(bytes.begin(), bytes.end());
    for (const std::string rank : {"rank 0: ", "rank 1: "}) {
        for (const char* row : {"copy", "encode", "train", "report", "submit"})
            CHECK(drawn.find(rank + row) != std::string::npos);
    }
}

} // namespace

TEST_CASE("frozen_encoder trained by several ranks takes the steps of one with all their images") {
    const ScratchFolder scratch;
    const auto file = [&](const char* name) { return (scratch.path() / name).string(); };
    const std::string small = " --data synthetic --image 32 --depth 5 --steps 6 --warmup 2 --losses";
    const Outcome several =
        program.run(small + " --batch 2 --gpus 2 --report --timeline " + file("ranks.svg"));
    if (several.code == 2 && several.errors.find("--gpus: expected at most") != std::string::npos) {
        MESSAGE("skipped: there is one GPU");
        return;
    }
    INFO(several.errors);
    REQUIRE(several.code == 0);
    const Outcome one = program.run(small + " --batch 4 --schedule serial");
    REQUIRE(one.code == 0);
    const auto whole = one.report.at("runs")[0].at("losses").get<std::vector<double>>();
    CHECK(several.report.at("ranks") == 2);
    REQUIRE(several.report.at("runs").size() == 3);
    REQUIRE(several.report.at("timelines").size() == 3);
    CHECK(several.report.at("timelines")[1].at("rows")[2].at("name") == "train"); // the first rank's
    for (const nlohmann::json& schedule : several.report.at("runs")) {
        CHECK(schedule.at("identical_to_serial") == true);
        CHECK(schedule.at("identical_on_ranks") == true);
        for (const char* cost : {"rank_step_us", "rank_stage_us"}) {
            REQUIRE(schedule.at(cost).size() == 2);
            CHECK(schedule.at(cost)[1].get<double>() > 0);
        }
        const auto losses = schedule.at("losses").get<std::vector<double>>();
        REQUIRE(losses.size() == whole.size());
        for (std::size_t i = 0; i < losses.size(); ++i)
            CHECK(losses[i] == doctest::Approx(whole[i]).epsilon(on_host() ? 1e-6 : 1e-3));
    }

    // So they do whatever they exchange.
    for (const std::string exchange : {"shards", "factors", "gradients"}) {
        CAPTURE(exchange);
        const Outcome asked =
            program.run(small + " --batch 2 --gpus 2 --schedule overlapped --exchange " + exchange);
        INFO(asked.errors);
        REQUIRE(asked.code == 0);
        const nlohmann::json& run = asked.report.at("runs")[0];
        CHECK(run.at("identical_on_ranks") == true);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            CHECK(run.at("losses")[i].get<double>() ==
                  doctest::Approx(whole[i]).epsilon(on_host() ? 1e-6 : 1e-3));
        }
    }

    // From a checkpoint they go on with the same bits.
    const std::string files = file("state");
    const std::string ranks = small + " --batch 2 --gpus 2 --schedule overlapped";
    const Outcome written = program.run(ranks + " --checkpoint " + files +
                                        "_{step} --checkpoint-every 3 --timeline " + file("ranks.html"));
    INFO(written.errors);
    REQUIRE(written.code == 0);
    const Outcome resumed =
        program.run(ranks + " --resume " + files + "_3 --timeline " + file("ranks.pftrace"));
    INFO(resumed.errors);
    REQUIRE(resumed.code == 0);
    const std::string hash = several.report.at("runs")[0].at("weights");
    CHECK(written.report.at("runs")[0].at("weights") == hash);
    CHECK(resumed.report.at("runs")[0].at("weights") == hash);
    for (const char* name : {"ranks.svg", "ranks.html", "ranks.pftrace"}) {
        CAPTURE(name);
        check_rows_of_ranks(file(name));
    }

    program.check_refused(small + " --batch 2 --schedule serial --resume " + files + "_3",
                          "was trained with batch 2 on each of 2 ranks; expected 2, as in this run");

    program.check_refused(" --gpus 2 --only encoder", "--only: is for one GPU, not for several");
    program.check_refused(
        " --gpus 2 --algorithms autotune",
        "--algorithms: expected heuristic unless ranks exchange gradients alone, not autotune");
    program.check_refused(" --gpus 2 --schedule automatic",
                          "--schedule: expected serial, overlapped or graphed");
    program.check_refused(" --exchange weights", "--exchange: expected shards, factors or gradients");
}

TEST_CASE("frozen_encoder refuses to exchange with one rank") {
    for (const char* one : {"", " --gpus 1"}) {
        program.check_refused(one + std::string(" --exchange factors"),
                              "--exchange: is for several ranks, expected --gpus with it");
    }
}

TEST_CASE("frozen_encoder runs the published workload") {
    // A processor takes a second a step, and shows on less that schedules agree.
    const Outcome outcome =
        program.run(std::string(" --data synthetic --batch 1 --workers 0") +
                    (on_host() ? " --steps 1 --warmup 0 --schedule serial" : " --steps 2 --warmup 1"));
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const nlohmann::json& report = outcome.report;
    CHECK(report.at("data") == "synthetic");
    REQUIRE(report.at("runs").size() == (on_host() ? 1 : 4));
    for (const nlohmann::json& schedule : report.at("runs"))
        CHECK((on_host() || schedule.at("identical_to_serial") == true));
    CHECK_FALSE(report.contains("mean_iou"));
    // Ten classes at random: the loss begins near their entropy.
    CHECK(report.at("runs")[0].at("loss_first").get<double>() == doctest::Approx(2.303).epsilon(0.02));
}

TEST_CASE("frozen_encoder keeps the frozen encoder in bfloat16, and learns as in float32") {
    std::vector<std::vector<double>> losses;
    for (const std::string precision : {"float32", "bfloat16"}) {
        const std::string options = " --batch 4 --warmup 0 --losses --precision " + precision;
        const Outcome outcome =
            program.run(digits + options + " --encoder-steps 60 --steps 60 --schedule serial");
        INFO(outcome.errors);
        REQUIRE(outcome.code == 0);
        CHECK(outcome.report.at("precision") == precision);
        losses.push_back(outcome.report.at("runs")[0].at("losses").get<std::vector<double>>());

        // That schedules agree shows sooner than that losses fall, and on any images of this size.
        const Outcome schedules =
            program.run(" --data synthetic --image 48 --depth 4" + options + " --steps 20 --schedule all");
        INFO(schedules.errors);
        REQUIRE(schedules.code == 0);
        CHECK(schedules.report.at("runs").size() == 4);
        for (const nlohmann::json& run : schedules.report.at("runs"))
            CHECK(run.at("identical_to_serial") == true);
    }
    REQUIRE(losses[0].size() == 60);
    REQUIRE(losses[1].size() == 60);
    CHECK(losses[1] != losses[0]);
    CHECK(losses[0].back() < 0.7 * losses[0].front());
    for (std::size_t i = 0; i < losses[0].size(); ++i)
        CHECK(losses[1][i] == doctest::Approx(losses[0][i]).epsilon(0.01));
}

TEST_CASE("frozen_encoder writes what a run starts from, and all its losses") {
    const ScratchFolder scratch;
    const std::string start = (scratch.path() / "start").string();
    const Outcome outcome = program.run(
        " --data synthetic --image 16 --depth 3 --batch 2 --steps 5 --warmup 1 --losses --save-start " +
        start);
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    for (const nlohmann::json& run : outcome.report.at("runs")) {
        REQUIRE(run.at("losses").size() == 6);
        CHECK(run.at("losses")[0] == run.at("loss_first"));
        CHECK(run.at("losses")[5] == run.at("loss_last"));
        CHECK(run.at("identical_to_serial") == true);
        CHECK(run.contains("device_bytes") == !on_host());
    }
    const examples::Safetensors content = examples::read_safetensors(start);
    CHECK(content.names("encoder.").size() == 8); // 1×1 and three halvings, weights and biases
    CHECK(content.names("decoder.").size() == 8); // three doublings and 3×3
    CHECK(content.at("encoder.0.weight").shape == std::vector<std::size_t>{16, 3, 1, 1});
    CHECK(content.at("decoder.0.weight").shape == std::vector<std::size_t>{128, 64, 2, 2});
    CHECK(content.names("images.").size() == 4);
    CHECK(content.at("images.3").shape == std::vector<std::size_t>{2, 3, 16, 16});
    CHECK(content.at("labels.0").shape == std::vector<std::size_t>{2, 16, 16});
    CHECK(content.at("images.0").bytes != content.at("images.1").bytes);
}

TEST_CASE("frozen_encoder trains its decoder on another device, with the same losses") {
    const std::string small =
        " --data synthetic --image 16 --depth 3 --batch 2 --steps 5 --warmup 1 --losses";
    const sluice_test::Program on_two(FROZEN_ENCODER, {}, "SLUICE_HOST_DEVICES=2");
    const Outcome there = on_two.run(small + " --decoder-device 1");
    if (there.errors.find("expected one of 1 device,") != std::string::npos) {
        MESSAGE("skipped: needs two devices");
        return;
    }
    INFO(there.errors);
    REQUIRE(there.code == 0);
    const Outcome here = program.run(small);
    REQUIRE(here.code == 0);
    for (std::size_t run = 0; run < 3; ++run) {
        CHECK(there.report.at("runs")[run].at("identical_to_serial") == true);
        CHECK(there.report.at("runs")[run].at("losses") == here.report.at("runs")[run].at("losses"));
    }
}

TEST_CASE("frozen_encoder draws what ran when, and its results stay the same") {
    const ScratchFolder scratch;
    const std::string small = " --data synthetic --image 32 --depth 5 --batch 1 --steps 30 --warmup 5";
    const Outcome plain = program.run(small);
    INFO(plain.errors);
    REQUIRE(plain.code == 0);
    for (const char* name : {"runs.svg", "runs.html", "runs.pftrace"}) {
        const std::filesystem::path file = scratch.path() / name;
        const Outcome drawn = program.run(small + " --report --timeline " + file.string());
        INFO(drawn.errors);
        REQUIRE(drawn.code == 0);
        REQUIRE(drawn.report.at("runs").size() == 4);
        for (std::size_t i = 0; i < 4; ++i)
            CHECK(drawn.report.at("runs")[i].at("loss_last") == plain.report.at("runs")[i].at("loss_last"));
        CHECK(std::filesystem::file_size(file) > 5000);
        REQUIRE(drawn.report.at("timelines").size() == drawn.report.at("runs").size());
        CHECK(drawn.report.at("timelines")[1].at("title") == "overlapped");
        const nlohmann::json& timeline = drawn.report.at("timelines")[1];
        CHECK(timeline.at("rows").size() == 6); // the stages, the calls of submit, and the source's worker
        REQUIRE(timeline.at("counters").size() == 1);
        CHECK(timeline.at("counters")[0].at("name") == "device memory");
        CHECK(timeline.at("counters")[0].at("peak").get<double>() > 0);
        if (file.extension() == ".svg") {
            const auto bytes = sluice_test::contents(file);
            const std::string svg(bytes.begin(), bytes.end());
            for (const char* text : {"serial", "overlapped", "graphed", "encode", "train"}) {
                CAPTURE(text);
                CHECK(svg.find(text) != std::string::npos);
            }
        }
    }
}

TEST_CASE("frozen_encoder goes on from a checkpoint with the bits of an uninterrupted run") {
    const ScratchFolder scratch;
    // The learning rate falls from step to step, and no batch comes twice.
    sluice_test::check_resumed(program, digits + " --encoder-steps 0 --batch 4 --steps 10 --warmup 2", 5,
                               {5, 10});

    const std::string small = " --data synthetic --image 16 --depth 3 --batch 2";
    sluice_test::check_killed(program, small, 1);

    const std::string other_encoder = (scratch.path() / "other").string();
    REQUIRE(
        program.run(small + " --seed 2 --schedule serial --steps 1 --save-encoder " + other_encoder).code ==
        0);
    const std::string file = (scratch.path() / "checkpoint").string();
    const std::string serial = " --schedule serial --warmup 0 --resume " + file;
    REQUIRE(program.run(small + " --schedule serial --steps 3 --warmup 0 --checkpoint " + file).code == 0);
    program.check_refused(small + serial + " --steps 3", file + ": holds step 3; expected one before step 3");
    const std::string others[][2] = {
        {" --image 16 --depth 3 --batch 3", "batch 2; expected 3"},
        {" --image 32 --depth 3 --batch 2", "image 16x16; expected 32x32"},
        {" --image 16 --depth 4 --batch 2", "halvings 3; expected 4"},
        {" --image 16 --depth 3 --batch 2 --seed 2", "seed 1; expected 2"},
        {" --image 16 --depth 3 --batch 2 --precision bfloat16", "precision "},
        {" --image 16 --depth 3 --batch 2 --load-encoder " + other_encoder, "encoder 0x"}};
    for (const auto& [other, found] : others)
        program.check_refused(" --data synthetic" + other + serial, file + ": was trained with " + found);
    program.check_refused(small + " --schedule serial --resume " + other_encoder,
                          other_encoder + ": is no checkpoint");
    program.check_refused(" --checkpoint " + file, "--checkpoint: expected a single --schedule with it");
    program.check_refused(" --checkpoint-every 2", "--checkpoint-every: expected --checkpoint FILE");
    program.check_refused(" --resume ''", "--resume: expected a file");
}

TEST_CASE("frozen_encoder says in one line what is wrong") {
    const ScratchFolder scratch;
    program.check_refused(" --timeline runs.txt",
                          "--timeline: expected a file that ends in .svg, .html or .pftrace");
    if (on_host())
        program.check_refused(" --kernels", "--kernels: expected --backend cuda");
    program.check_refused(" --batch 0", "--batch");
    program.check_refused(" --schedule sideways", "serial, overlapped, graphed, automatic or all");
    program.check_refused(" --data " + (scratch.path() / "nowhere").string(), "--data");
    program.check_refused(" --data " + scratch.path().string(), "train-images");
    program.check_refused(" --picture " + (scratch.path() / "digits.png").string(), "--data DIR");
    program.check_refused(" --load-encoder " + (scratch.path() / "none").string() + " --batch 1", "none");
    program.check_refused(" --load-encoder ''", "--load-encoder: expected a file");
    program.check_refused(" --precision half", "--precision: expected tf32, float32 or bfloat16");
    program.check_refused(" --algorithms best", "heuristic or autotune");
    program.check_refused(" --image 100", "--image: expected a multiple of 256");
    program.check_refused(" --image 12 --depth 3", "--image: expected a multiple of 8");
    program.check_refused(digits + " --image 48", "--image: is for synthetic data");
    program.check_refused(digits + " --decoder-device 0", "--decoder-device: is for synthetic data");
    program.check_refused(" --decoder-device 1000", "--decoder-device: expected one of");
    program.check_refused(" --only half", "--only: expected encoder or decoder");
    program.check_refused(" --image 2048 --depth 1 --batch 65536 --steps 1",
                          "--batch: expected a batch that fits into memory, not 65,536 images");
}

TEST_CASE("frozen_encoder can be graphed by Schedule::automatic" * doctest::skip(on_host())) {
    for (const char* const batch : {" --batch 8", " --batch 32"}) {
        sluice_test::check_automatic_uses_graphs(program,
                                                 digits + batch + " --encoder-steps 10 --steps 5000");
        sluice_test::check_automatic_uses_graphs(program, std::string(batch) + " --steps 5000");
    }
}

} // namespace examples_frozen_encoder
