# sluice_find_cudnn(): looks for cuDNN and for cudnn-frontend's headers, neither of which is required. Sets
# SLUICE_EXAMPLES_HAVE_CUDNN and, when true, makes the target sluice_cudnn.
#
# cuDNN: CUDNN_ROOT (a variable or from the environment), the system, or Python's site-packages (nvidia-cudnn-cu13,
# nvidia-cudnn-cu12, what PyTorch installs). cudnn-frontend: the same places (nvidia-cudnn-frontend), otherwise the
# sources at a fixed commit.

option(SLUICE_CUDNN "Use cuDNN in the examples where it is found" ON)
set(sluice_cudnn_frontend_least 1.23.0)

# The version that a header defines as PREFIX_MAJOR, …; empty if it does not.
function(sluice_header_version header prefix patch result)
    set(version "")
    if(EXISTS "${header}")
        file(STRINGS "${header}" lines REGEX "define ${prefix}_(MAJOR|MINOR|${patch})")
        foreach(part MAJOR MINOR ${patch})
            if("${lines}" MATCHES "${prefix}_${part}[A-Z_]* +([0-9]+)")
                list(APPEND version "${CMAKE_MATCH_1}")
            endif()
        endforeach()
        list(JOIN version "." version)
    endif()
    set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Sets sluice_cudnn_frontend_dir, empty if there is none, and sluice_cudnn_frontend_version.
macro(sluice_find_cudnn_frontend hints)
    set(sluice_cudnn_frontend_url https://github.com/NVIDIA/cudnn-frontend.git)
    find_path(SLUICE_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${hints} PATH_SUFFIXES include)
    mark_as_advanced(SLUICE_CUDNN_FRONTEND_INCLUDE_DIR)
    sluice_header_version("${SLUICE_CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h" CUDNN_FRONTEND
                          PATCH sluice_cudnn_frontend_version)
    set(sluice_cudnn_frontend_dir "${SLUICE_CUDNN_FRONTEND_INCLUDE_DIR}")
    if("${sluice_cudnn_frontend_version}" STREQUAL "" OR "${sluice_cudnn_frontend_version}" VERSION_LESS
                                                        "${sluice_cudnn_frontend_least}")
        set(sluice_cudnn_frontend_dir "")
        sluice_can_fetch(cudnn_frontend ${sluice_cudnn_frontend_url} sluice_can_fetch)
        if(sluice_can_fetch)
            FetchContent_Declare(
                cudnn_frontend
                GIT_REPOSITORY ${sluice_cudnn_frontend_url}
                GIT_TAG fb682ce761a2705e40f9b5d528737a3e0eb33cec # v1.23.0
                SOURCE_SUBDIR headers-only) # no such folder: its own build is not wanted
            FetchContent_MakeAvailable(cudnn_frontend)
            set(sluice_cudnn_frontend_dir "${cudnn_frontend_SOURCE_DIR}/include")
            sluice_header_version("${sluice_cudnn_frontend_dir}/cudnn_frontend_version.h" CUDNN_FRONTEND PATCH
                                  sluice_cudnn_frontend_version)
        endif()
    endif()
endmacro()

macro(sluice_find_cudnn)
    set(SLUICE_EXAMPLES_HAVE_CUDNN OFF)
    if(SLUICE_CUDNN AND SLUICE_HAS_CUDA)
        sluice_python_folders(sluice_python)
        set(sluice_cudnn_hints ${CUDNN_ROOT} $ENV{CUDNN_ROOT})
        foreach(folder ${CUDNN_ROOT} $ENV{CUDNN_ROOT} "${CUDAToolkit_LIBRARY_ROOT}" "${CUDAToolkit_TARGET_DIR}" ${sluice_python})
            list(APPEND sluice_cudnn_hints "${folder}/nvidia/cudnn" "${folder}")
        endforeach()
        find_path(SLUICE_CUDNN_INCLUDE_DIR cudnn_graph.h HINTS ${sluice_cudnn_hints} PATH_SUFFIXES include)
        find_library(SLUICE_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 NAMES_PER_DIR HINTS ${sluice_cudnn_hints}
                     PATH_SUFFIXES lib lib64)
        mark_as_advanced(SLUICE_CUDNN_INCLUDE_DIR SLUICE_CUDNN_LIBRARY)

        set(sluice_cudnn_advice "pip install nvidia-cudnn-cu13 nvidia-cudnn-frontend, or -DCUDNN_ROOT=DIR")
        if(NOT SLUICE_CUDNN_INCLUDE_DIR OR NOT SLUICE_CUDNN_LIBRARY)
            set(sluice_cudnn_problem "cuDNN was not found")
        elseif(NOT TARGET CUDA::nvrtc)
            set(sluice_cudnn_problem "cuDNN is ${SLUICE_CUDNN_LIBRARY}, but cudnn-frontend needs NVRTC, which this CUDA toolkit lacks")
            set(sluice_cudnn_advice "install NVRTC")
        else()
            sluice_try_cudnn(sluice_cudnn_problem)
        endif()
        if("${sluice_cudnn_problem}" STREQUAL "")
            set(SLUICE_EXAMPLES_HAVE_CUDNN ON)
            sluice_header_version("${SLUICE_CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN PATCHLEVEL sluice_cudnn_version)
            message(STATUS "sluice: cuDNN ${sluice_cudnn_version} is ${SLUICE_CUDNN_LIBRARY}, "
                           "cudnn-frontend ${sluice_cudnn_frontend_version} is ${sluice_cudnn_frontend_dir}")
        else()
            message(STATUS "sluice: ${sluice_cudnn_problem}, ResNet-18 is built for the host only (${sluice_cudnn_advice})")
        endif()
    endif()
endmacro()

# Makes sluice_cudnn of what was found and tries it. Sets `problem` to why it cannot be used; empty if it can.
macro(sluice_try_cudnn problem)
    set(${problem} "")
    # The frontend brings a JSON library of its own, which plans and graphs do without.
    set(sluice_cudnn_definition CUDNN_FRONTEND_SKIP_JSON_LIB)
    set(sluice_cudnn_links "${SLUICE_CUDNN_LIBRARY}" CUDA::nvrtc CUDA::cudart ${CMAKE_DL_LIBS})
    sluice_probe(
        sluice_cudnn_builds "#include <cudnn_graph.h>
int main() { return cudnnGetVersion() == 0; }"
        INCLUDES "${SLUICE_CUDNN_INCLUDE_DIR}" ${CUDAToolkit_INCLUDE_DIRS}
        LIBRARIES ${sluice_cudnn_links})
    if(NOT sluice_cudnn_builds)
        set(${problem} "cuDNN is ${SLUICE_CUDNN_LIBRARY}, but cannot be used (${sluice_cudnn_builds_PROBLEM})")
    else()
        sluice_find_cudnn_frontend("${sluice_cudnn_hints}")
        if(NOT sluice_cudnn_frontend_dir)
            string(CONCAT ${problem} "cuDNN is ${SLUICE_CUDNN_LIBRARY}, but cudnn-frontend ${sluice_cudnn_frontend_least} was "
                          "neither found nor could be fetched")
            set(sluice_cudnn_advice "pip install nvidia-cudnn-frontend, or -DCUDNN_ROOT=DIR")
        else()
            sluice_probe(
                sluice_frontend_builds "#include <cudnn_frontend.h>
int main() {
    cudnn_frontend::graph::Graph graph;
    return graph.validate().is_bad();
}"
                INCLUDES "${SLUICE_CUDNN_INCLUDE_DIR}" "${sluice_cudnn_frontend_dir}" ${CUDAToolkit_INCLUDE_DIRS}
                LIBRARIES ${sluice_cudnn_links}
                DEFINITIONS ${sluice_cudnn_definition}
                ONCE)
            if(NOT sluice_frontend_builds)
                string(CONCAT ${problem} "cudnn-frontend is ${sluice_cudnn_frontend_dir}, but cannot be used "
                              "(${sluice_frontend_builds_PROBLEM})")
            endif()
        endif()
    endif()
    if("${${problem}}" STREQUAL "" AND NOT TARGET sluice_cudnn)
        add_library(sluice_cudnn INTERFACE IMPORTED GLOBAL)
        target_include_directories(sluice_cudnn INTERFACE "${SLUICE_CUDNN_INCLUDE_DIR}" "${sluice_cudnn_frontend_dir}")
        target_link_libraries(sluice_cudnn INTERFACE "${SLUICE_CUDNN_LIBRARY}" ${CMAKE_DL_LIBS})
        target_compile_definitions(sluice_cudnn INTERFACE ${sluice_cudnn_definition})
    endif()
endmacro()
