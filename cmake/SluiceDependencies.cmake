# What the tests, examples and benchmarks need, and the library does not: an installed package if there is
# one, otherwise the sources at a fixed commit.

include(FetchContent)
include(sluiceProbe)

# Spares other people's headers our warnings, as those of an installed package are. (FetchContent_Declare's SYSTEM
# says the same, but CMake 3.25.1 hands it to git.)
function(sluice_quiet_headers target)
    get_target_property(aliased ${target} ALIASED_TARGET)
    if(aliased)
        set(target ${aliased})
    endif()
    set_target_properties(${target} PROPERTIES SYSTEM ON)
endfunction()

# Whether the sources of what is optional can be fetched: they are there already, or their server answers. A build without
# network does without them, instead of failing.
function(sluice_can_fetch name url result)
    set(${result} ON PARENT_SCOPE)
    string(TOUPPER "${name}" upper)
    if(FETCHCONTENT_SOURCE_DIR_${upper} OR EXISTS "${FETCHCONTENT_BASE_DIR}/${name}-src/README.md")
        return()
    endif()
    find_package(Git QUIET)
    set(failed ON)
    if(GIT_FOUND AND NOT FETCHCONTENT_FULLY_DISCONNECTED)
        execute_process(COMMAND "${GIT_EXECUTABLE}" ls-remote --exit-code "${url}" HEAD
                        TIMEOUT 20 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    endif()
    if(failed)
        set(${result} OFF PARENT_SCOPE)
    endif()
endfunction()

macro(sluice_require_doctest)
    set(DOCTEST_WITH_TESTS OFF)
    set(DOCTEST_WITH_MAIN_IN_STATIC_LIB OFF)
    set(DOCTEST_NO_INSTALL ON)
    FetchContent_Declare(
        doctest
        GIT_REPOSITORY https://github.com/doctest/doctest.git
        GIT_TAG 1da23a3e8119ec5cce4f9388e91b065e20bf06f5 # v2.4.12
        FIND_PACKAGE_ARGS 2.4.8 QUIET GLOBAL)
    FetchContent_MakeAvailable(doctest)
    sluice_quiet_headers(doctest::doctest)
endmacro()

macro(sluice_require_benchmark)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_GTEST_TESTS OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    set(BENCHMARK_ENABLE_WERROR OFF)
    FetchContent_Declare(
        benchmark
        GIT_REPOSITORY https://github.com/google/benchmark.git
        GIT_TAG c58e6d0710581e3a08d65c349664128a8d9a2461 # v1.9.1
        FIND_PACKAGE_ARGS 1.7 QUIET GLOBAL)
    FetchContent_MakeAvailable(benchmark)
    sluice_quiet_headers(benchmark::benchmark)
endmacro()

macro(sluice_require_cli11)
    set(CLI11_BUILD_TESTS OFF)
    set(CLI11_BUILD_EXAMPLES OFF)
    set(CLI11_BUILD_DOCS OFF)
    set(CLI11_INSTALL OFF)
    FetchContent_Declare(
        CLI11
        GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
        GIT_TAG 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9 # v2.4.2
        FIND_PACKAGE_ARGS 2.1 QUIET GLOBAL)
    FetchContent_MakeAvailable(CLI11)
    sluice_quiet_headers(CLI11::CLI11)
endmacro()

macro(sluice_require_nlohmann_json)
    set(JSON_BuildTests OFF)
    set(JSON_Install OFF)
    FetchContent_Declare(
        nlohmann_json
        URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz # the repository is large
        URL_HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d
        DOWNLOAD_EXTRACT_TIMESTAMP ON
        FIND_PACKAGE_ARGS 3.11 QUIET GLOBAL)
    FetchContent_MakeAvailable(nlohmann_json)
    sluice_quiet_headers(nlohmann_json::nlohmann_json)
endmacro()

macro(sluice_require_png)
    set(sluice_png_advice "install it (Debian, Ubuntu: libpng-dev)")
    find_package(PNG QUIET GLOBAL)
    if(NOT PNG_FOUND)
        message(FATAL_ERROR "sluice: libpng, which the examples need, was not found; ${sluice_png_advice}.")
    endif()
    sluice_probe(sluice_png "#include <png.h>
int main() { return png_get_libpng_ver(nullptr) == nullptr; }" LIBRARIES PNG::PNG)
    if(NOT sluice_png)
        message(FATAL_ERROR "sluice: libpng, which the examples need, is ${PNG_LIBRARIES}, but cannot be used "
                            "(${sluice_png_PROBLEM}); ${sluice_png_advice}.")
    endif()
    list(GET PNG_LIBRARIES 0 sluice_png_library)
    message(STATUS "sluice: libpng is ${sluice_png_library}")
endmacro()

# OpenBLAS is taken where it can be used; otherwise the examples use their own plain loops.
# Sets SLUICE_EXAMPLES_HAVE_OPENBLAS and, when true, makes the target sluice_openblas.
option(SLUICE_OPENBLAS "Use OpenBLAS in the examples where it is found" ON)
macro(sluice_find_openblas)
    set(SLUICE_EXAMPLES_HAVE_OPENBLAS OFF)
    if(SLUICE_OPENBLAS)
        # Debian and Ubuntu keep the variants side by side in folders of their own.
        set(sluice_openblas_variants openblas-pthread openblas openblas-openmp openblas-serial)
        find_path(SLUICE_OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES ${sluice_openblas_variants})
        find_library(SLUICE_OPENBLAS_LIBRARY openblas PATH_SUFFIXES ${sluice_openblas_variants})
        mark_as_advanced(SLUICE_OPENBLAS_INCLUDE_DIR SLUICE_OPENBLAS_LIBRARY)
        set(sluice_openblas_without "the examples use plain loops on the host (libopenblas-dev)")
        if(NOT SLUICE_OPENBLAS_INCLUDE_DIR OR NOT SLUICE_OPENBLAS_LIBRARY)
            message(STATUS "sluice: OpenBLAS was not found, ${sluice_openblas_without}")
        else()
            # The reference BLAS has a cblas.h too.
            sluice_probe(
                sluice_openblas_builds "#include <cblas.h>
int main() {
    openblas_set_num_threads(1);
    float a = 1;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &a, 1, 0, &a, 1);
}"
                INCLUDES "${SLUICE_OPENBLAS_INCLUDE_DIR}"
                LIBRARIES "${SLUICE_OPENBLAS_LIBRARY}" Threads::Threads)
            if(sluice_openblas_builds)
                set(SLUICE_EXAMPLES_HAVE_OPENBLAS ON)
                if(NOT TARGET sluice_openblas)
                    add_library(sluice_openblas INTERFACE IMPORTED GLOBAL)
                    target_include_directories(sluice_openblas INTERFACE "${SLUICE_OPENBLAS_INCLUDE_DIR}")
                    target_link_libraries(sluice_openblas INTERFACE "${SLUICE_OPENBLAS_LIBRARY}" Threads::Threads)
                endif()
                message(STATUS "sluice: OpenBLAS is ${SLUICE_OPENBLAS_LIBRARY}")
            else()
                message(STATUS "sluice: OpenBLAS is ${SLUICE_OPENBLAS_LIBRARY}, but cannot be used "
                               "(${sluice_openblas_builds_PROBLEM}), ${sluice_openblas_without}")
            endif()
        endif()
    endif()
endmacro()

# KISS FFT's header for C++ (BSD licence), with which the spectrometer works on the CPU; without it that example is left out.
# Sets SLUICE_EXAMPLES_HAVE_KISSFFT and, when true, makes the target sluice_kissfft.
macro(sluice_find_kissfft)
    set(SLUICE_EXAMPLES_HAVE_KISSFFT OFF)
    set(sluice_kissfft_without "the example spectrometer is left out (libkissfft-dev)")
    find_path(SLUICE_KISSFFT_INCLUDE_DIR kissfft.hh PATH_SUFFIXES kissfft)
    mark_as_advanced(SLUICE_KISSFFT_INCLUDE_DIR)
    set(sluice_kissfft_dir "${SLUICE_KISSFFT_INCLUDE_DIR}")
    if(NOT sluice_kissfft_dir)
        set(sluice_kissfft_url https://github.com/mborgerding/kissfft.git)
        sluice_can_fetch(kissfft ${sluice_kissfft_url} sluice_can_fetch_kissfft)
        if(sluice_can_fetch_kissfft)
            FetchContent_Declare(
                kissfft
                GIT_REPOSITORY ${sluice_kissfft_url}
                GIT_TAG 7bce4153c6bc8aba2db0e889e576f9d00505cbe1 # 131.2.0
                SOURCE_SUBDIR headers-only) # no such folder: its own build is not wanted
            FetchContent_MakeAvailable(kissfft)
            set(sluice_kissfft_dir "${kissfft_SOURCE_DIR}")
        endif()
    endif()
    if(NOT sluice_kissfft_dir)
        message(STATUS "sluice: KISS FFT was neither found nor could be fetched, ${sluice_kissfft_without}")
    else()
        sluice_probe(
            sluice_kissfft_builds "#include <kissfft.hh>
int main() {
    std::complex<float> in[4], out[4];
    kissfft<float>(4, false).transform(in, out);
}"
            INCLUDES "${sluice_kissfft_dir}")
        if(sluice_kissfft_builds)
            set(SLUICE_EXAMPLES_HAVE_KISSFFT ON)
            if(NOT TARGET sluice_kissfft)
                add_library(sluice_kissfft INTERFACE IMPORTED GLOBAL)
                target_include_directories(sluice_kissfft INTERFACE "${sluice_kissfft_dir}")
            endif()
            message(STATUS "sluice: KISS FFT is ${sluice_kissfft_dir}/kissfft.hh")
        else()
            message(STATUS "sluice: KISS FFT is ${sluice_kissfft_dir}/kissfft.hh, but cannot be used "
                           "(${sluice_kissfft_builds_PROBLEM}), ${sluice_kissfft_without}")
        endif()
    endif()
endmacro()

# libjpeg-turbo, with which the example live decodes on the CPU. It cannot be a part of another build, so it is not fetched.
# Sets SLUICE_EXAMPLES_HAVE_TURBOJPEG and, when true, makes the target sluice_turbojpeg.
macro(sluice_find_turbojpeg)
    set(SLUICE_EXAMPLES_HAVE_TURBOJPEG OFF)
    set(sluice_turbojpeg_without "the example live is left out unless nvJPEG is found (libturbojpeg0-dev)")
    find_path(SLUICE_TURBOJPEG_INCLUDE_DIR turbojpeg.h)
    find_library(SLUICE_TURBOJPEG_LIBRARY turbojpeg)
    mark_as_advanced(SLUICE_TURBOJPEG_INCLUDE_DIR SLUICE_TURBOJPEG_LIBRARY)
    if(NOT SLUICE_TURBOJPEG_INCLUDE_DIR OR NOT SLUICE_TURBOJPEG_LIBRARY)
        message(STATUS "sluice: libjpeg-turbo was not found, ${sluice_turbojpeg_without}")
    else()
        sluice_probe(
            sluice_turbojpeg_builds "#include <turbojpeg.h>
int main() { return tjDestroy(tjInitDecompress()); }"
            INCLUDES "${SLUICE_TURBOJPEG_INCLUDE_DIR}"
            LIBRARIES "${SLUICE_TURBOJPEG_LIBRARY}")
        if(sluice_turbojpeg_builds)
            set(SLUICE_EXAMPLES_HAVE_TURBOJPEG ON)
            if(NOT TARGET sluice_turbojpeg)
                add_library(sluice_turbojpeg INTERFACE IMPORTED GLOBAL)
                target_include_directories(sluice_turbojpeg INTERFACE "${SLUICE_TURBOJPEG_INCLUDE_DIR}")
                target_link_libraries(sluice_turbojpeg INTERFACE "${SLUICE_TURBOJPEG_LIBRARY}")
            endif()
            message(STATUS "sluice: libjpeg-turbo is ${SLUICE_TURBOJPEG_LIBRARY}")
        else()
            message(STATUS "sluice: libjpeg-turbo is ${SLUICE_TURBOJPEG_LIBRARY}, but cannot be used "
                           "(${sluice_turbojpeg_builds_PROBLEM}), ${sluice_turbojpeg_without}")
        endif()
    endif()
endmacro()
