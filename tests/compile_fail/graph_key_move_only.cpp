// A key that cannot be copied.
// FIRST: sluice::GraphCapture: keys are kept: a key's type can be copied
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <memory>

struct Shape {
#if MISUSE
    std::unique_ptr<int> rows;
#else
    int rows;
#endif
    bool operator==(const Shape&) const = default;
};

void run(sluice::HostStreamRef stream) {
    sluice::GraphCapture<Shape, sluice::Host> graphs;
    graphs.run(stream, Shape{}, [](sluice::HostStreamRef s) { s.enqueue([] {}); });
}
