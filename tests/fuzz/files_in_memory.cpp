// What examples/common/files.hpp declares for reading, of one file in memory, so that readers of files run as fast as they parse.
#include "fuzz/files_in_memory.hpp"

#include <algorithm>

#include <common/files.hpp>

namespace sluice::fuzz {

Bytes& file_in_memory() {
    static Bytes bytes;
    return bytes;
}

} // namespace sluice::fuzz

namespace examples {

std::uintmax_t size_of_file(const std::filesystem::path&, const std::string&) {
    return sluice::fuzz::file_in_memory().size();
}
std::vector<std::uint8_t> read_bytes(const std::filesystem::path&, std::uintmax_t limit, const std::string&) {
    const auto bytes = sluice::fuzz::file_in_memory();
    const auto size = static_cast<std::size_t>(std::min<std::uintmax_t>(limit, bytes.size()));
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}
bool is_gzip(std::span<const std::uint8_t> bytes) {
    return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}
void write_whole_file(const std::filesystem::path&, std::span<const std::uint8_t>) {}
void write_whole_file(const std::filesystem::path&, std::string_view) {}
void require_writable_place(const std::filesystem::path&) {}

} // namespace examples
