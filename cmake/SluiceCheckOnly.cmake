# sluice_add_checked_only(TARGET SOURCE...): an object library whose sources are compiled only as far as errors go, see
# check_syntax.sh. Nothing can be linked with it.
set(SLUICE_CHECK_SYNTAX "${CMAKE_CURRENT_LIST_DIR}/check_syntax.sh")

function(sluice_add_checked_only target)
    add_library(${target} OBJECT ${ARGN})
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${SLUICE_CHECK_SYNTAX}" CUDA_COMPILER_LAUNCHER
                                                                                              "${SLUICE_CHECK_SYNTAX}")
endfunction()
