/// \file
/// The program resnet18 as a user runs it.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include <common/safetensors.hpp>

#include "program.hpp"
#include "resumed.hpp"
#include "support/doctest.hpp"

namespace examples_resnet18 {

using sluice_test::on_host;
using sluice_test::Outcome;
using sluice_test::ScratchFolder;

namespace {

// The narrow network wherever it runs, without trials of algorithms.
const sluice_test::Program program(RESNET18, " --network narrow --algorithms heuristic");

// Six batches an epoch, the last one of two images.
const std::string brief = " --data digits --images 22 --batch 4 --warmup 2";

/// Whether the program can train here. Where cuDNN is missing on a device it says so in a sentence, which is checked.
bool can_train() {
    if (on_host() || NN_HAS_CUDNN)
        return true;
    program.check_refused("", "--backend cuda: this build has no cuDNN");
    return false;
}

std::vector<nlohmann::json> runs_of(const std::string& arguments) {
    const Outcome outcome = program.run(arguments);
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.errors.empty());
    CHECK(outcome.report.at("experiment") == "resnet18");
    CHECK(outcome.report.at("backend") == sluice_test::backend);
    return outcome.report.at("runs");
}

} // namespace

TEST_CASE("resnet18 trained by several ranks leaves all with the same weights") {
    if (!can_train())
        return;
    const ScratchFolder scratch;
    const std::string page = (scratch.path() / "ranks.html").string();
    const Outcome outcome = program.run(" --gpus 2 --rung 8 --images 120 --steps 4 --warmup 1 --losses" +
                                        std::string(" --schedule serial,graphed --timeline ") + page);
    INFO(outcome.errors);
    if (outcome.code == 2 && outcome.errors.find("--gpus: expected at most") != std::string::npos) {
        MESSAGE("skipped: there is one GPU");
        return;
    }
    REQUIRE(outcome.code == 0);
    REQUIRE(outcome.report.at("runs").size() == 2);
    for (const nlohmann::json& run : outcome.report.at("runs")) {
        CHECK(run.at("identical_on_ranks") == true);
        CHECK(run.at("identical_to_serial") == true);
        CHECK(run.at("losses").size() == 5);
        CHECK(run.at("rank_ahead_us").size() == 2);
    }
    const sluice_test::Bytes bytes = sluice_test::contents(page);
    const std::string drawn(bytes.begin(), bytes.end());
    for (const char* text : {"rung 8, graphed", "rank 0: train", "rank 1: train", "rank 1: device memory"}) {
        CAPTURE(text);
        CHECK(drawn.find(text) != std::string::npos);
    }
    program.check_refused(" --gpus 2 --alone", "--alone: is for one GPU, not for several");

    // From a checkpoint they go on with the same bits.
    const std::string ranks = " --gpus 2 --data random --rung 8 --images 120 --steps 7 --warmup 1";
    const std::string file = (scratch.path() / "state").string();
    const auto hash_of = [&](const std::string& further) {
        const Outcome run = program.run(ranks + further);
        INFO(run.errors);
        REQUIRE(run.code == 0);
        CHECK(run.report.at("runs")[0].at("identical_on_ranks") == true);
        return run.report.at("runs")[0].at("weights").get<std::string>();
    };
    const std::string whole = hash_of(" --schedule overlapped");
    const std::string exact = on_host() ? "" : " --precision tf32"; // of float16 halves are rounded
    CHECK(hash_of(exact + " --bucket 0") == hash_of(exact));
    CHECK(hash_of(" --schedule graphed --checkpoint " + file + "_{step} --checkpoint-every 3") == whole);
    CHECK(hash_of(" --schedule overlapped --resume " + file + "_3") == whole);
    CHECK(hash_of(" --schedule graphed --resume " + file + "_6") == whole);
    const std::string alone = ranks.substr(std::string(" --gpus 2").size());
    program.check_refused(alone + " --resume " + file + "_3", " on each of 2 ranks; expected ");
}

TEST_CASE("resnet18 trains to the same bits under every schedule and from every kind of input") {
    if (!can_train())
        return;
    const std::vector<nlohmann::json> runs =
        runs_of(brief + " --rung 0,4,8 --schedule serial,overlapped,graphed --epochs 4 --losses" +
                (on_host() ? "" : " --precision tf32"));
    REQUIRE(runs.size() == 9);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        CAPTURE(i);
        CHECK(runs[i].at("schedule") == std::vector{"serial", "overlapped", "graphed"}[i % 3]);
        CHECK(runs[i].at("rung") == 4 * (i / 3));
        CHECK(runs[i].at("workers") == (i < 3 ? 0 : runs[3].at("workers").get<int>()));
        CHECK(runs[i].at("identical_to_serial") == true);
        CHECK(runs[i].at("losses") == runs[0].at("losses"));
        CHECK(runs[i].at("losses").size() == 26);
        // 22 images in 6 steps.
        const double steps = runs[i].at("steps_per_second");
        CHECK(runs[i].at("samples_per_second").get<double>() == doctest::Approx(steps * 22 / 6));
        CHECK(runs[i].at("device_bytes") > 100'000);
        CHECK(runs[i].at("at_work_share") > 0);
        CHECK(runs[i].at("at_work_share") <= 1);
        CHECK(runs[i].at("bound").get<std::string>().ends_with('.'));
        CHECK(runs[i].at("held_out_accuracy") == runs[0].at("held_out_accuracy"));
    }
    // Channels that are only stored change no more than the rounding.
    const char* const padded = on_host() ? " --stored-channels 8" : " --stored-channels 4 --precision tf32";
    const nlohmann::json other = runs_of(brief + " --rung 8 --steps 1" + padded).at(0);
    CHECK(other.at("loss_first").get<double>() ==
          doctest::Approx(runs[0].at("loss_first").get<double>()).epsilon(on_host() ? 1e-5 : 1e-2));
    // 16 classes at random: the loss begins near their entropy.
    CHECK(runs[0].at("loss_first").get<double>() == doctest::Approx(2.77).epsilon(0.4));
    CHECK(runs[0].at("losses")[0] != runs[0].at("losses")[1]);
}

TEST_CASE("resnet18 climbs from rung to rung") {
    if (!can_train())
        return;
    const std::vector<nlohmann::json> runs = runs_of(brief + " --steps 3 --workers 2 --alone");
    REQUIRE(runs.size() == 9);
    for (std::size_t rung = 0; rung < runs.size(); ++rung) {
        CAPTURE(rung);
        CHECK(runs[rung].at("rung") == rung);
        CHECK(runs[rung].at("workers") == (rung == 0 ? 0 : 2));
        CHECK(runs[rung].at("schedule") == (rung < 2 ? "serial" : rung < 7 ? "overlapped" : "graphed"));
        const char* on_device = rung < 6 ? "tf32" : "float16";
        CHECK(runs[rung].at("precision") == (on_host() ? "float32" : on_device));
        CHECK(runs[rung].at("share of loading") >= 0);
        CHECK(runs[rung].at("share of loading") <= 1);
        CHECK(runs[rung].at("samples_per_second_alone") > 0);
    }
}

TEST_CASE("resnet18 learns digits") {
    if (!can_train())
        return;
    const std::vector<nlohmann::json> runs = runs_of(" --data digits --rung 8 --epochs 1");
    REQUIRE(runs.size() == 1);
    // One in ten by chance.
    CHECK(runs[0].at("held_out_accuracy") > 0.5);
}

TEST_CASE("resnet18 names more held-out digits than it trains on") {
    if (!can_train())
        return;
    const ScratchFolder folder;
    for (const std::string name : {"test-images-idx3-ubyte", "test-labels-idx1-ubyte"})
        (void)folder.file(name, sluice_test::contents(std::string(SLUICE_DIGITS_DIR "/") + name));
    // The first ten: behind the magic number is how many there are.
    const auto few = [&](const std::string& name, std::size_t bytes) {
        sluice_test::Bytes set = sluice_test::contents(std::string(SLUICE_DIGITS_DIR "/") + name);
        set.resize(bytes);
        set[6] = 0;
        set[7] = 10;
        (void)folder.file(name, set);
    };
    few("train-images-idx3-ubyte", 16 + 10 * 64);
    few("train-labels-idx1-ubyte", 8 + 10);
    const auto runs = runs_of(" --rung 8 --batch 16 --steps 2 --warmup 1 --data " + folder.path().string());
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].at("batch") == 10);
    CHECK(runs[0].at("held_out_accuracy") <= 1);
}

TEST_CASE("resnet18 infers the same with its batch normalisations folded, and as a graph") {
    if (!can_train())
        return;
    const std::vector<nlohmann::json> runs = runs_of(" --inference --data digits --steps 3");
    REQUIRE(runs.size() == 4);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        CAPTURE(i);
        CHECK(runs[i].at("batch") == (i < 2 ? 1 : 16));
        CHECK(runs[i].at("schedule") == (i % 2 == 0 ? "serial" : "graphed"));
        CHECK(runs[i].at("identical_to_serial") == true);
        CHECK(runs[i].at("step_microseconds") > 0);
        // Folding changes the rounding, and so something.
        CHECK(runs[i].at("folded_apart") > 0);
        CHECK(runs[i].at("folded_apart") < (on_host() ? 1e-5 : 2e-2));
    }
}

TEST_CASE("resnet18 writes what a training starts from") {
    if (!can_train())
        return;
    const ScratchFolder scratch;
    const std::string file = (scratch.path() / "start.safetensors").string();
    const Outcome outcome = program.run(brief + " --rung 8 --steps 7 --save-start " + file);
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    const examples::Safetensors start = examples::read_safetensors(file);
    CHECK(start.at("images").shape == std::vector<std::size_t>{22, 32, 32, 3});
    CHECK(start.at("labels").shape == std::vector<std::size_t>{22});
    CHECK(start.at("conv1.weight").shape == std::vector<std::size_t>{8, 3, 7, 7});
    CHECK(start.contains("bn1.running_var"));
    CHECK(start.at("sizes").as<std::int32_t>() == std::vector<std::int32_t>{4, 4, 4, 4, 4, 2, 4, 4, 4});
    CHECK(start.at("rates").as<float>().size() == 9);
    // Every image once in the first epoch.
    std::vector<std::int32_t> order = start.at("order").as<std::int32_t>();
    REQUIRE(order.size() == 34);
    order.resize(22);
    std::sort(order.begin(), order.end());
    std::vector<std::int32_t> all(22);
    std::iota(all.begin(), all.end(), 0);
    CHECK(order == all);
    // The digits' rate falls, unless the published one is asked for.
    CHECK(start.at("rates").as<float>().front() == 0.05f);
    REQUIRE(program.run(brief + " --rung 8 --steps 7 --rate published --save-start " + file).code == 0);
    const std::vector<float> rates = examples::read_safetensors(file).at("rates").as<float>();
    CHECK(rates == std::vector<float>(9, 1e-3f));
}

TEST_CASE("resnet18 goes on from a checkpoint with the bits of an uninterrupted training") {
    if (!can_train())
        return;
    // Six batches an epoch: from before the short one, and from the middle of the second epoch. The learning rate falls.
    sluice_test::check_resumed(program, brief + " --rung 8 --steps 12", 5, {5, 10});

    const std::string random = " --data random --images 22 --batch 4 --rung 8";
    sluice_test::check_killed(program, random, 2);

    const ScratchFolder scratch;
    const std::string file = (scratch.path() / "checkpoint").string();
    const std::string steps = " --warmup 0 --steps 2 --schedule serial";
    REQUIRE(program.run(random + steps + " --checkpoint " + file).code == 0);
    const examples::Safetensors content = examples::read_safetensors(file);
    CHECK(content.contains("model.bn1.running_var"));
    CHECK(content.contains("momentum.layer4.1.conv2.weight"));
    CHECK(content.metadata.at("epoch") == "0");
    const std::string others[][2] = {{"random --images 22 --batch 5 --rung 8", "batch 4; expected 5"},
                                     {"random --images 21 --batch 4 --rung 8", "images 22; expected 21"},
                                     {"tiles --images 22 --batch 4 --rung 8", "data 0x"},
                                     {"digits --images 22 --batch 4 --rung 8", "learning rate 0.001"},
                                     {"random --images 22 --batch 4 --rung 7", "rung 8; expected 7"}};
    for (const auto& [other, found] : others)
        program.check_refused(" --data " + other + " --resume " + file, file + ": was trained with " + found);
    sluice_test::Program(RESNET18, " --network full --algorithms heuristic")
        .check_refused(random + " --resume " + file, file + ": was trained with network narrow");
    sluice_test::Bytes bytes = sluice_test::contents(file);
    bytes.resize(bytes.size() / 2);
    const std::string half = scratch.file("half", bytes).string();
    program.check_refused(random + " --resume " + half, half + ": tensor ");
    program.check_refused(" --checkpoint " + file, "--checkpoint: expected a single --rung with it");
    program.check_refused(" --resume " + file, "--resume: expected --rung with one number");
    program.check_refused(" --rung 8 --schedule all --checkpoint " + file, "a single --schedule with it");
}

TEST_CASE("resnet18 refuses more ranks than images before anything starts") {
    if (!can_train())
        return;
    for (const char* data : {"random", "digits"}) {
        program.check_refused(std::string(" --gpus 64 --images 10 --data ") + data,
                              "--gpus: expected at most 10 ranks, as many as there are images, not 64");
    }
    if (on_host()) {
        const Outcome outcome = program.run(" --gpus 3 --images 3 --rung 8 --steps 2 --warmup 1");
        INFO(outcome.errors);
        CHECK(outcome.code == 0);
    }
}

TEST_CASE("resnet18 says in one line what is wrong") {
    program.check_refused(" --rung 9", "--rung: expected all, or numbers from 0 to 8");
    program.check_refused(" --rung 1,,2", "--rung: expected all, or numbers from 0 to 8");
    program.check_refused(" --data noise", "--data: expected random, digits, tiles or an existing folder");
    sluice_test::Program(RESNET18).check_refused(" --network wide",
                                                 "--network: expected full or narrow, not \"wide\"");
    program.check_refused(" --precision float32", "--precision: expected tf32 or float16, not \"float32\"");
    program.check_refused(" --rate 0.1", "--rate: expected published or falling, not \"0.1\"");
    program.check_refused(" --stored-channels 2", "--stored-channels: expected a whole number from 3 to 8");
    program.check_refused(" --epochs 1 --steps 2", "--steps: expected no --epochs with it");
    program.check_refused(" --inference --images 9", "--images: expected no --inference with it");
    program.check_refused(" --inference --rung 3", "--rung: expected no --inference with it");
    program.check_refused(" --inference --schedule overlapped",
                          "--schedule: expected serial, graphed or all");
    program.check_refused(" --save-start start.safetensors", "--save-start: expected --rung with one number");
    program.check_refused(" --batch 0", "--batch");
    program.check_refused(" --bucket 8", "--bucket: is for several ranks, expected --gpus with it");
    program.check_refused(" --gpus 1 --bucket 8", "--bucket: is for several ranks, expected --gpus with it");
    if (on_host()) {
        program.check_refused(" --precision float16", "--precision: expected --backend cuda for float16");
        program.check_refused(" --kernels", "--kernels: expected --backend cuda");
        program.check_refused(" --plans plans", "--plans: expected --backend cuda");
        program.check_refused(" --fuse-statistics", "--fuse-statistics: expected --backend cuda");
    }
}

} // namespace examples_resnet18
