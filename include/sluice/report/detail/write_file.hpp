// Files that are there whole or not at all.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <sluice/backend/error.hpp>

namespace sluice::detail::drawing {

/// Writes `bytes` to `path` + ".part" and renames it to `path`; on a failure nothing is left of it, and what
/// was at `path` stays. `who` is the public function, for the message.
inline void write_file(const char* who, const std::string& path, const std::string& bytes) {
    const std::string part = path + ".part";
    const auto fail = [&](int reason) {
        throw Error(std::string(who) + ": cannot write '" + path + "': " + std::strerror(reason));
    };
    errno = 0;
    std::FILE* const file = std::fopen(part.c_str(), "wb");
    if (file == nullptr)
        fail(errno);
    bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    written = std::fflush(file) == 0 && written;
    int reason = errno;
    if (std::fclose(file) != 0 && written) {
        written = false;
        reason = errno;
    }
#ifdef _WIN32
    if (written)
        std::remove(path.c_str()); // rename does not replace there
#endif
    if (written && std::rename(part.c_str(), path.c_str()) != 0) {
        written = false;
        reason = errno;
    }
    if (!written) {
        std::remove(part.c_str());
        fail(reason);
    }
}

} // namespace sluice::detail::drawing
