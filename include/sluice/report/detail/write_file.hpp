// Files that are there whole or not at all.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#ifndef _WIN32
#include <stdlib.h> // realpath
#include <sys/stat.h>
#endif

#include <sluice/backend/error.hpp>

namespace sluice::detail::drawing {

/// The regular file that `path` names, by way of a link too, or that can be made there. Empty where it names something else, such as
/// a device, a pipe, a folder or a file that a link names and that is not there yet.
inline std::string replaceable_file(const std::string& path) {
#ifndef _WIN32
    struct stat named = {};
    if (::lstat(path.c_str(), &named) != 0)
        return path;
    struct stat there = {};
    if (::stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode))
        return {};
    if (S_ISLNK(named.st_mode)) {
        // /dev/stdout may stand for a regular file, which is the program's to go on with.
        if (path.compare(0, 5, "/dev/") == 0 || path.compare(0, 6, "/proc/") == 0)
            return {};
        char* const target = ::realpath(path.c_str(), nullptr);
        std::string result = target != nullptr ? target : "";
        ::free(target);
        return result;
    }
#endif
    return path;
}

/// Writes `bytes` to a new file, or to what is there; 0, or the error number. Then nothing is left of a `temporary` file.
inline int write_bytes(const std::string& path, const std::string& bytes, bool temporary) {
    errno = 0;
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr)
        return errno;
    bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    written = std::fflush(file) == 0 && written;
    int reason = errno;
    if (std::fclose(file) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (!written && temporary)
        std::remove(path.c_str());
    return written ? 0 : reason;
}

/// Writes `bytes` to `path` + ".part" and renames it to `path`; on a failure nothing is left of it, and what was at `path` stays. A
/// link's target is replaced so, not the link; what is no regular file is written as it is. `who` is the public function, for the
/// message.
inline void write_file(const char* who, const std::string& path, const std::string& bytes) {
    const std::string target = replaceable_file(path);
    const std::string part = target + ".part";
    int failure = target.empty() ? write_bytes(path, bytes, false) : write_bytes(part, bytes, true);
    if (!target.empty() && failure == 0) {
#ifdef _WIN32
        std::remove(target.c_str()); // rename does not replace there
#endif
        if (std::rename(part.c_str(), target.c_str()) != 0) {
            failure = errno;
            std::remove(part.c_str());
        }
    }
    if (failure != 0)
        throw Error(std::string(who) + ": cannot write '" + path + "': " + std::strerror(failure));
}

} // namespace sluice::detail::drawing
