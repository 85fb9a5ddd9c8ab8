# sluice_add_backend_tests(NAME [SOURCES file...] [HOST_SOURCES file...] [GPU_SOURCES file...] [SUPPORT file...]
#                          [LIBRARIES target...] [GPU_LIBRARIES target...] [TIMEOUT seconds] [EACH]
#                          [THREADS] [BODIES] [CHECKED])
#
# Tests whose logic is the same on every backend: SOURCES are built twice, as NAME for the Host backend and as
# NAME.gpu for Cuda. tests/support/backend.hpp names the one that is meant. HOST_SOURCES and GPU_SOURCES go into
# one of the two programs only. The rest is as for sluice_add_test.

function(sluice_add_backend_tests name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "EACH;THREADS;BODIES;CHECKED" "TIMEOUT"
                          "SOURCES;HOST_SOURCES;GPU_SOURCES;SUPPORT;LIBRARIES;GPU_LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "sluice_add_backend_tests(${name}): '${arg_UNPARSED_ARGUMENTS}' belongs to no argument")
    endif()
    set(common SUPPORT ${arg_SUPPORT})
    if(arg_TIMEOUT)
        list(APPEND common TIMEOUT ${arg_TIMEOUT})
    endif()
    foreach(option EACH THREADS BODIES CHECKED)
        if(arg_${option})
            list(APPEND common ${option})
        endif()
    endforeach()
    string(REPLACE "." "_" target "test_${name}_gpu")
    sluice_add_test(${name} SOURCES ${arg_SOURCES} ${arg_HOST_SOURCES} LABELS host LIBRARIES ${arg_LIBRARIES}
                    ${common})
    sluice_add_test(${name}.gpu SOURCES ${arg_SOURCES} ${arg_GPU_SOURCES} LABELS gpu LIBRARIES ${arg_LIBRARIES}
                    ${arg_GPU_LIBRARIES} ${common})
    if(TARGET ${target}) # it is not there without CUDA
        target_compile_definitions(${target} PRIVATE SLUICE_TEST_CUDA=1)
    endif()
endfunction()
