// Which kernels of a module have instructions of Tensor Cores: modules made here, and what is no module.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/detail/kernel_code.hpp>

#include "support/doctest.hpp"

namespace report_kernel_code {

using namespace sluice::detail::kernel_code;

namespace {

constexpr std::uint64_t hmma = 0x0000000c0410723c; // HMMA.16816.F32, of 9.0
constexpr std::uint64_t ffma = 0x0000000502027223;
constexpr std::uint64_t hfma2_mma = 0x00000000ff057435; // no matrix product, whatever its name

template <class Number>
void put(std::string& file, std::size_t at, Number number) {
    std::memcpy(file.data() + at, &number, sizeof number);
}

/// A section's name and its instructions, the first half of each.
using Section = std::pair<std::string, std::vector<std::uint64_t>>;

/// An ELF file with these sections, in the layout of CUDA 13, or of CUDA 12.
std::string module_of(const std::vector<Section>& sections, std::uint32_t architecture,
                      bool of_cuda_13 = true) {
    std::string names(1, '\0');
    std::string file("\177ELF\002\001\001");
    file.resize(64);
    std::vector<std::size_t> name_at;
    std::vector<std::size_t> code_at;
    for (const auto& [name, code] : sections) {
        name_at.push_back(names.size());
        names += name + '\0';
        code_at.push_back(file.size());
        for (const std::uint64_t instruction : code) {
            file.append(16, '\0');
            put(file, file.size() - 16, instruction);
        }
    }
    const std::size_t names_at = file.size();
    file += names;
    const std::size_t table = file.size();
    file.append(64 * (sections.size() + 1), '\0');
    for (std::size_t i = 0; i < sections.size(); ++i) {
        put(file, table + 64 * i, static_cast<std::uint32_t>(name_at[i]));
        put(file, table + 64 * i + 24, std::uint64_t{code_at[i]});
        put(file, table + 64 * i + 32, std::uint64_t{16 * sections[i].second.size()});
    }
    put(file, table + 64 * sections.size() + 24, std::uint64_t{names_at});
    put(file, table + 64 * sections.size() + 32, std::uint64_t{names.size()});
    file[8] = of_cuda_13 ? '\010' : '\007';
    put(file, 48, of_cuda_13 ? 0x06000004 | architecture << 8 : architecture << 16 | 0x0500 | architecture);
    put(file, 40, std::uint64_t{table});
    put(file, 58, std::uint16_t{64});
    put(file, 60, static_cast<std::uint16_t>(sections.size() + 1));
    put(file, 62, static_cast<std::uint16_t>(sections.size()));
    return file;
}

std::string text_of(const std::string& file) {
    std::string text;
    for (const Code& code : functions_of(file.data(), file.size()))
        text += code.name + (code.has_tensor_core_instructions ? ":yes " : ":no ");
    return text;
}

const std::vector<Section> two_kernels{{".text._Z4gemmPf", {ffma, ffma, hmma}},
                                       {".nv.info", {hmma}},
                                       {".text._Z4reluPf", {ffma, hfma2_mma}},
                                       {".text.empty", {}}};

} // namespace

TEST_CASE("each kernel of a module has instructions of Tensor Cores or not") {
    CHECK(text_of(module_of(two_kernels, 90)) == "_Z4gemmPf:yes _Z4reluPf:no empty:no ");
    CHECK(text_of(module_of(two_kernels, 90, false)) == "_Z4gemmPf:yes _Z4reluPf:no empty:no ");
    // What stands behind the last section is none.
    const std::string module = module_of(two_kernels, 90);
    std::uint64_t table = 0;
    std::memcpy(&table, module.data() + 40, sizeof table);
    CHECK(text_of(module + module.substr(table, 64)) == text_of(module));
    // Instructions before 7.0 are laid out otherwise, and there were no Tensor Cores.
    CHECK(text_of(module_of(two_kernels, 61)) == "_Z4gemmPf:no _Z4reluPf:no empty:no ");
    CHECK(text_of(module_of(two_kernels, 61, false)) == "_Z4gemmPf:no _Z4reluPf:no empty:no ");
}

TEST_CASE("the instructions are told by their operation, wherever their operands are") {
    // As compiled for 7.5 to 12.0, and disassembled.
    for (const unsigned operation : {0x237U, 0x23CU, 0x23DU, 0x23FU, 0x27AU, 0x47AU, 0x47FU, 0x5EAU, 0x9EAU,
                                     0x9F0U, 0xDF0U, 0x9F1U, 0x9F2U, 0x9F3U})
        CHECK(is_of_tensor_cores(0x0000000c04107000 | operation));
    for (const unsigned operation : {0x223U, 0x221U, 0x23AU, 0x23EU, 0x435U, 0x981U, 0x986U, 0x9C5U, 0x94DU})
        CHECK(!is_of_tensor_cores(0x0000000c04107000 | operation));
}

TEST_CASE("what lies outside of a file is not there, whatever offset and length it is said to have") {
    const std::string text = "12345678";
    const sluice::detail::kernel_code::Bytes bytes(text.data(), text.size());
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    CHECK(bytes.has(0, 8));
    CHECK(bytes.has(8, 0));
    CHECK(bytes.has(7, 1));
    for (const auto& [offset, length] : {std::pair<std::uint64_t, std::uint64_t>{7, 2},
                                         {8, 1},
                                         {9, 0},
                                         {4, most},
                                         {4, most - 3},
                                         {most, 1},
                                         {most, most}})
        CHECK_FALSE(bytes.has(offset, length));
    CHECK(bytes.at<std::uint32_t>(4) != 0);
    CHECK(bytes.at<std::uint32_t>(5) == 0);
}

TEST_CASE("what is no module has no kernels, and a broken one none beyond its end") {
    const std::string whole = module_of(two_kernels, 90);
    CHECK(functions_of(nullptr, 0).empty());
    CHECK(text_of("no module").empty());
    CHECK(text_of(std::string(200, 'x')).empty());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        // A copy of its own, so that the address sanitizer sees a read behind its end.
        const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        CHECK(functions_of(part.data(), part.size()).size() <= 3);
    }
    std::mt19937_64 random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<char> changed(whole.begin(), whole.end());
        for (int change = 0; change < 4; ++change)
            changed[random() % changed.size()] = static_cast<char>(random() % 3 == 0 ? 0xFF : random());
        std::size_t names = 0;
        for (const Code& code : functions_of(changed.data(), changed.size()))
            names += code.name.size();
        REQUIRE(names < 65536 * whole.size());
    }
}

} // namespace report_kernel_code
