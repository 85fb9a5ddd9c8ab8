#include <common/files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

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

/// Writes all bytes; 0, or the error number.
int write_all(int file, std::span<const std::uint8_t> bytes) {
    constexpr std::size_t most = 1 << 30; // Linux takes no more than 2 GB at once
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), most));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return 0;
}

/// Waits until the disk has all of it; 0, or the error number.
int flush(int file) {
    // Some file systems have nothing to flush, and say so; so do devices and pipes.
    return ::fsync(file) == 0 || errno == EINVAL ? 0 : errno;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

/// A file without a name in `folder`, of which nothing is left when the process is killed; negative where the system or the file
/// system has none.
int open_nameless([[maybe_unused]] const fs::path& folder) {
#ifdef O_TMPFILE
    return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
#else
    return -1;
#endif
}

int open_named(const fs::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/// Gives the nameless file `number` the name `path`, or, where that cannot be, copies it there; 0, or the error number.
int name_it(int number, const fs::path& path) {
    const std::string link = "/proc/self/fd/" + std::to_string(number);
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
        return 0;
    const Descriptor copy{open_named(path)};
    if (copy.number() < 0)
        return errno;
    std::vector<std::uint8_t> part(1 << 20);
    for (off_t at = 0;;) {
        const ssize_t read = ::pread(number, part.data(), part.size(), at);
        if (read < 0)
            return errno;
        if (read == 0)
            return flush(copy.number());
        if (const int failure =
                write_all(copy.number(), std::span(part).first(static_cast<std::size_t>(read))))
            return failure;
        at += read;
    }
}

/// Waits until the disk has the names of the files in `folder`, as far as the file system can.
void flush_folder(const fs::path& folder) {
    const Descriptor opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (opened.number() >= 0)
        (void)::fsync(opened.number());
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

Descriptor::~Descriptor() {
    if (number_ >= 0)
        ::close(number_);
}

WholeFile::WholeFile(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (fs::is_directory(status))
        cannot_write(path_, EISDIR);
    if (is_written_directly(path_, status)) {
        file_ = Descriptor(open_named(path_));
    } else {
        // The file that a link names is replaced, not the link.
        error.clear(); // a file that is not there yet is no error
        target_ = fs::exists(status) ? fs::canonical(path_, error) : path_;
        if (error)
            cannot_write(path_, error.value());
        partial_ = target_.string() + ".partial-" + std::to_string(::getpid());
        fs::remove(partial_, error); // of an earlier process of this number
        file_ = Descriptor(open_nameless(folder_of(target_)));
        nameless_ = file_.number() >= 0;
        if (!nameless_)
            file_ = Descriptor(open_named(partial_));
    }
    if (file_.number() < 0)
        cannot_write(path_, errno);
}

WholeFile::~WholeFile() {
    std::error_code ignored;
    if (!partial_.empty())
        fs::remove(partial_, ignored);
}

void WholeFile::write(std::span<const std::uint8_t> bytes) {
    if (const int failure = write_all(file_.number(), bytes))
        cannot_write(path_, failure);
}

void WholeFile::finish() {
    int failure = flush(file_.number());
    if (failure == 0 && nameless_)
        failure = name_it(file_.number(), partial_);
    if (failure != 0)
        cannot_write(path_, failure);
    file_ = Descriptor();
    if (partial_.empty())
        return;
    std::error_code error;
    fs::rename(partial_, target_, error);
    if (error)
        cannot_write(path_, error.value());
    partial_.clear();
    flush_folder(folder_of(target_));
}

void write_whole_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
    WholeFile file(path);
    file.write(bytes);
    file.finish();
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
