// What devices did as tables of a page.
#include <string>
#include <vector>

#include <sluice/report/kernel_tables.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_kernel_tables {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a page has what the time went into, and all kernels") {
    ActivityReport report;
    report.title = "graphed";
    report.wall = 4000;
    report.causes.kernel = 3000;
    report.causes.runtime = 1000;
    report.kernels = {{"gemm", "train", ActivityKind::kernel, 20, 2500, 125, 0.625, 0, TensorCores::present},
                      {"copy to the device", "", ActivityKind::copy, 4, 500, 125, 0.125, 4096}};
    const std::vector<HtmlTable> tables = tables_of(report);
    REQUIRE(tables.size() == 2);
    CHECK(tables[0].title == "graphed: time by cause");
    REQUIRE(tables[0].rows.size() == 7);
    CHECK(tables[0].rows[0] == std::vector<std::string>{"kernel", "3", "75.0"});
    CHECK(tables[0].rows[2] == std::vector<std::string>{"fill", "0", "0.0"});
    CHECK(tables[0].rows[4] == std::vector<std::string>{"runtime", "1", "25.0"});
    CHECK(tables[1].title == "graphed: kernels");
    REQUIRE(tables[1].rows.size() == 2);
    CHECK(tables[1].rows[0] ==
          std::vector<std::string>{"gemm", "train", "20", "2.5", "125", "62.5", "-", "yes"});
    CHECK(tables[1].rows[1][1] == "-");
    CHECK(tables[1].rows[1][6] == "4096");
    CHECK(tables[1].rows[1][7] == "-");
    for (const HtmlTable& table : tables) {
        for (const std::vector<std::string>& row : table.rows)
            CHECK(row.size() == table.heads.size());
    }
    HtmlOptions options;
    options.tables = tables;
    CHECK(contains(to_html(Timeline("graphed"), options),
                   "<td>gemm</td><td>train</td><td class=\"n\">20</td>"));
    CHECK(tables_of(ActivityReport{})[0].title == "time by cause");
}

} // namespace report_kernel_tables
