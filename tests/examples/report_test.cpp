#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include <common/report.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_report {

using namespace examples;
using sluice_test::contents;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> member_names(const Json& object) {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items())
        names.push_back(name);
    return names;
}

Report example_report() {
    Report report{"frozen_encoder", "host", "CPU, 2 threads", "synthetic", 8, 100, {}, {}, {}, {}, {}};
    report.runs.push_back({"serial", 100.0, 10000.0, 2.5, 1.25, true, {}, {}});
    report.runs.push_back({"overlapped", 150.0, 6666.5, 2.5, 1.25, true, {}, {}});
    return report;
}

} // namespace

TEST_CASE("the JSON object has the names that every example keeps") {
    Report report = example_report();
    const Json plain = Json::parse(json_text(report));
    CHECK(member_names(plain) ==
          std::vector<std::string>{"experiment", "backend", "device", "data", "batch", "steps", "runs"});
    CHECK(plain["experiment"] == "frozen_encoder");
    CHECK(plain["batch"] == 8);
    CHECK(plain["steps"] == 100);
    REQUIRE(plain["runs"].size() == 2);
    CHECK(member_names(plain["runs"][1]) == std::vector<std::string>{"schedule", "steps_per_second",
                                                                     "step_microseconds", "loss_first",
                                                                     "loss_last", "identical_to_serial"});
    CHECK(plain["runs"][1]["schedule"] == "overlapped");
    CHECK(plain["runs"][1]["steps_per_second"] == 150.0);
    CHECK(plain["runs"][1]["step_microseconds"] == 6666.5);
    CHECK(plain["runs"][1]["loss_first"] == 2.5);
    CHECK(plain["runs"][1]["loss_last"] == 1.25);
    CHECK(plain["runs"][1]["identical_to_serial"] == true);

    report.ink_pixel_accuracy = 0.875;
    report.mean_iou = 0.5;
    report.extra = {{"encoder_accuracy", 0.75}, {"seed", std::int64_t{-3}}, {"note", "text"}, {"warm", true}};
    report.runs[0].extra = {{"floor_microseconds", 613.0}};
    const Json full = Json::parse(json_text(report));
    CHECK(full["ink_pixel_accuracy"] == 0.875);
    CHECK(full["mean_iou"] == 0.5);
    CHECK(full["encoder_accuracy"] == 0.75);
    CHECK(full["seed"] == -3);
    CHECK(full["note"] == "text");
    CHECK(full["warm"] == true);
    CHECK(full["runs"][0]["floor_microseconds"] == 613.0);
}

TEST_CASE("timelines are objects of the report, where there are some") {
    Report report = example_report();
    report.timelines = {R"({"title":"serial","wall_us":0.1})", R"({"title":"overlapped"})"};
    report.extra = {{"seed", std::int64_t{3}}};
    const Json json = Json::parse(json_text(report));
    REQUIRE(json["timelines"].size() == 2);
    CHECK(json["timelines"][0]["title"] == "serial");
    CHECK(json["timelines"][0]["wall_us"] == 0.1);
    CHECK(json["timelines"][1]["title"] == "overlapped");
    CHECK(json["seed"] == 3);
    report.extra = {{"timelines", true}};
    CHECK_THROWS_AS(json_text(report), std::invalid_argument);
}

TEST_CASE("what is not known is null") {
    Report report = example_report();
    report.runs[0].identical_to_serial.reset();
    report.runs[0].loss_last = std::numeric_limits<double>::quiet_NaN();
    const Json json = Json::parse(json_text(report));
    CHECK(json["runs"][0]["identical_to_serial"].is_null());
    CHECK(json["runs"][0]["loss_last"].is_null());
}

TEST_CASE("bytes that are not UTF-8 do not spoil a report") {
    Report report = example_report();
    report.data = "digits\xff";
    CHECK(Json::parse(json_text(report))["data"] == "digits\xEF\xBF\xBD");
}

TEST_CASE("no value takes another's name") {
    Report report = example_report();
    report.extra = {{"batch", std::int64_t{9}}};
    CHECK_THROWS_WITH_AS(json_text(report), "a report holds \"batch\" twice", std::invalid_argument);
    // Reserved even while there is no value of that name.
    report.extra = {{"mean_iou", 0.5}};
    CHECK_THROWS_AS(json_text(report), std::invalid_argument);
    report.extra.clear();
    report.runs[0].extra = {{"schedule", "other"}};
    CHECK_THROWS_AS(json_text(report), std::invalid_argument);
}

TEST_CASE("a report is written whole or not at all") {
    const ScratchFolder folder;
    const auto path = folder.path() / "report.json";
    write_json(example_report(), path);
    const auto bytes = contents(path);
    CHECK(std::string(bytes.begin(), bytes.end()) == json_text(example_report()));
    CHECK(folder.files() == 1);

    const auto nowhere = folder.path() / "no" / "report.json";
    CHECK(message_of([&] { write_json(example_report(), nowhere); }) ==
          nowhere.string() + ": cannot be written: No such file or directory");
    const auto under_a_file = path / "report.json";
    CHECK(message_of([&] { write_json(example_report(), under_a_file); }) ==
          under_a_file.string() + ": cannot be written: Not a directory");
    CHECK(message_of([&] { write_json(example_report(), "/dev/full"); }) ==
          "/dev/full: cannot be written: No space left on device");
    CHECK(folder.files() == 1);

    // A link stays one, and what it names is replaced.
    const auto link = folder.path() / "link";
    std::filesystem::create_symlink("report.json", link);
    Report other = example_report();
    other.batch = 16;
    write_json(other, link);
    CHECK(std::filesystem::is_symlink(link));
    const auto replaced = contents(path);
    CHECK(std::string(replaced.begin(), replaced.end()) == json_text(other));
}

TEST_CASE("the table lines up") {
    std::ostringstream out;
    Report report = example_report();
    report.runs[1].identical_to_serial = false;
    print_table(report, out);
    CHECK(out.str() == "schedule    steps/s  speed-up  first loss  last loss  same bits as serial\n"
                       "serial        100.0     1.00x         2.5       1.25                  yes\n"
                       "overlapped    150.0     1.50x         2.5       1.25                   no\n");
}

TEST_CASE("without a serial run the table does not compare") {
    std::ostringstream out;
    Report report = example_report();
    report.runs.erase(report.runs.begin());
    report.runs[0].identical_to_serial.reset();
    print_table(report, out);
    CHECK(out.str() == "schedule    steps/s  speed-up  first loss  last loss  same bits as serial\n"
                       "overlapped    150.0         -         2.5       1.25                    -\n");
}

} // namespace examples_report
