# sluice_add_compile_fail(NAME SOURCE [directory...])
#
# A test that SOURCE, which also looks for headers in the directories, fails to compile, with the text that it says in comments of its own:
#
#     // EXPECT: some text                  the compiler's messages hold this text (any number of these lines)
#     // FIRST: some text                   the first line with "error:" holds this text (instead of the above, or beside it)
#     // AT-MOST: 3 errors                  and at most so many lines with "error:" (optional)
#
# The mistake stands in `#if MISUSE … #else … #endif`. With MISUSE=1 the file must not compile. With MISUSE=0 it must, so
# that it is the mistake which fails and not a slip beside it: all of them as one, after sluice_end_compile_fail(NAME).
#
# The compiler is g++ where there is one: the texts are what it says. A test that comes before them, compile_fail.header,
# precompiles the library's headers, which is most of what they compile. (Clang 14 crashes on what it has precompiled.)

set(sluice_compile_fail_compiler "${CMAKE_CXX_COMPILER}")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    find_program(SLUICE_GCC g++)
    mark_as_advanced(SLUICE_GCC)
    if(SLUICE_GCC)
        set(sluice_compile_fail_compiler "${SLUICE_GCC}")
    endif()
endif()
set(sluice_compile_fail_header "${CMAKE_CURRENT_BINARY_DIR}/compile_fail.hpp")
file(CONFIGURE OUTPUT "${sluice_compile_fail_header}" CONTENT "#include <sluice/sluice.hpp>\n")

include(SluiceJoinPrograms)
include(SluiceLeftOut)

function(sluice_add_compile_fail name source)
    cmake_path(ABSOLUTE_PATH source)
    set_property(DIRECTORY APPEND PROPERTY SLUICE_COMPILE_FAIL_SOURCES "${source}")
    sluice_add_compile_fail_test(${name} "${source}" OFF ${ARGN})
endfunction()

function(sluice_end_compile_fail name)
    get_property(sources DIRECTORY PROPERTY SLUICE_COMPILE_FAIL_SOURCES)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/right.cpp")
    sluice_join_programs("${unit}" "" ${sources})
    sluice_add_compile_fail_test(${name} "${unit}" ON "${PROJECT_SOURCE_DIR}/examples")
endfunction()

function(sluice_add_compile_fail_test name source right)
    sluice_leave_out(${name} left_out)
    if(left_out)
        return()
    endif()
    set(directories "$<TARGET_PROPERTY:sluice,INTERFACE_INCLUDE_DIRECTORIES>" ${ARGN})
    set(definitions "$<TARGET_PROPERTY:sluice,INTERFACE_COMPILE_DEFINITIONS>")
    add_test(
        NAME ${name}
        COMMAND
            "${CMAKE_COMMAND}" "-DCOMPILER=${sluice_compile_fail_compiler}" "-DFLAGS=${CMAKE_CXX20_STANDARD_COMPILE_OPTION}"
            "-DDIRECTORIES=${directories}" "-DDEFINITIONS=${definitions}" "-DHEADER=${sluice_compile_fail_header}"
            "-DSOURCE=${source}" "-DRIGHT=${right}" -P "${PROJECT_SOURCE_DIR}/cmake/check_compile_fail.cmake")
    set_tests_properties(${name} PROPERTIES LABELS host TIMEOUT 300 FIXTURES_REQUIRED compile_fail_header)
endfunction()

sluice_add_compile_fail_test(compile_fail.header "${sluice_compile_fail_header}" OFF)
set_tests_properties(compile_fail.header PROPERTIES FIXTURES_REQUIRED "" FIXTURES_SETUP compile_fail_header)
