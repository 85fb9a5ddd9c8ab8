# sluice_warnings: what our own targets are compiled with. Never linked by sluice::sluice.

set(sluice_warning_flags -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow)
if(SLUICE_WERROR)
    list(APPEND sluice_warning_flags -Werror)
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
