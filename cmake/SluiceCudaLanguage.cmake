# Enables the CUDA language for sluice's own tests, examples and benchmarks, if nvcc is there, new enough and
# able to compile; otherwise sets SLUICE_CUDA_UNUSABLE, and they are built with the Host backend alone.

set(SLUICE_CUDA_UNUSABLE OFF)
if(SLUICE_CUDA STREQUAL "OFF")
    set(SLUICE_CUDA_UNUSABLE ON)
    message(STATUS "sluice: SLUICE_CUDA is OFF, building with the Host backend alone")
    return()
endif()

set(sluice_problem "")
if(CMAKE_CUDA_COMPILER)
    set(sluice_nvcc "${CMAKE_CUDA_COMPILER}")
else()
    find_program(
        SLUICE_NVCC nvcc
        PATHS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda # after what the path holds
        PATH_SUFFIXES bin)
    mark_as_advanced(SLUICE_NVCC)
    if(DEFINED ENV{CUDACXX})
        set(sluice_nvcc "$ENV{CUDACXX}")
    else()
        set(sluice_nvcc "${SLUICE_NVCC}")
    endif()
endif()

if(NOT sluice_nvcc)
    set(sluice_problem "nvcc was not found")
else()
    execute_process(
        COMMAND "${sluice_nvcc}" --version
        OUTPUT_VARIABLE sluice_nvcc_text
        ERROR_QUIET
        RESULT_VARIABLE sluice_nvcc_result)
    if(NOT sluice_nvcc_result EQUAL 0 OR NOT sluice_nvcc_text MATCHES "release ([0-9]+\\.[0-9]+)")
        set(sluice_problem "${sluice_nvcc} does not run")
    elseif(CMAKE_MATCH_1 VERSION_LESS 12.4)
        set(sluice_problem
            "${sluice_nvcc} is version ${CMAKE_MATCH_1}, older than 12.4, the oldest that sluice is tested with")
    endif()
endif()

if(NOT sluice_problem)
    include(SluiceCudaArchitectures)
    foreach(sluice_arch IN LISTS CMAKE_CUDA_ARCHITECTURES)
        # The headers take any; the examples' matrix products, which tests and benchmarks use too, do not.
        if(sluice_arch MATCHES "^all" OR (sluice_arch MATCHES "^[0-9]+" AND CMAKE_MATCH_0 LESS 80))
            string(CONCAT sluice_problem "sluice's own programs need GPUs of compute capability 8.0 or later, and "
                          "CMAKE_CUDA_ARCHITECTURES has ${sluice_arch}")
        endif()
    endforeach()
endif()

if(NOT sluice_problem)
    if(NOT DEFINED CMAKE_CUDA_COMPILER)
        # check_language tries a whole project, so an nvcc that cannot use the host compiler is found here.
        set(ENV{CUDACXX} "${sluice_nvcc}")
        include(CheckLanguage)
        check_language(CUDA)
    endif()
    if(CMAKE_CUDA_COMPILER)
        enable_language(CUDA)
        if(SLUICE_QUICK_KERNELS)
            # nvcc 12 knows no such option, and 13.5 then compiles no __dp4a.
            include(CheckSourceCompiles)
            set(CMAKE_REQUIRED_FLAGS -Ofc=max)
            check_source_compiles(CUDA "__global__ void dot(unsigned* to) { *to = __dp4a(to[1], to[2], to[3]); }
                                        int main() {}" SLUICE_NVCC_COMPILES_QUICKLY)
            unset(CMAKE_REQUIRED_FLAGS)
            if(SLUICE_NVCC_COMPILES_QUICKLY)
                add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Ofc=max>")
            endif()
        endif()
        # Programs are linked with the library of nvcc's own g++. Which that is, CMake tells from 3.31 on.
        string(REGEX MATCH "^[0-9]+" sluice_cxx_major "${CMAKE_CXX_COMPILER_VERSION}")
        if("${CMAKE_CXX_COMPILER_ID};${CMAKE_CUDA_HOST_COMPILER_ID}" STREQUAL "GNU;GNU"
           AND CMAKE_CUDA_HOST_COMPILER_VERSION VERSION_LESS sluice_cxx_major)
            string(CONCAT sluice_problem "${sluice_nvcc} uses g++ ${CMAKE_CUDA_HOST_COMPILER_VERSION}, whose library may "
                          "lack what g++ ${CMAKE_CXX_COMPILER_VERSION} calls; set CXX or CUDAHOSTCXX")
        endif()
    else()
        set(sluice_problem "${sluice_nvcc} cannot compile with the host compiler found")
        # nvcc's own words: an older toolkit stumbles over a newer C library's headers, or over a newer g++.
        set(sluice_probe "${CMAKE_BINARY_DIR}/CMakeFiles/sluice_probe/nvcc.cu")
        file(WRITE "${sluice_probe}" "int main() {}\n")
        execute_process(COMMAND "${sluice_nvcc}" -std=c++20 "${sluice_probe}" -o "${sluice_probe}.out"
                        OUTPUT_VARIABLE sluice_nvcc_text ERROR_VARIABLE sluice_nvcc_text RESULT_VARIABLE sluice_nvcc_result)
        if(NOT sluice_nvcc_result EQUAL 0 AND sluice_nvcc_text MATCHES "[^\n]*error[^\n]*")
            string(APPEND sluice_problem " (${CMAKE_MATCH_0})")
        endif()
    endif()
endif()

# What the examples multiply with. A toolkit may be its compiler and runtime alone.
if(NOT sluice_problem AND SLUICE_WITH_EXAMPLE_LIBRARIES)
    include(sluiceProbe)
    include(sluiceToolkit)
    sluice_find_toolkit(QUIET)
    set(sluice_cublaslt "")
    if(TARGET CUDA::cublasLt)
        set(sluice_cublaslt CUDA::cublasLt)
    endif()
    sluice_probe(
        sluice_cublaslt_builds "#include <cublasLt.h>
int main() {
    cublasLtHandle_t handle;
    return cublasLtCreate(&handle);
}"
        INCLUDES ${CUDAToolkit_INCLUDE_DIRS} LIBRARIES ${sluice_cublaslt})
    if(NOT sluice_cublaslt_builds)
        string(CONCAT sluice_problem "the examples multiply with cuBLASLt, which cannot be used (${sluice_cublaslt_builds_PROBLEM}; "
                      "install libcublas-dev of this toolkit's version)")
    endif()
endif()

if(sluice_problem)
    set(SLUICE_CUDA_UNUSABLE ON)
    if(SLUICE_CUDA STREQUAL "ON")
        message(FATAL_ERROR "sluice: SLUICE_CUDA is ON, but ${sluice_problem}.")
    endif()
    message(STATUS "sluice: ${sluice_problem}, building with the Host backend alone")
else()
    message(STATUS "sluice: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()
