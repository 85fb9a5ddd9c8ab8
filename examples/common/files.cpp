#include <common/files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <common/bad_input.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void cannot_write(const fs::path& path, int error_number) {
    throw BadInput(path.string() + ": cannot be written: " + system_message(error_number));
}

/// Writes and closes; 0, or the error number.
int write_and_close(const fs::path& path, std::span<const std::uint8_t> bytes) {
    errno = 0;
    File file{std::fopen(path.c_str(), "wb")};
    if (!file)
        return errno;
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
        return errno;
    // A full disk may only show when the last buffer goes out.
    return std::fclose(file.release()) == 0 ? 0 : errno;
}

struct Descriptor {
    int number;
    ~Descriptor() {
        if (number >= 0)
            ::close(number);
    }
};

/// Writes all bytes and waits until the disk has them; 0, or the error number.
int write_and_flush(int file, std::span<const std::uint8_t> bytes) {
    constexpr std::size_t most = 1 << 30; // Linux takes no more than 2 GB at once
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), most));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    // Some file systems have nothing to flush, and say so.
    return ::fsync(file) == 0 || errno == EINVAL ? 0 : errno;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

/// Writes `bytes` to a file that has no name before they are on the disk, so that nothing is left of it when the process is
/// killed, and names it `path`. False where the system or the file system cannot.
bool write_nameless([[maybe_unused]] const fs::path& path,
                    [[maybe_unused]] std::span<const std::uint8_t> bytes) {
#ifdef O_TMPFILE
    const Descriptor file{::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666)};
    if (file.number < 0 || write_and_flush(file.number, bytes) != 0)
        return false;
    const std::string number = "/proc/self/fd/" + std::to_string(file.number);
    return ::linkat(AT_FDCWD, number.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
#else
    return false;
#endif
}

/// Writes `bytes` to the new file `path`; 0, or the error number.
int write_new_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
    if (write_nameless(path, bytes))
        return 0;
    const Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    return file.number < 0 ? errno : write_and_flush(file.number, bytes);
}

/// Waits until the disk has the names of the files in `folder`, as far as the file system can.
void flush_folder(const fs::path& folder) {
    const Descriptor opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (opened.number >= 0)
        (void)::fsync(opened.number);
}

bool is_written_directly(const fs::path& path, const fs::file_status& status) {
    // Renaming over /dev/stdout would replace the device, even where it stands for a regular file.
    return (fs::exists(status) && !fs::is_regular_file(status)) || path.string().starts_with("/dev/");
}

} // namespace

std::uintmax_t size_of_file(const fs::path& path, const std::string& wanted) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        throw BadInput(path.string() + ": cannot be read: " +
                       (error ? error.message() : system_message(ENOENT)) + "; expected " + wanted);
    }
    if (!fs::is_regular_file(status)) {
        throw BadInput(path.string() + ": is " +
                       (fs::is_directory(status) ? "a folder" : "not a regular file") + "; expected " +
                       wanted);
    }
    const std::uintmax_t size = fs::file_size(path, error);
    if (error)
        throw BadInput(path.string() + ": cannot be read: " + error.message() + "; expected " + wanted);
    return size;
}

std::vector<std::uint8_t> read_bytes(const fs::path& path, std::uintmax_t limit, const std::string& wanted) {
    (void)size_of_file(path, wanted);
    errno = 0;
    File file{std::fopen(path.c_str(), "rb")};
    struct ::stat opened {};
    if (!file || ::fstat(::fileno(file.get()), &opened) != 0)
        throw BadInput(path.string() + ": cannot be read: " + system_message(errno) + "; expected " + wanted);
    // Not the size from before: another file may have taken the place of the one that had it.
    const auto size = static_cast<std::uintmax_t>(opened.st_size);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(limit < size ? limit : size));
    const std::size_t read = bytes.empty() ? 0 : std::fread(bytes.data(), 1, bytes.size(), file.get());
    if (std::ferror(file.get()) != 0) {
        throw BadInput(path.string() + ": cannot be read: " + system_message(errno) + "; expected " + wanted);
    }
    bytes.resize(read);
    return bytes;
}

bool is_gzip(std::span<const std::uint8_t> bytes) {
    return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

void write_whole_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status))
        cannot_write(path, EISDIR);
    if (is_written_directly(path, status)) {
        if (const int failure = write_and_close(path, bytes); failure != 0)
            cannot_write(path, failure);
        return;
    }
    // The file that a link names is replaced, not the link.
    error.clear(); // a file that is not there yet is no error
    const fs::path target = fs::exists(status) ? fs::canonical(path, error) : path;
    if (error)
        cannot_write(path, error.value());
    const fs::path partial = target.string() + ".partial-" + std::to_string(::getpid());
    fs::remove(partial, error); // of an earlier process of this number
    if (const int failure = write_new_file(partial, bytes); failure != 0) {
        fs::remove(partial, error);
        cannot_write(path, failure);
    }
    fs::rename(partial, target, error);
    if (error) {
        std::error_code ignored;
        fs::remove(partial, ignored);
        cannot_write(path, error.value());
    }
    flush_folder(folder_of(target));
}

void write_whole_file(const fs::path& path, std::string_view text) {
    write_whole_file(path, std::span{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void require_writable_place(const fs::path& path) {
    std::error_code error;
    if (path.empty())
        throw BadInput("an empty file name cannot be written to; expected a path");
    if (fs::is_directory(path, error))
        cannot_write(path, EISDIR);
    const fs::path folder = folder_of(path);
    if (!fs::is_directory(folder, error)) {
        throw BadInput(path.string() + ": cannot be written: there is no folder " + folder.string());
    }
}

} // namespace examples
