# sluice_warnings: what our own targets are compiled and linked with. Never linked by sluice::sluice.

set(sluice_warning_flags -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow)
if(SLUICE_WERROR)
    list(APPEND sluice_warning_flags -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # GCC's guesses from optimised code, which differ from version to version and are at times wrong about
        # the standard library's own: shown, but no reason to stop a build.
        foreach(guess array-bounds free-nonheap-object maybe-uninitialized mismatched-new-delete restrict
                      stringop-overflow stringop-overread)
            list(APPEND sluice_warning_flags -Wno-error=${guess})
        endforeach()
    endif()
endif()
list(JOIN sluice_warning_flags "," sluice_host_warning_flags)

add_library(sluice_warnings INTERFACE)
target_compile_options(
    sluice_warnings
    INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${sluice_warning_flags}>"
              "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${sluice_host_warning_flags}>")
if(SLUICE_WERROR)
    target_compile_options(sluice_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()

# GCC looks for garbage of its own each time that its memory has doubled, from 128 MB on, which takes a tenth of its time. The
# largest files need 2.0 GB so, and 1.6 GB otherwise.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(sluice_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>")
endif()

# Without optimisation, GCC makes and calls a function for each type that std::move and std::forward are used with, unless it is told
# not to: a twentieth of its time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    target_compile_options(sluice_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-ffold-simple-inlines>")
endif()

# Beside Clang there is often its own linker, which takes a fifth of the time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    find_program(SLUICE_LLD ld.lld)
    mark_as_advanced(SLUICE_LLD)
    if(SLUICE_LLD)
        target_link_options(sluice_warnings INTERFACE "$<$<LINK_LANG_AND_ID:CXX,Clang>:-fuse-ld=lld>")
    endif()
endif()
