# Gives a target the CUDA runtime when a toolkit is there and SLUICE_CUDA does not say OFF, and tells the
# headers either way through SLUICE_HAS_CUDA. Used by the build and by the installed package alike, so that
# an installed sluice follows the machine it is used on, not the one it was installed from.

# sluice_find_toolkit([ARGUMENT of find_package…]): find_package(CUDAToolkit). That of CMake 3.25.1, Debian 12's, stops with an error where
# the toolkit has no nvToolsExt, as from CUDA 13 on, if the project asks for CMake 3.25 or later.
macro(sluice_find_toolkit)
    set(sluice_asked_for "${CMAKE_MINIMUM_REQUIRED_VERSION}")
    if(CMAKE_VERSION VERSION_LESS 3.26 AND CMAKE_MINIMUM_REQUIRED_VERSION VERSION_GREATER_EQUAL 3.25)
        set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24) # a variable: policies stay
    endif()
    find_package(CUDAToolkit ${ARGN})
    set(CMAKE_MINIMUM_REQUIRED_VERSION "${sluice_asked_for}")
endmacro()

# Other words, such as 0, would be taken for AUTO.
function(sluice_require_cuda_setting)
    if(NOT SLUICE_CUDA MATCHES "^(AUTO|ON|OFF)$")
        message(FATAL_ERROR "sluice: SLUICE_CUDA is '${SLUICE_CUDA}', expected AUTO, ON or OFF.")
    endif()
endfunction()

function(sluice_use_toolkit target)
    if(NOT DEFINED SLUICE_CUDA)
        set(SLUICE_CUDA AUTO)
    endif()
    sluice_require_cuda_setting()

    set(has_cuda 0)
    if(NOT SLUICE_CUDA STREQUAL "OFF" AND NOT SLUICE_CUDA_UNUSABLE)
        sluice_find_toolkit(QUIET)
        if(NOT CUDAToolkit_FOUND)
            set(problem "no CUDA toolkit was found")
        elseif(CUDAToolkit_VERSION VERSION_LESS 12.0)
            set(problem "CUDA toolkit ${CUDAToolkit_VERSION} is older than 12.0, the first with C++20")
        else()
            set(has_cuda 1)
        endif()
        if(NOT has_cuda AND SLUICE_CUDA STREQUAL "ON")
            message(FATAL_ERROR "sluice: SLUICE_CUDA is ON, but ${problem}.")
        endif()
    endif()

    get_target_property(imported ${target} IMPORTED)
    set(open "")
    set(close "")
    if(NOT imported) # what the toolkit adds stays out of the exported target
        set(open "$<BUILD_INTERFACE:")
        set(close ">")
    endif()
    set_target_properties(${target} PROPERTIES SLUICE_HAS_CUDA ${has_cuda})
    target_compile_definitions(${target} INTERFACE "${open}SLUICE_HAS_CUDA=${has_cuda}${close}")
    if(has_cuda)
        # The same runtime that CMake gives the consumer's .cu files, since a program must not hold two:
        # the static one unless CUDA_RUNTIME_LIBRARY asks for the shared one.
        set(wanted "$<UPPER_CASE:$<TARGET_PROPERTY:CUDA_RUNTIME_LIBRARY>>")
        set(runtime "$<IF:$<STREQUAL:${wanted},SHARED>,CUDA::cudart,CUDA::cudart_static>")
        # A consumer's .cu files are C++20 like its .cpp files. CMake before 3.26 knows no such dialect of nvcc's,
        # and a CUDA_STANDARD of 20 then does nothing.
        set(dialect "$<COMPILE_LANGUAGE:CUDA>")
        if(CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
            set(dialect "$<AND:${dialect},$<NOT:$<BOOL:$<TARGET_PROPERTY:CUDA_STANDARD>>>>")
        endif()
        target_compile_options(${target} INTERFACE "${open}$<${dialect}:-std=c++20>${close}")
        target_include_directories(${target} SYSTEM INTERFACE "${open}${CUDAToolkit_INCLUDE_DIRS}${close}")
        target_link_libraries(${target} INTERFACE "${open}${runtime}${close}" "${open}${CMAKE_DL_LIBS}${close}")
    endif()
    set(SLUICE_HAS_CUDA ${has_cuda} PARENT_SCOPE)
endfunction()
