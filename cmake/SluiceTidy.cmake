# The target `tidy`: clang-tidy, with the checks of .clang-tidy, on a unit that includes every public header and on one
# that includes the tests' support. For the Host backend, so that it needs no CUDA toolkit. Takes 15 s of CPU time.

find_program(SLUICE_CLANG_TIDY NAMES clang-tidy-14 clang-tidy) # later versions have more checks, which may find more
mark_as_advanced(SLUICE_CLANG_TIDY)

if(SLUICE_CLANG_TIDY)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
         "${PROJECT_SOURCE_DIR}/include/sluice/*.hpp")
    file(GLOB support CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/tests/support/*.hpp")
    list(FILTER headers EXCLUDE REGEX "/detail/")
    list(FILTER support EXCLUDE REGEX "cccl_stream_ref") # needs CCCL
    set(units "")
    foreach(unit headers support)
        set(text "")
        foreach(header IN LISTS ${unit})
            string(APPEND text "#include <${header}>\n")
        endforeach()
        list(APPEND units "${CMAKE_CURRENT_BINARY_DIR}/tidy_${unit}.cpp")
        file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/tidy_${unit}.cpp" CONTENT "${text}" @ONLY)
    endforeach()
    add_custom_target(
        tidy
        COMMAND
            "${SLUICE_CLANG_TIDY}" --quiet "--config-file=${PROJECT_SOURCE_DIR}/.clang-tidy" ${units} --
            "${CMAKE_CXX20_STANDARD_COMPILE_OPTION}" -DSLUICE_HAS_CUDA=0 "-DSLUICE_TEST_DATA_DIR=\"\""
            "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests"
        COMMENT "Looking for mistakes with clang-tidy"
        USES_TERMINAL VERBATIM)
endif()
