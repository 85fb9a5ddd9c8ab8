/// \file
/// Where tests find the reference tensors.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace sluice_test {

/// The file that the environment variable SLUICE_REFERENCE names, otherwise the copy in tests/data.
inline std::filesystem::path reference_path() {
    const char* named = std::getenv("SLUICE_REFERENCE");
    if (named != nullptr && *named != '\0')
        return named;
    return std::filesystem::path{SLUICE_TEST_DATA_DIR} / "torch_reference.safetensors";
}

} // namespace sluice_test
