#include <exception>
#include <sstream>
#include <stdexcept>

#include <common/options.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_options {

using namespace examples;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

struct Parsed {
    std::optional<int> exit_code;
    CommonOptions options;
    std::string depth;
    std::string saved;
    std::string out;
    std::string err;
};

Parsed parse(const std::vector<std::string>& arguments) {
    Parsed parsed;
    CommandLine app{"An example."};
    add_common_options(app, parsed.options, {"8", "100", "10"});
    add_option(app, "--depth", "TEXT", "an option of the example's own",
               [&parsed](const std::string& text) { parsed.depth = text; });
    add_written_file(app, "--save", parsed.saved, "a file of the example's own");
    std::vector<const char*> argv{"/usr/bin/frozen_encoder"};
    for (const std::string& argument : arguments)
        argv.push_back(argument.c_str());
    std::ostringstream out;
    std::ostringstream err;
    parsed.exit_code = parse_or_exit_code(app, static_cast<int>(argv.size()), argv.data(), out, err);
    parsed.out = out.str();
    parsed.err = err.str();
    return parsed;
}

/// The line on stderr, without the program's name; the exit code must be 2, and stdout empty.
std::string complaint(const std::vector<std::string>& arguments) {
    const Parsed parsed = parse(arguments);
    REQUIRE(parsed.exit_code.has_value());
    CHECK(*parsed.exit_code == 2);
    CHECK(parsed.out.empty());
    const std::string name = "frozen_encoder: ";
    REQUIRE(parsed.err.starts_with(name));
    REQUIRE(parsed.err.find('\n') == parsed.err.size() - 1);
    return parsed.err.substr(name.size(), parsed.err.size() - name.size() - 1);
}

int run(const std::function<int()>& body, std::ostream& out, std::ostream& err) {
    const char* argv[] = {"bin/frozen_encoder", nullptr};
    return run_main(1, argv, body, out, err);
}
int run(const std::function<int()>& body, std::ostream& err) {
    std::ostringstream out;
    return run(body, out, err);
}

/// Takes letters, and writes none of them, as stdout does on a full disk.
struct FullDisk : std::streambuf {
    int_type overflow(int_type letter) override { return letter; }
    int sync() override { return -1; }
};

} // namespace

TEST_CASE("without options the defaults stand") {
    const Parsed parsed = parse({});
    CHECK(!parsed.exit_code);
    CHECK(parsed.options.backend == BackendChoice::automatic);
    const std::vector every{sluice::Schedule::serial, sluice::Schedule::overlapped, sluice::Schedule::graphed,
                            sluice::Schedule::automatic};
    CHECK(parsed.options.schedules == every);
    CHECK(parse({"--schedule", "all"}).options.schedules == every);
    CHECK(!parsed.options.batch);
    CHECK(!parsed.options.steps);
    CHECK(!parsed.options.warmup);
    CHECK(parsed.options.synthetic());
    CHECK(parsed.options.seed == 1);
    CHECK(parsed.options.json.empty());
    CHECK(parsed.err.empty());
}

TEST_CASE("a program can give names to its data") {
    const auto data_of = [](std::vector<const char*> arguments) {
        CommonOptions options;
        CommandLine app{"An example."};
        add_common_options(app, options, {.data = {{"random", "synthetic"}, {"tiles", "/data/tiles"}}});
        arguments.insert(arguments.begin(), "example");
        std::ostringstream out;
        std::ostringstream err;
        const auto code =
            parse_or_exit_code(app, static_cast<int>(arguments.size()), arguments.data(), out, err);
        return code ? err.str() + out.str() : options.data;
    };
    CHECK(data_of({}) == "synthetic");
    CHECK(data_of({"--data", "tiles"}) == "/data/tiles");
    CHECK(data_of({"--data", "synthetic"}) ==
          "example: --data: expected random, tiles or an existing folder of IDX files, not \"synthetic\"\n");
    CHECK(data_of({"--help"}).find("random|tiles|DIR") != std::string::npos);
}

TEST_CASE("options are read") {
    const ScratchFolder folder;
    const std::string json = (folder.path() / "out.json").string();
    const Parsed parsed = parse({"--backend", "host", "--schedule=overlapped", "--batch", "16", "--steps",
                                 "7", "--warmup", "0", "--data", folder.path().string(), "--seed",
                                 "18446744073709551615", "--json", json, "--depth", "4"});
    CHECK(!parsed.exit_code);
    CHECK(parsed.options.backend == BackendChoice::host);
    CHECK(parsed.options.schedules == std::vector{sluice::Schedule::overlapped});
    CHECK(parsed.options.batch == 16);
    CHECK(parsed.options.steps == 7);
    CHECK(parsed.options.warmup == 0);
    CHECK(parsed.options.data == folder.path().string());
    CHECK(!parsed.options.synthetic());
    CHECK(parsed.options.seed == 18446744073709551615u);
    CHECK(parsed.options.json == json);
    CHECK(parsed.depth == "4");
    CHECK(parse({"--schedule", "serial"}).options.schedules == std::vector{sluice::Schedule::serial});
    CHECK(parse({"--schedule", "serial,automatic"}).options.schedules ==
          std::vector{sluice::Schedule::serial, sluice::Schedule::automatic});
    CHECK(complaint({"--schedule", "serial,"}) ==
          "--schedule: expected serial, overlapped, graphed, automatic or all, not \"\"");
    CHECK(parse({"--schedule", "graphed"}).options.schedules == std::vector{sluice::Schedule::graphed});
    CHECK(parse({"--backend", "cuda"}).options.backend == BackendChoice::cuda);
}

TEST_CASE("wrong options get one sentence and exit code 2") {
    CHECK(complaint({"--batch", "0"}) == "--batch: expected a whole number from 1 to 65,536, not \"0\"");
    CHECK(complaint({"--batch", "-3"}) == "--batch: expected a whole number from 1 to 65,536, not \"-3\"");
    CHECK(complaint({"--batch=8x"}) == "--batch: expected a whole number from 1 to 65,536, not \"8x\"");
    CHECK(complaint({"--batch", "99999999999999999999"}) ==
          "--batch: expected a whole number from 1 to 65,536, not \"99999999999999999999\"");
    CHECK(complaint({"--steps", "0"}) ==
          "--steps: expected a whole number from 1 to 1,000,000,000, not \"0\"");
    CHECK(complaint({"--steps", "1.5"}) ==
          "--steps: expected a whole number from 1 to 1,000,000,000, not \"1.5\"");
    CHECK(complaint({"--warmup", "-1"}) ==
          "--warmup: expected a whole number from 0 to 1,000,000,000, not \"-1\"");
    CHECK(complaint({"--seed", "-1"}) ==
          "--seed: expected a whole number from 0 to 18,446,744,073,709,551,615, not \"-1\"");
    CHECK(complaint({"--schedule", "parallel"}) ==
          "--schedule: expected serial, overlapped, graphed, automatic or all, not \"parallel\"");
    CHECK(complaint({"--backend", "metal"}) == "--backend: expected auto, cuda or host, not \"metal\"");
    CHECK(complaint({"--data", "/nowhere"}) ==
          "--data: expected synthetic or an existing folder of IDX files, not \"/nowhere\"");
    CHECK(complaint({"--json", "/nowhere/out.json"}) ==
          "/nowhere/out.json: cannot be written: there is no folder /nowhere");
    CHECK(complaint({"--json", "/tmp"}) == "/tmp: cannot be written: Is a directory");
    CHECK(!complaint({"--json", ""}).empty());
    CHECK(complaint({"--json", "out", "--save", "./out"}) ==
          "--save: expected another file than --json writes, not \"./out\"");
    CHECK_FALSE(parse({"--json", "out", "--save", "out2"}).exit_code.has_value());
    CHECK_FALSE(parse({"--json", "/dev/null", "--save", "/dev/null"}).exit_code.has_value());
    CHECK(complaint({"--fast"}) == "unknown option \"--fast\"; --help lists the options");
    CHECK(complaint({"serial"}) == "unknown argument \"serial\"; --help lists the options");
    CHECK(complaint({"--batch"}) == "--batch: expected a value after it");
    CHECK(complaint({"--batch", "8", "--batch", "9"}) == "--batch: expected once, but given several times");
}

TEST_CASE("help goes to stdout and ends well") {
    const Parsed parsed = parse({"--help"});
    CHECK(parsed.exit_code == 0);
    CHECK(parsed.err.empty());
    for (const char* part :
         {"An example.", "frozen_encoder", "--backend", "--schedule", "--batch", "(default: 8)", "--steps",
          "(default: 100)", "--warmup", "--data", "--seed", "--json", "--depth"}) {
        CAPTURE(part);
        CHECK(parsed.out.find(part) != std::string::npos);
    }
}

TEST_CASE("a program ends with the exit code that its error calls for") {
    std::ostringstream err;
    CHECK(run([] { return 3; }, err) == 3);
    CHECK(err.str().empty());
    CHECK(run([]() -> int { throw BadInput("train-images: holds\nnothing\n"); }, err) == 2);
    CHECK(err.str() == "frozen_encoder: train-images: holds nothing\n");
    err.str("");
    CHECK(run([]() -> int { throw std::runtime_error("out of device memory"); }, err) == 1);
    CHECK(err.str() == "frozen_encoder: out of device memory\n");
    err.str("");
    const auto nest = [](auto inner, int depth) {
        const auto nested = [inner](const auto& self, int more) -> int {
            try {
                return more == 0 ? throw inner : self(self, more - 1);
            } catch (const std::exception&) {
                std::throw_with_nested(std::runtime_error("stage 'write', batch 3"));
            }
        };
        return nested(nested, depth);
    };
    CHECK(run([&] { return nest(BadInput("a.npy: cannot be written"), 1); }, err) == 2);
    CHECK(err.str() == "frozen_encoder: a.npy: cannot be written\n");
    err.str("");
    CHECK(run([&] { return nest(std::runtime_error("inner"), 1); }, err) == 1);
    CHECK(err.str() == "frozen_encoder: stage 'write', batch 3\n");
    err.str("");
    CHECK(run([]() -> int { throw 5; }, err) == 1);
    CHECK(err.str() == "frozen_encoder: stopped by an error of unknown type\n");
}

TEST_CASE("a program whose output cannot be written says so and fails") {
    FullDisk disk;
    std::ostream out(&disk);
    std::ostringstream err;
    CHECK(run([] { return 0; }, out, err) == 1);
    CHECK(
        err.str() ==
        "frozen_encoder: standard output cannot be written, and part of what was to be printed is missing\n");
    // It has failed before: flushing alone would not tell.
    std::ostream failed(nullptr);
    CHECK(run([] { return 0; }, failed, err) == 1);
    // What went wrong first is what counts.
    err.str("");
    CHECK(run([] { return 3; }, failed, err) == 3);
    CHECK(run([]() -> int { throw BadInput("wrong"); }, failed, err) == 2);
    CHECK(err.str() == "frozen_encoder: wrong\n");
}

TEST_CASE("the backend is chosen by what there is") {
    const CudaProbe one{true, 1, ""};
    const CudaProbe none{true, 0, "no CUDA-capable device is detected"};
    const CudaProbe not_built{};
    CHECK(choose_backend(BackendChoice::automatic, one) == BackendKind::cuda);
    CHECK(choose_backend(BackendChoice::cuda, one) == BackendKind::cuda);
    CHECK(choose_backend(BackendChoice::host, one) == BackendKind::host);
    CHECK(choose_backend(BackendChoice::automatic, none) == BackendKind::host);
    CHECK(choose_backend(BackendChoice::automatic, not_built) == BackendKind::host);
    CHECK(message_of([&] { choose_backend(BackendChoice::cuda, none); }) ==
          "--backend cuda: no CUDA device can be used on this machine (no CUDA-capable device is detected); "
          "use "
          "--backend host or auto");
    CHECK(message_of([&] { choose_backend(BackendChoice::cuda, not_built); }) ==
          "--backend cuda: this program was built without CUDA; use --backend host, or build it with nvcc");
    CHECK(to_string(BackendKind::cuda) == "cuda");
    CHECK(to_string(BackendKind::host) == "host");
}

TEST_CASE("an example's own numbers are checked the same way") {
    CHECK(parse_whole_number("--depth", "-2", -5, 1000) == -2);
    CHECK(message_of([] { parse_whole_number("--depth", "1001", -5, 1000); }) ==
          "--depth: expected a whole number from -5 to 1,000, not \"1001\"");
    CHECK(message_of([] { parse_whole_number("--depth", "", 1, 9); }) ==
          "--depth: expected a whole number from 1 to 9, not \"\"");
    CHECK(message_of([] { parse_whole_number("--depth", " 3", 1, 9); }) ==
          "--depth: expected a whole number from 1 to 9, not \" 3\"");
}

TEST_CASE("an example's own names are checked the same way") {
    const auto number = [](const std::string& text) {
        return named<int>("--number", text, {{"one", 1}, {"two", 2}, {"three", 3}});
    };
    CHECK(number("one") == 1);
    CHECK(number("three") == 3);
    CHECK(message_of([&] { number("four"); }) == "--number: expected one, two or three, not \"four\"");
    CHECK(message_of([] {
              named<int>("--number", "", {{"one", 1}, {"two", 2}});
          }) == "--number: expected one or two, not \"\"");
}

TEST_CASE("a single stage runs one by one or as a graph") {
    CommonOptions options;
    CHECK(options.one_by_one());
    CHECK(options.as_graph());
    options.schedules = {sluice::Schedule::graphed};
    CHECK_FALSE(options.one_by_one());
    CHECK(message_of([&] { require_way_of_single_stage(options); }) == "nothing was thrown");
    options.schedules = {sluice::Schedule::serial};
    CHECK_FALSE(options.as_graph());
    CHECK(message_of([&] { require_way_of_single_stage(options); }) == "nothing was thrown");
    options.schedules = {sluice::Schedule::overlapped};
    CHECK(message_of([&] { require_way_of_single_stage(options); }) ==
          "--schedule: expected serial, graphed or all, since a single stage has nothing to overlap with");
}

TEST_CASE("a picture needs images to show") {
    CommonOptions options;
    CHECK(message_of([&] { require_data_for_picture(options, ""); }) == "nothing was thrown");
    CHECK(message_of([&] { require_data_for_picture(options, "a.png"); }) ==
          "--picture: expected --data DIR with it, since random data has nothing to show");
    options.data = "digits";
    CHECK(message_of([&] { require_data_for_picture(options, "a.png"); }) == "nothing was thrown");
}

} // namespace examples_options
