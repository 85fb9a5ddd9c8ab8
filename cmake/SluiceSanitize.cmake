# Applies SLUICE_SANITIZE to the folders added after this file, and sets SLUICE_TEST_LAUNCHER, which tests are
# run through where the thread sanitizer needs it.

set(SLUICE_TEST_LAUNCHER "")
if(NOT SLUICE_SANITIZE)
    return()
endif()

set(sluice_sanitize_flags -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer)
if(SLUICE_SANITIZE MATCHES "undefined")
    list(APPEND sluice_sanitize_flags -fno-sanitize-recover=undefined)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sluice_sanitize_flags}>")
add_link_options(-fsanitize=${SLUICE_SANITIZE})

# A program is built and run once. Where the kernel scatters addresses more widely (vm.mmap_rnd_bits of 32) than
# the thread sanitizer's shadow memory allows for, programs start only with that switched off by setarch.
set(sluice_probe "${CMAKE_CURRENT_BINARY_DIR}/sanitizer_probe")
file(WRITE "${sluice_probe}.cpp" "#include <thread>\nint main() { std::thread([] {}).join(); }\n")
try_compile(
    SLUICE_SANITIZER_BUILDS "${CMAKE_CURRENT_BINARY_DIR}"
    SOURCES "${sluice_probe}.cpp"
    COMPILE_DEFINITIONS ${sluice_sanitize_flags}
    LINK_OPTIONS -fsanitize=${SLUICE_SANITIZE}
    LINK_LIBRARIES Threads::Threads
    OUTPUT_VARIABLE sluice_probe_text
    COPY_FILE "${sluice_probe}")
if(NOT SLUICE_SANITIZER_BUILDS)
    message(FATAL_ERROR "sluice: the compiler cannot build with -fsanitize=${SLUICE_SANITIZE}:\n${sluice_probe_text}")
endif()

# Scattering is random, so one run that goes well proves little.
function(sluice_probe_runs result)
    foreach(attempt RANGE 1 10)
        execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(NOT status EQUAL 0)
            set(${result} OFF PARENT_SCOPE)
            return()
        endif()
    endforeach()
    set(${result} ON PARENT_SCOPE)
endfunction()

sluice_probe_runs(sluice_runs "${sluice_probe}")
if(NOT sluice_runs)
    set(SLUICE_TEST_LAUNCHER setarch -R)
    sluice_probe_runs(sluice_runs ${SLUICE_TEST_LAUNCHER} "${sluice_probe}")
    if(NOT sluice_runs)
        message(
            FATAL_ERROR
                "sluice: programs built with -fsanitize=${SLUICE_SANITIZE} do not start here, not even under "
                "'setarch -R'; for the thread sanitizer, 'sysctl vm.mmap_rnd_bits=28' helps.")
    endif()
    message(STATUS "sluice: tests are run under 'setarch -R', which the sanitizer needs here")
endif()
