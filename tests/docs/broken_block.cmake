# Run by the test docs.broken_block: UNIT is what was made of broken_block.md, whose second block does not compile. The
# compiler must say so, at that block's line of the document.
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -DSLUICE_HAS_CUDA=0 "-I${INCLUDE_DIR}" "${UNIT}"
                RESULT_VARIABLE result ERROR_VARIABLE messages OUTPUT_QUIET)
string(REGEX MATCHALL "error: " errors "${messages}")
list(LENGTH errors count)
if(result EQUAL 0 OR NOT count EQUAL 1 OR NOT messages MATCHES "broken_block.md:13")
    message(FATAL_ERROR "expected one error, at broken_block.md:13, and the compiler returned ${result} and said:\n${messages}")
endif()
