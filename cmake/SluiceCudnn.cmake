# sluice_find_cudnn(): looks for cuDNN and for cudnn-frontend's headers, neither of which is required. Sets
# SLUICE_EXAMPLES_HAVE_CUDNN and, when true, makes the target sluice_cudnn.
#
# cuDNN: CUDNN_ROOT (a variable or from the environment), the system, or Python's site-packages (nvidia-cudnn-cu13,
# nvidia-cudnn-cu12, what PyTorch installs). cudnn-frontend: the same places (nvidia-cudnn-frontend), otherwise the
# sources at a fixed commit.

option(SLUICE_CUDNN "Use cuDNN in the examples where it is found" ON)
set(sluice_cudnn_frontend_least 1.23.0)

# Folders of Python packages, in which PyPI's cuDNN is nvidia/cudnn/{include,lib}.
function(sluice_python_folders result)
    find_program(SLUICE_PYTHON NAMES python3 python)
    mark_as_advanced(SLUICE_PYTHON)
    set(folders "")
    if(SLUICE_PYTHON)
        execute_process(
            COMMAND "${SLUICE_PYTHON}" -c "import site, sys; print(';'.join(p for p in sys.path if 'packages' in p))"
            OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    set(${result} ${folders} PARENT_SCOPE)
endfunction()

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

# Whether the sources can be fetched: they are there already, or their server answers. A build without network does
# without cuDNN, instead of failing.
function(sluice_can_fetch_cudnn_frontend url result)
    set(${result} ON PARENT_SCOPE)
    if(FETCHCONTENT_SOURCE_DIR_CUDNN_FRONTEND OR EXISTS "${FETCHCONTENT_BASE_DIR}/cudnn_frontend-src/include")
        return()
    endif()
    find_package(Git QUIET)
    set(failed ON)
    if(GIT_FOUND AND NOT FETCHCONTENT_FULLY_DISCONNECTED)
        execute_process(COMMAND "${GIT_EXECUTABLE}" ls-remote --exit-code "${url}" HEAD
                        TIMEOUT 20 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    endif()
    if(failed)
        set(${result} OFF PARENT_SCOPE)
    endif()
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
        sluice_can_fetch_cudnn_frontend(${sluice_cudnn_frontend_url} sluice_can_fetch)
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
        if(SLUICE_CUDNN_INCLUDE_DIR AND SLUICE_CUDNN_LIBRARY)
            sluice_find_cudnn_frontend("${sluice_cudnn_hints}")
        endif()
        if(SLUICE_CUDNN_INCLUDE_DIR AND SLUICE_CUDNN_LIBRARY AND sluice_cudnn_frontend_dir)
            sluice_header_version("${SLUICE_CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN PATCHLEVEL sluice_cudnn_version)
            set(SLUICE_EXAMPLES_HAVE_CUDNN ON)
            if(NOT TARGET sluice_cudnn)
                add_library(sluice_cudnn INTERFACE IMPORTED GLOBAL)
                target_include_directories(sluice_cudnn INTERFACE "${SLUICE_CUDNN_INCLUDE_DIR}"
                                                                  "${sluice_cudnn_frontend_dir}")
                target_link_libraries(sluice_cudnn INTERFACE "${SLUICE_CUDNN_LIBRARY}" ${CMAKE_DL_LIBS})
                # The frontend brings a JSON library of its own, which plans and graphs do without.
                target_compile_definitions(sluice_cudnn INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
            endif()
            message(STATUS "sluice: cuDNN ${sluice_cudnn_version} is ${SLUICE_CUDNN_LIBRARY}, "
                           "cudnn-frontend ${sluice_cudnn_frontend_version} is ${sluice_cudnn_frontend_dir}")
        elseif(SLUICE_CUDNN_INCLUDE_DIR AND SLUICE_CUDNN_LIBRARY)
            message(STATUS "sluice: cuDNN is ${SLUICE_CUDNN_LIBRARY}, but cudnn-frontend ${sluice_cudnn_frontend_least} "
                           "was neither found nor could be fetched, ResNet-18 is built for the host only "
                           "(pip install nvidia-cudnn-frontend, or -DCUDNN_ROOT=DIR)")
        else()
            message(STATUS "sluice: cuDNN was not found, ResNet-18 is built for the host only "
                           "(pip install nvidia-cudnn-cu13 nvidia-cudnn-frontend, or -DCUDNN_ROOT=DIR)")
        endif()
    endif()
endmacro()
