# sluice_checker: what is compiled with SLUICE_CHECKED looks for races (backend/checked.hpp). The checker itself is compiled
# once, and not with each file. Linked by sluice_warnings, and so by all of sluice's own programs.

if(NOT SLUICE_CHECKED)
    return()
endif()
set(sluice_checker_source "${CMAKE_CURRENT_BINARY_DIR}/checker.cpp")
file(CONFIGURE OUTPUT "${sluice_checker_source}"
     CONTENT "#define SLUICE_CHECKED_BODIES\n#include <sluice/backend/detail/checked/checker.hpp>\n")
add_library(sluice_checker STATIC "${sluice_checker_source}")
target_compile_features(sluice_checker PUBLIC cxx_std_20)
target_compile_definitions(sluice_checker PUBLIC SLUICE_CHECKED=1 SLUICE_CHECKED_EXTERN=1)
target_include_directories(sluice_checker PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_compile_options(sluice_checker PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${sluice_warning_flags}>")
target_link_libraries(sluice_warnings INTERFACE sluice_checker)
