// Runs fuzz targets without libFuzzer: on what the corpus holds, and on what a seeded generator makes of that.
//
//     fuzz NAME CORPUS [RUNS [SEED]]
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz.hpp"

namespace sluice::fuzz {
namespace {

using Input = std::vector<std::uint8_t>;

std::vector<std::pair<std::string, Target>>& targets() {
    static std::vector<std::pair<std::string, Target>> all;
    return all;
}

/// The input under way, written out at a crash.
Input current;
void keep_current() {
    std::ofstream file("fuzz-crash.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
}

/// splitmix64
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(next() % limit); }

private:
    std::uint64_t state_;
};

constexpr std::size_t longest = 4096;

/// One of the usual changes: bits, bytes, numbers at the edges, pieces left out, repeated, or taken from another input.
void change(Input& input, const std::vector<Input>& corpus, Random& random) {
    const std::size_t at = random.below(input.size() + 1);
    const std::size_t length = std::min(random.below(9) + 1, input.size() - at);
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random.below(8)) {
    case 0:
        if (at < input.size())
            input[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
        break;
    case 1:
        if (at < input.size())
            input[at] = static_cast<std::uint8_t>(random.next());
        break;
    case 2: {
        static constexpr std::uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '"', '-', '\n'};
        if (at < input.size())
            input[at] = edges[random.below(std::size(edges))];
        break;
    }
    case 3:
        input.erase(place, place + static_cast<std::ptrdiff_t>(length));
        break;
    case 4: {
        const Input piece(place, place + static_cast<std::ptrdiff_t>(length));
        input.insert(place, piece.begin(), piece.end());
        break;
    }
    case 5: {
        Input piece(random.below(9));
        for (std::uint8_t& byte : piece)
            byte = static_cast<std::uint8_t>(random.next());
        input.insert(place, piece.begin(), piece.end());
        break;
    }
    case 6: {
        const Input& other = corpus[random.below(corpus.size())];
        const std::size_t from = random.below(other.size() + 1);
        const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
        const auto end = begin + static_cast<std::ptrdiff_t>(random.below(other.size() - from + 1));
        input.insert(place, begin, end);
        break;
    }
    default:
        input.resize(at);
    }
    if (input.size() > longest)
        input.resize(longest);
}

std::vector<Input> read_corpus(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<Input> corpus{{}};
    for (const auto& path : files) {
        std::ifstream file(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

int run(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: fuzz NAME CORPUS [RUNS [SEED]]\n");
        return 2;
    }
    Target target = nullptr;
    for (const auto& [name, function] : targets()) {
        if (name == argv[1])
            target = function;
    }
    if (target == nullptr) {
        std::fprintf(stderr, "fuzz: there is no target %s\n", argv[1]);
        return 2;
    }
    const std::vector<Input> corpus = read_corpus(argv[2]);
    if (corpus.size() < 2) {
        std::fprintf(stderr, "fuzz: %s holds no inputs\n", argv[2]);
        return 2;
    }
    const std::uint64_t runs = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    Random random(argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1);
    std::set_terminate([] {
        keep_current();
        std::abort();
    });
    for (const Input& input : corpus) {
        current = input;
        target(current);
    }
    for (std::uint64_t i = 0; i < runs; ++i) {
        current = corpus[random.below(corpus.size())];
        for (std::size_t changes = random.below(6) + 1; changes > 0; --changes)
            change(current, corpus, random);
        target(current);
    }
    std::printf("%s: %zu inputs of the corpus, %llu runs\n", argv[1], corpus.size() - 1,
                static_cast<unsigned long long>(runs));
    return 0;
}

} // namespace

Registration::Registration(const char* name, Target target) { targets().emplace_back(name, target); }

} // namespace sluice::fuzz

int main(int argc, char** argv) { return sluice::fuzz::run(argc, argv); }
