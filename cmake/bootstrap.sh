#!/usr/bin/env bash
# Installs what is missing, then configures, builds and runs one of sluice's workflows:
#
#     bash cmake/bootstrap.sh demo    trains on handwritten digits under each schedule
#     bash cmake/bootstrap.sh test    builds everything and runs the tests
#
# Debian 12, Ubuntu 24.04 or newer, as root or with sudo. Elsewhere it says what to install. What is there
# already, from whatever source, is left alone.
set -euo pipefail

fail() {
    printf 'bootstrap: %s\n' "$1" >&2
    exit "${2:-1}"
}

[[ $# -eq 1 && ($1 == demo || $1 == test) ]] || fail "expected one argument, demo or test" 2
preset=$1
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# nvcc is often installed without being on the path.
if ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then
    export PATH="$PATH:/usr/local/cuda/bin"
fi

has_command() { command -v "$1" >/dev/null; }
has_compiler() {
    echo '#include <version>' | "${CXX:-c++}" -std=c++20 -E -x c++ - -o /dev/null 2>/dev/null
}
has_header() { echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -E -x c++ - -o /dev/null 2>/dev/null; }
# The reference BLAS has a cblas.h too, without OpenBLAS behind it.
has_openblas() {
    { has_header cblas.h || has_header openblas/cblas.h; } &&
        echo 'int main() {}' | "${CXX:-c++}" -x c++ - -o /dev/null -lopenblas 2>/dev/null
}

# Fills `missing` with the packages for what is not there.
find_missing() {
    missing=()
    has_compiler || missing+=(g++)
    has_command cmake || missing+=(cmake)
    has_command ninja || missing+=(ninja-build)
    has_openblas || missing+=(libopenblas-dev)
    has_header CLI/CLI.hpp || missing+=(libcli11-dev)
    has_header nlohmann/json.hpp || missing+=(nlohmann-json3-dev)
    has_header png.h || missing+=(libpng-dev)
    if [[ $preset == test ]]; then
        has_header doctest/doctest.h || missing+=(doctest-dev)
        has_header benchmark/benchmark.h || missing+=(libbenchmark-dev)
    fi
}

install_missing() {
    local list=${missing[*]}
    has_command apt-get || fail "these are missing, and there is no apt-get to install them with: $list"
    local as_root=()
    if [[ $(id -u) -ne 0 ]]; then
        has_command sudo || fail "these are missing, and installing them needs root or sudo: $list"
        # -n only where nobody could type a password.
        if [[ -t 0 ]]; then as_root=(sudo); else as_root=(sudo -n); fi
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)

    echo "bootstrap: installing $list"
    "${apt[@]}" update || fail "apt-get update failed; these are still missing: $list"
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
        fail "apt-get could not install these: $list"
    find_missing
    [[ ${#missing[@]} -eq 0 ]] || fail "these are installed but not usable: ${missing[*]}"
}

find_missing
[[ ${#missing[@]} -eq 0 ]] || install_missing

version=$(cmake --version | sed -n '1s/^cmake version \([0-9.]*\).*/\1/p')
if [[ $(printf '3.25\n%s\n' "$version" | sort -V | head -n 1) != 3.25 ]]; then
    fail "$(command -v cmake) is version $version, but sluice needs CMake 3.25 or newer (https://cmake.org/download)"
fi

# As many compilers as there are cores: Ninja starts two more, which take a tenth more time, and 3 GB each at worst.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
exec cmake --workflow --preset "$preset"
