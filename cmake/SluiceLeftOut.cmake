# A test whose name matches SLUICE_LEFT_OUT_TESTS is neither built nor run: it only says so. For a build beside another one that
# finds the same, as in .ci/variant.

set(SLUICE_LEFT_OUT_TESTS "" CACHE STRING "A regular expression: tests of these names are left to another build")
mark_as_advanced(SLUICE_LEFT_OUT_TESTS)

# Sets `out` to whether the test is left out. If so, adds a test of its name that says it; with NAMES, tests of those names.
function(sluice_leave_out name out)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "NAMES")
    set(${out} OFF PARENT_SCOPE)
    if(NOT SLUICE_LEFT_OUT_TESTS OR NOT name MATCHES "${SLUICE_LEFT_OUT_TESTS}")
        return()
    endif()
    set(${out} ON PARENT_SCOPE)
    if(NOT SLUICE_BUILD_TESTS)
        return()
    endif()
    if(NOT arg_NAMES)
        set(arg_NAMES ${name})
    endif()
    foreach(test IN LISTS arg_NAMES)
        sluice_add_skipped_test(${test} "left to another build")
    endforeach()
endfunction()

# A test that only says why it cannot run here.
function(sluice_add_skipped_test name reason)
    add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: ${reason}")
    set_tests_properties(${name} PROPERTIES LABELS host SKIP_REGULAR_EXPRESSION "skipped: ")
endfunction()
