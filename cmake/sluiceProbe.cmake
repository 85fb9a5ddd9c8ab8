# What is optional is decided by a program that compiles and links with it. A file or a target that was found says little: a
# header may include another that is not there, a library may be of another machine, and FindMPI makes its target before it
# has tried it.

# sluice_probe(RESULT TEXT [INCLUDES folder…] [LIBRARIES library or target…] [DEFINITIONS name=value…] [ONCE])
#
# Sets RESULT to ON where the program TEXT, in C++20, compiles and links, else to OFF, and RESULT_PROBLEM to what the compiler or
# linker said first, as one line. Tried at each configuration, since what is there may change in between. ONCE is for
# programs that take long: what went well is then taken from the cache, while the program, its folders and the compiler are the same.
function(sluice_probe result text)
    cmake_parse_arguments(PARSE_ARGV 2 arg "ONCE" "" "INCLUDES;LIBRARIES;DEFINITIONS")
    if(arg_ONCE)
        set(inputs "${ARGN};${CMAKE_CXX_COMPILER};${CMAKE_CXX_COMPILER_VERSION};${CMAKE_CXX_FLAGS}")
        foreach(folder IN LISTS arg_INCLUDES)
            file(TIMESTAMP "${folder}" time)
            list(APPEND inputs "${time}")
        endforeach()
        string(SHA256 inputs "${text};${inputs}")
        if(inputs STREQUAL "$CACHE{SLUICE_PROBED_${result}}")
            set(${result} ON PARENT_SCOPE)
            set(${result}_PROBLEM "" PARENT_SCOPE)
            return()
        endif()
    endif()
    list(TRANSFORM arg_DEFINITIONS PREPEND "-D")
    set(links "")
    if(arg_LIBRARIES)
        set(links LINK_LIBRARIES ${arg_LIBRARIES})
    endif()
    unset(sluice_probe_builds CACHE)
    try_compile(
        sluice_probe_builds
        SOURCE_FROM_CONTENT probe.cpp "${text}\n"
        CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${arg_INCLUDES}"
        COMPILE_DEFINITIONS ${arg_DEFINITIONS}
        ${links}
        CXX_STANDARD 20
        CXX_STANDARD_REQUIRED ON
        OUTPUT_VARIABLE output)
    set(problem "")
    set(builds ON)
    if(NOT sluice_probe_builds)
        set(builds OFF)
        string(REGEX MATCH "[^\n]*(error:|undefined reference|cannot find|CMake Error)[^\n]*" problem "${output}")
        # Without the place in a generated file.
        string(REGEX REPLACE "^.*(fatal error:|error:|undefined reference) *" "\\1 " problem "${problem}")
        string(STRIP "${problem}" problem)
        if(problem STREQUAL "")
            set(problem "a program with it does not compile and link")
        endif()
    endif()
    unset(sluice_probe_builds CACHE)
    if(arg_ONCE AND builds)
        set(SLUICE_PROBED_${result} "${inputs}" CACHE INTERNAL "With what it was tried")
    endif()
    set(${result} ${builds} PARENT_SCOPE)
    set(${result}_PROBLEM "${problem}" PARENT_SCOPE)
endfunction()

# Sets `result` to the folders of Python's packages, in which PyPI keeps NVIDIA's libraries: nvidia/cudnn/{include,lib}. Empty where no
# Python runs.
function(sluice_python_folders result)
    find_program(SLUICE_PYTHON NAMES python3 python)
    mark_as_advanced(SLUICE_PYTHON)
    set(folders "")
    if(SLUICE_PYTHON)
        execute_process(
            COMMAND "${SLUICE_PYTHON}" -c "import sys; print(';'.join(p for p in sys.path if 'packages' in p))"
            OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
        if(NOT status EQUAL 0)
            set(folders "")
        endif()
    endif()
    set(${result} ${folders} PARENT_SCOPE)
endfunction()
