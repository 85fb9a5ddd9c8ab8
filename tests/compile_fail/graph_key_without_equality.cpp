// A key that cannot be compared.
// FIRST: sluice::GraphCapture: keys are compared: a key's type must have operator==
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Shape {
    int rows, columns;
#if !MISUSE
    bool operator==(const Shape&) const = default;
#endif
};

void run(sluice::HostStreamRef stream) {
    sluice::GraphCapture<Shape, sluice::Host> graphs;
    graphs.run(stream, Shape{1, 2}, [](sluice::HostStreamRef s) { s.enqueue([] {}); });
}
