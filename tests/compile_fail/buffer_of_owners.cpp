// Elements that own something, which bytes copied to a device and back do not keep alive.
// EXPECT: sluice::DeviceBuffer: elements must be trivially copyable
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <string>

#if MISUSE
using Element = std::string;
#else
using Element = char;
#endif

std::size_t size(const sluice::DeviceBuffer<Element, sluice::Host>& buffer) { return buffer.size(); }
