# What the headers use of CUPTI (report/cupti.hpp) and NVTX (pipeline/nvtx.hpp), which is never required. The headers see by
# themselves whether theirs are there. Here they are tried, and where they do not compile, sluice's own programs do without.

# sluice_try_profiler(NAME WITHOUT HEADER TEXT): says in one line what NAME is, or what is missing and, WITHOUT, what follows.
function(sluice_try_profiler name without header text)
    find_path(SLUICE_${name}_INCLUDE_DIR ${header} HINTS ${CUDAToolkit_INCLUDE_DIRS}
              PATHS "${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include")
    mark_as_advanced(SLUICE_${name}_INCLUDE_DIR)
    set(folder "${SLUICE_${name}_INCLUDE_DIR}")
    if(NOT folder)
        message(STATUS "sluice: ${name} was not found, ${without}")
        return()
    endif()
    sluice_probe(builds "#include <${header}>\n${text}" INCLUDES "${folder}" ${CUDAToolkit_INCLUDE_DIRS}
                 LIBRARIES ${CMAKE_DL_LIBS})
    if(builds)
        message(STATUS "sluice: ${name} is ${folder}/${header}")
        if(NOT folder IN_LIST CUDAToolkit_INCLUDE_DIRS)
            include_directories(SYSTEM "${folder}")
        endif()
    else()
        message(STATUS "sluice: ${name} is ${folder}/${header}, but cannot be used (${builds_PROBLEM}), ${without}")
        add_compile_definitions(SLUICE_HAS_${name}=0)
    endif()
endfunction()

if(SLUICE_HAS_CUDA)
    # Its library is opened at run time.
    sluice_try_profiler(
        CUPTI "programs record no kernels (it comes with the CUDA toolkit, as cuda-cupti-dev)" cupti.h
        "#if CUPTI_API_VERSION < 19
#error older than CUDA 12.0
#endif
int main() { return sizeof(&cuptiActivityEnable) + sizeof(&cuptiGetGraphNodeId) == 0; }")
endif()
sluice_try_profiler(NVTX "stages are no ranges in Nsight Systems (it comes with the CUDA toolkit, as cuda-nvtx)" nvtx3/nvToolsExt.h
                    "int main() { nvtxRangePushA(\"probe\"); return nvtxRangePop() == 0; }")
