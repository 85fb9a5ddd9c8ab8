#include <sstream>

#include <common/progress.hpp>
#include <common/text.hpp>

#include "support/doctest.hpp"

namespace examples_progress {

using namespace examples;

TEST_CASE("progress is drawn, not on every call, and erased") {
    std::ostringstream out;
    {
        Progress progress{"serial", 1000, out, true};
        for (int step = 1; step <= 1000; ++step)
            progress.update(step, "loss 1.5");
        CHECK(out.str().starts_with("\rserial: 1 of 1000 (0 %), loss 1.5\x1b[K"));
        CHECK(out.str().find("\rserial: 2 of") == std::string::npos);
        CHECK(out.str().ends_with("\rserial: 1000 of 1000 (100 %), loss 1.5\x1b[K"));
    }
    CHECK(out.str().ends_with("\r\x1b[K"));
}

TEST_CASE("progress that is not shown writes nothing") {
    std::ostringstream out;
    {
        Progress progress{"serial", 10, out, false};
        progress.update(10);
    }
    CHECK(out.str().empty());
}

TEST_CASE("numbers and lines as people read them") {
    CHECK(with_commas(0) == "0");
    CHECK(with_commas(999) == "999");
    CHECK(with_commas(1000) == "1,000");
    CHECK(with_commas(1234567) == "1,234,567");
    CHECK(counted(1, "image") == "1 image");
    CHECK(counted(1500, "image") == "1,500 images");
    CHECK(counted(2, "box") == "2 boxes");
    CHECK(counted(0, "loss") == "0 losses");
    CHECK(counted(1, "class") == "1 class");
    CHECK(on_one_line("a\r\n\nb\n") == "a b");
}

} // namespace examples_progress
