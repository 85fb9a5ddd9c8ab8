// BACKEND is what CMake says that the test is for. Without program.hpp, which takes long to compile.

namespace sluice_test {

extern const char* const backend;
const char* const backend = BACKEND;

} // namespace sluice_test
