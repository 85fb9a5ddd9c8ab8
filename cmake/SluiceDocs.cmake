# The target `docs`: the API reference as HTML in docs/html of the build folder. It fails on a warning. Nothing else
# needs Doxygen, so without it there is no such target.
find_program(SLUICE_DOXYGEN doxygen)
if(SLUICE_DOXYGEN)
    configure_file("${PROJECT_SOURCE_DIR}/docs/reference/Doxyfile.in" "${PROJECT_BINARY_DIR}/docs/Doxyfile" @ONLY)
    add_custom_target(
        docs
        COMMAND "${SLUICE_DOXYGEN}" "${PROJECT_BINARY_DIR}/docs/Doxyfile"
        COMMENT "The reference: ${PROJECT_BINARY_DIR}/docs/html/index.html"
        VERBATIM)
endif()
