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

# nvcc may bring an older g++ than c++ is, as Debian's package does. Programs are linked with one library, so all is compiled by that one.
if [[ -z ${CXX:-}${CUDAHOSTCXX:-} ]] && command -v nvcc >/dev/null; then
    version_of_gcc='__GNUC__'
    of_nvcc=$(nvcc -x cu -E /dev/stdin <<<"$version_of_gcc" 2>/dev/null | tail -n 1) || of_nvcc=''
    of_cxx=$(c++ -x c++ -E - <<<"$version_of_gcc" 2>/dev/null | tail -n 1) || of_cxx='' # not there
    if [[ $of_nvcc =~ ^[0-9]+$ && (-z $of_cxx || $of_nvcc -lt $of_cxx) ]] && command -v "g++-$of_nvcc" >/dev/null; then
        export CXX=g++-$of_nvcc
        echo "bootstrap: compiling with $CXX, which $(command -v nvcc) uses"
    fi
fi

read -ra compiler <<<"${CXX:-c++}" # CXX may hold options, or a launcher
runs() { "$1" --version >/dev/null 2>&1; }
# Whether a C++20 program on standard input compiles and links, with the arguments given. A header alone says little.
builds() { "${compiler[@]}" -std=c++20 -x c++ - -o /dev/null "$@" 2>/dev/null; }
has_compiler() { builds <<<$'#include <string>\nint main() { return std::string("a").starts_with("b"); }'; }
# Libraries that are headers alone, and read all that they include.
has_header() { builds -E <<<"#include <$1>"; }
has_png() { builds -lpng <<<$'#include <png.h>\nint main() { return png_get_libpng_ver(nullptr) == nullptr; }'; }
has_turbojpeg() { builds -lturbojpeg <<<$'#include <turbojpeg.h>\nint main() { return tjDestroy(tjInitDecompress()); }'; }
# The reference BLAS has a cblas.h too, without OpenBLAS behind it.
has_openblas() {
    local header
    for header in cblas.h openblas/cblas.h; do
        if builds -lopenblas <<<$'#include <'"$header"$'>\nint main() { openblas_set_num_threads(1); }'; then return 0; fi
    done
    return 1
}
has_benchmark() { has_header benchmark/benchmark.h && builds -lbenchmark -pthread <<<'int main() {}'; }

# Fills `missing` with the packages for what is not there.
find_missing() {
    missing=()
    has_compiler || missing+=(g++)
    runs cmake || missing+=(cmake)
    runs ninja || missing+=(ninja-build)
    has_openblas || missing+=(libopenblas-dev)
    has_header CLI/CLI.hpp || missing+=(libcli11-dev)
    has_header nlohmann/json.hpp || missing+=(nlohmann-json3-dev)
    has_png || missing+=(libpng-dev)
    has_header kissfft/kissfft.hh || has_header kissfft.hh || missing+=(libkissfft-dev)
    has_turbojpeg || missing+=(libturbojpeg0-dev)
    if [[ $preset == test ]]; then
        has_header doctest/doctest.h || missing+=(doctest-dev)
        has_benchmark || missing+=(libbenchmark-dev)
    fi
}

install_missing() {
    local list=${missing[*]}
    command -v apt-get >/dev/null || fail "these are missing, and there is no apt-get to install them with: $list"
    local as_root=()
    if [[ $(id -u) -ne 0 ]]; then
        command -v sudo >/dev/null || fail "these are missing, and installing them needs root or sudo: $list"
        # -n only where no password can be typed.
        if [[ -t 0 ]]; then as_root=(sudo); else as_root=(sudo -n); fi
        "${as_root[@]}" true 2>/dev/null || fail "these are missing, and sudo does not let $(id -un) install them: $list"
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)

    echo "bootstrap: installing $list"
    "${apt[@]}" update || fail "apt-get update failed; these are still missing: $list"
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
        fail "apt-get could not install these: $list"
    find_missing
    [[ ${#missing[@]} -eq 0 ]] || fail "these are installed but not usable: ${missing[*]}"
}

# Another compiler than g++, whose library others use too, is not installed here.
if ! command -v "${compiler[0]}" >/dev/null && [[ ${compiler[0]##*/} != @(c++|g++) ]]; then
    fail "CXX is $CXX, which is not there; install it, or unset CXX"
fi
find_missing
[[ ${#missing[@]} -eq 0 ]] || install_missing

version=$(cmake --version | sed -n '1s/^cmake version \([0-9.]*\).*/\1/p')
if [[ $(printf '3.25\n%s\n' "$version" | sort -V | head -n 1) != 3.25 ]]; then
    fail "$(command -v cmake) is version $version, but sluice needs CMake 3.25 or newer (https://cmake.org/download)"
fi

# As many compilers as there are cores: Ninja starts two more, which take a tenth more time, and 3 GB each at worst.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
exec cmake --workflow --preset "$preset"
