// The table in 80 columns, and the sentence on the pace.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <sluice/report/timeline_report.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_timeline_table {

using namespace sluice;
using namespace sluice::test;

namespace {

/// What names are made of: a piece of text, and the columns it takes on a terminal.
struct Glyph {
    std::string text;
    std::size_t columns;
};
const std::vector<Glyph> glyphs = {{"a", 1},      {"Z", 1},          {" ", 1},          {"-", 1},
                                   {"\u00E9", 1}, {"\u03BC", 1},     {"\u2026", 1},     {"\uFFFD", 1},
                                   {"\u0301", 0}, {"\u200D", 0},     {"\u6587", 2},     {"\uD55C", 2},
                                   {"\uFF21", 2}, {"\U0001F600", 2}, {"\U0001F680", 2}, {"\U00020000", 2}};

/// The columns that a line takes, which consists of ASCII and of `glyphs`.
std::size_t columns_of(const std::string& line) {
    std::size_t columns = 0;
    for (std::size_t at = 0; at < line.size();) {
        const Glyph* found = nullptr;
        for (const Glyph& glyph : glyphs) {
            if (line.compare(at, glyph.text.size(), glyph.text) == 0)
                found = &glyph;
        }
        REQUIRE((found != nullptr || (line[at] >= ' ' && line[at] <= '~')));
        columns += found != nullptr ? found->columns : 1;
        at += found != nullptr ? found->text.size() : 1;
    }
    return columns;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    REQUIRE(!text.empty());
    REQUIRE(text.back() == '\n');
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Rows that are busy for parts of 100 us, one after another, or from 0 on.
Timeline with_shares(const std::vector<std::pair<std::string, double>>& rows, bool in_turn = false) {
    Timeline timeline;
    double begin = 0;
    for (const auto& [name, busy] : rows) {
        timeline.add({.row = timeline.add_row(name, "GPU 0"), .begin = begin, .end = begin + busy});
        begin += in_turn ? busy : 0;
    }
    timeline.add({timeline.add_row("all"), 0, 0, 100, SpanKind::wait});
    return timeline;
}

std::string sentence_of(const Timeline& timeline) { return pace_sentence(report_of(timeline)); }

} // namespace

TEST_CASE("the sentence names the row that set the pace, and the next one") {
    CHECK(sentence_of(with_shares({{"encode", 97}, {"train", 61}})) ==
          "encode set the pace: it was busy 97 % of the time, train 61 %.");
    CHECK(sentence_of(with_shares({{"a", 1}, {"train", 74.5}, {"encode", 75}})) ==
          "encode set the pace: it was busy 75 % of the time, train 74 %.");
    CHECK(sentence_of(with_shares({{"encode", 99.6}})) ==
          "encode set the pace: it was busy 100 % of the time.");
    CHECK(sentence_of(with_shares({{"encode", 90}, {"encode", 80}})) ==
          "encode (row 0) set the pace: it was busy 90 % of the time, encode (row 1) 80 %.");
    CHECK(sentence_of(with_shares({{"", 90}, {"\n", 80}})) ==
          "row 0 set the pace: it was busy 90 % of the time, \uFFFD 80 %.");
}

TEST_CASE("the sentence says when no row set the pace") {
    CHECK(sentence_of(Timeline()) == "nothing ran.");
    CHECK(sentence_of(with_shares({})) == "nothing ran.");
    CHECK(sentence_of(with_shares({{"encode", 0}})) == "nothing that ran took any time.");
    CHECK(sentence_of(with_shares({{"encode", 40}, {"train", 20}})) ==
          "no stage was busy more than 40 % of the time: the host or the source set the pace.");
    CHECK(sentence_of(with_shares({{"encode", 40.1}})) ==
          "no stage was busy more than 41 % of the time: the host or the source set the pace.");
    CHECK(sentence_of(with_shares({{"encode", 60}, {"train", 39}}, true)) ==
          "no stage set the pace alone: something ran 99 % of the time, but encode only 60 % and train 39 %, "
          "so "
          "they waited for one another.");
}

TEST_CASE("rows of one name on two devices are told apart by their units") {
    Timeline timeline;
    for (std::size_t device = 0; device < 2; ++device) {
        const std::size_t row = timeline.add_row("encode", "GPU " + std::to_string(device));
        timeline.add({.row = row, .begin = static_cast<double>(device), .end = 10});
    }
    CHECK(sentence_of(timeline) ==
          "encode (GPU 0) set the pace: it was busy 100 % of the time, encode (GPU 1) 90 %.");
}

TEST_CASE("a table has its numbers under heads with units") {
    Timeline timeline("frozen encoder");
    const std::size_t encode = timeline.add_row("encode", "GPU 0");
    const std::size_t train = timeline.add_row("train", "GPU 0");
    for (std::size_t batch = 0; batch < 10; ++batch) {
        const double at = 100 * static_cast<double>(batch);
        timeline.add({.row = encode, .batch = batch, .begin = at, .end = at + 97});
        timeline.add({.row = train, .batch = batch, .begin = at + 97, .end = at + 158});
    }
    timeline.add_row("never", "GPU 0");
    CHECK(to_table(report_of(timeline)) ==
          "frozen encoder\n"
          "1058 us, 10 batches, 10000 batches/s\n"
          "device: 100.0 % compute only, 0.0 % copy only, 0.0 % both, 0.0 % neither\n"
          "rows: 49.3 % two or more computing, busy times sum to 1.493 x the wall time\n"
          "\n"
          "row    unit   spans  busy   mean  median    p99    max  gaps  max gap\n"
          "                        %     us      us     us     us     %       us\n"
          "encode GPU 0     10  91.7  97.00   97.00  97.00  97.00   2.6    3.000\n"
          "train  GPU 0     10  57.7  61.00   61.00  61.00  61.00  33.2    39.00\n"
          "never  GPU 0      0   0.0      -       -      -      -   0.0        -\n"
          "\n"
          "encode set the pace: it was busy 92 % of the time, train 58 %.\n");
}

TEST_CASE("a row of one span has its numbers") {
    Timeline timeline;
    timeline.add({.row = timeline.add_row("once"), .begin = 0, .end = 10});
    CHECK(has(to_table(report_of(timeline)),
              "once      1  100.0  10.00   10.00  10.00  10.00   0.0        -\n"));
}

TEST_CASE("the head tells of a device where there is one, and time went by") {
    const auto tells = [](const char* unit, double end) {
        Timeline timeline;
        timeline.add({.row = timeline.add_row("row", unit), .begin = 0, .end = end});
        return has(to_table(report_of(timeline)), "device: ");
    };
    CHECK(tells("GPU 0", 10));
    CHECK_FALSE(tells("CPU", 10));
    CHECK_FALSE(tells("GPU 0", 0));
}

TEST_CASE("times are in a unit that suits them, without a column of units where there are none") {
    Timeline timeline;
    const std::size_t row = timeline.add_row("step");
    timeline.add({.row = row, .batch = 0, .begin = 0, .end = 12345});
    timeline.add({.row = row, .batch = 1, .begin = 2e7, .end = 2e7 + 12345});
    const std::vector<std::string> lines = lines_of(to_table(report_of(timeline)));
    CHECK(lines[0] == "20.01 s, 2 batches, 0.050 batches/s");
    CHECK(has(to_table(report_of(timeline)),
              "\nrow   spans  busy   mean  median    p99    max  gaps  max gap\n"
              "                %     ms      ms     ms     ms     %        s\n"
              "step      2   0.1  12.35   12.35  12.35  12.35  99.9    19.99\n"));
}

TEST_CASE("a column of numbers has a space before them, however long they are") {
    detail::TextTable table({3, 2}, {4, 3});
    table.add({"abc", "de", "1234", "123"});
    table.add({"a", "d", "1", "2"});
    table.add({"abcdef", "defg", "123456", "1"});
    CHECK(lines_of(table.text())[0] == "abc de 1234 123");
    CHECK(lines_of(table.text())[1] == "a   d    1  2");
}

TEST_CASE("a timeline that takes less than a microsecond has its shares in the head") {
    Timeline timeline;
    for (const char* name : {"encode", "train"})
        timeline.add({.row = timeline.add_row(name, "GPU 0"), .begin = 0, .end = 0.5});
    const std::string table = to_table(report_of(timeline));
    CHECK(contains(table, "device: "));
    CHECK(contains(table, "rows: "));
}

TEST_CASE("an empty timeline has a table too") {
    CHECK(to_table(report_of(Timeline())) == "0.000 us, 0 batches\n\nnothing ran.\n");
    for (const std::string& line : lines_of(to_table(report_of(with_shares({{"encode", 0}})))))
        CHECK(columns_of(line) <= 80);
}

TEST_CASE("what is not printable is not printed") {
    Timeline timeline("a\nb\x1b[31m\xff");
    timeline.add_row("tab\there", "\xe2\x80\xaeGPU"); // a mark that turns the direction of text
    const std::string table = to_table(report_of(timeline));
    CHECK(has(table, "a\uFFFDb\uFFFD[31m\uFFFD\n"));
    CHECK(has(table, "tab\uFFFDhere \uFFFDGPU "));
}

TEST_CASE("what a terminal acts on is told from text, at both ends of each range") {
    using detail::timeline_text::is_control;
    for (const std::uint32_t control :
         {0x00U, 0x1FU, 0x7FU, 0x80U, 0x9FU, 0x61CU, 0x200EU, 0x200FU, 0x2028U, 0x202EU, 0x2066U, 0x2069U}) {
        CAPTURE(control);
        CHECK(is_control(char32_t{control}));
    }
    for (const std::uint32_t text :
         {0x20U, 0x7EU, 0xA0U, 0x61BU, 0x61DU, 0x200DU, 0x2010U, 0x2027U, 0x202FU, 0x2065U, 0x206AU}) {
        CAPTURE(text);
        CHECK_FALSE(is_control(char32_t{text}));
    }
}

TEST_CASE("no line is wider than 80 columns, whatever the names and the numbers") {
    std::mt19937 random(20261);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
    const auto text = [&](std::size_t longest) {
        std::string result;
        for (std::size_t left = below(longest + 1); left > 0; --left)
            result += glyphs[below(4) == 0 ? below(glyphs.size()) : below(2)].text;
        return result;
    };
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        Timeline timeline(text(120));
        const std::size_t rows = below(5);
        const double scales[] = {1e-300, 1e-3, 1, 1e3, 1e6, 1e9, 1e15, 1e100, 1e300};
        for (std::size_t row = 0; row < rows; ++row) {
            const std::string name = text(below(2) == 0 ? 100 : 12);
            timeline.add_row(name, below(3) == 0 ? "" : text(20));
        }
        for (std::size_t left = rows > 0 ? below(30) : 0; left > 0; --left) {
            const double scale = scales[below(9)];
            const double begin = static_cast<double>(below(100)) * scale;
            timeline.add({below(rows), below(10), begin, begin + static_cast<double>(below(100)) * scale,
                          static_cast<SpanKind>(below(4))});
        }
        TimelineReport report = report_of(timeline);
        if (below(2) == 0) {
            for (RowReport& row : report.rows)
                row.spans *= 123456789;
        }
        const std::vector<std::string> lines = lines_of(to_table(report));
        std::size_t table_width = 0;
        for (const std::string& line : lines) {
            CAPTURE(line);
            CHECK(columns_of(line) <= 80);
        }
        // All rows of the table are equally wide.
        std::size_t at = 0;
        while (at < lines.size() && lines[at].rfind("row ", 0) != 0)
            ++at;
        for (; at < lines.size() && !lines[at].empty(); ++at) {
            table_width = table_width == 0 ? columns_of(lines[at]) : table_width;
            CHECK(columns_of(lines[at]) == table_width);
        }
    }
}

TEST_CASE("a long name is cut with an ellipsis, and a short one is not") {
    Timeline timeline;
    timeline.add_row("an encoder whose name goes on and on", "GPU 0");
    timeline.add_row("short", "GPU 0");
    const std::string table = to_table(report_of(timeline));
    CHECK(has(table, "an encoder whose name\u2026 GPU 0 "));
    CHECK(has(table, "short                  GPU 0 "));
}

TEST_CASE("where numbers are long, one space before them leaves room for names") {
    Timeline timeline;
    timeline.add_row("an encoder", "GPU 0");
    timeline.add({.row = 0, .begin = 0, .end = 10});
    timeline.add({.row = 0, .begin = 20, .end = 30});
    TimelineReport report = report_of(timeline);
    RowReport& row = report.rows[0];
    row.spans = 123456789;
    row.median = 1;
    row.mean = row.p99 = row.longest = 1.2345e12;
    CHECK(has(to_table(report), "an encoder GPU 0 1.2e+08 66.7 1.2e+12  1.000 1.2e+12 1.2e+12  0.0       -"));
}

TEST_CASE("a sentence has no line that is wider than 80 columns, whatever its words are") {
    Timeline timeline;
    timeline.set_sentence("short " + std::string(200, 'w') + " words");
    const std::string table = to_table(report_of(timeline));
    CHECK(contains(table, "\nshort\n" + std::string(79, 'w') + "\u2026\nwords\n"));
}

} // namespace report_timeline_table
