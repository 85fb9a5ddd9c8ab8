# sluice_add_test(NAME SOURCES file... [SUPPORT file...] [CASES file...] [LABELS host|gpu] [LIBRARIES target...] [TIMEOUT seconds]
#                 [EACH] [THREADS] [BODIES] [CHECKED])
#
# One doctest program, NAME. CTest runs it as one test, or, with EACH, once for each of SOURCES, so that a test that
# hangs is named: ends.cpp, ends_test.cpp or ends_gpu.cu in pipeline gives pipeline.ends, in pipeline.gpu gives
# pipeline.ends.gpu.
# SUPPORT are files without test cases, CASES those whose objects one of LIBRARIES brings.
# THREADS is for tests in which the library's or the test's own threads share something: queues, events, buffers,
# pipelines, graphs, counters. They get the label `threads`, and the thread sanitizer's build holds them alone: the
# other tests give one queue some work and wait for it, which the other sanitizers watch, in all host tests.
# BODIES is for tests that have backends of their own, or look at a part's inside: they compile the bodies that others have from
# the library sluice::compiled. CHECKED is for whole programs that are checked, see backend/checked.hpp.
# A `gpu` test is skipped, visibly, where there is no device, and where sluice is built without CUDA, its sources
# are left out and the skip is all that is left of it. `.cu` sources are left out of `host` tests without CUDA.
# Tests find the files of tests/data in SLUICE_TEST_DATA_DIR.
#
# Several .cpp files are compiled as one, which takes less than half the time: most of it goes into headers and
# inline functions that all of them use. So what a test file defines is in a namespace of its own, folder_file.
# With SLUICE_QUICK_KERNELS, that is where no GPU could run them, a program's .cu files are compiled as one too, in the
# order given. (CMake does so by itself from 3.31 on.) `gpu` tests are then compiled only as far as errors go. Where a GPU may
# run them, each .cu file is compiled alone, several at a time.

include(SluiceCheckOnly)
include(SluiceJoinKernels)
include(SluiceLeftOut)

set(SLUICE_SKIP_CODE 77)
set(SLUICE_TEST_FILES_AT_ONCE 24 CACHE STRING "How many files of a test program are compiled as one")
mark_as_advanced(SLUICE_TEST_FILES_AT_ONCE)

function(sluice_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "EACH;THREADS;BODIES;CHECKED" "TIMEOUT" "SOURCES;SUPPORT;CASES;LABELS;LIBRARIES")
    if(NOT (arg_SOURCES OR arg_CASES) OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "sluice_add_test(${name}): expected SOURCES or CASES, then any of SUPPORT, LABELS, LIBRARIES, "
                            "TIMEOUT, EACH, THREADS, BODIES and CHECKED")
    endif()
    if(NOT arg_LABELS)
        set(arg_LABELS host)
    endif()
    if(NOT arg_LABELS MATCHES "^(host|gpu)$")
        message(FATAL_ERROR "sluice_add_test(${name}): LABELS is '${arg_LABELS}', expected host or gpu")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()

    set(labels ${arg_LABELS})
    if(arg_THREADS)
        list(APPEND labels threads)
    endif()

    set(tests ${name})
    set("filter_${name}" "")
    if(arg_EACH)
        sluice_tests_of_files(${name} tests ${arg_SOURCES} ${arg_CASES})
    endif()

    sluice_leave_out(${name} left_out NAMES ${tests})
    if(left_out)
        return()
    endif()

    set(reason "")
    if(arg_LABELS STREQUAL "gpu" AND NOT SLUICE_HAS_CUDA)
        set(reason "skipped: built without CUDA")
    elseif(arg_LABELS STREQUAL "gpu" AND SLUICE_QUICK_KERNELS)
        set(reason "skipped: built where there was no GPU")
    endif()
    if(reason)
        foreach(test IN LISTS tests)
            add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" -E echo "${reason}")
        endforeach()
        set_tests_properties(${tests} PROPERTIES LABELS gpu SKIP_REGULAR_EXPRESSION "skipped: ")
        if(NOT SLUICE_HAS_CUDA)
            return()
        endif()
    endif()

    set(sources ${arg_SOURCES} ${arg_SUPPORT})
    if(NOT SLUICE_HAS_CUDA)
        list(FILTER sources EXCLUDE REGEX "\\.cu$")
    endif()
    string(REPLACE "." "_" target "test_${name}")
    if(SLUICE_QUICK_KERNELS)
        sluice_join_kernels(${target} sources ${sources})
    endif()
    if(reason)
        sluice_add_checked_only(${target} ${sources})
    else()
        add_executable(${target} ${sources})
    endif()
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    set(library sluice_own)
    if(arg_CHECKED)
        set(library sluice_own_checked)
    endif()
    target_link_libraries(
        ${target} PRIVATE sluice_test_main_${arg_LABELS} ${arg_LIBRARIES} ${library} doctest::doctest)
    target_compile_definitions(${target} PRIVATE "SLUICE_TEST_DATA_DIR=\"${PROJECT_SOURCE_DIR}/tests/data\"")
    # A check is then one call, in place of a lambda that also catches what its expression throws: a thirteenth of what compiling
    # tests takes. What is thrown ends the test case instead, as failed.
    target_compile_definitions(${target} PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS)
    if(arg_BODIES)
        target_compile_definitions(${target} PRIVATE SLUICE_COMPILES_BODIES)
    endif()
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE
                                                                                  "${SLUICE_TEST_FILES_AT_ONCE}")
    if(SLUICE_SANITIZE STREQUAL "thread" AND NOT arg_THREADS)
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    list(FILTER sources INCLUDE REGEX "\\.cu$") # which CMake before 3.31 leaves out anyway
    set_source_files_properties(${sources} ${arg_SUPPORT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(reason)
        return()
    endif()

    foreach(test IN LISTS tests)
        # Not the target's name, so that a launcher can come first.
        add_test(NAME ${test} COMMAND ${SLUICE_TEST_LAUNCHER} $<TARGET_FILE:${target}> ${filter_${test}})
    endforeach()
    set_tests_properties(${tests} PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} FAIL_REGULAR_EXPRESSION
                                                                                       "test cases: +0 ")
    if(arg_LABELS STREQUAL "gpu")
        set_tests_properties(${tests} PROPERTIES SKIP_RETURN_CODE ${SLUICE_SKIP_CODE} RESOURCE_LOCK gpu)
    endif()
endfunction()

# Sets `out` to the tests that files of the program `name` give, and filter_<test> to what runs only that one's files.
function(sluice_tests_of_files name out)
    set(end "")
    if(name MATCHES "^(.+)\\.gpu$")
        set(name "${CMAKE_MATCH_1}")
        set(end ".gpu")
    endif()
    set(tests "")
    foreach(source IN LISTS ARGN)
        cmake_path(GET source STEM file)
        string(REGEX REPLACE "_(test|gpu)$" "" file "${file}")
        list(APPEND tests "${name}.${file}${end}")
        set("filter_${name}.${file}${end}" "--source-file=*/${file}.c*,*/${file}_test.c*,*/${file}_gpu.c*" PARENT_SCOPE)
    endforeach()
    list(REMOVE_DUPLICATES tests)
    set(${out} ${tests} PARENT_SCOPE)
endfunction()
