// Which kernels of a module have instructions of Tensor Cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::detail::kernel_code {

/// A kernel, or a function that kernels call.
struct Code {
    std::string name; ///< As the linker knows it.
    bool has_tensor_core_instructions = false;
};

/// The bytes of a file in memory. What lies outside of it reads as 0 or as empty.
class Bytes {
public:
    Bytes(const void* data, std::size_t size) noexcept
        : data_(static_cast<const unsigned char*>(data)), size_(size) {}

    template <class Number>
    Number at(std::uint64_t offset) const noexcept {
        Number number = 0;
        if (has(offset, sizeof number))
            std::memcpy(&number, data_ + offset, sizeof number);
        return number;
    }
    bool has(std::uint64_t offset, std::uint64_t length) const noexcept {
        return offset <= size_ && length <= size_ - offset;
    }
    /// What stands there up to a zero.
    std::string_view text_at(std::uint64_t offset) const noexcept {
        if (offset >= size_)
            return {};
        const void* const end = std::memchr(data_ + offset, 0, size_ - offset);
        if (end == nullptr)
            return {};
        const char* const begin = reinterpret_cast<const char*>(data_ + offset);
        return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
    }

private:
    const unsigned char* data_;
    std::size_t size_;
};

/// Whether an instruction of compute capability 7.0 or later multiplies matrices on Tensor Cores. The lowest nine bits are the
/// operation, the three above them say where its operands are. Found by disassembling one of each for 7.5 to 12.0.
constexpr bool is_of_tensor_cores(std::uint64_t instruction) noexcept {
    switch (instruction & 0x1FF) {
    case 0x037: // IMMA
    case 0x03C: // HMMA
    case 0x03D: // BMMA
    case 0x03F: // DMMA
    case 0x07A: // QMMA, of 8.9 and 12.0
    case 0x07F: // OMMA, of 12.0
    case 0x1EA: // UTCHMMA, UTCQMMA, UTCIMMA, UTCOMMA, of 10.0
    case 0x1F0: // HGMMA, of 9.0
    case 0x1F1: // IGMMA
    case 0x1F2: // BGMMA
    case 0x1F3: // QGMMA
        return true;
    default:
        return false;
    }
}

/// The functions of a module as the driver loads it, an ELF file of 64 bits. None of what is no such file. Of a function that a
/// kernel calls, the kernel has nothing.
inline std::vector<Code> functions_of(const void* module, std::size_t size) {
    constexpr std::string_view magic = "\177ELF\002\001"; // 64 bits, the least byte first
    constexpr std::string_view prefix = ".text.";
    constexpr std::uint64_t instruction_bytes = 16;
    const Bytes file(module, size);
    if (!file.has(0, 64) || std::memcmp(module, magic.data(), magic.size()) != 0)
        return {};
    // From version 8 of its layout on, the architecture is in the second byte of the flags.
    const auto flags = file.at<std::uint32_t>(48);
    const std::uint32_t architecture = file.at<std::uint8_t>(8) >= 8 ? flags >> 8 & 0xFF : flags & 0xFF;
    const bool may_have = architecture >= 70; // before, instructions were laid out otherwise

    const auto table = file.at<std::uint64_t>(40);
    const auto entry_bytes = file.at<std::uint16_t>(58);
    const auto entries = file.at<std::uint16_t>(60);
    const auto names_entry = file.at<std::uint16_t>(62);
    const auto names = file.at<std::uint64_t>(table + std::uint64_t{names_entry} * entry_bytes + 24);
    std::vector<Code> functions;
    for (std::uint64_t i = 0; i < entries; ++i) {
        const std::uint64_t entry = table + i * entry_bytes;
        const std::string_view name = file.text_at(names + file.at<std::uint32_t>(entry));
        const auto begin = file.at<std::uint64_t>(entry + 24);
        const auto bytes = file.at<std::uint64_t>(entry + 32);
        if (!name.starts_with(prefix) || !file.has(begin, bytes))
            continue;
        Code code{std::string(name.substr(prefix.size()))};
        for (std::uint64_t at = 0; may_have && at + instruction_bytes <= bytes; at += instruction_bytes)
            code.has_tensor_core_instructions |= is_of_tensor_cores(file.at<std::uint64_t>(begin + at));
        functions.push_back(std::move(code));
    }
    return functions;
}

} // namespace sluice::detail::kernel_code
