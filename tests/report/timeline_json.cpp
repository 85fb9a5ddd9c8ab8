// The report as JSON: valid by the grammar of RFC 8259, and with numbers that read back exactly.
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#if defined(SLUICE_TEST_HAS_JSON)
#include <nlohmann/json.hpp>
#endif

#include <sluice/report/timeline_report.hpp>

#include "support/doctest.hpp"

namespace report_timeline_json {

using namespace sluice;

namespace {

/// Whether a text is a JSON value of ASCII and bytes of other characters.
class Grammar {
public:
    explicit Grammar(std::string_view text) : text_(text) {}
    bool holds() { return value() && at_ == text_.size(); }

private:
    bool take(char expected) {
        if (at_ == text_.size() || text_[at_] != expected)
            return false;
        ++at_;
        return true;
    }
    bool take(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected)
            return false;
        at_ += expected.size();
        return true;
    }
    std::size_t digits() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
            ++at_;
        return at_ - begin;
    }
    bool number() {
        take('-');
        const std::size_t begin = at_;
        const std::size_t whole = digits();
        if (whole == 0 || (whole > 1 && text_[begin] == '0'))
            return false;
        if (take('.') && digits() == 0)
            return false;
        if (take('e') || take('E')) {
            if (!take('+'))
                take('-');
            return digits() > 0;
        }
        return true;
    }
    bool string() {
        if (!take('"'))
            return false;
        while (at_ < text_.size() && text_[at_] != '"') {
            if (static_cast<unsigned char>(text_[at_]) < 0x20)
                return false;
            if (text_[at_++] != '\\')
                continue;
            if (take('u')) {
                for (int i = 0; i < 4; ++i, ++at_) {
                    if (at_ == text_.size() ||
                        std::string_view("0123456789abcdefABCDEF").find(text_[at_]) == std::string_view::npos)
                        return false;
                }
            } else if (at_ == text_.size() ||
                       std::string_view("\"\\/bfnrt").find(text_[at_++]) == std::string_view::npos) {
                return false;
            }
        }
        return take('"');
    }
    bool list(char end, bool with_keys) {
        if (take(end))
            return true;
        do {
            if ((with_keys && !(string() && take(':'))) || !value())
                return false;
        } while (take(','));
        return take(end);
    }
    bool value() {
        if (take('{'))
            return list('}', true);
        if (take('['))
            return list(']', false);
        if (at_ < text_.size() && text_[at_] == '"')
            return string();
        return take("null") || number();
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Timeline random_timeline(unsigned seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
    const auto bytes = [&] { // any, also such as are no UTF-8
        std::string text;
        for (std::size_t left = below(12); left > 0; --left)
            text += static_cast<char>(static_cast<unsigned char>(below(256)));
        return text;
    };
    Timeline timeline(bytes());
    for (std::size_t row = 0; row < 3; ++row) {
        const std::string name = bytes();
        timeline.add_row(name, bytes());
    }
    for (std::size_t left = below(20); left > 0; --left) {
        const double begin = static_cast<double>(random()) / 1e13;
        const double length = static_cast<double>(random()) / 1e15;
        timeline.add({below(3), below(5), begin, begin + length, static_cast<SpanKind>(below(4))});
    }
    std::vector<double> latencies;
    for (std::size_t left = below(20); left > 0; --left)
        latencies.push_back(static_cast<double>(random()) / 1e15);
    timeline.set_latencies(latencies);
    for (std::size_t counter = 0; counter < seed % 3; ++counter) {
        timeline.add_counter("counter " + std::to_string(counter), "B");
        for (std::size_t value = 0; value < seed % 7; ++value)
            timeline.add_value(counter, static_cast<double>(random() % 1000) / 7,
                               static_cast<double>(random()) / 11);
    }
    return timeline;
}

#if defined(SLUICE_TEST_HAS_JSON)
void check_row(const nlohmann::json& json, const RowReport& row) {
    CHECK(json.size() == 15);
    CHECK(json.at("spans") == row.spans);
    CHECK(json.at("busy_us") == row.busy);
    CHECK(json.at("share") == row.share);
    CHECK(json.at("mean_us") == row.mean);
    CHECK(json.at("median_us") == row.median);
    CHECK(json.at("p99_us") == row.p99);
    CHECK(json.at("shortest_us") == row.shortest);
    CHECK(json.at("longest_us") == row.longest);
    CHECK(json.at("gaps") == row.gaps);
    CHECK(json.at("gap_time_us") == row.gap_time);
    CHECK(json.at("longest_gap_us") == row.longest_gap);
    CHECK(json.at("waits") == row.waits);
    CHECK(json.at("waited_us") == row.waited);
}

void check_row_number(const nlohmann::json& json, std::size_t row) {
    if (row == TimelineReport::no_row)
        CHECK(json.is_null());
    else
        CHECK(json == row);
}

void check_all(const nlohmann::json& json, const TimelineReport& report) {
    CHECK(json.size() == 18);
    CHECK(json.at("begin_us") == report.begin);
    CHECK(json.at("end_us") == report.end);
    CHECK(json.at("wall_us") == report.wall);
    CHECK(json.at("batches") == report.batches);
    CHECK(json.at("steady_begin_us") == report.steady_begin);
    CHECK(json.at("steady_end_us") == report.steady_end);
    CHECK(json.at("batches_per_second") == report.batches_per_second);
    CHECK(json.at("busy_share") == report.busy_share);
    CHECK(json.at("device").size() == 4);
    CHECK(json.at("device").at("compute_only") == report.device.compute_only);
    CHECK(json.at("device").at("copy_only") == report.device.copy_only);
    CHECK(json.at("device").at("both") == report.device.both);
    CHECK(json.at("device").at("neither") == report.device.neither);
    CHECK(json.at("latency").size() == 5);
    CHECK(json.at("latency").at("batches") == report.latency.batches);
    CHECK(json.at("latency").at("median_us") == report.latency.median);
    CHECK(json.at("latency").at("p99_us") == report.latency.p99);
    CHECK(json.at("latency").at("p99_9_us") == report.latency.p99_9);
    CHECK(json.at("latency").at("longest_us") == report.latency.longest);
    CHECK(json.at("overlap") == report.overlap);
    CHECK(json.at("serial_sum") == report.serial_sum);
    check_row_number(json.at("pace_row"), report.pace_row);
    check_row_number(json.at("next_row"), report.next_row);
    CHECK(json.at("sentence") == pace_sentence(report));
    REQUIRE(json.at("rows").size() == report.rows.size());
    for (std::size_t row = 0; row < report.rows.size(); ++row)
        check_row(json.at("rows").at(row), report.rows[row]);
    REQUIRE(json.at("counters").size() == report.counters.size());
    for (std::size_t counter = 0; counter < report.counters.size(); ++counter) {
        const nlohmann::json& read = json.at("counters").at(counter);
        CHECK(read.at("name") == report.counters[counter].name);
        CHECK(read.at("values") == report.counters[counter].values);
        CHECK(read.at("lowest") == report.counters[counter].lowest);
        CHECK(read.at("peak") == report.counters[counter].peak);
        CHECK(read.at("mean") == report.counters[counter].mean);
    }
}
#endif

} // namespace

TEST_CASE("the tests' grammar takes JSON and nothing else") {
    for (const char* text : {"{}", "[]", "[1,-0.5e+3,null]", "{\"a\":\"\\u00e9\\n\"}", "0", "1e22"})
        CHECK(Grammar(text).holds());
    for (const char* text :
         {"", "{", "[1,]", "{\"a\"}", "01", "1.", "nan", "inf", "\"\n\"", "\"\\x\"", "[1 2]", "{}{}"})
        CHECK(!Grammar(text).holds());
}

TEST_CASE("a report as JSON is one line") {
    Timeline timeline("t");
    timeline.add({.row = timeline.add_row("a", "GPU 0"), .batch = 0, .begin = 0, .end = 0.1});
    CHECK(to_json(report_of(timeline)) ==
          "{\"title\":\"t\",\"begin_us\":0,\"end_us\":0.1,\"wall_us\":0.1,\"batches\":1,\"steady_begin_us\":"
          "0.1,"
          "\"steady_end_us\":0.1,\"batches_per_second\":0,\"busy_share\":1,\"device\":{\"compute_only\":1,"
          "\"copy_only\":0,\"both\":0,\"neither\":0},\"latency\":{\"batches\":0,\"median_us\":0,\"p99_us\":0,"
          "\"p99_9_us\":0,\"longest_us\":0},\"overlap\":0,\"serial_sum\":1,\"pace_row\":0,\"next_"
          "row\":null,"
          "\"sentence\":\"a set the pace: it was busy 100 % of the "
          "time.\",\"rows\":[{\"name\":\"a\",\"unit\":\"GPU 0\","
          "\"spans\":1,\"busy_us\":0.1,\"share\":1,\"mean_us\":0.1,\"median_us\":0.1,\"p99_us\":0.1,"
          "\"shortest_us\":0.1,\"longest_us\":0.1,\"gaps\":0,\"gap_time_us\":0,\"longest_gap_us\":0,"
          "\"waits\":0,"
          "\"waited_us\":0}],\"counters\":[]}");
    const std::string empty = to_json(report_of(Timeline()));
    CHECK(Grammar(empty).holds());
    CHECK(has(empty, "\"pace_row\":null"));
    CHECK(has(empty, "\"rows\":[]"));
}

TEST_CASE("what is not finite is null") {
    TimelineReport report;
    report.wall = std::numeric_limits<double>::infinity();
    report.overlap = std::numeric_limits<double>::quiet_NaN();
    const std::string json = to_json(report);
    CHECK(Grammar(json).holds());
    CHECK(has(json, "\"wall_us\":null"));
    CHECK(has(json, "\"overlap\":null"));
}

TEST_CASE("texts are escaped, and what is no UTF-8 is replaced") {
    const auto title = [](std::string text) {
        const std::string json = to_json(report_of(Timeline(std::move(text))));
        CHECK(Grammar(json).holds());
        const std::size_t begin = std::string_view("{\"title\":\"").size();
        return json.substr(begin, json.find("\",\"begin_us\"") - begin);
    };
    CHECK(title("a \"b\" \\ c/d") == "a \\\"b\\\" \\\\ c/d");
    CHECK(title(std::string("\0\n\t\x1f\x7f", 5)) == "\\u0000\\u000a\\u0009\\u001f\x7f");
    CHECK(title("\u00E9\u6587\U0001F600") == "\u00E9\u6587\U0001F600");
    CHECK(title("a\xff\xfez") == "a\uFFFD\uFFFDz");
    CHECK(title("\xc0\xaf") == "\uFFFD\uFFFD");                     // overlong
    CHECK(title("\xe0\x80\xaf") == "\uFFFD\uFFFD\uFFFD");           // overlong
    CHECK(title("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");           // a surrogate
    CHECK(title("\xf4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD"); // above U+10FFFF
    CHECK(title("\xf0\x9f\x98") == "\uFFFD");                       // cut off at the end
    CHECK(title("\xe2\x80\"") == "\uFFFD\\\"");                     // cut off by a quote
}

TEST_CASE("random reports read back exactly") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const TimelineReport report = report_of(random_timeline(seed));
        const std::string json = to_json(report);
        CHECK(Grammar(json).holds());
#if defined(SLUICE_TEST_HAS_JSON)
        check_all(nlohmann::json::parse(json), report); // which refuses what is no UTF-8
#endif
    }
}

} // namespace report_timeline_json
