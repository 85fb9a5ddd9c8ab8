// Right programs whose ordinary memory lies where device memory was, as both come from one heap on the CPU. What names no backend
// is of `Host`, which is checked in a program that is compiled with SLUICE_CHECKED=1.
#include <span>

#include "hazards/hazards.hpp"

namespace sluice::test::hazards_ordinary_memory {

TEST_CASE("Right: ordinary memory in the place of a freed buffer, or of memory of a graph that has gone") {
    pass([](World& w) {
        const float* place = nullptr;
        const auto is_mine_now = [&] { host_reads(std::span<const float>(place, count), "mine"); };
        {
            const Device scratch(count);
            place = scratch.data();
        }
        is_mine_now();
        {
            const BasicGraph<B> graph = capture(w.main, [&](Ref s) {
                Device scratch(count, s);
                copy(s, scratch, w.images);
                place = scratch.data();
            });
            const BasicGraphExec<B> executable(graph);
        }
        is_mine_now();
    });
}

} // namespace sluice::test::hazards_ordinary_memory
