# sluice_add_misuse(NAME SOURCE [directory...])
#
# A test that SOURCE, which also looks for headers in the directories, fails to compile, with the text that it says in comments of its own:
#
#     // EXPECT: some text                  the compiler's messages hold this text (any number of these lines)
#     // AT-MOST: 3 errors                  and at most so many lines with "error:" (optional)
#
# The mistake stands in `#if MISUSE … #else … #endif`. The file is compiled twice: with MISUSE=0 it must compile,
# so that it is the mistake which fails and not a slip beside it, and with MISUSE=1 it must not.

#
# A test that comes before them, misuse.header, precompiles the library's headers, which is most of what they compile.

set(sluice_misuse_header "${CMAKE_CURRENT_BINARY_DIR}/misuse.hpp")
file(CONFIGURE OUTPUT "${sluice_misuse_header}" CONTENT "#include <sluice/sluice.hpp>\n")

function(sluice_add_misuse name source)
    cmake_path(ABSOLUTE_PATH source)
    set(directories "$<TARGET_PROPERTY:sluice,INTERFACE_INCLUDE_DIRECTORIES>" ${ARGN})
    set(definitions "$<TARGET_PROPERTY:sluice,INTERFACE_COMPILE_DEFINITIONS>")
    add_test(
        NAME ${name}
        COMMAND
            "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DFLAGS=${CMAKE_CXX20_STANDARD_COMPILE_OPTION}"
            "-DDIRECTORIES=${directories}" "-DDEFINITIONS=${definitions}" "-DHEADER=${sluice_misuse_header}"
            "-DSOURCE=${source}" -P "${PROJECT_SOURCE_DIR}/cmake/check_misuse.cmake")
    set_tests_properties(${name} PROPERTIES LABELS host TIMEOUT 120 FIXTURES_REQUIRED misuse_header)
endfunction()

sluice_add_misuse(misuse.header "${sluice_misuse_header}")
set_tests_properties(misuse.header PROPERTIES FIXTURES_REQUIRED "" FIXTURES_SETUP misuse_header)
