# sluice_add_test(NAME SOURCES file... [LABELS host|gpu] [LIBRARIES target...] [TIMEOUT seconds])
#
# One doctest program, run by CTest as one test. A `gpu` test is skipped, visibly, where there is no device,
# and where sluice is built without CUDA, its sources are left out and the skip is all that is left of it.
# Tests find the files of tests/data in SLUICE_TEST_DATA_DIR.
# `.cu` sources are left out of `host` tests without CUDA.

set(SLUICE_SKIP_CODE 77)

function(sluice_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LABELS;LIBRARIES")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "sluice_add_test(${name}): expected SOURCES, then LABELS, LIBRARIES or TIMEOUT")
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

    if(arg_LABELS STREQUAL "gpu" AND NOT SLUICE_HAS_CUDA)
        add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: built without CUDA")
        set_tests_properties(${name} PROPERTIES LABELS gpu SKIP_REGULAR_EXPRESSION "skipped: built without CUDA")
        return()
    endif()

    if(NOT SLUICE_HAS_CUDA)
        list(FILTER arg_SOURCES EXCLUDE REGEX "\\.cu$")
    endif()
    string(REPLACE "." "_" target "test_${name}")
    add_executable(${target} ${arg_SOURCES})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(
        ${target} PRIVATE sluice_test_main_${arg_LABELS} ${arg_LIBRARIES} sluice::sluice doctest::doctest
                          sluice_warnings)
    target_compile_definitions(${target} PRIVATE "SLUICE_TEST_DATA_DIR=\"${PROJECT_SOURCE_DIR}/tests/data\"")
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})

    # Not the target's name, so that a launcher can come first.
    add_test(NAME ${name} COMMAND ${SLUICE_TEST_LAUNCHER} $<TARGET_FILE:${target}>)
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
    if(arg_LABELS STREQUAL "gpu")
        set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE ${SLUICE_SKIP_CODE} RESOURCE_LOCK gpu)
    endif()
endfunction()
