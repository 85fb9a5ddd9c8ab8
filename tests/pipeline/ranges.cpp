// Stages run in named ranges, for a profiler that listens.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <sluice/pipeline/nvtx.hpp>
#include <sluice/sluice.hpp>

#include "support/doctest.hpp"

namespace pipeline_ranges {

using namespace sluice;

namespace {

std::vector<std::string> heard;

constexpr detail::RangeListener note{
    [](const char* name) noexcept { heard.push_back(std::string("begin ") + name); },
    []() noexcept { heard.push_back("end"); },
};

// Puts a listener in place for the length of a test.
class Listening {
public:
    explicit Listening(const detail::RangeListener* listener)
        : former_(detail::range_listener.exchange(listener)) {
        heard.clear();
    }
    ~Listening() { detail::range_listener = former_; }

private:
    const detail::RangeListener* former_;
};

void run(std::size_t batches, std::size_t failing) {
    Stage first{"first", [](HostStreamRef, const std::size_t&, int&) { heard.push_back("work"); }};
    Stage second{"second", [&, batch = std::size_t{0}](HostStreamRef, int&) mutable {
                     heard.push_back("work");
                     if (batch++ == failing)
                         throw std::runtime_error("refused");
                 }};
    TwoStreamPipeline pipeline{first, second, [](int) { return 0; }};
    for (std::size_t batch = 0; batch < batches; ++batch)
        pipeline.submit(batch);
    pipeline.finish();
}

} // namespace

TEST_CASE("each stage runs in a range of its name") {
    const Listening listening(&note);
    run(2, 99);
    const std::vector<std::string> once{"begin first", "work", "end", "begin second", "work", "end"};
    std::vector<std::string> twice = once;
    twice.insert(twice.end(), once.begin(), once.end());
    CHECK(heard == twice);
}

TEST_CASE("the range of a stage that throws ends too") {
    const Listening listening(&note);
    CHECK_THROWS_AS(run(1, 0), Error);
    CHECK(heard == std::vector<std::string>{"begin first", "work", "end", "begin second", "work", "end"});
}

TEST_CASE("a listener is not required") {
    const Listening listening(nullptr);
    run(2, 99);
    CHECK(heard == std::vector<std::string>{"work", "work", "work", "work"});
}

#if SLUICE_HAS_NVTX
TEST_CASE("including nvtx.hpp makes NVTX listen") {
    CHECK(detail::range_listener.load() == &detail::nvtx_listener);
    run(2, 99);
}
#endif

} // namespace pipeline_ranges
