/// \file
/// Checkpoints of trainings: what is in them, what is refused, and what a killed process leaves.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <common/checkpoint.hpp>
#include <common/fnv1a.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_checkpoint {

using namespace examples;
using sluice_test::Bytes;
using sluice_test::contents;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

struct Named {
    std::string name;
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

TrainingState state_at(std::size_t step) {
    TrainingState state{.step = step, .losses = std::vector<float>(step, 0.5f), .tensors = {}};
    state.add("model.", std::vector<Named>{{"weight", {2, 2}, {1, 2, 3, static_cast<float>(step)}},
                                           {"bias", {2}, {0.0f, -0.0f}}});
    state.add("momentum.", std::vector<Named>{{"weight", {2, 2}, {0, 0, 0, 1e-30f}}});
    return state;
}

TrainingPlan plan_of(std::size_t steps) {
    return {
        .program = "prog", .steps = steps, .steps_per_epoch = 4, .settings = {{"batch", "8"}, {"seed", "1"}}};
}

std::string hash_of_text(std::string_view text) {
    Fnv1a hash;
    hash.add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
    return hash.text();
}

/// What going on from `file` is refused with.
std::string refusal(const std::string& file, const TrainingPlan& plan) {
    return message_of([&] { Checkpoints({.file = "", .every = 0, .resume = file}, plan); });
}

} // namespace

TEST_CASE("FNV-1a gives the published values") {
    CHECK(hash_of_text("") == "0xcbf29ce484222325");
    CHECK(hash_of_text("a") == "0xaf63dc4c8601ec8c");
    CHECK(hash_of_text("foobar") == "0x85944171f73967e8");
}

TEST_CASE("a state's hash is that of its step, names and bits, and not of its losses") {
    const std::string hash = hash_of(state_at(3));
    CHECK(hash == hash_of(state_at(3)));
    CHECK(hash != hash_of(state_at(4)));
    TrainingState other = state_at(3);
    other.losses.clear();
    CHECK(hash_of(other) == hash);
    other.tensors.at("model.bias").bytes[3] ^= 0x80; // 0 becomes -0
    CHECK(hash_of(other) != hash);
    other = state_at(3);
    other.step = 4;
    CHECK(hash_of(other) != hash);
    other = state_at(3);
    auto moved = other.tensors.extract("model.bias");
    moved.key() = "model.biases";
    other.tensors.insert(std::move(moved));
    CHECK(hash_of(other) != hash);
}

TEST_CASE("a checkpoint comes back as it was written, and where it is due") {
    const ScratchFolder folder;
    const std::string file = (folder.path() / "a").string();
    const Checkpoints written({.file = file, .every = 4, .resume = ""}, plan_of(10));
    CHECK(written.resumed() == nullptr);
    CHECK(written.first_step() == 0);
    std::string due;
    for (std::size_t step = 0; step <= 10; ++step)
        due += written.is_due(step) ? 'x' : '.';
    CHECK(due == "....x...x.x");
    written.write(state_at(8));
    CHECK(folder.files() == 1);

    const Checkpoints next({.file = file, .every = 4, .resume = file}, plan_of(13));
    REQUIRE(next.resumed() != nullptr);
    CHECK(next.first_step() == 8);
    CHECK_FALSE(next.is_due(8)); // it was written already
    CHECK(next.is_due(12));
    CHECK(next.is_due(13));
    CHECK(next.resumed()->losses.size() == 8);
    CHECK(hash_of(*next.resumed()) == hash_of(state_at(8)));
    const std::vector<Named> model = next.resumed()->named<Named>("model.");
    REQUIRE(model.size() == 2);
    CHECK(model[1].name == "weight");
    CHECK(model[1].shape == std::vector<std::size_t>{2, 2});
    CHECK(model[1].values == std::vector<float>{1, 2, 3, 8});
    const Safetensors content = read_safetensors(file);
    CHECK(content.metadata.at("step") == "8");
    CHECK(content.metadata.at("epoch") == "2");
    CHECK(content.metadata.at("weights") == hash_of(state_at(8)));

    // Nothing but the last step's, and one file for each.
    const Checkpoints last({.file = file + "-{step}", .every = 0, .resume = ""}, plan_of(10));
    CHECK_FALSE(last.is_due(8));
    CHECK(last.is_due(10));
    last.write(state_at(10));
    CHECK(refusal(file + "-10", plan_of(11)) == "nothing was thrown");
    CHECK_FALSE(Checkpoints().is_due(1));
}

TEST_CASE("of several ranks each comes to a checkpoint, and the first one writes it") {
    const ScratchFolder folder;
    const Checkpoints all({.file = (folder.path() / "a").string(), .every = 4, .resume = ""}, plan_of(10));
    int asked = 0;
    for (const int rank : {1, 0}) {
        const Checkpoints mine = all.for_rank(rank, [&] { ++asked; });
        CHECK(mine.is_due(4));
        mine.write(state_at(4));
        CHECK(folder.files() == (rank == 0 ? 1 : 0));
    }
    CHECK(asked == 2);
}

TEST_CASE("a checkpoint that does not fit is refused in one sentence") {
    const ScratchFolder folder;
    const std::string file = (folder.path() / "a").string();
    const CheckpointOptions options{.file = file, .every = 1, .resume = ""};
    Checkpoints(options, plan_of(10)).write(state_at(8));
    CHECK(refusal(file, plan_of(8)) ==
          file + ": holds step 8; expected one before step 8, the last of this run");
    CHECK(refusal(file + "b", plan_of(9)).starts_with(file + "b: cannot be read: "));
    TrainingPlan other = plan_of(10);
    other.program = "another";
    CHECK(refusal(file, other) == file + ": is a checkpoint of prog; expected one of another");
    other = plan_of(10);
    other.settings = {{"batch", "16"}, {"seed", "2"}};
    CHECK(refusal(file, other) == file + ": was trained with batch 8; expected 16, as in this run");
    other = plan_of(10);
    other.settings.emplace_back("ranks", "2");
    CHECK(refusal(file, other) == file + ": does not say its ranks; expected 2");
    other = plan_of(10);
    other.settings.pop_back();
    CHECK(refusal(file, other) == file + ": was trained with seed 1, which this run has not; expected a "
                                         "checkpoint of the same settings");

    const Bytes whole = contents(file);
    const auto changed = [&](const auto& change) {
        Bytes bytes = whole;
        change(bytes);
        return refusal(folder.file("changed", bytes).string(), plan_of(10));
    };
    for (const std::size_t left : {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() - 1}) {
        CAPTURE(left);
        const std::string message = changed([&](Bytes& bytes) { bytes.resize(left); });
        CHECK(message.find("changed: ") != std::string::npos);
    }
    // One bit of a weight.
    CHECK(changed([](Bytes& bytes) { bytes[bytes.size() - 2] ^= 1; }).find("changed: is damaged: ") !=
          std::string::npos);
    // And of a loss, which no later step depends on, but the run's report shows.
    Safetensors content = parse_safetensors(whole, "a");
    content.tensors.at("losses").bytes[5] ^= 1;
    write_safetensors(content, file);
    CHECK(refusal(file, plan_of(10)).starts_with(file + ": is damaged: its losses hash to 0x"));
    content = parse_safetensors(whole, "a");
    content.metadata.erase("losses");
    write_safetensors(content, file);
    CHECK(refusal(file, plan_of(10)).ends_with("; expected the file to say its hash"));

    content = parse_safetensors(whole, "a");
    content.metadata["step"] = "many";
    write_safetensors(content, file);
    CHECK(refusal(file, plan_of(10)).starts_with(file + ": step: expected a whole number from 1"));
    content.metadata["step"] = "7";
    write_safetensors(content, file);
    CHECK(refusal(file, plan_of(10)) == file + ": holds 8 losses; expected 7, one of each step");
    content.metadata.clear();
    write_safetensors(content, file);
    CHECK(refusal(file, plan_of(10)) ==
          file + ": is no checkpoint; expected one that prog --checkpoint wrote");

    CHECK(message_of([&] {
              require_one_checkpoint({.file = "", .every = 3, .resume = ""}, 1, "--schedule");
          }) == "--checkpoint-every: expected --checkpoint FILE with it, to say where to write");
    CHECK(message_of([&] { require_one_checkpoint(options, 4, "--schedule"); }) ==
          "--checkpoint: expected a single --schedule with it, since each of the 4 trains anew");
    CHECK(message_of([&] { require_one_checkpoint(options, 1, "--schedule"); }) == "nothing was thrown");
}

TEST_CASE("a process that is killed while it writes leaves a whole checkpoint") {
    struct Child {
        pid_t pid;
        bool lives() const { return ::waitpid(pid, nullptr, WNOHANG) == 0; }
        ~Child() {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    };
    const ScratchFolder folder;
    const std::string file = (folder.path() / "a").string();
    const TrainingPlan plan = plan_of(1'000'000);
    const auto step_now = [&] {
        return std::filesystem::exists(file)
                   ? Checkpoints({.file = "", .every = 0, .resume = file}, plan).first_step()
                   : 0;
    };
    std::size_t before = 0;
    for (int kill = 0; kill < 12; ++kill) {
        {
            const Child child{::fork()};
            if (child.pid == 0) {
                const Checkpoints checkpoints({.file = file, .every = 1, .resume = ""}, plan);
                for (std::size_t step = before + 1;; ++step)
                    checkpoints.write(state_at(step));
            }
            // What is read in the middle of writes is whole, too.
            while (step_now() == before && child.lives())
                std::this_thread::yield();
            // At another place of a write each time.
            std::this_thread::sleep_for(std::chrono::microseconds(370 * kill));
            REQUIRE(child.lives());
        }
        const std::size_t step = step_now();
        CHECK(step > before);
        CHECK(hash_of(*Checkpoints({.file = "", .every = 0, .resume = file}, plan).resumed()) ==
              hash_of(state_at(step)));
        before = step;
    }
}

} // namespace examples_checkpoint
