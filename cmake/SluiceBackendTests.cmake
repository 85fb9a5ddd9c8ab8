# sluice_add_backend_tests(NAME SOURCES file... [HOST_SOURCES file...] [GPU_SOURCES file...] [TIMEOUT seconds])
#
# Tests whose logic is the same on every backend: SOURCES are built twice, as NAME for the Host backend and as
# NAME.gpu for Cuda. tests/support/backend.hpp names the one that is meant. HOST_SOURCES and GPU_SOURCES go into
# one of the two programs only.

function(sluice_add_backend_tests name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;HOST_SOURCES;GPU_SOURCES")
    set(timeout "")
    if(arg_TIMEOUT)
        set(timeout TIMEOUT ${arg_TIMEOUT})
    endif()
    string(REPLACE "." "_" target "test_${name}_gpu")
    sluice_add_test(${name} SOURCES ${arg_SOURCES} ${arg_HOST_SOURCES} LABELS host ${timeout})
    sluice_add_test(${name}.gpu SOURCES ${arg_SOURCES} ${arg_GPU_SOURCES} LABELS gpu ${timeout})
    if(TARGET ${target}) # it is not there without CUDA
        target_compile_definitions(${target} PRIVATE SLUICE_TEST_CUDA=1)
    endif()
endfunction()
