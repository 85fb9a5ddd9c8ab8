# Kernels compiled as one file take a small part of the time, in which nvcc reads the same headers three times for each.

# Sets `out` to the files with one in the place of all .cu files, where there are several.
function(sluice_join_kernels target out)
    set(others ${ARGN})
    list(FILTER others EXCLUDE REGEX "\\.cu$")
    set(kernels ${ARGN})
    list(FILTER kernels INCLUDE REGEX "\\.cu$")
    list(LENGTH kernels count)
    if(count GREATER 1)
        set(joint "${CMAKE_CURRENT_BINARY_DIR}/${target}.cu")
        set(text "// Written by cmake/SluiceJoinKernels.cmake.\n")
        foreach(file IN LISTS kernels)
            cmake_path(ABSOLUTE_PATH file)
            string(APPEND text "#include \"${file}\"\n")
        endforeach()
        file(CONFIGURE OUTPUT "${joint}" CONTENT "${text}" @ONLY)
        set(${out} ${others} "${joint}" PARENT_SCOPE)
    endif()
endfunction()

# The same for what a target of this folder has by now, where kernels are compiled quickly rather than well.
function(sluice_join_kernels_of target)
    if(SLUICE_QUICK_KERNELS)
        get_target_property(sources ${target} SOURCES)
        sluice_join_kernels(${target} sources ${sources})
        set_target_properties(${target} PROPERTIES SOURCES "${sources}")
    endif()
endfunction()
