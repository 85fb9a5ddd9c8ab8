// Command lines and plan files: every one is taken, or refused in one line.
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <sys/mman.h>

#include <common/options.hpp>
#include <nn/dnn/detail/plan_file.hpp>

#include "fuzz/fuzz.hpp"

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_options)
SLUICE_FUZZ_TARGET(options) {
    // Arguments are separated by line breaks.
    std::vector<std::string> words{"program"};
    std::string word;
    for (const std::uint8_t byte : input) {
        if (byte == '\n') {
            words.push_back(word);
            word.clear();
        } else if (byte != 0) {
            word += static_cast<char>(byte);
        }
    }
    words.push_back(word);
    std::vector<const char*> arguments;
    for (const std::string& each : words)
        arguments.push_back(each.c_str());

    examples::CommonOptions options;
    examples::TimelineOptions timeline;
    int count = 0;
    examples::CommandLine line("an example");
    examples::add_common_options(line, options, {});
    examples::add_timeline_options(line, timeline);
    examples::add_number(line, "--count", count, -5, 1000, "a number");
    std::ostringstream out, err;
    const std::optional<int> code =
        examples::parse_or_exit_code(line, static_cast<int>(arguments.size()), arguments.data(), out, err);
    const std::string text = err.str();
    if (!code) {
        SLUICE_FUZZ_EXPECT(text.empty());
        SLUICE_FUZZ_EXPECT(!options.schedules.empty());
        SLUICE_FUZZ_EXPECT(!options.batch || *options.batch >= 1);
        SLUICE_FUZZ_EXPECT(!options.steps || *options.steps >= 1);
        SLUICE_FUZZ_EXPECT(!options.warmup || *options.warmup >= 0);
        SLUICE_FUZZ_EXPECT(count >= -5 && count <= 1000);
    } else if (*code == 2) {
        SLUICE_FUZZ_EXPECT(text.starts_with("program: "));
        SLUICE_FUZZ_EXPECT(!text.empty() && text.find('\n') == text.size() - 1);
    } else {
        SLUICE_FUZZ_EXPECT(*code == 0 && !out.str().empty());
    }
}
#endif

#if !defined(SLUICE_LIBFUZZER) || defined(SLUICE_FUZZ_plan_file)
SLUICE_FUZZ_TARGET(plan_file) {
    static const int file = ::memfd_create("plans", 0);
    static const std::string path = "/proc/self/fd/" + std::to_string(file);
    SLUICE_FUZZ_EXPECT(file >= 0);
    SLUICE_FUZZ_EXPECT(::ftruncate(file, 0) == 0);
    SLUICE_FUZZ_EXPECT(::pwrite(file, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()));
    const nn::detail::PlanFile plans(path);
    // The last whole line of a key says its name.
    std::istringstream lines(std::string(reinterpret_cast<const char*>(input.data()), input.size()));
    std::vector<std::pair<std::string, std::string>> expected;
    for (std::string each; std::getline(lines, each);) {
        const std::size_t tab = each.find('\t');
        if (tab == std::string::npos || tab == 0 || tab + 1 == each.size())
            continue;
        expected.emplace_back(each.substr(0, tab), each.substr(tab + 1));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        bool last = true;
        for (std::size_t j = i + 1; j < expected.size(); ++j)
            last = last && expected[j].first != expected[i].first;
        const std::string* const found = plans.find(expected[i].first);
        SLUICE_FUZZ_EXPECT(found != nullptr);
        SLUICE_FUZZ_EXPECT(!last || *found == expected[i].second);
    }
    SLUICE_FUZZ_EXPECT(plans.find("no\tkey") == nullptr);
}
#endif
