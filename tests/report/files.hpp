// Files that a test writes.
#pragma once

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace sluice::test {

/// A folder of this test's own, gone at the end.
struct Folder {
    std::filesystem::path path;
    explicit Folder(const std::string& name)
        : path(std::filesystem::temp_directory_path() / (name + std::to_string(std::random_device{}()))) {
        std::filesystem::create_directories(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string file(const std::string& name) const { return (path / name).string(); }
};

inline std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// What holds of every writer of files: `write(path)` writes `expected`, or throws and leaves nothing.
template <class Write>
void check_files(const std::string& expected, Write&& write) {
    const Folder folder("sluice_report_");
    const std::string path = folder.file("written");
    std::ofstream(path) << "what was there before, and is longer or shorter";
    write(path);
    CHECK(contents(path) == expected);
    CHECK_FALSE(std::filesystem::exists(path + ".part"));

    const std::string nowhere = folder.file("no/such");
    const std::string missing = text_of([&] { write(nowhere); });
    CHECK(contains(missing, nowhere));
    CHECK(contains(missing, "No such file or directory"));

    const std::string taken = folder.file("taken");
    std::filesystem::create_directories(taken + "/full");
    const std::string is_folder = text_of([&] { write(taken); });
    CHECK(contains(is_folder, taken));
    CHECK(contains(is_folder, "irectory")); // "Is a directory", or "Directory not empty"
    CHECK_FALSE(std::filesystem::exists(taken + ".part"));

    // A device that is always full.
    if (std::filesystem::exists("/dev/full")) {
        std::filesystem::create_symlink("/dev/full", path + ".part");
        const std::string full = text_of([&] { write(path); });
        CHECK(contains(full, path));
        CHECK(contains(full, "No space left"));
        CHECK(contents(path) == expected);
        CHECK_FALSE(std::filesystem::is_symlink(path + ".part"));
    }

    // A link stays, and what it names is written: a file, one that is not there yet, and a pipe.
    const std::string link = folder.file("link");
    const auto write_link_to = [&](const std::string& target) {
        std::filesystem::remove(link);
        std::filesystem::create_symlink(target, link);
        write(link);
        CHECK(std::filesystem::read_symlink(link) == target);
        CHECK_FALSE(std::filesystem::exists(link + ".part"));
    };
    std::filesystem::create_directories(folder.file("elsewhere"));
    std::ofstream(folder.file("elsewhere/file")) << "before";
    for (const std::string target : {"elsewhere/file", "elsewhere/new"}) {
        write_link_to(target);
        CHECK(contents(folder.file(target)) == expected);
    }
    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (const bool by_link : {false, true}) {
        // Both ends are open before, so that the reader ends when a writer has replaced the pipe, too.
        const int from = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
        const int end = ::open(pipe.c_str(), O_WRONLY);
        REQUIRE(::fcntl(from, F_SETFL, 0) == 0);
        std::string read;
        std::thread reader([&] {
            std::array<char, 4096> bytes{};
            for (ssize_t count = 0; (count = ::read(from, bytes.data(), bytes.size())) > 0;)
                read.append(bytes.data(), static_cast<std::size_t>(count));
        });
        by_link ? write_link_to(pipe) : write(pipe);
        ::close(end);
        reader.join();
        ::close(from);
        CHECK(read == expected);
        REQUIRE(std::filesystem::is_fifo(pipe));
    }
}

} // namespace sluice::test
