# sluice::compiled: sluice::sluice, and a library of what does not depend on its user's types: the pipelines' core, the two
# backends and the checker. sluice::compiled_checked: the same for programs that are compiled with SLUICE_CHECKED=1, which
# linking it sees to. Neither is built unless it is asked for: linked, or installed with SLUICE_INSTALL_COMPILED.

function(sluice_add_compiled target export_name)
    set(folder "${PROJECT_SOURCE_DIR}/cmake/compiled")
    set(sources "${folder}/checker.cpp" "${folder}/host.cpp")
    if(SLUICE_HAS_CUDA)
        list(APPEND sources "${folder}/cuda.cpp")
    endif()
    add_library(${target} STATIC ${sources})
    add_library(sluice::${export_name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name} POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
                                                UNITY_BUILD OFF) # each says by macros which bodies are its own
    # GCC puts no function of position-independent code in its place otherwise, since another library might replace it: 25 ns a step.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
    if(SLUICE_SANITIZE AND SLUICE_CHECKED)
        # In the checker, which is one file, such tests spend most of their time otherwise.
        set_source_files_properties("${folder}/checker.cpp" PROPERTIES COMPILE_OPTIONS -O1)
    endif()
    target_link_libraries(${target} PUBLIC sluice)
    target_compile_definitions(${target} PUBLIC SLUICE_COMPILED=1 ${ARGN})
    if(NOT SLUICE_INSTALL OR NOT SLUICE_INSTALL_COMPILED)
        set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    if(TARGET sluice_warnings)
        target_link_libraries(${target} PRIVATE "$<BUILD_INTERFACE:sluice_warnings>")
    endif()
endfunction()

sluice_add_compiled(sluice_compiled compiled)
sluice_add_compiled(sluice_compiled_checked compiled_checked SLUICE_CHECKED=1)

# sluice_own: what our own targets link; sluice_own_checked: those that are checked as a whole; sluice_own_either: parts of programs of
# either kind, which bring their library themselves.
if(TARGET sluice_warnings)
    add_library(sluice_own INTERFACE)
    add_library(sluice_own_checked INTERFACE)
    add_library(sluice_own_either INTERFACE)
    target_link_libraries(sluice_own_either INTERFACE sluice sluice_warnings)
    target_compile_definitions(sluice_own_either INTERFACE "SLUICE_COMPILED=$<BOOL:${SLUICE_USE_COMPILED}>")
    if(SLUICE_USE_COMPILED)
        target_link_libraries(sluice_own_checked INTERFACE sluice_compiled_checked sluice_warnings)
    else()
        target_link_libraries(sluice_own_checked INTERFACE sluice sluice_warnings)
        target_compile_definitions(sluice_own_checked INTERFACE SLUICE_CHECKED=1)
    endif()
    if(SLUICE_CHECKED)
        target_link_libraries(sluice_own INTERFACE sluice_own_checked)
    elseif(SLUICE_USE_COMPILED)
        target_link_libraries(sluice_own INTERFACE sluice_compiled sluice_warnings)
    else()
        target_link_libraries(sluice_own INTERFACE sluice sluice_warnings)
    endif()

    # sluice_own_host: what programs of ours link that are for the CPU whatever toolkit there is.
    add_library(sluice_own_host INTERFACE)
    target_compile_features(sluice_own_host INTERFACE cxx_std_20)
    target_compile_definitions(sluice_own_host INTERFACE SLUICE_HAS_CUDA=0)
    target_include_directories(sluice_own_host INTERFACE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(sluice_own_host INTERFACE Threads::Threads sluice_warnings)
    if(SLUICE_USE_COMPILED AND NOT SLUICE_HAS_CUDA)
        target_link_libraries(sluice_own_host INTERFACE sluice_compiled)
    elseif(SLUICE_USE_COMPILED)
        set(folder "${PROJECT_SOURCE_DIR}/cmake/compiled")
        add_library(sluice_compiled_host STATIC EXCLUDE_FROM_ALL "${folder}/checker.cpp" "${folder}/host.cpp")
        set_target_properties(sluice_compiled_host PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF)
        target_compile_features(sluice_compiled_host PRIVATE cxx_std_20)
        target_compile_definitions(sluice_compiled_host PRIVATE SLUICE_HAS_CUDA=0 PUBLIC SLUICE_COMPILED=1)
        target_include_directories(sluice_compiled_host PRIVATE "${PROJECT_SOURCE_DIR}/include")
        target_link_libraries(sluice_compiled_host PRIVATE Threads::Threads sluice_warnings)
        target_link_libraries(sluice_own_host INTERFACE sluice_compiled_host)
    endif()
endif()
