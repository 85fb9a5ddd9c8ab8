// The names of kernels as they stand in the source.
#pragma once

#include <cstdlib>
#include <string>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace sluice::detail {

/// `name` as the source has it, or as it is where it is no mangled one.
inline std::string demangled(const std::string& name) {
#if __has_include(<cxxabi.h>)
    int status = 0;
    if (char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status)) {
        std::string result = text;
        std::free(text);
        return result;
    }
#endif
    return name;
}

} // namespace sluice::detail
