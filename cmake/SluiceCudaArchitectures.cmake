# Chooses CMAKE_CUDA_ARCHITECTURES where the user has not: the GPUs present; otherwise 80, whose PTX later ones run too,
# since a build on a machine without a GPU is only to see that everything compiles. SLUICE_QUICK_KERNELS is then on.

if(DEFINED CMAKE_CUDA_ARCHITECTURES)
    return()
endif()
if(DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}")
    return()
endif()

set(CMAKE_CUDA_ARCHITECTURES "")
find_program(SLUICE_NVIDIA_SMI nvidia-smi)
mark_as_advanced(SLUICE_NVIDIA_SMI)
if(SLUICE_NVIDIA_SMI)
    execute_process(
        COMMAND "${SLUICE_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE sluice_gpus
        ERROR_QUIET
        RESULT_VARIABLE sluice_smi_result
        TIMEOUT 60)
    execute_process(
        COMMAND "${sluice_nvcc}" --list-gpu-arch
        OUTPUT_VARIABLE sluice_known
        ERROR_QUIET)
    if(sluice_smi_result EQUAL 0)
        string(REGEX MATCHALL "[0-9]+\\.[0-9]+" sluice_gpus "${sluice_gpus}")
        list(REMOVE_DUPLICATES sluice_gpus)
        foreach(sluice_gpu IN LISTS sluice_gpus)
            string(REPLACE "." "" sluice_arch "${sluice_gpu}")
            if(sluice_known MATCHES "compute_${sluice_arch}(\n|$)")
                list(APPEND CMAKE_CUDA_ARCHITECTURES ${sluice_arch})
            else()
                message(STATUS "sluice: ${sluice_nvcc} does not know the GPU's compute capability ${sluice_gpu}")
            endif()
        endforeach()
    endif()
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80)
    option(SLUICE_QUICK_KERNELS "Compile sluice's own kernels quickly rather than well" ON)
endif()
