/// \file
/// A folder for a test's files, and the text of the error that a call throws.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <stdlib.h>

#include <common/bad_input.hpp>

namespace sluice_test {

using Bytes = std::vector<std::uint8_t>;

/// A new folder, removed with all it holds at the end.
class ScratchFolder {
public:
    ScratchFolder() {
        // mkdtemp puts letters of its own in place of six X.
        std::string pattern =
            (std::filesystem::temp_directory_path() / "sluice-").string() + std::string(6, 'X');
        if (::mkdtemp(pattern.data()) == nullptr)
            throw std::runtime_error("no folder for the test's files");
        path_ = pattern;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Writes a file, and gives its path.
    [[nodiscard]] std::filesystem::path file(const std::string& name, const Bytes& bytes) const {
        const std::filesystem::path path = path_ / name;
        std::ofstream out{path, std::ios::binary};
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return path;
    }

    [[nodiscard]] std::size_t files() const {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{path_})
            ++count;
        return count;
    }

private:
    std::filesystem::path path_;
};

inline Bytes contents(const std::filesystem::path& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

/// The text of the BadInput that `call` throws; "nothing was thrown" when it does not.
template <class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const examples::BadInput& error) {
        return error.what();
    }
    return "nothing was thrown";
}

} // namespace sluice_test
