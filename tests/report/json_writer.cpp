// The writer of JSON and of numbers that all reports share.
#include <limits>
#include <string>
#include <utility>

#include <sluice/report/detail/json_writer.hpp>
#include <sluice/report/detail/numbers.hpp>

#include "support/doctest.hpp"

namespace report_json_writer {

using namespace sluice::detail;

TEST_CASE("JSON: commas stand between values, and nowhere else") {
    JsonWriter json;
    json.open('{');
    json.object({}, "none");
    json.members({{"count", std::size_t{3}}, {"share", 0.25}, {"name", "a"}, {"true", true}});
    json.open('[', "items");
    json.open('[');
    json.items({1.5, std::size_t{2}, "x", JsonWriter::Value::null()});
    json.close(']');
    json.items({false});
    json.object({{"last", JsonWriter::Value::rounded(1.23456, 3)}});
    json.close(']');
    json.close('}');
    CHECK(std::move(json).text() == R"({"none":{},"count":3,"share":0.25,"name":"a","true":true,)"
                                    R"("items":[[1.5,2,"x",null],false,{"last":1.235}]})");
}

TEST_CASE("JSON: what is not finite is null") {
    JsonWriter json;
    const double infinity = std::numeric_limits<double>::infinity();
    json.open('[');
    json.items({infinity, -infinity, infinity - infinity});
    json.close(']');
    CHECK(std::move(json).text() == "[null,null,null]");
}

TEST_CASE("JSON: strings have no control characters and no broken bytes") {
    JsonWriter json;
    json.items({"</script>&\"\\\n\x01\xFF\u00e9"});
    CHECK(std::move(json).text() == "\"</script>&\\\"\\\\\\u000a\\u0001\uFFFD\u00e9\"");
}

TEST_CASE("numbers as text") {
    CHECK(numbers::shortest(0.1) == "0.1");
    CHECK(numbers::fixed(1.005e6, 1) == "1005000.0");
    CHECK(numbers::trimmed(0.5, 3) == "0.5");
    CHECK(numbers::trimmed(-0.001) == "0");
    CHECK(numbers::trimmed(100, 0) == "100");
    CHECK(numbers::trimmed(1e15, 3) == "1000000000000000");
    CHECK(numbers::four_digits(1.5) == "1.500");
    CHECK(numbers::four_digits(1e9) == "1.0e+09");
    CHECK(numbers::number_text(1.5) == "1.5");
    CHECK(numbers::number_text(-1e9) == "-1.000e+09");
    CHECK(numbers::percent(0.25) == "25.0");
    CHECK(numbers::percent(0.256, 0) == "26");
    CHECK(numbers::count(12'000'000) == "1.2e+07");
}

} // namespace report_json_writer
