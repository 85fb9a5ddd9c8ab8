// Rows of values that own something, which bytes copied to a device and back do not keep alive.
// EXPECT: sluice::RaggedBatch: values must be trivially copyable
// AT-MOST: 2 errors
#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

#include <string>

#if MISUSE
using Value = std::string;
#else
using Value = char;
#endif

std::size_t size(const sluice::RaggedBatch<Value, sluice::Host>& batch) { return batch.values().size(); }
