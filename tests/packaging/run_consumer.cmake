# Configures, builds and runs consumer/ with sluice taken in the way that HOW says. Run by CTest. HOW=library installs sluice::compiled
# alone, for those that are given the folder as LIBRARY. AGAIN is the folder of a test whose build the consumer takes up.

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "failed: ${command}")
    endif()
endfunction()

if(AGAIN)
    set(WORK_DIR "${AGAIN}")
else()
    file(REMOVE_RECURSE "${WORK_DIR}")
endif()
set(arguments "-DHOW=${HOW}" "-DCOMPILED=${COMPILED}" "-DDEFINITION=${DEFINITION}" "-DBOTH_KINDS=${BOTH_KINDS}" "-DEXPECT_CUDA=${EXPECT_CUDA}" "-DSLUICE_VERSION=${SLUICE_VERSION}"
              "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}")
if(EXPECT_CUDA)
    list(APPEND arguments "-DSLUICE_CUDA=AUTO" "-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}"
         "-DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURE}")
else()
    list(APPEND arguments "-DSLUICE_CUDA=OFF")
endif()
if(DEFINED TOOL AND NOT TOOL)
    message("skipped: ${HOW} is not installed")
    return()
endif()

function(install_to prefix)
    run("${CMAKE_COMMAND}" --install "${SLUICE_BINARY_DIR}" --prefix "${WORK_DIR}/prefix")
    # Moved, so that no path of the installation can be left in it.
    file(RENAME "${WORK_DIR}/prefix" "${prefix}")
endfunction()

set(place "${WORK_DIR}/moved")
if(HOW STREQUAL "library") # which our own build does not install
    set(SLUICE_BINARY_DIR "${WORK_DIR}/sluice")
    run("${CMAKE_COMMAND}" -S "${SLUICE_SOURCE_DIR}" -B "${SLUICE_BINARY_DIR}" -G "${GENERATOR}" ${arguments}
        -DSLUICE_INSTALL_COMPILED=ON -DSLUICE_BUILD_TESTS=OFF -DSLUICE_BUILD_EXAMPLES=OFF
        -DSLUICE_BUILD_BENCHMARKS=OFF "-DCMAKE_INSTALL_PREFIX=${place}")
    run("${CMAKE_COMMAND}" --build "${SLUICE_BINARY_DIR}")
    install_to("${place}")
    return()
elseif(LIBRARY)
    set(place "${LIBRARY}")
elseif(HOW MATCHES "^(installed|pkg_config)$")
    install_to("${place}")
endif()
if(HOW STREQUAL "installed")
    list(APPEND arguments "-DCMAKE_PREFIX_PATH=${place}")
elseif(HOW STREQUAL "pkg_config")
    set(ENV{PKG_CONFIG_PATH} "${place}/share/pkgconfig:${place}/lib/pkgconfig")
elseif(HOW STREQUAL "fetched")
    list(APPEND arguments "-DFETCHCONTENT_SOURCE_DIR_SLUICE=${SLUICE_SOURCE_DIR}")
elseif(HOW STREQUAL "subdirectory")
    list(APPEND arguments "-DSLUICE_SOURCE_DIR=${SLUICE_SOURCE_DIR}")
elseif(HOW STREQUAL "copied")
    file(COPY "${SLUICE_SOURCE_DIR}/include/sluice" DESTINATION "${WORK_DIR}/include")
    list(APPEND arguments "-DSLUICE_INCLUDE_DIR=${WORK_DIR}/include")
elseif(HOW STREQUAL "exported")
    # The library is installed with sluice beside it, and the consumer finds both.
    run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/exporter" -B "${WORK_DIR}/exporter" -G "${GENERATOR}"
        ${arguments} "-DSLUICE_SOURCE_DIR=${SLUICE_SOURCE_DIR}")
    run("${CMAKE_COMMAND}" --build "${WORK_DIR}/exporter")
    run("${CMAKE_COMMAND}" --install "${WORK_DIR}/exporter" --prefix "${WORK_DIR}/prefix")
    list(APPEND arguments "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix")
elseif(HOW STREQUAL "conan")
    set(ENV{CONAN_HOME} "${WORK_DIR}/home")
    set(ENV{CXX} "${CXX_COMPILER}")
    run("${TOOL}" profile detect)
    set(settings -s compiler.cppstd=20 -s build_type=Release)
    if(COMPILED)
        list(APPEND settings -o "sluice/*:compiled=True" -c "tools.cmake.cmaketoolchain:extra_variables={'SLUICE_CUDA':'OFF'}")
    endif()
    run("${TOOL}" create "${SLUICE_SOURCE_DIR}/cmake/packaging" ${settings})
    run("${TOOL}" install --requires "sluice/${SLUICE_VERSION}" -g CMakeDeps -g CMakeToolchain ${settings}
        --output-folder "${WORK_DIR}/conan")
    list(APPEND arguments "-DCMAKE_TOOLCHAIN_FILE=${WORK_DIR}/conan/conan_toolchain.cmake" "-DCMAKE_BUILD_TYPE=Release")
endif()

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${WORK_DIR}/build" -G "${GENERATOR}" ${arguments})
if(REFUSED) # by the linker, with this text
    execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK_DIR}/build" RESULT_VARIABLE result OUTPUT_VARIABLE text
                    ERROR_VARIABLE text)
    if(result EQUAL 0 OR NOT text MATCHES "${REFUSED}")
        message(FATAL_ERROR "expected the linker to refuse the program, naming ${REFUSED}:\n${text}")
    endif()
    return()
endif()
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/consumer")
