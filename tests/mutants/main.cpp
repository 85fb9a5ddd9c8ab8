// doctest's main for tests/mutate.py --class checker: at its end it writes what the race checker has found.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>
#include <fstream>

#include <sluice/backend/findings.hpp>

#include "support/doctest.hpp"

int main(int argc, char** argv) {
    const int failed = doctest::Context(argc, argv).run();
    if (const char* const path = std::getenv("SLUICE_MUTANTS_FOUND")) {
        std::ofstream file(path);
        for (const auto& finding : sluice::checked::findings()) {
            if (finding.mistake != sluice::checked::Mistake::unnecessary_wait)
                file << finding.message << '\n';
        }
    }
    return failed;
}
